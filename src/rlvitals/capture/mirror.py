"""Begin a run of the W&B look-alike that records what another tracker's run gets."""

from collections.abc import Mapping
from typing import Any

from rlvitals.capture.run_folders import Source, join
from rlvitals.tracking.settings_mapping import as_mapping
from rlvitals.wandb.recorded import Run

TEXTS = ("name", "project", "entity", "group", "job_type", "notes")


def begin(
    tracker: str,
    run_id: str,
    facts: Mapping[str, Any],
    config: Any = None,
    first_step: int = 0,
) -> Run | None:
    """Return a run that joins this process's run folder; None where nothing is recorded.

    `facts` may hold texts by the names of `TEXTS`, and `tags`.
    """
    texts = {name: str(facts.get(name) or "") for name in TEXTS}
    tags = tuple(facts.get("tags") or ())
    settings = dict(as_mapping(config))
    share: Any = join(
        Source(tracker, run_id),
        **{name: texts[name] for name in ("name", "project", "group", "notes")},
        tags=tags,
        seed=settings.get("seed") if type(settings.get("seed")) is int else None,
    )
    if share is None:
        return None
    identity = {
        "id": run_id,
        "tags": tags,
        "disabled": False,
        "resumed": bool(facts.get("resumed")),
    }
    mirror = Run(share, {**texts, **identity}, first_step)
    if settings:
        mirror.config.update(settings)
    return mirror

"""Begin a run of the W&B look-alike that records what another tracker's run gets."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlvitals.capture.run_folders import Source, join
from rlvitals.tracking.settings_mapping import as_mapping
from rlvitals.tracking.start import start
from rlvitals.wandb.recorded import Run

TEXTS = ("name", "project", "entity", "group", "job_type", "notes")


def begin(  # noqa: PLR0913 - a run of a tracker, and where it begins
    tracker: str,
    run_id: str,
    facts: Mapping[str, Any],
    config: Any = None,
    first_step: int = 0,
    *,
    folder: Path | None = None,
) -> Run | None:
    """Return a run that joins this process's run folder; without one, a run in `folder`, or None.

    `facts` may hold texts by the names of `TEXTS`, and `tags`.
    """
    texts = {name: str(facts.get(name) or "") for name in TEXTS}
    tags = tuple(facts.get("tags") or ())
    settings = dict(as_mapping(config))
    options: dict[str, Any] = {name: texts[name] for name in ("name", "project", "group", "notes")}
    seed = settings.get("seed")
    options |= {"tags": tags, "seed": seed if type(seed) is int else None}
    share: Any = join(Source(tracker, run_id), **options)
    if share is None and folder is not None:
        share = start(folder, strict=False, **options)
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

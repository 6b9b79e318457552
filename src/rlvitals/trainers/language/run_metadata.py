"""The name of a run, and the sinks besides its own files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlvitals import UsageError
from rlvitals.lab import nearest
from rlvitals.trainers.language.config import DataConfig, ModelConfig, MonitoringConfig


def fields(model: ModelConfig, data: DataConfig, seed: int) -> dict[str, Any]:
    """Return the fields of a name's template."""
    return {
        "vlm": _short(model.vlm_name), "seed": seed, "dataset": _short(data.dataset_name),
        "subset": data.subset_size or "full",
    }  # fmt: skip


def fill(template: str, fields: Mapping[str, Any]) -> str:
    """Fill in a folder's or a run's name. Raises UsageError for a field that there is not."""
    try:
        return template.format_map(fields)
    except (KeyError, ValueError, IndexError) as error:
        names = ", ".join(f"{{{name}}}" for name in fields)
        raise UsageError(
            f"{template!r} cannot be filled in: {error}", where="a name", hint=f"it knows {names}"
        ) from None


def _short(name: str) -> str:
    return Path(name).name or name


def sinks(
    config: MonitoringConfig, name: str, tag: str, **tags: object
) -> dict[str, Mapping[str, Any]]:
    """Return the additional sinks and their options.

    `tags`: how keys are spelt there. Raises UsageError for a place that there is not.
    """
    options: dict[str, Mapping[str, Any]] = {
        "tensorboard": {"folder": config.logging_dir, "tables": False, **tags},
        "wandb": {
            "project": config.wandb_project, "name": name, "every": config.wandb_steps,
            "dir": ".", "tags": [tag], "label": tag, **tags,
            **({"entity": config.wandb_entity} if config.wandb_entity else {}),
        },
    }  # fmt: skip
    kinds = [kind for kind in config.report_to if kind != "none"]
    for kind in kinds:
        if kind not in options:
            raise UsageError(
                f"nothing reports to {kind!r}",
                where="monitoring.report_to",
                hint=nearest(kind, options) or f"one of {', '.join(options)}, none",
            )
    return {kind: options[kind] for kind in kinds}

"""Presets of the tiny models: the defaults are those of models with billions of parameters.

Measured by benchmarks/modes.py: a model of some hundred thousand weights wants a higher learning
rate that falls to zero, and many short completions. tiny-lm trains its weights, since adapters
would have more; tiny-vlm trains adapters, as models of billions do.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rlvitals.trainers.language.config import Config

Values = Mapping[str, Any]
MODEL_PRESETS: Mapping[str, Values] = MappingProxyType({
    "tiny-lm": {
        "data.dataset_name": "sums", "model.lora": False, "training.max_steps": 300,
        "training.batch_size": 64, "signal.num_generations": 8,
        "training.learning_rate": 5e-4, "training.max_completion_length": 6,
    },
    "tiny-vlm": {
        "data.dataset_name": "charts", "model.warm_start_steps": 80, "training.max_steps": 60,
        "training.batch_size": 64, "signal.num_generations": 8,
        "training.learning_rate": 2e-3, "training.max_completion_length": 24,
        "checks.image_check_steps": 10, "checks.image_check_questions": 256,
    },
})  # fmt: skip


def preset(vlm_name: str) -> Values:
    """Return what a model's training starts from, by dotted names; nothing for most."""
    return MODEL_PRESETS.get(vlm_name, {})


def source(vlm_name: str) -> str:
    """Return the source of the defaults of a model's training; empty for most."""
    return f"preset of {vlm_name}" if vlm_name in MODEL_PRESETS else ""


def table() -> str:
    """Return the presets as a table in Markdown."""
    lines = ["| model | starts from |", "| --- | --- |"]
    for name, values in MODEL_PRESETS.items():
        cells = ", ".join(
            f"`{key.split('.')[1]}` {_format_value(value)}" for key, value in values.items()
        )
        lines.append(f"| {name} | {cells} |")
    return "\n".join(lines) + "\n"


def _format_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def line(config: Config) -> str:
    """Return a line with the preset values that a training uses; empty without a preset."""
    unchanged = []
    for name, value in preset(config.model.vlm_name).items():
        section, key = name.split(".")
        if getattr(getattr(config, section), key) == value:
            unchanged.append(f"{key}={_format_value(value)}")
    return (
        f"{source(config.model.vlm_name)}: {' '.join(unchanged)} (any flag overrides)"
        if unchanged
        else ""
    )

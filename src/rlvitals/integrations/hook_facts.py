"""Convert settings and rows of trainers for a run; shared by the hooks."""

import os
from collections.abc import Iterator, Mapping
from enum import Enum
from numbers import Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlvitals.tracking.run import Run


def read_settings(args: Any, state: Any, model: object) -> dict[str, object]:
    """Return the settings of a run: the Trainer's arguments and the model's configuration.

    `max_steps` is the number that the Trainer computed from the epochs, if the arguments leave it
    open. Paths in the run's folder are relative to it: a moved run, or another seed, has the same.
    """
    settings: dict[str, object] = {key: to_json(value) for key, value in args.to_dict().items()}
    if state.max_steps and state.max_steps > 0:
        settings["max_steps"] = int(state.max_steps)
    settings["world_size"] = int(args.world_size)
    config = getattr(model, "config", None)
    if config is not None and hasattr(config, "to_dict"):
        settings["model_config"] = to_json(config.to_dict())
        settings.setdefault("model_name_or_path", str(getattr(config, "_name_or_path", "")))
    adapters = getattr(model, "peft_config", None)
    if isinstance(adapters, Mapping):
        settings["peft"] = {name: to_json(adapter.to_dict()) for name, adapter in adapters.items()}
    if hasattr(model, "parameters"):
        # Of a sharded model, of this shard.
        weights = [(p.numel(), p.requires_grad) for p in model.parameters()]
        settings["parameters"], settings["trainable_parameters"] = (
            sum(n for n, _ in weights),
            sum(n for n, is_trained in weights if is_trained),
        )
    return {key: _shorten_paths(value, str(args.output_dir)) for key, value in settings.items()}


# The framework by the name of the arguments' class, for TRL and libraries built on it. Others are
# recognised by their keys.
FRAMEWORK_BY_ARGUMENTS = {
    "GRPOConfig": "trl-grpo",
    "DPOConfig": "trl-dpo",
    "KTOConfig": "trl-dpo",
    "RewardConfig": "trl-dpo",
    "TrainingArguments": "hf-trainer",
}
FRAMEWORK_BY_MODULE = {
    "swift": "ms-swift",
    "unsloth": "unsloth",
}  # by what their modules' names begin with


def framework(args: Any) -> str:
    """Return the framework of a Trainer's metric names; "" where its arguments do not identify it.

    Subclasses of the Trainer's arguments under other names may belong to any library.
    """
    arguments_class = type(args)
    for base in arguments_class.__mro__:
        own_framework = FRAMEWORK_BY_ARGUMENTS.get(base.__name__, "")
        if own_framework and (
            base is arguments_class or own_framework != FRAMEWORK_BY_ARGUMENTS["TrainingArguments"]
        ):
            root = arguments_class.__module__.partition(".")[0].lower()
            return next(
                (key for begin, key in FRAMEWORK_BY_MODULE.items() if root.startswith(begin)),
                own_framework,
            )
    return ""


def record_framework(run: "Run", name: str) -> None:
    """Write the framework into `run.json`, unless it has one."""
    if not (name and run.id):
        return  # a run that is not recorded has no file
    from rlvitals.errors import VitalsError  # noqa: PLC0415 - at the start of a run alone
    from rlvitals.storage.run_folder import RunFolder  # noqa: PLC0415

    try:
        folder = RunFolder.open(run.folder)
        if not folder.about.framework:
            folder.update(framework=name)
    except (OSError, VitalsError) as error:
        run.note(f"whose names the keys are was not written: {error}")


def to_json(value: object) -> object:
    """Return a value as JSON types: numbers, texts, lists, dicts; else its text."""
    if isinstance(value, Enum):
        return to_json(value.value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): to_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(inner) for inner in value]
    return str(value)


def _shorten_paths(value: object, folder: str) -> object:
    """Return a JSON value with the paths in `folder` relative to it."""
    if isinstance(value, str) and value != folder:
        return value.removeprefix(os.path.join(folder, ""))  # noqa: PTH118 - its separator
    if isinstance(value, dict):
        return {key: _shorten_paths(inner, folder) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shorten_paths(inner, folder) for inner in value]
    return value


def record(run: "Run", step: int, values: Mapping[str, Any], **axes: float) -> None:
    """Record the numbers and the texts of a row; other values are skipped."""
    run.log(step, dict(numbers(values)), **axes)
    for key, text in values.items():
        if isinstance(text, str):
            run.log_text(step, key, text)


def numbers(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the numbers of nested dicts by path, including tensors and arrays of size 1."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if type(value) is float:  # most of them: the other checks are slower
            yield name, value
        elif isinstance(value, Mapping):
            yield from numbers(value, f"{name}/")
        elif value is None or isinstance(value, Real) or _is_single(value):
            yield name, value


def _is_single(value: Any) -> bool:
    count = value.numel() if hasattr(value, "numel") else getattr(value, "size", 0)
    return bool(count == 1)

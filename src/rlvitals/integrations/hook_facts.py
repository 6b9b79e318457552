"""What the hooks have in common: settings and rows as a run takes them."""

import os
from collections.abc import Iterator, Mapping
from enum import Enum
from numbers import Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlvitals.tracking.run import Run


def of_trainer(args: Any, state: Any, model: object) -> dict[str, object]:
    """Return the settings of a run: the arguments as they are named, the model's beside them.

    `max_steps` is what the Trainer worked out of the epochs where the arguments leave it open. A
    path in the run's own folder is told from there: a moved run, and one of another seed, has the
    same.
    """
    found: dict[str, object] = {key: plain(value) for key, value in args.to_dict().items()}
    if state.max_steps and state.max_steps > 0:
        found["max_steps"] = int(state.max_steps)
    found["world_size"] = int(args.world_size)
    config = getattr(model, "config", None)
    if config is not None and hasattr(config, "to_dict"):
        found["model_config"] = plain(config.to_dict())
        found.setdefault("model_name_or_path", str(getattr(config, "_name_or_path", "")))
    adapters = getattr(model, "peft_config", None)
    if isinstance(adapters, Mapping):
        found["peft"] = {name: plain(adapter.to_dict()) for name, adapter in adapters.items()}
    if hasattr(model, "parameters"):
        found["parameters"], found["trainable_parameters"] = _counted(model.parameters())
    return {key: _inside(value, str(args.output_dir)) for key, value in found.items()}


# The classes of arguments that tell what is trained, by the name of the class: of TRL's and of
# those that build on them. Others are told by their keys.
ARGUMENTS = {
    "GRPOConfig": "trl-grpo",
    "DPOConfig": "trl-dpo",
    "KTOConfig": "trl-dpo",
    "RewardConfig": "trl-dpo",
    "TrainingArguments": "hf-trainer",
}
BUILT_ON = {"swift": "ms-swift", "unsloth": "unsloth"}  # by what their modules' names begin with


def framework(args: Any) -> str:
    """Tell whose names a Trainer's rows have; "" where its arguments do not tell.

    Arguments of another class that only descend from the Trainer's may belong to anything.
    """
    own = type(args)
    for one in own.__mro__:
        found = ARGUMENTS.get(one.__name__, "")
        if found and (one is own or found != ARGUMENTS["TrainingArguments"]):
            root = own.__module__.partition(".")[0].lower()
            return next((name for begin, name in BUILT_ON.items() if root.startswith(begin)), found)
    return ""


def says(run: "Run", name: str) -> None:
    """Write into `run.json` whose names the keys are, unless somebody has said so."""
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


def plain(value: object) -> object:
    """Return a value as JSON has it: numbers, texts, lists and tables of them; else its text."""
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(inner) for inner in value]
    return str(value)


def _inside(value: object, folder: str) -> object:
    """Return a plain value with its paths in `folder` told from there."""
    if isinstance(value, str) and value != folder:
        return value.removeprefix(os.path.join(folder, ""))  # noqa: PTH118 - its separator
    if isinstance(value, dict):
        return {key: _inside(inner, folder) for key, inner in value.items()}
    if isinstance(value, list):
        return [_inside(inner, folder) for inner in value]
    return value


def record(run: "Run", step: int, values: Mapping[str, Any], **axes: float) -> None:
    """Record a row: numbers as numbers, texts as texts, nothing of what is neither."""
    run.log(step, dict(numbers(values)), **axes)
    for key, text in values.items():
        if isinstance(text, str):
            run.log_text(step, key, text)


def numbers(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the numbers of nested dicts, named by their path; tensors and arrays of one count."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if type(value) is float:  # nearly all of them: asking what else it is takes longest
            yield name, value
        elif isinstance(value, Mapping):
            yield from numbers(value, f"{name}/")
        elif value is None or isinstance(value, Real) or _holds_one(value):
            yield name, value


def _holds_one(value: Any) -> bool:
    count = value.numel() if hasattr(value, "numel") else getattr(value, "size", 0)
    return bool(count == 1)


def _counted(parameters: Any) -> tuple[int, int]:
    """Count the weights, and those that are trained; a sharded model's are its own shard's."""
    whole = [(p.numel(), p.requires_grad) for p in parameters]
    return sum(n for n, _ in whole), sum(n for n, trained in whole if trained)

"""Files that hold a run's settings and nothing else, as its trainer writes them beside the log.

JSON and YAML of Ray Tune, Lightning, Hydra, rl-zoo, DVC, W&B, ML-Agents and others, a LoRA
adapter's configuration, and Hugging Face's `training_args.bin`. What such a file holds is read as
plain content: nothing in it is constructed, unpickled or run. Problems are notes.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from rlvitals.errors import UnreadableLog
from rlvitals.readers.discovery import pickled_settings
from rlvitals.readers.formats import plain_yaml
from rlvitals.readers.formats.json_lines import parse_object
from rlvitals.readers.formats.lines import opened
from rlvitals.types import Setting

STEMS = ("params", "args", "config", "hparams", "hyperparameters", "configuration", "agent")
ADAPTER = "adapter_config.json"
TRAINING_ARGS = "training_args.bin"
ML_AGENTS = "configuration."  # `<run>/configuration.yaml`, above its behaviours' folders
HYDRA = ".hydra"  # the folder of Hydra's own copies, beside the logs
NAMES = frozenset(
    {
        *(f"{stem}{suffix}" for stem in STEMS for suffix in (".json", ".yaml", ".yml")),
        *(ADAPTER, TRAINING_ARGS),
    }
)
MAX_BYTES = {".json": 4 * 2**20, ".yaml": 2**20, ".yml": 2**20}
MAX_LEAVES = 5000
MAX_TEXT = 200  # characters of a setting
MAX_ITEMS = 20  # of a list
MAX_NESTED = 3  # lists in lists
# A model's description, not a trainer's settings. Source: transformers' PretrainedConfig.to_dict.
MODEL = ({"architectures"}, {"transformers_version"}, {"model_type", "hidden_size"})
# A LoRA adapter's settings, and what they are called among a run's. Source: peft's LoraConfig.
LORA = {
    "r": "lora_r",
    "lora_alpha": "lora_alpha",
    "lora_dropout": "lora_dropout",
    "target_modules": "lora_target_modules",
    "use_rslora": "lora_use_rslora",
    "use_dora": "lora_use_dora",
    "base_model_name_or_path": "base_model_name_or_path",
    "peft_type": "peft_type",
}


def is_settings(path: Path) -> bool:
    """Tell by its name whether a file holds settings."""
    return path.name in NAMES


def beside(path: Path) -> tuple[Path, ...]:
    """Return the files of settings in a log's folder and in Hydra's below it, sorted."""
    folders = (path.parent, path.parent / HYDRA)
    return tuple(sorted(file for at in folders for name in NAMES if (file := at / name).is_file()))


def read(path: Path, run: str = "") -> tuple[dict[str, Setting], list[str]]:
    """Return the settings under their own names, nested ones joined by "/", and notes.

    `run` is the name of the run's folder: of ML-Agents' behaviours it picks the one called so.
    """
    try:
        with opened(path) as file:
            item = _parser(path)(file)
    except UnreadableLog as error:
        return {}, [error.problem]
    except (plain_yaml.NotPlainError, pickled_settings.DoubtError) as error:
        return {}, [f"{error}: its settings are not known"]
    if not isinstance(item, dict):
        return {}, ["no settings in it"] if item is not None else []
    if any(item.keys() >= keys for keys in MODEL):
        return {}, []
    notes: list[str] = []
    found: dict[str, Setting] = {}
    try:
        for key, value in plain_yaml.leaves(_unwrapped(path, item, run), MAX_LEAVES):
            setting = _setting(value)
            if setting is not None:
                found[key] = setting
    except plain_yaml.NotPlainError as error:
        notes.append(f"{error}: {len(found):,} are")
    return found, notes


def _parser(path: Path) -> Callable[[BinaryIO], object]:
    if path.name == TRAINING_ARGS:
        return _pickled
    return _json if path.suffix == ".json" else _yaml


def _pickled(file: BinaryIO) -> dict[str, object]:
    """Return the public fields: those with an underscore are the trainer's own business.

    Its `max_steps` below 1 says that epochs decide.
    """
    found = pickled_settings.fields(file)
    return {
        key: value
        for key, value in found.items()
        if not key.startswith("_") and not (key == "max_steps" and _is_unset(value))
    }


def _is_unset(steps: object) -> bool:
    return isinstance(steps, int | float) and steps <= 0


def _json(file: BinaryIO) -> object:
    item = parse_object(_text(file, MAX_BYTES[".json"]))
    if item is None:
        raise plain_yaml.NotPlainError("not JSON")
    return item


def _yaml(file: BinaryIO) -> object:
    return plain_yaml.parse(_text(file, MAX_BYTES[".yaml"]))


def _text(file: BinaryIO, most: int) -> str:
    data = file.read(most + 1)
    if len(data) > most:
        raise plain_yaml.NotPlainError(f"longer than {most // 2**20} MiB")
    return data.decode("utf-8-sig", errors="replace")


def _unwrapped(path: Path, item: dict[str, object], run: str) -> dict[str, object]:
    """Take what only wraps the settings away: W&B's and SwanLab's values, ML-Agents' behaviours."""
    if path.name == ADAPTER:
        return {name: item[key] for key, name in LORA.items() if key in item}
    if "wandb_version" in item or all(_is_swanlab(value) for value in item.values()):
        return {
            key: value["value"]
            for key, value in item.items()
            if key != "_wandb" and isinstance(value, dict) and "value" in value
        }
    behaviours = item.get("behaviors")
    if isinstance(behaviours, dict) and behaviours:
        only = next(iter(behaviours.values())) if len(behaviours) == 1 else {}
        own = behaviours.get(run, only)
        return own if isinstance(own, dict) else {}
    return item


def _is_swanlab(value: object) -> bool:
    return isinstance(value, dict) and value.keys() == {"desc", "sort", "value"}


def _setting(value: object) -> Setting | None:
    """Return a leaf as a setting: lists as a short text; None for what is none."""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value[:MAX_TEXT]
    return _short(value)[:MAX_TEXT] if isinstance(value, list) and value else None


def _short(value: object, depth: int = 0) -> str:
    if isinstance(value, list):
        if depth >= MAX_NESTED:
            return "[...]"
        items = [_short(item, depth + 1) for item in value[:MAX_ITEMS]]
        return f"[{', '.join([*items, '...'] if len(value) > MAX_ITEMS else items)}]"
    if isinstance(value, Mapping):
        return "{...}"
    return value[:MAX_TEXT] if isinstance(value, str) else json.dumps(value, default=str)

"""Read the settings files that a trainer writes next to its log.

JSON and YAML of Ray Tune, Lightning, Hydra, rl-zoo, DVC, W&B, ML-Agents and others, a LoRA
adapter's configuration, Hugging Face's `training_args.bin`, and models that Stable-Baselines3
saved. What such a file holds is read as plain content: nothing in it is constructed, unpickled or
run. Problems are notes.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

from rlvitals.errors import UnreadableLog
from rlvitals.readers.discovery import pickled_settings, saved_models
from rlvitals.readers.formats import plain_yaml
from rlvitals.readers.formats.columns import MAX_SETTING_CHARACTERS
from rlvitals.readers.formats.json_lines import parse_object
from rlvitals.readers.formats.lines import open_log
from rlvitals.types import Setting

ML_AGENTS_PREFIX = "configuration."  # `<run>/configuration.yaml`, above its behaviours' folders
SETTINGS_NAMES = frozenset(
    {
        *(
            f"{stem}{suffix}"
            for stem in (
                "params",
                "args",
                "config",
                "hparams",
                "hyperparameters",
                "configuration",
                "agent",
            )
            for suffix in (".json", ".yaml", ".yml")
        ),
        *("adapter_config.json", "training_args.bin"),
    }
)
MAX_BYTES_BY_SUFFIX = {".json": 4 * 2**20, ".yaml": 2**20, ".yml": 2**20}
MAX_LIST_ITEMS = 20  # of a list


def is_settings(path: Path) -> bool:
    """Return True if, by its name, a file holds settings, or is a model that SB3 saved."""
    return path.name in SETTINGS_NAMES or saved_models.is_saved_model(path)


def settings_of_log(path: Path) -> tuple[Path, ...]:
    """Return the files of settings in a log's folder and in Hydra's below it, sorted."""
    folders = (path.parent, path.parent / ".hydra")
    named = [
        file for folder in folders for name in SETTINGS_NAMES if (file := folder / name).is_file()
    ]
    models = filter(saved_models.is_saved_model, path.parent.glob("*.zip"))
    return tuple(sorted([*named, *newest_of_each(models)]))


def newest_of_each(models: Iterable[Path]) -> list[Path]:
    """Return the last saved model of each name: `rl_model_2000_steps.zip`, not `..._1000_...`.

    None where their settings differ: nobody can say which of them logged.
    """
    by_name = {
        re.sub(r"\d+", "", model.name): model
        for model in sorted(models, key=lambda model: (len(model.name), model.name))
    }
    settings = [
        {k: v for k, v in read(model)[0].items() if k not in {"num_timesteps", "total_timesteps"}}
        for model in by_name.values()
    ]
    return list(by_name.values()) if all(each == settings[0] for each in settings) else []


def read(path: Path, run: str = "") -> tuple[dict[str, Setting], list[str]]:
    """Return the settings under their own names, nested ones joined by "/", and notes.

    `run` is the name of the run's folder: of ML-Agents' behaviours it picks the one called so.
    """
    try:
        with open_log(path) as file:
            item = _parse(path, file)
    except UnreadableLog as error:
        return {}, [error.problem]
    except (plain_yaml.NotPlainError, pickled_settings.DoubtError) as error:
        return {}, [f"{error}: its settings are not known"]
    if not isinstance(item, dict):
        return {}, ["no settings in it"] if item is not None else []
    # A model's description, not a trainer's settings. Source: transformers'
    # PretrainedConfig.to_dict.
    model_keys = ({"architectures"}, {"transformers_version"}, {"model_type", "hidden_size"})
    if any(item.keys() >= keys for keys in model_keys):
        return {}, []
    notes: list[str] = []
    settings: dict[str, Setting] = {}
    if path.name == "params.json" and (experiment := experiment_of_trial(path.parent)):
        settings["rlvitals/group"] = experiment  # as of a recorded run
    try:
        for key, value in plain_yaml.leaves(_unwrap(path, item, run), 5000):
            setting = _setting(value)
            if setting is not None:
                settings[key] = setting
    except plain_yaml.NotPlainError as error:
        notes.append(f"{error}: {len(settings):,} are")
    return settings, notes


def _parse(path: Path, file: BinaryIO) -> object:
    """Return what a file holds; of a trainer's arguments the public fields, its own left out."""
    if path.suffix == ".zip":
        return saved_models.fields(file)
    if path.name == "training_args.bin":
        return {
            key: value
            for key, value in pickled_settings.fields(file).items()
            if not key.startswith("_")
            # `max_steps` below 1 says that epochs decide.
            and not (key == "max_steps" and isinstance(value, int | float) and value <= 0)
        }
    if path.suffix != ".json":
        return plain_yaml.parse(_text(file, MAX_BYTES_BY_SUFFIX[".yaml"]))
    item = parse_object(_text(file, MAX_BYTES_BY_SUFFIX[".json"]))
    if item is None:
        raise plain_yaml.NotPlainError("not JSON")
    return item


def experiment_of_trial(folder: Path) -> str:
    """Return the name of a trial's experiment: Ray Tune keeps its state in the folder above."""
    above = folder.absolute().parent
    is_trial = (folder / "params.json").is_file()
    return above.name if is_trial and any(above.glob("experiment_state*.json")) else ""


def _text(file: BinaryIO, max_bytes: int) -> str:
    data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise plain_yaml.NotPlainError(f"longer than {max_bytes // 2**20} MiB")
    return data.decode("utf-8-sig", errors="replace")


def _unwrap(path: Path, item: dict[str, object], run: str) -> dict[str, object]:
    """Take what only wraps the settings away: W&B's and SwanLab's values, ML-Agents' behaviours."""
    if path.name == "adapter_config.json":
        # What a run calls a LoRA adapter's settings. Source: peft's LoraConfig.
        names = {
            "r": "lora_r",
            "lora_alpha": "lora_alpha",
            "lora_dropout": "lora_dropout",
            "target_modules": "lora_target_modules",
            "use_rslora": "lora_use_rslora",
            "use_dora": "lora_use_dora",
            "base_model_name_or_path": "base_model_name_or_path",
            "peft_type": "peft_type",
        }
        return {name: item[key] for key, name in names.items() if key in item}
    if "wandb_version" in item or all(
        (isinstance(value, dict) and value.keys() == {"desc", "sort", "value"})
        for value in item.values()
    ):
        return {
            key: value["value"]
            for key, value in item.items()
            if key != "_wandb" and isinstance(value, dict) and "value" in value
        }
    behaviours = item.get("behaviors")
    if isinstance(behaviours, dict) and behaviours:
        only = next(iter(behaviours.values())) if len(behaviours) == 1 else {}
        behaviour = behaviours.get(run, only)
        return behaviour if isinstance(behaviour, dict) else {}
    return item


def _setting(value: object) -> Setting | None:
    """Return a leaf as a setting: lists as a short text; None for what is none."""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value[:MAX_SETTING_CHARACTERS]
    return _short(value)[:MAX_SETTING_CHARACTERS] if isinstance(value, list) and value else None


def _short(value: object, depth: int = 0) -> str:
    if isinstance(value, list):
        if depth >= 3:
            return "[...]"
        items = [_short(item, depth + 1) for item in value[:MAX_LIST_ITEMS]]
        return f"[{', '.join([*items, '...'] if len(value) > MAX_LIST_ITEMS else items)}]"
    if isinstance(value, Mapping):
        return "{...}"
    return (
        value[:MAX_SETTING_CHARACTERS] if isinstance(value, str) else json.dumps(value, default=str)
    )

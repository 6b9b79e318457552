"""Read the settings in a model that Stable-Baselines3 saved: `model.save("dqn_cartpole")`.

Such a zip begins with a member `data`: the attributes of the algorithm as JSON, in which whatever
is not plain is a pickle as text. Plain values, and the texts beside the pickles, are read; nothing
is unpickled. Source: `stable_baselines3/common/save_util.py`, `save_to_zip_file`, `data_to_json`.
"""

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from rlvitals.readers.discovery.pickled_settings import ZIP_ERRORS
from rlvitals.readers.formats import plain_yaml
from rlvitals.readers.formats.json_lines import parse_object


def is_saved_model(path: Path) -> bool:
    """Return True for a zip whose first member is SB3's `data`."""
    if path.suffix != ".zip":
        return False
    try:
        with path.open("rb") as file:
            head = file.read(34)
    except OSError:  # gone, or not to be read: no settings
        return False
    # The header of the first member, the length of its name, and the name.
    return head.startswith(b"PK\x03\x04") and head[26:28] == b"\x04\x00" and head[30:] == b"data"


def fields(file: BinaryIO, *, max_bytes: int = 4 * 2**20) -> dict[str, object]:
    """Return the algorithm's name, hyperparameters, and its steps when it was saved.

    `max_bytes` bounds the description. Raises NotPlainError.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            if archive.getinfo("data").file_size > max_bytes:
                raise plain_yaml.NotPlainError("a model with too long a description")
            text = archive.read("data").decode("utf-8", errors="replace")
    except ZIP_ERRORS as error:
        raise plain_yaml.NotPlainError("not a model that Stable-Baselines3 saved") from error
    data = parse_object(text)
    if data is None:
        raise plain_yaml.NotPlainError("not a model that Stable-Baselines3 saved")
    result: dict[str, object] = {
        key: value
        for key, value in data.items()
        if not key.startswith("_")
        and key not in {"start_time", "verbose", "exploration_rate"}
        and not isinstance(value, dict)
    }
    for key in ("clip_range", "clip_range_vf", "learning_rate"):
        schedule = data.get(key)
        text = str(schedule.get("value_schedule")) if isinstance(schedule, dict) else ""
        if match := re.search(r"ConstantSchedule\(val=([-+\d.e]+)\)", text):
            result[key] = float(match[1])
    if "gae_lambda" not in data and "n_steps" in result:
        result["n_step_returns"] = result.pop("n_steps")  # no length of a rollout there
    actions = data.get("action_space")
    if isinstance(actions, dict) and "Discrete'" in str(actions.get(":type:")):
        result["n_actions"] = int(actions["n"]) if str(actions.get("n")).isdigit() else None
    total, algorithm = data.get("_total_timesteps"), _algorithm(data)
    return {
        **result,
        **({"algorithm": algorithm} if algorithm else {}),
        **({"total_timesteps": total} if isinstance(total, int) and total > 0 else {}),
    }


def _algorithm(data: Mapping[str, Any]) -> str:
    """Return the name of the algorithm by its policy's module; "" where several share it."""
    policy = data.get("policy_class")
    module = str(policy.get("__module__")) if isinstance(policy, dict) else ""
    match = re.fullmatch(r"(?:stable_baselines3|sb3_contrib)\.(\w+)\.policies", module)
    if match is None:
        return ""
    if match[1] == "td3":  # DDPG is its TD3 without the clipped noise
        return "td3" if data.get("target_noise_clip") else "ddpg"
    if match[1] != "common":
        return match[1]
    if "clip_range" in data:
        return "ppo"
    return "" if "batch_size" in data else "a2c"  # TRPO has its policies from there, too

"""Read the settings of a Stable-Baselines3 algorithm under canonical names."""

import inspect
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.type_aliases import TrainFreq
from stable_baselines3.common.vec_env import VecEnv

from rlvitals.metrics.frameworks import sb3
from rlvitals.types import Setting


def settings(model: BaseAlgorithm, total_steps: int | None = None) -> dict[str, Setting]:
    """Return every hyperparameter of a model, its environment and the size of its policy."""
    arguments = dict(_flat(_arguments(model)))
    if not isinstance(model, OnPolicyAlgorithm) and "n_steps" in arguments:
        arguments["n_step_returns"] = arguments.pop("n_steps")  # no length of a rollout there
    result = {sb3.NAMES.settings.get(key, key): value for key, value in arguments.items()}
    # The numbers of trained parameters and of all (with target networks).
    parameters = dict(model.policy.named_parameters())
    trained = sum(
        p.numel() for name, p in parameters.items() if p.requires_grad and "target" not in name
    )
    sizes = {
        "n_parameters": trained,
        "n_parameters_held": sum(p.numel() for p in parameters.values()),
    }
    space_settings: dict[str, Setting] = {
        "observation_space": str(model.observation_space),
        "action_space": str(model.action_space),
    }
    if isinstance(model.action_space, spaces.Discrete):
        space_settings["n_actions"] = int(model.action_space.n)
    elif isinstance(model.action_space, spaces.Box):
        space_settings["action_dim"] = math.prod(model.action_space.shape)
    result |= {
        "algorithm": type(model).__name__.lower(),
        "framework": "stable-baselines3",
        "policy": type(model.policy).__name__,
        "n_envs": model.n_envs,
        "device": str(model.device),
        **space_settings,
        **sizes,
    }
    if model.seed is not None:
        result["seed"] = model.seed
    if total_steps is not None:
        result["total_steps"] = total_steps
    if (env := model.get_env()) is not None and (name := env_id(env)):
        result["env_id"] = name
    return result


def env_id(env: VecEnv) -> str:
    """Return the registered name of the environments, or their class; "" where both are unknown.

    Read from their text: it can cross to another process whatever the environment holds.
    """
    try:
        text = str(env.env_method("__str__", indices=0)[0])
    except Exception:  # noqa: BLE001 - not every vector environment has such a method
        return ""
    names = re.findall(r"<([^<>]+)>", text)  # of "<Monitor<TimeLimit<CartPoleEnv<CartPole-v1>>>>"
    return str(names[-1]).removesuffix(" instance") if names else ""


def _arguments(model: BaseAlgorithm) -> dict[str, Any]:
    """Return the constructor arguments up to the base class, with the model's current values."""
    names: dict[str, None] = {}
    for cls in type(model).__mro__:
        if issubclass(cls, BaseAlgorithm):
            names |= dict.fromkeys(inspect.signature(cls.__init__).parameters)
    return {
        name: getattr(model, name)
        for name in names
        # Arguments about output and devices, not about training.
        if name
        not in {
            "self",
            "policy",
            "env",
            "verbose",
            "tensorboard_log",
            "monitor_wrapper",
            "device",
            "seed",
        }
        and not name.startswith("_")
        and hasattr(model, name)
    }


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Setting]]:
    for name, value in values.items():
        if isinstance(value, bool | int | float | str):
            yield name, value
        elif isinstance(value, TrainFreq):
            yield name, value.frequency
            yield f"{name}_unit", value.unit.value
        elif isinstance(value, Mapping):
            yield from ((f"{name}/{key}", inner) for key, inner in _flat(value))
        elif isinstance(value, type):
            yield name, value.__name__
        elif callable(value):
            yield from _schedule(name, value)
        elif isinstance(value, list | tuple):
            yield name, str(value)


def _schedule(name: str, schedule: Any) -> Iterator[tuple[str, Setting]]:
    """Yield the start of a schedule, and its end if it differs."""
    try:
        start, end = float(schedule(1.0)), float(schedule(0.0))
    except Exception:  # noqa: BLE001 - a user's own function of anything
        yield name, getattr(schedule, "__name__", type(schedule).__name__)
        return
    yield name, start
    if end != start:
        yield f"{name}_end", end

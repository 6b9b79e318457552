"""The settings of a Stable-Baselines3 algorithm, under canonical names."""

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

# Not what is trained, but where it is shown and kept.
LEFT_OUT = frozenset(
    {"self", "policy", "env", "verbose", "tensorboard_log", "monitor_wrapper", "device", "seed"}
)
TARGET = "target"  # networks that follow, and are not trained
INNERMOST = re.compile(r"<([^<>]+)>")  # of "<Monitor<TimeLimit<CartPoleEnv<CartPole-v1>>>>"


def settings(model: BaseAlgorithm, total_steps: int | None = None) -> dict[str, Setting]:
    """Return every hyperparameter of a model, its environment and the size of its policy."""
    given = dict(_flat(_arguments(model)))
    if not isinstance(model, OnPolicyAlgorithm) and "n_steps" in given:
        given["n_step_returns"] = given.pop("n_steps")  # no length of a rollout there
    found = {sb3.NAMES.settings.get(key, key): value for key, value in given.items()}
    found |= {
        "algorithm": type(model).__name__.lower(),
        "framework": "stable-baselines3",
        "policy": type(model.policy).__name__,
        "n_envs": model.n_envs,
        "device": str(model.device),
        **_spaces(model),
        **_sizes(model),
    }
    if model.seed is not None:
        found["seed"] = model.seed
    if total_steps is not None:
        found["total_steps"] = total_steps
    if (env := model.get_env()) is not None and (name := env_id(env)):
        found["env_id"] = name
    return found


def env_id(env: VecEnv) -> str:
    """Return the registered name of the environments, or their class; "" where neither is told.

    Read from their text: it can cross to another process whatever the environment holds.
    """
    try:
        text = str(env.env_method("__str__", indices=0)[0])
    except Exception:  # noqa: BLE001 - not every vector environment has such a method
        return ""
    found = INNERMOST.findall(text)
    return str(found[-1]).removesuffix(" instance") if found else ""


def _arguments(model: BaseAlgorithm) -> dict[str, Any]:
    """Collect what the constructors up to the base class take, as the model holds it now."""
    names: dict[str, None] = {}
    for cls in type(model).__mro__:
        if issubclass(cls, BaseAlgorithm):
            names |= dict.fromkeys(inspect.signature(cls.__init__).parameters)
    return {
        name: getattr(model, name)
        for name in names
        if name not in LEFT_OUT and not name.startswith("_") and hasattr(model, name)
    }


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Setting]]:
    for name, value in values.items():
        if isinstance(value, bool | int | float | str):
            yield name, value
        elif isinstance(value, TrainFreq):
            yield name, value.frequency
            yield f"{name}_unit", value.unit.value
        elif isinstance(value, Mapping):
            yield from ((f"{name}/{key}", one) for key, one in _flat(value))
        elif isinstance(value, type):
            yield name, value.__name__
        elif callable(value):
            yield from _schedule(name, value)
        elif isinstance(value, list | tuple):
            yield name, str(value)


def _schedule(name: str, schedule: Any) -> Iterator[tuple[str, Setting]]:
    """Say where a schedule starts, and where it ends if that is elsewhere."""
    try:
        start, end = float(schedule(1.0)), float(schedule(0.0))
    except Exception:  # noqa: BLE001 - a user's own function of anything
        yield name, getattr(schedule, "__name__", type(schedule).__name__)
        return
    yield name, start
    if end != start:
        yield f"{name}_end", end


def _spaces(model: BaseAlgorithm) -> dict[str, Setting]:
    found: dict[str, Setting] = {
        "observation_space": str(model.observation_space),
        "action_space": str(model.action_space),
    }
    if isinstance(model.action_space, spaces.Discrete):
        found["n_actions"] = int(model.action_space.n)
    elif isinstance(model.action_space, spaces.Box):
        found["action_dim"] = math.prod(model.action_space.shape)
    return found


def _sizes(model: BaseAlgorithm) -> dict[str, Setting]:
    """Count the numbers that are trained, and all that the policy holds (target networks too)."""
    own = dict(model.policy.named_parameters())
    trained = sum(p.numel() for name, p in own.items() if p.requires_grad and TARGET not in name)
    return {"n_parameters": trained, "n_parameters_held": sum(p.numel() for p in own.values())}

"""Vectors of environments with one meaning of "done" in every autoreset mode."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from numpy.typing import NDArray

from rlvitals import UsageError, VitalsError
from rlvitals.trainers.ppo import subprocess_env

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one step of `n` environments."""

    rewards: NDArray[np.float64]  # [n]
    terminated: Bools  # [n]: the episode is over, nothing follows
    truncated: Bools  # [n]: it was cut off, it bootstraps from `final`
    valid: Bools  # [n]: False where the environment only reset itself (NEXT_STEP)
    final: NDArray[Any]  # [n, features]: where the actions led, before any reset
    info: Mapping[str, Any]


class Environments:
    """A vector of environments that trains: observations flat, actions in the policy's units.

    Discrete actions are int64 [n]. Continuous ones are [n, d] and mean the action space's bounds
    at -1 and 1 (where it has any); beyond them they are clipped for the environment alone.
    Raises UsageError for spaces that PPO here cannot act in.
    """

    def __init__(self, vector: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        """Take over a vector of environments."""
        self.vector = vector
        self.count = vector.num_envs
        mode = vector.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self._mode = AutoresetMode(getattr(mode, "value", mode))
        space = vector.single_observation_space
        if not isinstance(space, gym.spaces.Box):
            raise UsageError(f"observations of {space} are not flat numbers", hint="a Box is read")
        self.features = int(np.prod(space.shape))
        action_space = vector.single_action_space
        self._low = self._high = None
        if isinstance(action_space, gym.spaces.Discrete):
            self.continuous, self.actions, self._first = (
                False,
                int(action_space.n),
                int(action_space.start),
            )
        elif isinstance(action_space, gym.spaces.Box) and len(action_space.shape) == 1:
            self.continuous, self.actions = True, int(action_space.shape[0])
            self._dtype = action_space.dtype
            if np.isfinite(action_space.low).all() and np.isfinite(action_space.high).all():
                self._low, self._high = action_space.low, action_space.high
        else:
            raise UsageError(
                f"PPO cannot act in {action_space}", hint="Discrete and flat Box are played"
            )
        self.observations: NDArray[Any] = np.zeros((self.count, self.features), np.float32)
        self._resets: Bools = np.zeros(self.count, np.bool_)  # due in the next step (NEXT_STEP)
        self.episode_return = np.zeros(self.count)
        self.episode_length = np.zeros(self.count, np.int64)
        self._partial: Bools = np.zeros(self.count, np.bool_)  # their episode is cut short by us

    def reset(self, seed: int) -> None:
        """Begin all episodes anew."""
        observations, _ = self.vector.reset(seed=seed)
        self.observations = self._flat(observations)
        self._resets[:] = False
        self.episode_return[:], self.episode_length[:] = 0.0, 0
        self._partial[:] = getattr(self.vector.unwrapped, "stagger", False)

    def action_masks(self) -> Bools | None:
        """Return which actions the vector allows now, [n, actions]; None where it does not say.

        A vector provides a method of this name, as environments of sb3-contrib do.
        """
        ask = getattr(self.vector.unwrapped, "action_masks", None)
        masks = None if ask is None else ask()
        return None if masks is None else np.array(masks, np.bool_)

    def step(self, actions: NDArray[Any]) -> tuple[Step, list[tuple[float, int]]]:
        """Act in each; returns the step, and return and length of the episodes that ended.

        The first ones of a vector that staggers them are left out: they are not complete.

        `observations` then holds what to act on next. Raises VitalsError where an environment
        raises or gives numbers that are not finite.
        """
        observations, rewards, terminated, truncated, info = self._step(self._outer(actions))
        flat = self._flat(observations)
        self._finite(np.asarray(rewards)[:, None], "pays a reward of")
        dones = terminated | truncated
        valid = ~self._resets
        final = flat
        if self._mode is AutoresetMode.NEXT_STEP:
            self._resets = dones
        elif dones.any():
            final = self._finals(flat, dones, info)
        self.observations = flat
        self.episode_return += np.where(valid, rewards, 0.0)
        self.episode_length += valid
        episodes = [
            (float(self.episode_return[i]), int(self.episode_length[i]))
            for i in np.flatnonzero(dones & ~self._partial)
        ]
        self._partial[dones] = False
        self.episode_return[dones], self.episode_length[dones] = 0.0, 0
        step = Step(np.asarray(rewards, np.float64), terminated, truncated, valid, final, info)
        return step, episodes

    def close(self) -> None:
        """End the environments and their processes."""
        if isinstance(self.vector, AsyncVectorEnv):
            subprocess_env.close(self.vector)
        else:
            self.vector.close()

    def _step(self, actions: NDArray[Any]) -> Any:  # noqa: ANN401 - Gymnasium's tuple
        try:
            return self.vector.step(actions)
        except VitalsError:
            raise
        except (EOFError, OSError) as error:
            died = subprocess_env.describe_deaths(self.vector) or str(error)
            raise VitalsError(
                f"a process died: {died}",
                where=str(self.vector),
                hint="run the command again: it resumes; killed by SIGKILL is often out of memory",
            ) from error
        except Exception as error:
            raise VitalsError(
                f"an environment raised {type(error).__name__}: {error}",
                where=str(self.vector),
                hint="mend the environment and run the command again: it resumes",
            ) from error

    def _finals(
        self,
        flat: NDArray[Any],
        dones: Bools,
        info: Mapping[str, Any],
    ) -> NDArray[Any]:
        """Return where the actions led, in the modes that leave the reset to this step or to us."""
        final = flat.copy()
        if self._mode is AutoresetMode.SAME_STEP:
            for i in np.flatnonzero(dones):
                final[i] = np.asarray(info["final_obs"][i]).reshape(-1)
            self._finite(final)
        else:  # DISABLED: we reset
            fresh, _ = self.vector.reset(options={"reset_mask": dones})
            flat[dones] = self._flat(fresh)[dones]
        return final

    def _flat(self, observations: Any) -> NDArray[Any]:  # noqa: ANN401 - an array of any shape
        flat = np.asarray(observations).reshape(self.count, -1)
        self._finite(flat)
        return flat

    def _finite(self, rows: NDArray[Any], paid: str = "") -> None:
        """Raise VitalsError for a number of [n, features] that is not finite."""
        if np.isfinite(rows).all():
            return
        env, feature = np.argwhere(~np.isfinite(rows))[0]
        raise VitalsError(
            f"environment {env} {paid or 'observes'} {rows[env, feature]}"
            + ("" if paid else f" at feature {feature}"),
            where=str(self.vector),
            hint="a simulation that breaks: find its state with its own render or log",
        )

    def _outer(self, actions: NDArray[Any]) -> NDArray[Any]:
        if not self.continuous:
            return actions + self._first if self._first else actions
        if self._low is None or self._high is None:
            return actions.astype(self._dtype)
        share = (np.clip(actions, -1.0, 1.0) + 1.0) * 0.5
        outer: NDArray[Any] = (self._low + share * (self._high - self._low)).astype(self._dtype)
        return outer


class Separate(Environments):
    """Those in processes of their own, whose state lies there."""

    vector: AsyncVectorEnv[Any, Any]

    LOCAL_STATE = ("observations", "_resets", "episode_return", "episode_length")

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the environments."""
        state = {name: getattr(self, name).copy() for name in self.LOCAL_STATE}
        return state | {"there": subprocess_env.states(self.vector)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        for name in self.LOCAL_STATE:
            setattr(self, name, state[name])
        subprocess_env.restore_states(self.vector, state["there"])


def make(name: str, count: int, *, processes: bool = False, **options: Any) -> Environments:  # noqa: ANN401
    """Make `count` environments of a Gymnasium id: its own vector where it has one.

    `processes` runs each in its own process. Raises UsageError for an unknown id.
    """
    try:
        spec = gym.spec(name)
        native = spec.vector_entry_point is not None and not processes
        if native:
            return Environments(gym.make_vec(name, count, "vector_entry_point", **options))
        with subprocess_env.ignore_sigint() if processes else nullcontext():
            vector = gym.make_vec(
                name,
                count,
                "async" if processes else "sync",
                vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
                wrappers=[
                    gym.wrappers.FlattenObservation,
                    *([subprocess_env.StateWrapper] if processes else []),
                ],
                **options,
            )
    except gym.error.Error as error:
        raise UsageError(f"there is no environment {name}: {error}") from error
    return Separate(vector) if processes else Environments(vector)

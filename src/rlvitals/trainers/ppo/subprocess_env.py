"""Environments in subprocesses: save, restore, and report a dead process."""

import random
import signal
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv
from numpy.typing import NDArray

import rlvitals

JOIN_SECONDS = 1.0  # seconds that a process which closed its pipe gets to be found dead
Files = dict[str, NDArray[np.uint8]]


class StateWrapper(gym.Wrapper[Any, Any, Any, Any]):
    """An environment that gives its state, and takes it, through the pipe of its process."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        """Wrap an environment."""
        super().__init__(env)
        self.pending_state: Files = {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:  # noqa: ANN401 - Gymnasium's tuple
        """Begin an episode; a seed holds for the process's own generators too.

        A forked process seeds Python's anew from the system, so no run would equal another.
        """
        if seed is not None:
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002 - what an environment may draw from
        return super().reset(seed=seed, options=options)

    def save_state(self) -> Files:
        """Return the state as files."""
        with tempfile.TemporaryDirectory() as folder:
            rlvitals.State(env=self.env).save(Path(folder))
            return {
                file.name: np.frombuffer(file.read_bytes(), np.uint8)
                for file in sorted(Path(folder).iterdir())
            }

    def load_state(self) -> None:
        """Take the state in `pending_state`."""
        with tempfile.TemporaryDirectory() as folder:
            for name, data in self.pending_state.items():
                (Path(folder) / name).write_bytes(data.tobytes())
            rlvitals.State(env=self.env).load(Path(folder))
        self.pending_state = {}


def states(vector: AsyncVectorEnv) -> list[Files]:
    """Return the state of each environment."""
    return list(vector.call("save_state"))


def restore_states(vector: AsyncVectorEnv, states: list[Mapping[str, Any]]) -> None:
    """Give each environment its state back."""
    vector.set_attr("pending_state", [dict(state) for state in states])
    vector.call("load_state")


def close(vector: AsyncVectorEnv) -> None:
    """End all processes; those of a vector that one of them is missing from by force."""
    if all(process.exitcode is None for process in vector.processes):
        with suppress(OSError, EOFError, gym.error.Error), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a step that was not waited for
            vector.close()
            return
    for process in vector.processes:
        process.terminate()
        process.join(JOIN_SECONDS)
    vector.closed = True


def describe_deaths(vector: object) -> str:
    """Return the processes of a vector that died, with the cause; empty if none did."""
    if not isinstance(vector, AsyncVectorEnv):
        return ""
    deaths = []
    for i, process in enumerate(vector.processes):
        process.join(JOIN_SECONDS / len(vector.processes))
        if process.exitcode is not None:
            deaths.append(f"environment {i} ({_format_exit_code(process.exitcode)})")
    return ", ".join(deaths)


def _format_exit_code(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return f"killed by {signal.Signals(-code).name}"
    return f"killed by signal {-code}"


@contextmanager
def ignore_sigint() -> Iterator[None]:
    """Start processes that ignore Ctrl-C: this process ends them."""
    try:
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)

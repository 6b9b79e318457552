"""Environments in processes of their own: they are saved and restored too, and a death is named."""

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

PATIENCE = 1.0  # seconds that a process which closed its pipe gets to be found dead
Files = dict[str, NDArray[np.uint8]]


class Held(gym.Wrapper[Any, Any, Any, Any]):
    """An environment that gives its state, and takes it, through the pipe of its process."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        """Wrap an environment."""
        super().__init__(env)
        self.to_put: Files = {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:  # noqa: ANN401 - Gymnasium's tuple
        """Begin an episode; a seed holds for the process's own generators too.

        A forked process seeds Python's anew from the system, so no run would equal another.
        """
        if seed is not None:
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002 - what an environment may draw from
        return super().reset(seed=seed, options=options)

    def held(self) -> Files:
        """Return the state as files."""
        with tempfile.TemporaryDirectory() as folder:
            rlvitals.State(env=self.env).save(Path(folder))
            return {
                file.name: np.frombuffer(file.read_bytes(), np.uint8)
                for file in sorted(Path(folder).iterdir())
            }

    def put(self) -> None:
        """Take the state in `to_put`."""
        with tempfile.TemporaryDirectory() as folder:
            for name, data in self.to_put.items():
                (Path(folder) / name).write_bytes(data.tobytes())
            rlvitals.State(env=self.env).load(Path(folder))
        self.to_put = {}


def states(vector: AsyncVectorEnv) -> list[Files]:
    """Return the state of each environment."""
    return list(vector.call("held"))


def put(vector: AsyncVectorEnv, states: list[Mapping[str, Any]]) -> None:
    """Give each environment its state back."""
    vector.set_attr("to_put", [dict(state) for state in states])
    vector.call("put")


def close(vector: AsyncVectorEnv) -> None:
    """End all processes; those of a vector that one of them is missing from by force."""
    if all(process.exitcode is None for process in vector.processes):
        with suppress(OSError, EOFError, gym.error.Error), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a step that was not waited for
            vector.close()
            return
    for process in vector.processes:
        process.terminate()
        process.join(PATIENCE)
    vector.closed = True


def dead(vector: object) -> str:
    """Say which processes of a vector died, and how; empty where none did."""
    if not isinstance(vector, AsyncVectorEnv):
        return ""
    deaths = []
    for i, process in enumerate(vector.processes):
        process.join(PATIENCE / len(vector.processes))
        if process.exitcode is not None:
            deaths.append(f"environment {i} ({_ended(process.exitcode)})")
    return ", ".join(deaths)


def _ended(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return f"killed by {signal.Signals(-code).name}"
    return f"killed by signal {-code}"


@contextmanager
def deaf() -> Iterator[None]:
    """Let processes that begin in it not hear Ctrl-C: it is this one's to end them."""
    try:
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)

"""Map a function over arguments on a Ray cluster: in order, with retries."""

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from rlvitals.errors import UsageError

Argument = TypeVar("Argument")
Result = TypeVar("Result")
Request = tuple[Argument, Path]  # an argument and what it names


def ray_map(
    function: Callable[[Argument], Result],
    arguments: Sequence[Argument],
    address: str = "",
    *,
    path_of: Callable[[Argument], Path] = lambda _: Path(),
    chunk: int = 4,
) -> Iterator[Result]:
    """Yield the results of a function in the order of its arguments, computed on a Ray cluster.

    The workers see the files under the same paths and have the same packages. A task is tried again
    where its worker or machine dies. What still fails is computed here, and what a worker cannot
    see.

    Parameters
    ----------
    function : callable
        Called with one argument; it and its results are sent between processes.
    arguments : sequence
        One for each call.
    address : str
        Address of the cluster. Default: `RAY_ADDRESS`, or a cluster on this machine.
    path_of : callable
        Returns the path that an argument names, which a worker must see.
    chunk : int
        Number of arguments per task.

    Raises
    ------
    UsageError
        If Ray is not installed, or there is no cluster at the address.
    Exception
        What the function raises.
    """
    try:
        import ray  # noqa: PLC0415 - optional, and slow to import
    except ImportError as error:
        hint = "pip install 'rlvitals[ray]'"
        raise UsageError("Ray is not installed", where="--ray", hint=hint) from error
    started = not ray.is_initialized()
    if started:
        _connect(ray, address)
    try:
        requests = [(argument, path_of(argument)) for argument in arguments]
        yield from _map_chunks(ray, function, requests, chunk)
    finally:
        if started:
            ray.shutdown()


def _connect(ray: ModuleType, address: str) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a diagnosis sends nothing anywhere
    try:
        ray.init(address or None, log_to_driver=False, logging_level="error")
    except (ConnectionError, RuntimeError, ValueError) as error:
        problem = str(error).partition("\n")[0]
        hint = "--ray HOST:6379, or --ray alone for this machine"
        raise UsageError(f"no Ray cluster: {problem}", where="--ray", hint=hint) from error


def _map_chunks(
    ray: ModuleType,
    function: Callable[[Argument], Result],
    requests: Sequence[Request[Argument]],
    size: int,
) -> Iterator[Result]:
    """Hand over some chunks at a time, and yield their results in order."""
    task: Any = ray.remote(max_retries=3)(_apply)  # where its worker or machine dies
    chunks = (requests[start : start + size] for start in range(0, len(requests), size))
    # Four for each core: the results of all that are handed over wait in memory.
    limit = max(4 * int(ray.cluster_resources().get("CPU", 1)), 1)
    folder = str(Path.cwd())
    pending = deque(
        (batch, task.remote(function, batch, folder)) for batch in islice(chunks, limit)
    )
    while pending:
        batch, reference = pending.popleft()
        try:
            results = ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except ray.exceptions.RayError:  # its workers died: out of memory, as a rule
            results = None
        pending += ((more, task.remote(function, more, folder)) for more in islice(chunks, 1))
        if results is None:
            results = [function(argument) for argument, _ in batch]
        yield from results


def _apply(
    function: Callable[[Argument], Result], requests: Sequence[Request[Argument]], folder: str
) -> list[Result] | None:
    """Run in a worker; None where its machine lacks one of the files.

    Paths are relative to the folder of the process that asks.
    """
    if not Path(folder).is_dir():
        return None
    with contextlib.chdir(folder):
        if not all(path.exists() for _, path in requests):
            return None
        return [function(argument) for argument, _ in requests]

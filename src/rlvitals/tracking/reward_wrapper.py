"""Wrap a reward function to record its values, duration and exceptions."""

import functools
import inspect
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from threading import Lock
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from rlvitals.tracking import run as runs
from rlvitals.tracking import tensors
from rlvitals.tracking.run import Run

CallParams = ParamSpec("CallParams")
ResultT = TypeVar("ResultT")


def observe(
    fn: Callable[CallParams, ResultT],
    run: Run | None = None,
    *,
    name: str = "",
    step: Callable[[], int] | None = None,
) -> Callable[CallParams, ResultT]:
    """Wrap a reward function to record its results; its behaviour does not change.

    Parameters
    ----------
    fn : callable
        A function or coroutine function. It may return a number, a batch (list, tuple, array or
        tensor of any shape) of numbers and None, a dict of parts, or a tuple of a total and such a
        dict.
    run : Run, optional
        The run that records. Default: at each call, the run of this process that was started last
        and is not finished; without one nothing is recorded.
    name : str
        Name in the recorded keys. Default: `fn.__name__`.
    step : callable, optional
        Returns the step of a row; takes no arguments. Default: the last step that the run logged.

    Returns
    -------
    callable
        A function with the arguments, results and exceptions of `fn`. Errors of the recording are
        noted in the run.

    Notes
    -----
    A row has `reward/component/<part>` (mean) and `reward/component_std/<part>` (standard
    deviation) over the finite values of a part since the last row, and
    `observed/<part>/not_finite`, the number of its NaN and infinite values. `observed/<name>/` has
    `none_share` (0 to 1), `seconds` (mean per call), and the totals `calls` and `exceptions`. Each
    batch and each exception is a row; other calls write at most one row per second.
    """
    calls = _CallStats(name or getattr(fn, "__name__", type(fn).__name__), run, step)

    @functools.wraps(fn)
    def wrapper(*args: CallParams.args, **kwargs: CallParams.kwargs) -> ResultT:
        start = time.perf_counter()
        try:
            returned = fn(*args, **kwargs)
        except Exception as error:
            calls.add_exception(error, time.perf_counter() - start)
            raise
        calls.add_result(returned, time.perf_counter() - start)
        return returned

    @functools.wraps(fn)
    async def async_wrapper(*args: CallParams.args, **kwargs: CallParams.kwargs) -> object:
        start = time.perf_counter()
        try:
            returned = await cast("Awaitable[object]", fn(*args, **kwargs))
        except Exception as error:
            calls.add_exception(error, time.perf_counter() - start)
            raise
        calls.add_result(returned, time.perf_counter() - start)
        return returned

    function = async_wrapper if inspect.iscoroutinefunction(fn) else wrapper
    return cast("Callable[CallParams, ResultT]", function)


class _CallStats:
    """Sums over the calls since the last row."""

    def __init__(self, name: str, run: Run | None, step: Callable[[], int] | None) -> None:
        self.name, self.run, self.step = name, run, step
        self.calls = self.exceptions = 0  # since the beginning
        self._lock = Lock()
        self._next_row_time = 0.0
        self._clear()

    def _clear(self) -> None:
        self._values: dict[str, list[float]] = {}
        self._seconds = 0.0
        self._count = self._none = self._rewards = 0

    def add_result(self, value: object, seconds: float) -> None:
        """Add the result of a call; an error in it must not reach the caller."""
        run = self.run or runs.current()
        if run is None:
            return
        try:
            with self._lock:
                # A total and its parts.
                if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Mapping):
                    total_is_batch = self._add_component(self.name, value[0])
                    is_batch = self._add_components(value[1]) or total_is_batch
                elif isinstance(value, Mapping):
                    is_batch = self._add_components(value)
                else:
                    is_batch = self._add_component(self.name, value)
                self._count_call(seconds)
                if is_batch or time.monotonic() >= self._next_row_time:
                    self._write(run)
        except Exception as error:  # noqa: BLE001 - training continues: counted and noted
            run.note(f"observe {self.name}: {type(error).__name__}: {error}")

    def add_exception(self, error: Exception, seconds: float) -> None:
        """Count an exception, and note each kind once."""
        run = self.run or runs.current()
        if run is None:
            return
        with self._lock:
            self.exceptions += 1
            self._count_call(seconds)
            run.note(f"reward {self.name} raised {type(error).__name__}: {error}")
            self._safely(run)

    def _safely(self, run: Run) -> None:
        try:
            self._write(run)
        except Exception as error:  # noqa: BLE001 - the function's own exception is raised
            run.note(f"observe {self.name}: {type(error).__name__}: {error}")

    def _count_call(self, seconds: float) -> None:
        self.calls += 1
        self._count += 1
        self._seconds += seconds

    def _add_components(self, components: Mapping[object, object]) -> bool:
        batches = [self._add_component(str(name), value) for name, value in components.items()]
        return any(batches)

    def _add_component(self, name: str, value: Any) -> bool:  # noqa: ANN401 - a number or a batch of them
        if hasattr(value, "detach"):
            value = value.detach().cpu().numpy()
        batch = np.ndim(value) > 0 if isinstance(value, np.ndarray) else isinstance(value, list)
        batch = batch or isinstance(value, tuple)
        cells = list(np.ravel(value)) if isinstance(value, np.ndarray) else value
        numbers = self._values.setdefault(name, [])
        for cell in cells if isinstance(cells, list | tuple) else [cells]:
            number = tensors.number(cell)
            self._rewards += 1
            if number is None:
                self._none += 1
            else:
                numbers.append(number)
        return batch

    def _write(self, run: Run) -> None:
        row: dict[str, float] = {}
        for name, numbers in self._values.items():
            finite = [number for number in numbers if math.isfinite(number)]
            if finite:
                row[f"reward/component/{name}"] = float(np.mean(finite))
                row[f"reward/component_std/{name}"] = float(np.std(finite))
            if len(finite) < len(numbers):
                row[f"observed/{name}/not_finite"] = len(numbers) - len(finite)
        if self._rewards:
            row[f"observed/{self.name}/none_share"] = self._none / self._rewards
        row[f"observed/{self.name}/seconds"] = self._seconds / max(self._count, 1)
        row[f"observed/{self.name}/calls"] = self.calls
        row[f"observed/{self.name}/exceptions"] = self.exceptions
        self._clear()
        # Calls that return a single reward get a row each second.
        self._next_row_time = time.monotonic() + 1.0
        run.log(run.step if self.step is None else self.step(), row)

"""Checks of an environment before the first update."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlvitals.sanity_checks.check import Check, CouldNotCheck, Failed, Outcome, Passed, run_check
from rlvitals.sanity_checks.numbers import first_index, to_floats

MIN_ROWS = 2  # values: fewer cannot vary


def check_environment(env: Any) -> tuple[Check, ...]:  # noqa: ANN401 - Gymnasium's object
    """Run Gymnasium's own `check_env` on an environment: its API, spaces, seeding."""
    return (run_check("check-env", "Gymnasium's check_env passes", lambda: _check_env(env)),)


def _check_env(env: Any) -> Outcome:  # noqa: ANN401 - Gymnasium's object
    try:
        from gymnasium.utils.env_checker import check_env  # noqa: PLC0415 - optional, slow
    except ImportError:
        return CouldNotCheck("Gymnasium is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its advice is not a failure
        try:
            check_env(getattr(env, "unwrapped", env), skip_render_check=True)
        except Exception as error:  # noqa: BLE001 - whatever the environment raises is the finding
            reason = f"{type(error).__name__}: {error}".strip()
            return Failed("env", str(env), reason)
    return Passed()


def check_observations(values: ArrayLike, *, variable: str = "observations") -> tuple[Check, Check]:
    """Check that observations [n, ...] are finite, and that they vary."""
    return (
        run_check(
            "observations-finite",
            "observations are finite",
            lambda: _check_finite(values, variable),
        ),
        run_check(
            "observations-vary", "observations vary", lambda: _check_variation(values, variable)
        ),
    )


def _check_finite(values: ArrayLike, variable: str) -> Outcome:
    numbers = to_floats(values)
    wrong = ~np.isfinite(numbers)
    if not numbers.size:
        return CouldNotCheck(f"{variable} is empty")
    if not wrong.any():
        return Passed()
    reason = f"not a finite number ({int(wrong.sum())} of {numbers.size})"
    return Failed(f"{variable}{first_index(wrong)}", f"{numbers[wrong][0]}", reason)


def _check_variation(values: ArrayLike, variable: str) -> Outcome:
    numbers = to_floats(values)
    if len(numbers) < MIN_ROWS:
        return CouldNotCheck(f"{variable} holds {len(numbers)} observation(s)")
    if _spread(numbers) > 0 or not np.isfinite(numbers).all():
        return Passed()
    value = f"{numbers.ravel()[0]:.6g}" if numbers.size else "empty"
    return Failed(variable, value, f"all {len(numbers)} observations are the same")


def _spread(numbers: NDArray[np.float64]) -> float:
    return float(np.ptp(numbers, axis=0).max()) if numbers.size else 0.0


def check_returns(returns: ArrayLike, *, variable: str = "returns") -> Check:
    """Check that environments differ: `returns` [n_envs, ...] of their first episodes differ.

    Two equal rows mean the same seed twice: half of the data is a copy.
    """

    def outcome() -> Outcome:
        rows = to_floats(returns).reshape(len(to_floats(returns)), -1)
        if len(rows) < MIN_ROWS:
            return CouldNotCheck(f"there is {len(rows)} environment")
        for i, row in enumerate(rows):
            for j in range(i):
                if np.array_equal(row, rows[j]):
                    reason = f"environments {j} and {i} ran the same episode: the same seed twice"
                    return Failed(f"{variable}[{i}]", _format_row(row), reason)
        return Passed()

    return run_check("environments-differ", "environments run apart", outcome)


def check_starts(starts: Sequence[ArrayLike], *, variable: str = "first observation") -> Check:
    """Check that environments have different seeds, by their first observations.

    `starts[i]` [episodes, ...] of environment i, in order. Equal starts of two environments are a
    failure if the episodes of one differ: if all are equal, no seed shows.
    """

    def outcome() -> Outcome:
        rows = [to_floats(start).reshape(len(to_floats(start)), -1) for start in starts]
        rows = [start for start in rows if len(start)]
        if len(rows) < MIN_ROWS:
            return CouldNotCheck(f"there is {len(rows)} environment")
        alike = [
            (i, j)
            for j in range(len(rows))
            for i in range(j)
            if np.array_equal(rows[i][0], rows[j][0])
        ]
        if not alike:
            return Passed()
        i, j = alike[0]
        if all(np.array_equal(start, np.broadcast_to(rows[i][0], start.shape)) for start in rows):
            return CouldNotCheck("every episode begins alike: no seed shows in it")
        reason = f"environments {i} and {j} begin alike, and episodes do not: the same seed twice"
        return Failed(f"{variable} of environment {j}", _format_row(rows[j][0]), reason)

    return run_check("seeds-differ", "environments have seeds of their own", outcome)


def _format_row(row: NDArray[np.float64]) -> str:
    text = ", ".join(f"{x:.6g}" for x in row[:4])
    return f"{text}, ..." if len(row) > 4 else text  # a glance

"""Average an outcome over agents or environments that a log numbers: `reward_0`, `reward_1`."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from rlvitals.metrics import outcome_words
from rlvitals.types import Log, Series

AGENT_NUMBER = re.compile(r"(?<![A-Za-z])\d{1,3}(?!\d)")


def add_means(logs: Sequence[Log], unknown: Sequence[str]) -> tuple[list[Log], list[str]]:
    """Return the logs with the mean of each group of numbered columns, and the means' keys.

    A group differs in one number, has the same steps and names an outcome. `unknown`: the keys that
    no table knows. A mean that never changes is left out: the rewards of opponents add up to a
    constant.
    """
    means = [_find_means(log, [key for key in unknown if key in log.series]) for log in logs]
    extended = [
        replace(log, series={**log.series, **added}) for log, added in zip(logs, means, strict=True)
    ]
    return extended, [key for added in means for key in added]


def _find_means(log: Log, keys: Sequence[str]) -> dict[str, Series]:
    groups: dict[str, list[Series]] = {}
    for key in keys:
        if len(AGENT_NUMBER.findall(key)) == 1:
            groups.setdefault(AGENT_NUMBER.sub("#", key), []).append(log.series[key])
    means = {}
    for pattern, columns in groups.items():
        name = f"mean of {pattern.replace('#', f'0-{len(columns) - 1}')}"
        if 1 < len(columns) <= 64 and outcome_words.meaning(name) is not None:
            mean = _mean(columns)
            if mean is not None:
                means[name] = mean
    return means


def _mean(columns: Sequence[Series]) -> Series | None:
    if any(column.every > 1 for column in columns):  # each thinned one keeps its own extremes
        shared = reduce(np.intersect1d, [column.steps for column in columns])
        columns = [column.where(np.isin(column.steps, shared)) for column in columns]
    steps = columns[0].steps
    if any(not np.array_equal(column.steps, steps) for column in columns):
        return None
    values = np.mean([column.values for column in columns], axis=0)
    finite = values[np.isfinite(values)]
    largest = max(float(np.nanmax(np.abs(c.values), initial=0.0)) for c in columns)
    if not len(finite) or np.ptp(finite) <= 1e-6 * largest:
        return None
    return Series(steps, columns[0].times, values, columns[0].every)

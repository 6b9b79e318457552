"""Summarise a run's rollouts as one series per measure, `rollout/*`, a point for each step.

Rollouts of the training alone are counted; of an evaluation there may be a few at any step.
"""

import numpy as np
from numpy.typing import NDArray

from rlvitals.rollouts.group_series import group_series
from rlvitals.rollouts.rollout_columns import Rollouts
from rlvitals.rollouts.step_means import StepMeans, training_rows
from rlvitals.types import Log, Series

SOURCE = "rollouts"


def to_log(rollouts: Rollouts) -> Log:
    """Return the series of a run's rollouts, under keys that begin with `rollout/`."""
    indices, means = training_rows(rollouts)
    rows = rollouts.rows[indices]
    if not len(rows):
        return Log(SOURCE, {}, notes=rollouts.notes)
    columns: dict[str, Series] = {
        "rollout/reward_mean": means.of(rows["reward"]),
        "rollout/characters_mean": means.of(rows["characters"]),
        "rollout/seconds_mean": means.of(rows["seconds"]),
        "rollout/tokens_mean": means.of(
            np.where(rows["token_count"] < 0, np.nan, rows["token_count"])
        ),
    }
    if rows["characters"].any():
        columns["rollout/looping_share"] = means.of(rows["looping"])
    wrong, unscored = rows["error"] != 0, np.isnan(rows["reward"])
    if wrong.any():
        columns["rollout/error_share"] = means.of(wrong)
        columns["rollout/failed_as_zero_share"] = means.of(wrong & (rows["reward"] == 0))
    if unscored.any():
        columns["rollout/unscored_share"] = means.of(unscored)
    columns |= _conversations(rows, means)
    columns |= {
        "rollout/prompt_retrieval": means.of(rows["retrieved"]),
        "rollout/copied_share": means.of(rows["copied"]),
        "rollout/answer_stated_share": means.of(rows["answer_stated"]),
        "rollout/other_script_share": means.of(rows["other_script"]),
    }
    for name, part in rollouts.parts.items():
        columns[f"rollout/part/{name}"] = means.of(part[indices])
        columns[f"rollout/answer_unpaid/{name}"] = _share_without_pay(rows, part[indices], means)
    if not rollouts.parts:
        columns["rollout/answer_unpaid/reward"] = _share_without_pay(rows, rows["reward"], means)
    columns |= _stops(rollouts, rows, means)
    columns |= group_series(rollouts, indices, means)
    series = {key: column for key, column in columns.items() if len(column)}
    return Log(SOURCE, series, notes=rollouts.notes, framework=SOURCE)


def _share_without_pay(
    rows: NDArray[np.void], pay: NDArray[np.float64], means: StepMeans
) -> Series:
    """Return the share of replies with the expected answer whose `pay` [n] is the run's lowest.

    Empty where even the lowest pays.
    """
    rows_with_answer = (rows["answer_given"] == 1) & np.isfinite(pay)
    lowest = float(pay[rows_with_answer].min()) if rows_with_answer.any() else np.nan
    unpaid = pay <= 0 if lowest <= 0 else np.full(len(pay), np.nan)
    return means.of(np.where(rows_with_answer, unpaid, np.nan))


def _conversations(rows: NDArray[np.void], means: StepMeans) -> dict[str, Series]:
    """Return turns and calls of tools, where a rollout has several turns or a call."""
    has_calls = rows["tool_calls"] > 0
    columns = {}
    if rows["turns"].max() > 1:
        columns["rollout/turns_mean"] = means.of(rows["turns"])
        columns["rollout/turns_min"] = means.extreme(rows["turns"], np.minimum)
        columns["rollout/turns_max"] = means.extreme(rows["turns"], np.maximum)
    if has_calls.any():
        failures = rows["failed_calls"] / np.maximum(rows["tool_calls"], 1)
        columns["rollout/tool_calls_mean"] = means.of(rows["tool_calls"])
        columns["rollout/tool_failure_share"] = means.of(np.where(has_calls, failures, np.nan))
    return columns


def _stops(rollouts: Rollouts, rows: NDArray[np.void], means: StepMeans) -> dict[str, Series]:
    """Return the share of each reason to stop, for the most frequent ones, and of cut texts."""
    numbers, counts = np.unique(rows["stop_reason"], return_counts=True)
    # The most frequent stop reasons get a series each.
    frequent = numbers[np.argsort(-counts, kind="stable")][:20]
    columns = {
        f"rollout/stop_reason/{rollouts.texts[number]}": means.of(rows["stop_reason"] == number)
        for number in frequent.tolist()
        if rollouts.texts[number]
    }
    if columns:
        columns["rollout/truncated_share"] = means.of(is_cut(rollouts, rows))
    return columns


def is_cut(rollouts: Rollouts, rows: NDArray[np.void]) -> NDArray[np.bool_]:
    """Return which rows ended at a limit of tokens."""
    # How frameworks and engines call a text that ended at its limit of tokens.
    cut = [
        number
        for number, text in enumerate(rollouts.texts)
        if text
        in ("length", "max_tokens", "max_length", "max_new_tokens", "token_limit", "truncated")
    ]
    return np.isin(rows["stop_reason"], cut)

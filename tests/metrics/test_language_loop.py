"""Logs of loops that people write themselves around a language model, by their keys."""

import json

import numpy as np
import pytest

import rlvitals
from rlvitals.types import Profile

RATE = np.linspace(0.2, 0.7, 60)


def read(tmp_path, rows):
    path = tmp_path / "metrics.jsonl"
    path.write_text(
        "".join(json.dumps({"step": i + 1, **row}) + "\n" for i, row in enumerate(rows))
    )
    return rlvitals.runs(path)[0]


@pytest.mark.parametrize(
    ("keys", "metric"),
    [
        (["env/all/reward/total", "env/all/correct", "optim/entropy"], "outcome/accuracy"),
        (["reward/correctness", "reward/format", "reward/total"], "reward/component/correctness"),
        (["reward/mean", "reward/correct_f", "reward/g"], "reward/component/correct_f"),
        (["answer_accuracy", "format_accuracy", "mean_reward", "loss"], "outcome/accuracy"),
        (["mean_reward", "batch_accuracy", "loss"], "outcome/accuracy"),
        (["train/reward", "train/mean_gen_tokens_per_sample", "train/loss"], "outcome/reward"),
    ],
)
def test_right_answers_are_read(tmp_path, keys, metric):
    trace = read(tmp_path, [dict.fromkeys(keys, float(rate)) for rate in RATE])
    assert trace.profile is Profile.GRPO
    np.testing.assert_allclose(trace[metric].finite().values, RATE)


@pytest.mark.parametrize(
    "keys",
    [
        ["mean_reward", "kl_div", "loss"],
        ["mean_reward", "episode_length", "loss"],
        ["accuracy", "loss"],
        ["env/all/reward/total", "teacher_kl", "optim/lr"],
    ],
)
def test_other_logs_are_not_taken_for_one(tmp_path, keys):
    trace = read(tmp_path, [dict.fromkeys(keys, float(rate)) for rate in RATE])
    assert trace.profile is not Profile.GRPO


def test_statistics_of_a_reward_are_no_parts_of_it(tmp_path):
    keys = ["reward/correctness", "reward/mean", "reward/std", "reward/max", "reward/brevity"]
    trace = read(tmp_path, [dict.fromkeys(keys, float(rate)) for rate in RATE])
    parts = {name for name in trace.series if name.startswith("reward/component/")}
    assert parts == {"reward/component/correctness", "reward/component/brevity"}

"""Logs of loops that people write themselves around a language model, by their keys."""

import json

import numpy as np
import pytest

import rlvitals
from rlvitals.types import Profile

RATE = np.linspace(0.2, 0.7, 60)


def read(tmp_path, rows, name="metrics.jsonl"):
    path = tmp_path / name
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
        (["reward", "reward_format_reward_func"], "reward/component/format_reward_func"),
        (["mean_reward", "avg_correctness_reward"], "reward/component/correctness_reward"),
        (["rewards_mean", "avg_completion_tokens", "mean_kl"], "policy/kl_to_reference_per_token"),
        (["reward_avg", "mean_response_len", "heldout_accuracy"], "outcome/eval_accuracy"),
        (["mean_reward", "accuracy", "loss"], "outcome/accuracy"),
        (["average_reward", "grpo_iter", "loss"], "outcome/reward"),
        (["rewards/valid_json/mean", "rewards/reward/mean", "loss"], "outcome/reward"),
        (["mean_reward", "verification_accuracy", "completion_length"], "outcome/accuracy"),
        (["correct_answer_rate", "dynamic_sampling_kept_groups", "kl", "clip_fraction"],
         "policy/kl_to_reference_per_token"),
    ],
)  # fmt: skip
def test_right_answers_are_read(tmp_path, keys, metric):
    trace = read(tmp_path, [dict.fromkeys(keys, float(rate)) for rate in RATE])
    assert trace.profile is Profile.GRPO
    np.testing.assert_allclose(trace[metric].finite().values, RATE)


def test_a_critic_without_a_reward_is_no_supervised_training(tmp_path):
    keys = ["ppo_loss", "value_loss", "kl", "response_length"]
    trace = read(tmp_path, [dict.fromkeys(keys, float(rate)) for rate in RATE])
    assert trace.profile is Profile.RLHF_PPO
    assert {"policy/loss", "value/loss"} <= set(trace.series)


@pytest.mark.parametrize(
    "keys",
    [
        ["mean_reward", "kl_div", "loss"],
        ["mean_reward", "episode_length", "loss"],
        ["accuracy", "loss"],
        ["env/all/reward/total", "teacher_kl", "optim/lr"],
        ["reward", "forward_reward", "ctrl_reward"],
        ["avg_reward", "avg_episode_reward", "episode_length"],
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


PLAIN = ["mean_reward", "reward_std", "kl", "loss", "clip_frac"]


@pytest.mark.parametrize("name", ["grpo_run1.jsonl", "my-grpo-log.jsonl", "RLHF.log"])
def test_the_name_of_a_file_says_what_plain_keys_do_not(tmp_path, name):
    trace = read(tmp_path, [dict.fromkeys(PLAIN, float(rate)) for rate in RATE], name)
    assert trace.profile is Profile.GRPO
    assert "policy/kl_to_reference_per_token" in trace
    assert "outcome/reward" in trace


def test_the_name_of_a_file_says_nothing_against_a_framework_s_keys(tmp_path):
    keys = ["rollout/ep_rew_mean", "train/approx_kl", "train/clip_fraction", "train/value_loss"]
    trace = read(tmp_path, [dict.fromkeys(keys, float(rate)) for rate in RATE], "grpo.jsonl")
    assert trace.profile is Profile.CONTROL_PPO


def test_a_word_that_holds_an_algorithm_s_name_names_none(tmp_path):
    rows = [dict.fromkeys(PLAIN, float(rate)) for rate in RATE]
    assert read(tmp_path, rows, "grpophobia.jsonl").profile is not Profile.GRPO


def test_a_reward_and_a_step_are_nobody_s(tmp_path):
    trace = read(tmp_path, [{"reward": float(rate)} for rate in RATE])
    assert trace.profile is Profile.UNKNOWN
    assert "outcome/reward" in trace

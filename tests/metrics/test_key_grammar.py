"""Keys of language trainers that no table knows, by their words.

Keys as RLinf, google/tunix and sail-sg/oat write them, and others put together by the same habits.
"""

import numpy as np
import pytest

from rlvitals import metrics
from rlvitals.metrics import canonicalize, key_grammar
from rlvitals.types import Log, Profile, Series

MEANINGS = {
    "rollout/response_len/mean": "language/length_mean",
    "rollout/completions/max_length": "language/length_max",
    "actor/response_tok_len": "language/length_mean",
    "policy/entropy_avg": "exploration/entropy",
    "actor/grad_norm": "optimiser/grad_norm",
    "critic/grad_norm": "optimiser/critic_grad_norm",
    "train/critic_loss": "value/loss",
    "actor/pg_clipfrac": "policy/clip_fraction_effective",
    "train/total_loss": "optimiser/loss",
    "rollout/rewards/mean": "outcome/reward",
    "rollout/rewards/std": "reward/std",
    "env/all/reward/format": "reward/component/format",
    "train/advantages_max": "policy/advantage_max",
    "rollout/truncation_rate": "language/truncated_share",
    "response_length/clip_ratio": "language/truncated_share",
    "eval/accuracy": "outcome/eval_accuracy",
    "eval/aime24/pass@8": "outcome/eval_task/aime24/pass@8",
    "eval/math500/accuracy/mean": "outcome/eval_task/math500/accuracy",
    "val/response_length/mean": "language/held_out/language/length_mean",
    "entropy/max": "language/extreme/exploration/entropy/max",
    "rollout/staleness/max": "optimiser/policy_lag_max",
    "rollout/zero_std_ratio": "reward/group_zero_std",
    "batch/stop_reasons/length": "language/stop_reason/length",
}
# Further words name something else, and a count or a per cent is no mean or share.
REFUSED = [
    "actor/lambda_loss",
    "rollout/entropy_threshold",
    "rollout/num_rewards",
    "train/response_length_penalty_scale",
    "zero_std/all_zero_percentage",
    "env/all/total_turns",
    "policy/layer_3/grad_norm",
    "queue/size",
]


@pytest.mark.parametrize("key", MEANINGS)
def test_the_words_of_a_key_name_its_metric(key):
    assert key_grammar.meaning(key) == MEANINGS[key]


@pytest.mark.parametrize("key", REFUSED)
def test_a_key_with_other_words_is_left_alone(key):
    assert key_grammar.meaning(key) is None


def log(*keys):
    steps = np.arange(1, 21)
    times = np.full(20, np.nan)
    return Log("plain-jsonl", {key: Series(steps, times, steps / 20.0) for key in keys})


def test_a_log_of_an_unknown_framework_is_a_language_models():
    trace = canonicalize.trace(
        [log("rollout/response_len/mean", "rollout/rewards/mean", "actor/approx_entropy/x", "a/b")]
    )
    assert {*trace.series} == {"language/length_mean", "outcome/reward"}
    assert trace.profile is Profile.GRPO
    assert trace.measured["language/length_mean"].framework == "language-words"
    assert {*trace.unmapped} == {"actor/approx_entropy/x", "a/b"}


def test_a_log_without_responses_is_named_by_no_words():
    trace = canonicalize.trace([log("trainer/policy/mean_entropy", "trainer/x/grad_norm")])
    assert not trace.series


def test_a_tables_own_name_comes_first():
    keys = ("actor/pg_loss", "critic/score/mean", "response_length/mean", "raw/response_len/mean")
    trace = canonicalize.trace([log(*keys, "critic/rewards/max", "count/staleness_samples")])
    assert trace.measured["language/length_mean"].key == "response_length/mean"
    assert trace.measured["outcome/score"].framework == "verl"
    assert "language/count/count/staleness_samples" in trace.series


def test_the_grammar_names_metrics_of_the_catalogue():
    grammar = key_grammar.grammar()
    names = {metric.name for metric in metrics.CATALOGUE}
    assert {name for _, name in grammar.subjects} | {*grammar.of_held_out.values()} <= names
    assert {name for by in grammar.of_statistic.values() for name in by.values()} <= names
    assert {*grammar.of_statistic} | {*grammar.of_held_out} <= {n for _, n in grammar.subjects}

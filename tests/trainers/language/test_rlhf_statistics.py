"""Every number of an RLHF update, computed by hand for two responses of two and three tokens."""

import math
from dataclasses import replace

import pytest
import rlhf_parts
import torch
from torch import tensor

from rlvitals.metrics.frameworks.rlvitals_rlhf import AGAIN
from rlvitals.trainers.language.rlhf import masked, statistics
from rlvitals.trainers.language.rlhf.batch import Batch, Pass
from rlvitals.trainers.language.rlhf.controllers import Adaptive, Fixed
from rlvitals.trainers.language.rlhf.statistics import Rates

MASK = tensor([[1.0, 1, 0], [1, 1, 1]])
LOGPROBS = tensor([[-1.0, -2, 0], [-0.5, -1, -1.5]])
REFERENCE = tensor([[-1.5, -2, 0], [-1, -1.25, -1]])
RATES = Rates(lr=0.001, kl_coef=0.2, cliprange=0.2, cliprange_value=0.2, vf_coef=0.1)
RATIO = tensor([[1.5, 0.5, 7], [1, 2, 0.9]])
BATCH = Batch(
    query_lengths=tensor([4, 2]),
    mask=MASK,
    finished=tensor([1.0, 0]),
    raw_scores=tensor([1.0, 3]),
    scores=tensor([1.0, 2]),  # the second was cut off: 1 taken off
    logprobs=LOGPROBS,
    reference=REFERENCE,
    kl=masked.kl(LOGPROBS, REFERENCE, "k1") * MASK,
    values=tensor([[0.5, 1, 0], [0, 0.5, 1]]),
    advantages=tensor([[1.0, -1, 0], [2, -0.5, -1.5]]),
    returns=tensor([[1, 1.5, 0], [1, 1, 2]]),
)
PASS = Pass(  # what stands at the padding must not count
    rows=tensor([0, 1]),
    logprobs=LOGPROBS + RATIO.log(),
    values=tensor([[1, 1, 9], [0.5, 0.5, 1]]),
    entropy=tensor([[1.0, 2, 9], [1, 1, 0]]),
)
ROOT2 = math.sqrt(2.0)
BY_HAND = {
    "objective/kl": 0.375,  # (0.5 + 0) and (0.5 + 0.25 - 0.5)
    "objective/kl_coef": 0.2,
    "objective/entropy": 3.0,  # (1 + 2) and (0.5 + 1 + 1.5)
    "objective/non_score_reward": -0.075,
    "objective/scores": 1.5,
    "objective/rlhf_reward": 1.425,
    "env/reward_mean": 2.0,
    "env/reward_std": ROOT2,
    "rewards/total/none_share": 0.0,
    "ppo/mean_scores": 1.5,
    "ppo/std_scores": ROOT2 / 2,
    "ppo/mean_non_score_reward": -0.03,  # -0.2 * 0.75 / 5 tokens
    "val/num_eos_tokens": 1.0,
    "tokens/queries_len_mean": 3.0,
    "tokens/queries_len_std": ROOT2,
    "tokens/responses_len_mean": 2.5,
    "tokens/responses_len_std": ROOT2 / 2,
    "tokens/truncated_share": 0.5,
    "policy/approxkl_avg": 0.1136409,  # half of (ln 1.5)^2 + 2 (ln 2)^2 + (ln 0.9)^2 over 5
    "ppo/policy/approxkl": 0.1136409,
    "ppo/policy/policykl": -0.0600209,  # -(ln 1.5 + ln 0.9) / 5
    "policy/clipfrac_avg": 0.4,  # 1.5 with advantage 1: no; see the losses below
    "ppo/policy/clipfrac": 0.4,
    "policy/entropy_avg": 1.0,
    "ppo/policy/entropy": 1.0,
    "val/ratio": 1.18,
    "val/ratio_var": 0.337,
    "ppo/policy/advantages_mean": 0.0,
    "loss/policy_avg": -0.01,  # of -1.2, 0.8, -2, 1 and 1.35
    "ppo/loss/policy": -0.01,
    "loss/value_avg": 0.223,  # half of 0.09 + 0.25 + 0.64 + 0.25 + 1 over 5
    "ppo/loss/value": 0.223,
    "ppo/loss/total": 0.0123,
    "val/clipfrac_avg": 0.4,
    "ppo/val/clipfrac": 0.4,
    "ppo/val/vpred": 0.8,
    "ppo/val/error": 0.35,
    "ppo/val/mean": 0.6,
    "ppo/val/var": 0.175,
    "ppo/val/var_explained": -0.75,  # 1 - 0.35 / 0.2
    "ppo/returns/mean": 1.3,
    "ppo/returns/var": 0.2,
    "lr": 0.001,
    "ppo/learning_rate": 0.001,
}


def test_every_number_is_what_its_formula_says():
    found = statistics.numbers(BATCH, [PASS], RATES)
    assert found.keys() == BY_HAND.keys()
    for name, value in BY_HAND.items():
        assert found[name] == pytest.approx(value, abs=1e-6), name


def test_what_is_minimised_is_what_is_logged():
    loss = rlhf_parts.page(vf_coef=0.1).loss(BATCH, PASS.logprobs, PASS.values)
    assert float(loss) / 5 == pytest.approx(BY_HAND["ppo/loss/total"], abs=1e-6)  # of 5 tokens


def test_minibatches_are_averaged_and_rows_find_their_own():
    parts = [
        Pass(tensor([row]), *(one[[row]] for one in (PASS.logprobs, PASS.values, PASS.entropy)))
        for row in (1, 0)
    ]
    found = statistics.numbers(BATCH, parts, RATES)
    assert found["val/ratio"] == pytest.approx((2.0 / 2 + 3.9 / 3) / 2)
    assert found["policy/entropy_avg"] == pytest.approx((3 / 2 + 2 / 3) / 2)
    assert found["objective/kl"] == pytest.approx(0.375)


def test_a_response_without_a_score_is_measured_and_not_learned_from():
    none = replace(BATCH, raw_scores=tensor([1.0, math.nan]), scores=tensor([1.0, math.nan]))
    found = statistics.numbers(none, [PASS], RATES)
    assert found["rewards/total/none_share"] == 0.5
    assert found["objective/scores"] == found["env/reward_mean"] == 1.0
    assert found["objective/kl"] == pytest.approx(0.375)
    assert found["val/ratio"] == pytest.approx(1.0)  # of the first response alone
    assert all(math.isfinite(value) for value in found.values())
    nothing = replace(BATCH, raw_scores=tensor([math.nan] * 2), scores=tensor([math.nan] * 2))
    found = statistics.numbers(nothing, [], RATES)
    assert found["rewards/total/none_share"] == 1.0
    assert "objective/scores" not in found
    assert "loss/policy_avg" not in found


def test_returns_that_do_not_vary_explain_nothing():
    found = statistics.numbers(replace(BATCH, returns=MASK), [PASS], RATES)
    assert "ppo/val/var_explained" not in found
    assert found["ppo/returns/var"] == 0.0


def test_a_loss_that_is_no_number_is_told():
    broken = replace(PASS, values=PASS.values * math.nan)
    assert math.isnan(statistics.numbers(BATCH, [PASS, broken], RATES)["loss/value_avg"])


def test_histograms_hold_tokens_and_no_padding():
    found = statistics.distributions(BATCH, PASS)
    counts = {name: len(values) for name, values in found.items()}
    assert counts == {
        "env/reward_dist": 2, "objective/kl_dist": 2, "objective/logprobs": 5,
        "objective/ref_logprobs": 5, "ppo/policy/advantages": 5, "ppo/policy/ratio": 5,
        "tokens/queries_dist": 2, "tokens/responses_dist": 2,
    }  # fmt: skip
    assert found["objective/kl_dist"].tolist() == [0.5, 0.25]
    assert torch.allclose(found["ppo/policy/ratio"], tensor([1.5, 0.5, 1, 2, 0.9]))
    assert found["objective/ref_logprobs"].tolist() == [-1.5, -2, -1, -1.25, -1]


def test_the_two_names_of_a_number_are_those_that_a_diagnosis_reads_once():
    assert {old: new for new, old in statistics.OLD_NAMES.items()} == AGAIN


def test_kl_by_both_estimators():
    assert masked.kl(LOGPROBS, REFERENCE, "k1").tolist()[0] == [0.5, 0, 0]
    k3 = masked.kl(LOGPROBS, REFERENCE, "k3")
    assert k3[0, 0] == pytest.approx(math.exp(-0.5) - 1 + 0.5)
    assert k3[1, 2] == pytest.approx(math.exp(0.5) - 1 - 0.5)


def test_advantages_end_with_the_response():
    rewards = tensor([[0.0, 1, 7], [1, 0, 2]])  # what stands at the padding must not count
    values = tensor([[0.5, 1, 9], [0, 0.5, 1]])
    found = masked.estimate_advantages(rewards, values, MASK, gamma=0.9, lam=0.5)
    assert torch.allclose(found, tensor([[0.4, 0, 0], [1.8325, 0.85, 1]]))


def test_whitened_values_have_mean_0_and_variance_1_over_the_tokens():
    mean, spread = masked.mean(BATCH.returns, MASK), masked.variance(BATCH.returns, MASK)
    found = masked.whiten(BATCH.returns, MASK, mean, spread)
    assert masked.mean(found, MASK) == pytest.approx(0, abs=1e-6)
    assert masked.variance(found, MASK) == pytest.approx(1, abs=1e-5)
    assert found[0, 2] == 0
    one = tensor([[1.0, 0, 0]])
    assert masked.variance(BATCH.returns[:1], one) == 0.0


def test_entropy_of_a_softmax_with_tokens_that_cannot_be_drawn():
    logits = tensor([[0.0, 0, -torch.inf], [math.log(3), 0, -torch.inf]])
    found = masked.entropy(logits)
    assert found[0] == pytest.approx(math.log(2))
    assert found[1] == pytest.approx(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))


@pytest.mark.parametrize(
    ("kl", "factor"), [(12.0, 0.2), (6.6, 0.1), (6.0, 0.0), (3.0, -0.2), (math.nan, 0.0)]
)
def test_an_adaptive_price_answers_to_the_kl(kl, factor):
    price = Adaptive(0.2, target=6.0, horizon=10_000)
    price.update(kl, 64)
    assert price.value == pytest.approx(0.2 * (1 + factor * 64 / 10_000))
    fixed = Fixed(0.2)
    fixed.update(kl, 64)
    assert fixed.value == 0.2

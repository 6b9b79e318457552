"""Sentences that say "not logged" are true of every metric of the same meaning."""

import made_traces as made
import numpy as np
import pytest

from rlvitals import metrics
from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.key_metrics import crucial
from rlvitals.metrics.absence import SIBLINGS, describe_absence, siblings
from rlvitals.rules.optimiser import policy_loss_flat
from rlvitals.rules.rule import Clear, Finding, Undecided
from rlvitals.types import Profile

COUNT = 60
NEAR_ZERO = np.full(COUNT, 1e-9)
MOVES = 0.01 * np.abs(made.noise(COUNT, 1))


def trace(profile=Profile.CONTROL_PPO, **columns):
    return made.trace(profile, **{"outcome__return": made.noise(COUNT, 3), **columns})


def test_no_metric_is_in_two_groups_of_siblings():
    members = [metric.name for group in SIBLINGS for metric in group]
    assert len(members) == len(set(members))
    assert all(metrics.find(name) is not None for name in members)


@pytest.mark.parametrize("group", SIBLINGS, ids=lambda group: group[0].name)
def test_a_sibling_belies_the_sentence(group):
    for logged in group:
        column = {logged.name.replace("/", "__"): MOVES}
        for asked in group:
            text = describe_absence(trace(**column), "it is not logged", asked)
            assert text == f"only {logged.name} is logged, which is not judged here"
            few = describe_absence(trace(**column), "it is not logged", asked, min_count=COUNT + 1)
            assert few == f"{logged.name} has {COUNT} numbers of the {COUNT + 1} needed"
    assert siblings(group[0]) == group[1:]


def test_only_what_is_not_logged_at_all_leaves_the_sentence():
    told = [
        describe_absence(run, "no KL is logged", metrics.policy.APPROX_KL)
        for run in (trace(), trace(policy__kl_signed=np.full(COUNT, np.nan)))
    ]
    assert told == ["no KL is logged", "policy/kl_signed has 0 numbers of the 1 needed"]


@pytest.mark.parametrize(
    ("column", "topic", "subject"),
    [
        ("policy__approx_kl", "KL", "KL per update"),
        ("policy__clip_fraction", "clipping", "Clip fraction"),
        ("value__loss", "critic", "Value loss"),
        ("exploration__entropy", "entropy", "Policy entropy"),
    ],
)
def test_a_column_of_nan_is_logged(column, topic, subject):
    """A finding on its NaN may stand beside the summary."""
    beside = {"KL": "policy__ratio", "entropy": "exploration__std"}.get(topic)
    columns = {column: np.full(COUNT, np.nan), **({beside: 1 + MOVES} if beside else {})}
    found = diagnose(trace(**columns))
    said = {s.topic: s.text for s in found.tldr}
    assert said[topic].startswith(f"{subject} is logged without a number")


def test_ratio_and_clipping_stand_beside_a_kl_of_nan():
    run = trace(policy__ratio=1 + MOVES, policy__approx_kl=np.full(COUNT, np.nan))
    assert "policy/approx_kl has 0 numbers" in crucial(diagnose(run)).together


def test_a_signed_kl_says_whether_the_policy_moves():
    flat = {"policy__loss": NEAR_ZERO}
    assert isinstance(policy_loss_flat.check(trace(**flat)), Undecided)
    assert isinstance(policy_loss_flat.check(trace(**flat, policy__kl_signed=MOVES)), Clear)
    still = policy_loss_flat.check(trace(**flat, policy__kl_signed=NEAR_ZERO))
    assert isinstance(still, Finding)
    assert "signed" in still.evidence[0]


@pytest.mark.parametrize(
    ("column", "topic"),
    [
        ("policy__kl_signed", "KL"),
        ("policy__clip_fraction_low", "clipping"),
        ("value__critic_loss", "critic"),
        ("value__q_mean", "critic"),
        ("exploration__entropy_sequence", "entropy"),
        ("exploration__std", "entropy"),
    ],
)
def test_the_summary_does_not_miss_what_a_sibling_tells(column, topic):
    said = {s.topic: s.text for s in diagnose(trace(**{column: 1 + MOVES})).tldr}
    assert said[topic] not in {
        "KL is not logged: how far updates move is not known.",
        "Clip fraction and ratio are not logged.",
        "Nothing of a critic is logged.",
        "Entropy is not logged: exploration is not known.",
    }

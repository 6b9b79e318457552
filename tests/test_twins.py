"""Pairs of runs that look alike in one metric and differ in what is wrong: both must be right."""

import numpy as np
from loading import MEASURED, load, load_run

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.verdict import Word
from rlvitals.rules.rule import Severity


def warned(run):
    return {r.name for r, f in diagnose(run).findings if f.severity >= Severity.WARNING}


def median_of_tail(run, metric, share=0.2):
    values = run[metric].finite().values
    return float(np.median(values[-max(int(share * len(values)), 5) :]))


def head(run, metric, rows=20):
    return float(np.median(run[metric].finite().values[:rows]))


def test_a_critic_that_explains_nothing_yet_and_one_that_never_can():
    """Explained variance starts near 0 in healthy runs too: the outcome tells them apart."""
    young, blind = load_run("ppo-cartpole-healthy"), load("critic-explains-nothing", "fires")
    assert abs(head(young, "value/explained_variance", rows=5)) < 0.15
    assert abs(head(blind, "value/explained_variance")) < 0.15
    assert warned(young) == set()
    assert "critic-explains-nothing" in warned(blind)


def test_entropy_that_falls_with_a_solved_task_and_entropy_that_is_lost_first():
    solved, lost = load_run("ppo-cartpole-converged"), load("entropy-collapse", "fires")
    for run in (solved, lost):
        entropy = run["exploration/entropy"].finite().values
        assert entropy[-1] < 0.75 * np.log(2)
    assert warned(solved) == set()
    assert diagnose(solved).verdict.word is Word.CONVERGED
    assert "entropy-collapse" in warned(lost)
    assert diagnose(lost).verdict.word is Word.COLLAPSED


def test_a_learning_rate_of_300_times_and_a_reward_of_1000_times():
    """Either makes the value loss huge; only one of them breaks the policy."""
    rate, reward = load_run("ppo-cartpole-lr-x300"), load_run("ppo-cartpole-reward-x1000")
    assert diagnose(rate).verdict.word is Word.COLLAPSED
    assert {"entropy-collapse", "no-learning"} <= warned(rate)
    # Far beyond the best return there is, and yet hardly better than chance in its own unit: the
    # critic's loss leaves nothing of the clipped gradient to the policy, which stays random.
    assert diagnose(reward).verdict.word is Word.STALLED
    assert warned(reward) == {
        "critic-explains-nothing",
        "exploration-never-ends",
        "impossible-value",
        "no-learning",
        "updates-hardly-move",
    }


def test_entropy_gone_after_a_jump_of_the_rate_and_a_rate_annealed_on_purpose():
    jumped, annealed = load("learning-rate-jump", "fires"), load("learning-rate-jump", "quiet")
    assert "learning-rate-jump" in warned(jumped)
    assert "learning-rate-jump" not in warned(annealed)


def test_answers_that_grow_because_length_pays_and_a_run_whose_answers_do_not():
    paid, healthy = load_run("grpo-paid-by-length"), load_run("grpo-healthy")
    assert median_of_tail(paid, "outcome/reward") > head(paid, "outcome/reward")
    assert median_of_tail(healthy, "outcome/reward") > head(healthy, "outcome/reward")
    assert "return-up-success-flat" in warned(paid)
    assert warned(healthy) == set()


def test_charts_that_are_learned_and_their_broken_twins():
    """The same training, healthy and with one fault: each fault is the first that is named."""
    first = {
        name: diagnose(load_run(name), rates=MEASURED).cases[0]
        for name in ("psr-form-threshold", "psr-blank-images", "grpo-shuffled-images")
    }
    assert {name: case.rule.name for name, case in first.items()} == {
        "psr-form-threshold": "threshold-off-correctness",
        "psr-blank-images": "image-not-seen",
        "grpo-shuffled-images": "image-mismatched",
    }
    assert all(case.severity >= Severity.WARNING for case in first.values())
    healthy = load_run("psr-charts-healthy")
    assert diagnose(healthy).verdict.word is Word.LEARNING
    assert warned(healthy) == set()

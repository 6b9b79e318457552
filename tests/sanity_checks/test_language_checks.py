"""The checks of language models by hand-made values: what passes, what fails, what nobody knows."""

import numpy as np
import pytest

import rlvitals
from rlvitals.sanity_checks import language as lm
from rlvitals.sanity_checks.check import CouldNotCheck, Failed, Passed

TWO = ["a", "a", "b", "b"]


def test_advantages_of_each_group_have_mean_zero():
    good = np.array([1, -1, 0.5, -0.5], np.float32)
    assert lm.check_group_advantages(good, TWO, 2).outcome == Passed()
    off = lm.check_group_advantages(good + np.array([0, 0, 1, 1], np.float32), TWO, 2).outcome
    assert (off.variable, off.value) == ("mean of advantages in group 1", "1")
    assert "50% of 2 groups" in off.why


def test_rounding_of_large_rewards_is_no_mean():
    values = np.array([1e4, -1e4, 1e4, -1e4], np.float32) + np.float32(0.5)
    assert lm.check_group_advantages(values, TWO, 2).outcome == Passed()


@pytest.mark.parametrize(
    ("values", "groups", "size"),
    [([0, 0, 0, 0], TWO, 2), ([1, -1, 0], ["a"] * 3, 2), ([], [], 2), ([1, -1], ["a", "b"], 1)],
)
def test_what_makes_no_groups_is_not_judged(values, groups, size):
    assert isinstance(lm.check_group_advantages(values, groups, size).outcome, CouldNotCheck)


def test_a_group_of_two_prompts_and_an_advantage_that_is_no_number():
    mixed = lm.check_group_advantages([1, -1, 1, -1], ["a", "b", "a", "b"], 2).outcome
    assert mixed.variable == "prompts of group 0"
    wrong = lm.check_group_advantages([1, np.nan, 1, -1], TWO, 2).outcome
    assert (wrong.variable, wrong.value) == ("advantages[1]", "nan")


def test_the_kl_is_the_mean_of_k3_over_the_tokens_in_the_loss():
    logps, reference = np.zeros((1, 3), np.float32), np.array([[0.1, 0.1, 9]], np.float32)
    found = lm.check_kl_to_reference(logps, reference, [[1, 1, 0]]).outcome
    assert float(found.value) == pytest.approx(np.exp(0.1) - 1.1, rel=1e-4)
    assert (
        lm.check_kl_to_reference(logps, logps + np.float32(1e-4), [[1, 1, 1]]).outcome == Passed()
    )
    assert isinstance(
        lm.check_kl_to_reference(logps, reference, [[0, 0, 0]]).outcome, CouldNotCheck
    )


def test_the_loss_covers_what_was_drawn_of_samples_that_have_an_advantage():
    drawn = [[1, 1, 0], [1, 1, 1]]
    assert lm.check_loss_mask([[0.1, 0.2, 0], [0, 0, 0]], drawn, [1, 0]).outcome == Passed()
    padding = lm.check_loss_mask([[0.1, 0.2, 0.3], [0, 0, 0]], drawn, [1, 0]).outcome
    assert (padding.variable, padding.value) == ("loss weight[0, 2]", "0.3")
    lost = lm.check_loss_mask([[0, 0.2, 0], [0, 0, 0]], drawn, [1, 0]).outcome
    assert lost.variable == "loss weight[0, 0]"
    assert "left out of the loss (1 of 5 are)" in lost.why
    nothing = lm.check_loss_mask(np.zeros((2, 3)), drawn, [0, 0]).outcome
    assert isinstance(nothing, CouldNotCheck)
    assert isinstance(lm.check_loss_mask(np.ones((2, 5)), drawn, [1, 1]).outcome, Failed)


def place(before, after, dtype="float32", tensor="head"):
    return lm.WeightChange(tensor, 7, before, after, dtype)


def test_weights_that_did_not_move():
    moved, still = place(1.0, 0.9), place(1.0, 1.0, tensor="left.out")
    assert lm.check_weight_changes([moved], 1e-3).outcome == Passed()
    forgotten = lm.check_weight_changes([moved, still], 1e-3).outcome
    assert forgotten.variable == "change of left.out[7]"
    assert "(1 of 2 tensors)" in forgotten.why
    assert lm.check_weight_changes([place(1.0, float("nan"))], 1e-3).outcome.value == "nan"
    assert isinstance(lm.check_weight_changes([], 1e-3).outcome, CouldNotCheck)


def test_in_16_bits_one_weight_that_moves_is_enough_but_none_is_a_failure():
    moved, still = place(0.01, 0.011, "bfloat16"), place(1.0, 1.0, "bfloat16")
    assert lm.check_weight_changes([moved, still], 1e-6).outcome == Passed()
    from_zero = place(0.0, 1e-6, "bfloat16")
    lost = lm.check_weight_changes([from_zero, still], 1e-6).outcome
    assert "lost in the rounding of bfloat16" in lost.why


def test_the_sampler_s_weights():
    assert lm.check_sampler_weights({"a[0]": 1.5}, {"a[0]": 1.5}).outcome == Passed()
    stale = lm.check_sampler_weights({"a[0]": 1.5, "b[1]": 2}, {"a[0]": 1.25, "b[1]": 2}).outcome
    assert (stale.variable, stale.value) == ("the sampler's a[0]", "1.25")
    assert "the trainer has 1.5" in stale.why
    for sampler in (None, {"other[0]": 1.5}):
        assert isinstance(lm.check_sampler_weights({"a[0]": 1.5}, sampler).outcome, CouldNotCheck)


@pytest.mark.parametrize(
    ("differences", "kind"),
    [
        ([0.01, 0.012], Passed),
        ([0.0, 0.0], Passed),
        ([0.001, 0.2], Failed),
        ([0.01, 0.05], CouldNotCheck),
        ([0.01], CouldNotCheck),
        ([], CouldNotCheck),
        ([np.nan, np.nan], CouldNotCheck),
    ],
)
def test_a_sampler_that_only_reports_log_probabilities(differences, kind):
    assert isinstance(lm.check_logprobs(differences), kind)


def test_two_processes_that_draw_the_same():
    assert lm.check_ranks([["3+4=7", "3+4=8"], ["3+4=9", "3+4=8"]]).outcome == Passed()
    same = lm.check_ranks([["3+4=7", "3+4=8"], ["x"], ["3+4=7", "3+4=8"]]).outcome
    assert (same.variable, same.value) == ("samples of process 2", "3+4=7")
    assert "process 0's" in same.why
    assert isinstance(lm.check_ranks([["a", "b"]]).outcome, CouldNotCheck)
    assert isinstance(lm.check_ranks([["a", "a"], ["a", "a"]]).outcome, CouldNotCheck)


def test_a_tie_is_no_win_and_what_nothing_scores_is_a_failure():
    def scored(right, wrong):
        return lm.Scored("3+4=", right, wrong, {"sum": (right, wrong), "form": (1, 0)})

    assert lm.check_reward_order([scored(1, 0)]).outcome == Passed()
    tie = lm.check_reward_order([scored(1, 0), scored(1, 1)]).outcome
    assert "the wrong answer gets 1 (right, wrong: sum 1, 1)" in tie.why
    assert lm.check_reward_order([scored(np.nan, 0)]).outcome.value == "none"
    assert isinstance(lm.check_reward_order([]).outcome, CouldNotCheck)


def test_the_front_door_takes_what_a_loop_of_one_s_own_has():
    logps = np.zeros((2, 3), np.float32)
    facts = {
        "group_advantages": ([1, -1, 1, -1], TWO, 2),
        "reference": (logps, logps, np.ones((2, 3))),
        "loss_weight": (np.ones((2, 3)), np.ones((2, 3)), [1, 1]),
        "sampler": ({"a[0]": 1.5}, {"a[0]": 1.5}),
        "samples": [["x"], ["y"]],
        "known_answers": [lm.Scored("3+4=", 1, 0, {})],
    }
    report = rlvitals.preflight(**facts)
    assert len(report.passed) == len(report.checks) == len(facts)
    facts["reference"] = (logps, logps + 1, np.ones((2, 3)))
    assert [c.name for c in rlvitals.preflight(**facts).failed] == ["kl-to-reference-is-zero"]

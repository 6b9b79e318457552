"""What the checks of a run's images prove, and what they cannot tell."""

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules.language import image_mismatched, image_not_seen
from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.types import Profile

BOTH = (image_not_seen.RULE, image_mismatched.RULE)
CHECKS, EACH = 6, 256
ROWS = 60
OUTCOMES = {
    "rising": np.linspace(0.3, 0.8, ROWS),
    "flat": np.full(ROWS, 0.2),
    "unknown": 0.3 + 0.2 * made.noise(ROWS, 3),
}


def run(own, other, changed, *, outcome="flat", each=EACH, distinct=1.0, blank=0.0):
    """Return a run with six checks: shares as they are logged, each a number or one a check."""
    steps = made.STEP * np.linspace(1, ROWS, CHECKS).astype(int)
    logged = {
        "questions": each, "right_own": own, "right_other": other, "marks_changed": changed,
        "distinct_share": distinct, "blank_share": blank,
    }  # fmt: skip
    checks = {
        f"language__image_{name}": made.series(np.broadcast_to(value, CHECKS), steps)
        for name, value in logged.items()
    }
    right = OUTCOMES[outcome] + 0.02 * made.noise(ROWS, 1)
    return made.trace(Profile.GRPO, reward__component__accuracy=np.clip(right, 0, 1), **checks)


def alike(**said):
    return run(0.2, 0.2, 0.0, distinct=1 / EACH, **said)


def test_right_answers_that_need_their_image_are_clear():
    for outcome in OUTCOMES:
        healthy = run(0.31, 0.19, 0.3, outcome=outcome)
        for rule in BOTH:
            assert isinstance(rule.judge(healthy), Clear), (rule.name, outcome)


@pytest.mark.parametrize(
    ("outcome", "severity"),
    [("flat", Severity.ERROR), ("unknown", Severity.WARNING), ("rising", Severity.NOTE)],
)
def test_blank_images_are_named(outcome, severity):
    found = image_not_seen.RULE.judge(alike(blank=1.0, outcome=outcome))
    assert found.severity is severity
    assert found.summary.startswith("all images are blank")
    assert isinstance(image_mismatched.RULE.judge(alike(blank=1.0)), Undecided)


@pytest.mark.parametrize(
    ("outcome", "severity"),
    [("flat", Severity.ERROR), ("unknown", Severity.NOTE), ("rising", Severity.NOTE)],
)
def test_one_image_by_design_is_no_fault_while_answers_get_better(outcome, severity):
    found = image_not_seen.RULE.judge(alike(outcome=outcome))
    assert found.severity is severity
    assert "by design is no fault" in found.counter[0]


@pytest.mark.parametrize(
    ("outcome", "severity"),
    [("flat", Severity.ERROR), ("unknown", Severity.WARNING), ("rising", Severity.NOTE)],
)
def test_shuffled_images_are_named(outcome, severity):
    shuffled = run(0.18, 0.18, 0.21, outcome=outcome)
    found = image_mismatched.RULE.judge(shuffled)
    assert found.severity is severity
    assert "18% with the question's own, 18% with another's" in found.summary
    assert found.causes == () or "shuffled" in found.causes[0]
    assert isinstance(image_not_seen.RULE.judge(shuffled), Clear)


def test_a_policy_that_knows_nothing_yet_cannot_be_told():
    for share in (0.0, 0.01):
        for rule in BOTH:
            answer = rule.judge(run(share, share, 2 * share))
            assert isinstance(answer, Undecided), rule.name
            assert "cannot be told" in answer.why


def test_a_model_that_sees_no_images_is_not_asked_for_a_check():
    text_only = made.trace(Profile.GRPO, reward__component__accuracy=OUTCOMES["flat"])
    for rule in BOTH:
        answer = rule.judge(text_only)
        assert isinstance(answer, Undecided)
        assert answer.wants == ()


def test_few_questions_tell_nothing():
    answer = image_mismatched.RULE.judge(run(0.1875, 0.1875, 0.25, each=16))
    assert isinstance(answer, Undecided)
    assert "too few questions" in answer.why


def test_answers_that_no_image_changes_are_a_note_where_they_get_better():
    """Differing images and as many right answers with any: lost on the way, or not needed."""
    found = image_not_seen.RULE.judge(run(0.5, 0.5, 0.0, outcome="rising"))
    assert found.severity is Severity.NOTE
    assert image_not_seen.RULE.judge(run(0.5, 0.5, 0.0)).severity is Severity.ERROR


@pytest.mark.parametrize(
    "wrong",
    [(2.0, 0.1, 0.1), (0.2, -0.1, 0.1), (0.2, 0.2, 1e300)],
)
def test_shares_that_cannot_be_are_not_judged(wrong):
    for rule in BOTH:
        assert isinstance(rule.judge(run(*wrong)), Undecided)


def test_false_alarms_on_a_policy_that_needs_its_image():
    """A policy whose own image adds a third of its right answers is never called mismatched."""
    chance = np.random.default_rng(0)
    rung = 0
    for _ in range(300):
        own_only, other_only, both = 0.18, 0.08, 0.1  # right with the own image in 28 %
        draws = chance.multinomial(64, [own_only, other_only, both, 0.64], size=CHECKS) / 64
        trace = run(
            draws[:, 0] + draws[:, 2], draws[:, 1] + draws[:, 2], draws[:, 0] + draws[:, 1],
            each=64, outcome="unknown",
        )  # fmt: skip
        rung += isinstance(image_mismatched.RULE.judge(trace), Finding)
    assert rung == 0


def test_most_shuffled_runs_are_named():
    chance = np.random.default_rng(1)
    rung = 0
    for _ in range(100):
        draws = chance.multinomial(EACH, [0.1, 0.1, 0.08, 0.72], size=CHECKS) / EACH
        trace = run(draws[:, 0] + draws[:, 2], draws[:, 1] + draws[:, 2], draws[:, 0] + draws[:, 1])
        rung += isinstance(image_mismatched.RULE.judge(trace), Finding)
    assert rung >= 90

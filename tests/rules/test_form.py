"""A run that gains in the form of its answers alone is told so wherever it is judged."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest
from loading import load_run

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.training_summary import summary
from rlvitals.diagnosis.verdict import Word
from rlvitals.metrics.reward_names import FORM_PATTERN, checks_the_answer
from rlvitals.rules.form import describe_form_gain, of_evaluations
from rlvitals.rules.outcome import return_up_success_flat
from rlvitals.rules.rule import Severity
from rlvitals.types import Budget, Profile
from rlvitals.views import summary as summaries

ROWS = 100


def course(first, last, seed, spread=0.02):
    return np.linspace(first, last, ROWS) + spread * made.noise(ROWS, seed)


def run(right=None, form=None, profile=Profile.PSR, **more):
    parts = {"accuracy_reward": right, "format_reward": form}
    logged = {
        f"reward__component__{name}": part for name, part in parts.items() if part is not None
    }
    total = sum(part for part in parts.values() if part is not None)
    return made.trace(profile, outcome__reward=total, **logged, **more)


SATURATED = 1 - 0.6 * np.exp(-np.arange(ROWS) / 4)  # the form is learned within a tenth of the run


@pytest.mark.parametrize("form", [course(0.4, 0.98, 1), SATURATED], ids=["slowly", "at once"])
def test_form_without_right_answers_is_said_with_both_courses(form):
    said = describe_form_gain(run(course(0.32, 0.31, 2), form))
    assert said.startswith("The form of the answers improved (format reward 0.")
    assert "; right answers did not (0.3" in said


def test_the_first_line_of_a_summary_says_it():
    trace = run(course(0.32, 0.31, 2), course(0.4, 0.98, 1))
    page = summaries.page([summary("x", diagnose(trace))])
    assert page.splitlines()[0] == describe_form_gain(trace)
    assert page.splitlines()[1] == "TRAINING SUMMARY:"


@pytest.mark.parametrize(
    "trace",
    [
        run(course(0.3, 0.8, 2), course(0.4, 0.98, 1)),  # both improve
        run(course(0.3, 0.3, 2), course(0.97, 0.98, 1)),  # neither does
        run(course(0.3, 0.3, 2)),  # nothing pays the form
        run(course(0.3, 0.3, 2), course(0.4, 0.98, 1), profile=Profile.CONTROL_PPO),
    ],
    ids=["both", "neither", "no form", "no language model"],
)
def test_nothing_is_said_of_other_runs(trace):
    assert describe_form_gain(trace) == ""
    assert summaries.page([summary("x", diagnose(trace))]).startswith("TRAINING SUMMARY:")


def test_no_run_is_praised_for_its_form_without_saying_so():
    """Right answers are not logged: the reward rises, and all that is known of it is the form."""
    trace = run(form=course(0.4, 0.98, 1))
    found = diagnose(trace).verdict
    assert found.word is Word.LEARNING
    assert found.why.endswith(describe_form_gain(trace))
    assert "; whether they are right is not logged." in found.why


@pytest.mark.parametrize(
    "name", ["format_correctness", "correct_format", "xml_tag_passes", "success_template"]
)
def test_a_right_form_is_no_right_answer(name):
    """Such a part rises with the form: by it the run would be learning."""
    assert not checks_the_answer(f"reward/component/{name}")
    form = course(0.4, 0.97, 1)
    trace = made.trace(
        Profile.GRPO, outcome__reward=form + 0.3,
        **{f"reward__component__{name}": form, "reward__component__accuracy": course(0.3, 0.3, 4)},
    )  # fmt: skip
    assert diagnose(trace).verdict.word not in {Word.LEARNING, Word.CONVERGED}
    assert describe_form_gain(trace)


@pytest.mark.parametrize("name", ["information_correct", "percentage_solved", "stage_passed"])
def test_words_within_words_are_no_form(name):
    assert FORM_PATTERN.search(name) is None
    assert checks_the_answer(f"reward/component/{name}")


def test_a_recorded_run_that_was_shown_nothing_learned_the_form():
    trace = load_run("psr-blank-images")
    said = describe_form_gain(trace)
    assert said.startswith("The form of the answers improved (format reward 0.969 -> 1.98)")
    assert said.endswith("right answers did not (0.183 -> 0.116).")
    assert describe_form_gain(load_run("psr-charts-healthy")) == ""


def test_two_evaluations_are_compared_as_a_log_is():
    def evaluation(right, form):
        return {"right": {"value": right}, "rewards": {"format_reward": form, "length": 1.0}}

    base = evaluation(0.32, 0.4)
    assert of_evaluations(base, evaluation(0.31, 0.98)) == (
        "The form of the answers improved (format_reward 0.4 -> 0.98); "
        "right answers did not (0.32 -> 0.31)."
    )
    assert of_evaluations(base, evaluation(0.5, 0.98)) == ""
    assert of_evaluations(base, evaluation(0.31, 0.41)) == ""
    assert of_evaluations(base, evaluation(0.31, None)) == ""


def test_a_part_for_answers_that_falls_while_the_reward_rises_is_no_learning():
    # Of any unit: this part pays 5 for a right answer and -4.5 for a wrong one.
    form, answers = course(2.0, 3.0, 1), course(-4.3, -4.5, 2)
    trace = made.trace(
        Profile.GRPO,
        outcome__reward=form + answers,
        reward__component__check_answer=answers,
        reward__component__match_format=form,
    )
    assert diagnose(trace).verdict.word is Word.STALLED


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_budget_that_is_spent_without_one_right_answer_is_a_warning(share):
    trace = run(np.zeros(ROWS), course(0.05, 0.09, 1, spread=0.004), Profile.GRPO)
    trace = replace(trace, budget=Budget(round(trace.last_step / share), "max_steps"))
    assert describe_form_gain(trace) == "", "the form alone hardly improved"
    found = return_up_success_flat.RULE.ask(trace)
    assert found.severity is (Severity.WARNING if share == 1.0 else Severity.NOTE)
    assert bool(found.counter) == (share < 1.0), "no answer may follow any more"

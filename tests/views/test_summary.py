"""The lines that sum a run up: right for any loss, and honest about what decided."""

import numpy as np
import pytest
from drawn import series, subject
from loading import MEASURED

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.training_summary import summary
from rlvitals.types import Measured, Profile, Series, Trace
from rlvitals.views.summary import page

RNG = np.random.default_rng(0)


def summed(series_by_name, trained_for=None, **more):
    measured = {name: Measured("test", "test", name) for name in series_by_name}
    trace = Trace(series_by_name, measured, **more)
    return summary("run", diagnose(trace, rates=MEASURED), trained_for)


def lines(result):
    return [line.strip() for line in page([result]).splitlines()]


def flat(level, noise=1e-4, n=100):
    return series(level + RNG.normal(0, noise, n))


def test_the_guide_s_own_numbers_are_put_right():
    text = lines(summed({"optimiser/loss": series(np.linspace(3.165, 1.523, 50), step=1)}))
    assert "Total steps: 50" in text
    assert "Final loss: 1.523, no score: the loss of a policy need not fall as it learns" in text
    assert "Loss reduction: 51.9 % (3.165 → 1.523)" in text  # 52.1 in the guide


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        (2.0, 3.0, "Loss increase: 50.0 % (2 → 3)"),
        (0.5, -0.5, "Loss change: -1 (0.5 → -0.5)"),
        (-0.5, -1.0, "Loss change: -0.5 (-0.5 → -1)"),
        (0.0, 0.1, "Loss change: +0.1 (0 → 0.1)"),
        (1.0, 1.0, "Loss reduction: 0.0 % (1 → 1)"),
    ],
)
def test_a_loss_at_or_below_zero_has_no_percentage(first, last, said):
    assert said in lines(summed({"optimiser/loss": series(np.linspace(first, last, 50))}))


@pytest.mark.parametrize("level", [-0.5, 0.5, -1e-9, 0.0])
def test_a_flat_loss_alone_is_no_convergence(level):
    rising = series(np.linspace(0, 10, 100) + RNG.normal(0, 0.1, 100))
    result = summed(
        {"optimiser/loss": flat(level), "outcome/return": rising}, profile=Profile.CONTROL_PPO
    )
    assert result.converged == "no"
    assert "Verdict: learning: return is rising" in page([result])
    assert "⚠ Not fully converged (learning)" in lines(result)


def test_a_noisy_loss_does_not_speak_against_a_solved_task():
    returns = np.concatenate([np.linspace(20, 500, 60), np.full(60, 500.0)])
    loss = series(RNG.normal(0, 5, 120))
    result = summed(
        {"optimiser/loss": loss, "outcome/return": series(returns)},
        profile=Profile.CONTROL_PPO,
        settings={"env_id": "CartPole-v1"},
    )
    assert result.converged == "yes"
    assert "Verdict: converged: return is at its ceiling" in page([result])
    assert "✓ Converged" in lines(result)


def test_a_plateau_is_converged_unless_a_warning_speaks_against_it():
    rises = np.minimum(np.linspace(0, 12, 200), 2.0) + RNG.normal(0, 0.02, 200)
    kl = np.full(200, 0.004)
    quiet = {"outcome/reward": series(rises), "policy/approx_kl": series(kl)}
    result = summed(quiet, profile=Profile.RLHF_PPO)
    assert result.found.verdict.word == "plateau"
    assert result.converged == "yes"
    assert "✓ Converged (it moves no more" in page([result])
    stuck = summary("x", subject("rlhf-kl-explodes").found)
    assert stuck.found.verdict.word == "plateau"
    assert stuck.converged == "no"
    assert "⚠ Not fully converged (it moves no more, but kl-spike" in page([stuck])


def test_what_cannot_be_told_is_said_to_be_so():
    result = summed({"outcome/return": series([1.0, 2.0])})
    assert result.converged == "unknown"
    assert page([result]).count("cannot be told") == 1
    (verdict,) = [line for line in lines(result) if line.startswith("Verdict")]
    assert verdict == (
        "Verdict: unknown: whether the outcome improves, and so whether it converged, cannot be "
        "told: outcome/return has 2 numbers of the 10 needed: train longer or log more"
    )


def test_the_scatter_of_the_last_losses_is_told_as_what_it_is():
    tail = np.array([1.0, 1.01] * 10)
    ratio = float(tail[-10:].std() / tail[-10:].mean())
    text = lines(summed({"optimiser/loss": series(tail)}))
    assert f"Last 10 losses: std/mean = {ratio:.4f}, flat (below 0.01); no proof by itself" in text
    for nothing in (series([0.1, -0.1] * 10), series([1.0] * 5)):
        text = page([summed({"optimiser/loss": nothing})])
        assert "too few, or too near zero" in text


def timed(seconds):
    n = len(seconds)
    return Series(np.arange(n), 1.7e9 + np.asarray(seconds, float), np.ones(n))


@pytest.mark.parametrize(
    ("found", "settings", "trained", "seconds", "source"),
    [
        ({}, {"train_runtime": 1800.0}, None, 1800.0, "its log"),
        ({}, {"train_runtime": 1800.0}, 7200.0, 7200.0, "its progress file"),
        ({"throughput/elapsed": series([10, 20, 5, 30])}, {}, None, 50.0, "its log"),
        ({"optimiser/loss": timed(range(0, 100, 10))}, {}, None, 90.0, "the times of its rows"),
        ({"throughput/step_time": series([2.0] * 5)}, {}, None, 100.0, "the times of its steps"),
        ({"optimiser/loss": series([1, 2])}, {}, None, None, ""),
    ],
)
def test_the_training_time_is_found_wherever_it_is(found, settings, trained, seconds, source):
    result = summed(found or {"optimiser/loss": series([1, 2])}, trained, settings=settings)
    assert result.seconds == (None if seconds is None else pytest.approx(seconds))
    text = page([result])
    if seconds is None:
        assert "Training time: not known" in text
    else:
        hours = f"{seconds / 3600:.2f} hours"
        shown = {50.0: "50 s", 90.0: "2 min", 100.0: "2 min"}.get(seconds, hours)
        assert f"Training time: {shown}" in text
        assert f"from {source}" in text


def test_a_supervised_loss_is_a_score():
    falls = {"optimiser/loss": series(np.linspace(3.0, 1.5, 50), step=1)}
    assert "Final loss: 1.5" in lines(summed(falls, profile=Profile.SUPERVISED))


@pytest.mark.parametrize("profile", [Profile.GRPO, Profile.NSR, Profile.RLHF_PPO])
def test_the_loss_of_a_policy_is_one_line_that_offers_no_progress(profile):
    falls = {"optimiser/loss": series(np.linspace(3.0, 1.5, 50), step=1)}
    shown = lines(summed(falls, profile=profile))
    last = falls["optimiser/loss"].values[-10:]
    text = (
        "Final loss: 1.5, no score: the loss of a policy need not fall as it learns "
        f"(3 → 1.5; std/mean of the last 10: {np.std(last) / np.mean(last):.4f})"
    )
    assert [line for line in shown if "loss" in line.lower()] == [text]


def test_a_sentence_about_the_outcome_is_written_once():
    rising = series(np.linspace(0, 10, 100) + RNG.normal(0, 0.1, 100))
    result = summed({"outcome/return": rising}, profile=Profile.CONTROL_PPO)
    assert (
        sum(result.outcome.sentence in line for line in lines(result)[: -len(result.found.tldr)])
        == 1
    )


def test_the_three_goals_are_answered_by_the_outcome_and_the_rules():
    had = {goal.text: goal.had for goal in summary("x", subject("cluster-lr-x100").found).goals}
    assert had["KL low"] == "no"
    had = {goal.text: goal.had for goal in summary("x", subject("nsr-healthy").found).goals}
    assert had == {"reward up": "yes", "KL low": "unknown", "entropy kept": "yes"}
    had = {goal.text: goal.had for goal in summary("x", subject("rlhf-kl-explodes").found).goals}
    assert had["entropy kept"] == "no"  # 0.24 to 0.008 nats, whatever the outcome does
    had = {goal.text: goal.had for goal in summary("x", subject("scheduler-collapsed").found).goals}
    assert had["reward up"] == "no"
    assert had["entropy kept"] == "no"


def test_the_sentences_of_the_diagnosis_stand_below():
    diagnosis = subject("nsr-healthy").found
    text = lines(summary("x", diagnosis))
    for sentence in diagnosis.tldr:
        assert any(line.endswith(sentence.text) for line in text)
    assert f"Verdict: learning: {diagnosis.verdict.why}" in text


def test_a_run_s_name_moves_no_cursor():
    assert "\x1b" not in page([summary("a\x1b[2Jb", subject("nsr-healthy").found)])


def test_a_sink_that_failed_is_told():
    notes = (
        "run.json: while recording: sink mlflow: no route (76 times)",
        "while recording: no checkpoint to resume from", "another",
    )  # fmt: skip
    text = lines(summed({"optimiser/loss": series(np.ones(50))}, notes=notes))
    assert text[text.index("In short:") - 1] == "Sink mlflow: no route (76 times)"
    assert not any("resume" in line for line in text)

"""The crucial values: which they are, what is said of each, and what three of them say together."""

import numpy as np
import pytest
from drawn import HERE, RUNS, series, subject
from loading import MEASURED

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.key_metrics import crucial
from rlvitals.types import Measured, Profile, Trace
from rlvitals.views import key_metrics as shown
from rlvitals.views.console import plain

RNG = np.random.default_rng(0)
COUNT = 100


def made(profile=Profile.RLHF_PPO, settings=None, **metrics):
    named = {name.replace("__", "/"): series(values) for name, values in metrics.items()}
    measured = {name: Measured("test", f"key of {name}", name) for name in named}
    trace = Trace(named, measured, settings or {}, profile, name="made")
    return diagnose(trace, rates=MEASURED)


def near(level, spread=0.05):
    return level * np.exp(spread * RNG.standard_normal(COUNT))


def rising():
    return np.linspace(0, 5, COUNT) + 0.1 * RNG.standard_normal(COUNT)


def healthy(**other):
    """What both guides list, as it should be."""
    metrics = {
        "outcome__rlhf_reward": rising(),
        "outcome__score": rising(),
        "policy__kl_to_reference": near(3.0),
        "policy__kl_coef": near(0.05),
        "exploration__entropy": np.linspace(2.0, 1.4, COUNT),
        "policy__ratio": near(1.0, 0.003),
        "policy__clip_fraction_effective": near(0.05),
        "policy__approx_kl": near(0.005),
        "value__loss": near(0.1),
    }
    return made(**metrics | other)


def told(diagnosis):
    return {value.title: value for value in crucial(diagnosis).values}


@pytest.mark.parametrize("name", ["rlhf-kl-explodes", "scheduler-collapsed", "nsr-healthy"])
def test_the_page_is_what_it_was(name, golden):
    values = subject(name).found
    golden(HERE / "golden" / f"crucial-{name}.txt", plain(shown.crucial(values, crucial(values))))


def test_both_guides_find_their_values():
    values = crucial(healthy())
    titles = [value.title for value in values.values]
    # The first of these is the outcome that the run is judged by.
    assert sorted(titles[:2]) == ["RLHF reward", "Score"]
    assert titles[2:] == [
        "KL to the reference", "Entropy", "Probability ratio", "Clip fraction", "KL per update",
        "Value loss", "KL coefficient",
    ]  # fmt: skip
    goals = [value.title for value in values.values if value.part == "goals"]
    assert goals[2:] == ["KL to the reference", "Entropy"]
    assert {value.sign for value in values.values} == {"good"}
    assert values.together == (
        "the ratio is about 1, few samples are clipped, and KL per update is low"
    )


def test_each_has_its_value_its_change_its_bound_and_where_that_comes_from():
    value = told(healthy(outcome__score=np.linspace(0, 5, COUNT)))["Score"]
    assert (value.now, value.key) == (5.0, "key of outcome/score")
    assert (value.first, value.last) == (
        pytest.approx(0.48, abs=0.05),
        pytest.approx(4.5, abs=0.05),
    )
    ratio = told(healthy())["Probability ratio"]
    assert [(ratio.low.value, ratio.low.origin), ratio.high.value] == [(0.5, "default"), 2.0]
    target_value = told(made(Profile.CONTROL_PPO, {"target_kl": 0.5}, policy__approx_kl=near(0.1),
                    outcome__return=rising()))["KL per update"]  # fmt: skip
    assert (target_value.high.value, target_value.high.origin) == (0.5, "the run's target_kl")
    assert target_value.why == "within its bounds in all of its rows"


def test_what_is_not_logged_cannot_be_told():
    values = told(made(outcome__score=rising()))
    assert values["KL to the reference"].sign == "unknown"
    assert values["KL to the reference"].why == "not logged"
    assert "KL coefficient" not in values  # this trainer may well not log it
    short = told(made(outcome__score=rising()[:5]))
    (outcome,) = [value for value in short.values() if value.healthy == "goes up"]
    assert outcome.sign == "unknown"


def test_no_number_at_the_end_is_bad():
    loss = near(0.1)
    loss[60:] = np.nan
    value = told(healthy(value__loss=loss))["Value loss"]
    assert (value.sign, value.why) == ("bad", "it is no number at the end, as in 40 of 100 rows")


def test_a_bound_that_is_crossed_without_a_finding_is_said_and_is_no_fault():
    clipped = np.full(COUNT, 0.05)
    clipped[::10] = 0.9
    value = told(healthy(policy__clip_fraction_effective=clipped))["Clip fraction"]
    assert (value.sign, value.why[:26]) == ("neutral", "above 0.2 in 10% of its ro")


def test_a_reward_that_does_not_rise_and_an_entropy_that_is_lost():
    flat = 1 + 0.1 * RNG.standard_normal(COUNT)
    values = told(healthy(outcome__score=flat, outcome__rlhf_reward=flat,
                         exploration__entropy=np.geomspace(2.0, 0.01, COUNT)))  # fmt: skip
    assert values["Score"].sign == values["RLHF reward"].sign == "bad"
    assert values["Entropy"].sign == "bad"


@pytest.mark.parametrize(
    ("ratio", "kl", "clip", "sign", "words"),
    [
        (3.0, 0.2, 0.5, "bad", "updates are too drastic"),
        (3.0, 0.001, 0.01, "bad", "while few samples are clipped and KL is low"),
        (1.0, 0.2, 0.05, "neutral", "the ratio stays about 1, but KL per update"),
        (1.0, 0.001, None, "unknown", "the clip fraction is not logged"),
    ],
)
def test_ratio_clipping_and_kl_together(ratio, kl, clip, sign, words):
    other = {"policy__ratio": near(ratio, 0.003), "policy__approx_kl": near(kl)}
    values = healthy(**other, policy__clip_fraction_effective=near(clip or 1))
    if clip is None:
        series = {k: s for k, s in values.trace.series.items() if not k.endswith("_effective")}
        values = made(**{name.replace("/", "__"): s.values for name, s in series.items()})
    key_metrics = crucial(values)
    assert key_metrics.together_sign == sign
    assert words in key_metrics.together


def test_without_a_ratio_nothing_is_said_together():
    assert crucial(subject("sft-healthy").found).together == ""


@pytest.mark.parametrize("name", [*RUNS, "cluster", "hostile"])
def test_every_kind_of_run_has_values_within_the_terminal(name):
    values = subject(name).found
    page = plain(shown.crucial(values, crucial(values)), width=60)
    assert max(map(len, page.splitlines())) <= 60
    assert page.count("\n") > 5

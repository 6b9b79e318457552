"""A run made by hand that has something of everything a report shows."""

import numpy as np

from rlvitals.diagnosis.engine import diagnose
from rlvitals.metrics import find
from rlvitals.metrics.metric import Bound
from rlvitals.rules.rate import Rate
from rlvitals.rules.rule import Clear, Finding, Rule, Severity, Undecided
from rlvitals.types import Budget, Measured, Profile, Series, Trace

STEPS = np.arange(100, 10_100, 100)
TIME = np.linspace(0.0, 1.0, len(STEPS))


def series(values):
    return Series(STEPS, 1.7e9 + STEPS / 10, np.asarray(values, dtype=np.float64))


def rule(name, check, **more):
    return Rule(name=name, needs=(), check=check, doc="", causes=more.pop("causes", ()), **more)


KL = rule(
    "kl-above-target",
    lambda _: Finding(
        "KL per update stays above 0.03 and reaches 0.825",
        Severity.ERROR,
        "policy/approx_kl",
        began=4_000,
        ended=10_000,
        observed=0.825,
        bound=Bound(0.02, "the run's target_kl"),
        evidence=("71 of 100 updates are above 0.03", "the learning rate never falls"),
        counter=("the return still rises until step 5,000",),
    ),
    causes=("learning rate too high", "too many epochs per batch", "batch too small"),
    remedies=("lower the learning rate", "run fewer epochs per batch", "set target_kl"),
    verdict="unstable",
)
CLIP = rule(
    "clip-fraction-high",
    lambda _: Finding(
        "0.45 of samples are clipped",
        Severity.WARNING,
        "policy/clip_fraction",
        began=4_100,
        ended=10_000,
        observed=0.45,
        bound=Bound(0.3, "default"),
    ),
    causes=("updates too large",),
    remedies=("lower the learning rate",),
    explained_by=("kl-above-target",),
)
NAN = rule(
    "not-a-number",
    lambda _: Finding(
        "the value loss of \x1b[31mrun\u202e is not a number in 10 rows",
        Severity.NOTE,
        "value/loss",
        began=3_000,
        ended=3_900,
        observed=float("nan"),
        bound=Bound(0, "invariant"),
    ),
    causes=("an overflow",),
    remedies=("look at the rows before step 3,000",),
)
QUIET = rule("critic-explains-nothing", lambda _: Clear(), remedies=())
BLIND = rule(
    "gradient-norm-spike",
    lambda _: Undecided("optimiser/grad_norm is not logged", ("optimiser/grad_norm",)),
    remedies=(),
)
BLINDER = rule(
    "gradient-vanished",
    lambda _: Undecided("optimiser/grad_norm is not logged", ("optimiser/grad_norm",)),
    remedies=(),
)
RULES = (KL, CLIP, NAN, QUIET, BLIND, BLINDER)


def trace(**over):
    kl = 0.01 + 0.8 * np.clip(TIME - 0.4, 0, 1) ** 2
    loss = 5 * np.exp(-3 * TIME)
    loss[29:39] = np.nan
    columns = {
        "outcome/return": np.minimum(TIME, 0.5) * 400 - 60 * np.clip(TIME - 0.5, 0, 1),
        "policy/approx_kl": kl,
        "policy/clip_fraction": np.clip(kl, 0, 0.45),
        "exploration/entropy": 1.38 - TIME,
        "value/loss": loss,
        "value/explained_variance": 0.9 * TIME,
    }
    parts = {
        "series": {name: series(values) for name, values in columns.items()},
        "measured": {
            name: Measured("sb3", f"train/{name.split('/')[1]}", "as SB3 logs it", where="x.csv")
            for name in columns
        },
        "settings": {"target_kl": 0.02, "env_id": "Made-v0"},
        "profile": Profile.CONTROL_PPO,
        "budget": Budget(20_000, "the run's total_steps"),
        "notes": ("resumed at step 2,000: the later attempt is judged", "bell \x07 in a note"),
        "unmapped": tuple(f"my/own_{i}" for i in range(11)),
        "step_unit": "environment steps",
        "name": "made",
    }
    return Trace(**{**parts, **over})


def diagnosis(rules=RULES, **over):
    assert find("policy/approx_kl")
    measured = {rule.name: (Rate("on-policy control", 40, 1),) for rule in rules}
    return diagnose(trace(**over), rules, measured)


def blank():
    return diagnosis((BLIND,), series={}, measured={}, settings={}, notes=(), unmapped=())

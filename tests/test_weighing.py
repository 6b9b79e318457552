"""Weighed causes: withheld worlds stay withheld, and limits hold what they say."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from weighing_classes import CLASS_BY_FAULT, CLASS_BY_RULE, CLASSES, mechanism
from weighing_lives import conformal_limit, upper
from weighing_models import EVIDENCE, Weighed
from weighing_systems import same_framework, same_pair
from weighing_table import Row

from rlvitals.faults import catalogue
from rlvitals.rules import CATALOGUE

NUMBERS = sorted({name for signs in EVIDENCE.values() for name in signs})
FINDINGS = [f"finding: {name}" for name in CLASSES]


def make_row(index, *, broken=False, kind="", trainer="sb3-ppo", env="A", **numbers):
    features = dict.fromkeys([*NUMBERS, *FINDINGS], 0.0) | numbers
    return Row(
        name=f"run-{index}", source="dev", world=f"{trainer}/{env}", trainer=trainer, env=env,
        profile="control-ppo", label="broken" if broken else "healthy", fault="", mechanism=kind,
        expects=(), decidable=True, onset=0, verdict="unknown", alarms=(), alarm_steps=(),
        notes=(), features=features, signs=dict.fromkeys(features, 1),
    )  # fmt: skip


def test_a_withheld_world_takes_its_trainer_framework_and_environment_with_it():
    row = make_row(0, trainer="sb3-ppo", env="A")
    pairs = [("sb3-ppo", "B"), ("sb3-dqn", "A"), ("sb3-dqn", "B"), ("skrl-ppo", "B")]
    others = [make_row(1, trainer=trainer, env=env) for trainer, env in pairs]
    assert [same_pair(row)(other) for other in others] == [False, False, True, True]
    assert [same_framework(row)(other) for other in others] == [False, False, False, True]


def test_more_of_any_evidence_never_makes_a_run_healthier():
    draw = np.random.default_rng(0).normal
    rows = [make_row(i, env=str(i % 5), **{"kl.level": draw()}) for i in range(40)]
    # What is high in healthy runs may not speak for health: its coefficient stays at zero.
    rows += [
        make_row(i, broken=True, kind=CLASSES[i % 2], env=str(i % 5),
                 **{"kl.level": draw() - 3.0, "return.lost": draw() + 3.0})
        for i in range(40, 80)
    ]  # fmt: skip
    model = Weighed(ridge=0.01).fit(rows)
    coefficients = dict(zip(model.scale.names, model.alarm[0], strict=True))
    assert min(coefficients.values()) >= 0
    assert coefficients["return.lost"] > 0
    assert coefficients["kl.level"] == pytest.approx(0, abs=1e-9)
    healthy, broken = model.broken([rows[0], rows[-1]])
    assert healthy < 0.5 < broken


def test_a_feature_that_is_not_logged_says_nothing():
    rows = [make_row(i, env=str(i % 5), **{"kl.level": float(i)}) for i in range(40)]
    rows += [make_row(i, broken=True, kind=CLASSES[0], **{"kl.level": i + 40.0}) for i in range(20)]
    model = Weighed().fit(rows)
    absent = make_row(99, **{"kl.level": float("nan")})
    middle = make_row(98, **{"kl.level": 19.5})
    assert model.scale.matrix([absent])[0] == pytest.approx(model.scale.matrix([middle])[0])


def test_a_conformal_limit_is_passed_no_more_often_than_it_says():
    draws = np.random.default_rng(0).normal(size=(4000, 50))
    passed = [world[-1] > conformal_limit(list(world[:-1]), 0.1) for world in draws]
    assert np.mean(passed) == pytest.approx(0.1, abs=0.015)
    assert math.isinf(conformal_limit([0.0] * 48, 1 / 50))
    assert conformal_limit([0.0] * 49, 1 / 50) == 0.0


def test_the_upper_limit_of_a_share_is_the_exact_one():
    assert upper(0, 149) < 0.02 < upper(0, 148)
    assert upper(1, 10) == pytest.approx(0.394163, abs=1e-5)  # qbeta(0.95, 2, 9)


def test_classes_are_of_rules_and_faults_that_exist():
    assert set(CLASS_BY_RULE) <= {rule.name for rule in CATALOGUE}
    decided = {"weight-nan", "environment-slow"}  # by rules: not weighed
    assert {fault.name for fault in catalogue.FAULTS} - set(CLASS_BY_FAULT) == decided
    assert mechanism("observation-noise", 0.5) == "changed in mid-run"
    assert mechanism("observation-noise", 0.0) == "samples do not fit"

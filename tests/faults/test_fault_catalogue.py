"""Every fault expects rules that exist, in metrics that exist, and can be injected."""

import pytest

from rlvitals import metrics
from rlvitals.faults.catalogue import FAULTS, find_fault
from rlvitals.faults.fault import FAILED_VERDICT, Clock, Injection, Onset
from rlvitals.faults.folder import FIRST_HEALTHY_TEST_SEED
from rlvitals.faults.run_list import HEALTHY_TEST_SEEDS, plan
from rlvitals.faults.tasks import FAULT_TASKS
from rlvitals.rules import CATALOGUE as RULES

EVERY = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)


@EVERY
def test_a_fault_expects_rules_that_exist(fault):
    assert fault.expects
    assert set(fault.expects) <= {rule.name for rule in RULES} | {FAILED_VERDICT}


@EVERY
def test_a_fault_is_visible_in_metrics_that_exist(fault):
    assert set(fault.visible_in) <= {metric.name for metric in metrics.CATALOGUE}


@EVERY
def test_a_fault_does_something(fault):
    injection = Injection(Clock(0))
    fault.inject(injection)
    assert injection.world or injection.change or injection.options


@EVERY
def test_a_fault_has_runs(fault):
    assert any(run.fault == fault.name for run in plan())


def test_names_are_unique():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 30
    assert len({(run.task.name, run.name) for run in plan()}) == len(plan())


def test_every_task_has_enough_healthy_seeds():
    for task in FAULT_TASKS:
        own = [r for r in plan() if r.task.name == task.name and not r.fault and not r.variant]
        tuning = 2 if task.first_seed and task.env_id == "CartPole-v1" else 0
        assert (
            len(own)
            == FIRST_HEALTHY_TEST_SEED + (tuning if task.first_seed else HEALTHY_TEST_SEEDS)
            >= 20
        )
    assert sum(not run.fault for run in plan()) >= 150


def test_what_was_there_from_the_start_may_be_hidden():
    fault = find_fault("reward-flipped")
    logged = frozenset({"outcome/return"})
    assert not fault.visible(Onset.START, logged)
    assert fault.visible(Onset.MIDDLE, logged)
    assert not fault.visible(Onset.MIDDLE, frozenset())

"""Changes in mid-run, and the findings that follow them."""

from dataclasses import replace

import made_traces as made
import numpy as np

from rlvitals.diagnosis.engine import diagnose
from rlvitals.metrics.metric import Bound
from rlvitals.rules import CATALOGUE, seams
from rlvitals.rules.rule import Finding, Severity
from rlvitals.types import Lifecycle

AT = 61 * made.STEP
KL_SPIKE = next(rule for rule in CATALOGUE if rule.name == "kl-spike")


def run(resumed=(), **metrics):
    trace = made.trace(policy__approx_kl=np.full(100, 0.01), **metrics)
    return replace(trace, lifecycle=Lifecycle(seams=resumed))


def finding(began, metric="policy/approx_kl"):
    return Finding("it", Severity.NOTE, metric, began, 100 * made.STEP, 1.0, Bound(0.0, "made"))


def kinds(trace):
    return [(change.kind, change.step) for change in seams.change_points(trace)]


def test_what_is_known_to_have_changed():
    epochs = np.linspace(0, 1.99, 100)
    found = run(
        resumed=(AT,),
        optimiser__learning_rate=np.where(np.arange(100) < 30, 1e-3, 1e-4),
        policy__clip_range=np.where(np.arange(100) < 40, 0.2, 0.1),
        progress__curriculum__level=np.where(np.arange(100) < 50, 1.0, 2.0),
        progress__epoch=epochs,
    )
    first = int(np.flatnonzero(epochs >= 1)[0])
    assert kinds(found) == [
        ("setting", 31 * made.STEP),
        ("setting", 41 * made.STEP),
        ("stage", 51 * made.STEP),
        ("epoch", (1 + first) * made.STEP),
        ("resume", AT),
    ]


def test_a_clock_that_begins_anew_is_a_resume():
    clock = np.concatenate((60.0 * np.arange(1, 61), 60.0 * np.arange(1, 41)))
    assert kinds(run(throughput__elapsed=clock)) == [("resume", AT)]


def test_what_changes_all_along_is_steered_not_set():
    steered = np.geomspace(1e-3, 1e-4, 100) * np.where(np.arange(100) % 2, 3.0, 1.0)
    assert kinds(run(optimiser__learning_rate=steered, policy__kl_coef=made.noise(100))) == []
    assert kinds(run(optimiser__learning_rate=np.geomspace(1e-3, 1e-6, 100))) == []


def test_a_finding_soon_after_a_resume_is_put_down_to_it():
    trace = run(resumed=(AT,))
    near = seams.alignment(trace, finding(AT + 3 * made.STEP))
    assert (near.change.kind, near.updates) == ("resume", 3)
    for began in (AT - made.STEP, AT + 30 * made.STEP, made.STEP):
        assert seams.alignment(trace, finding(began)) is None


def test_changes_that_fill_the_run_explain_nothing():
    often = run(progress__epoch=np.linspace(0, 20, 100))
    assert seams.alignment(often, finding(51 * made.STEP), within=3) is None
    once = run(progress__epoch=np.linspace(0, 1.5, 100))
    (change,) = seams.change_points(once)
    assert seams.alignment(once, finding(change.step), within=3).change == change


def test_a_change_does_not_explain_itself():
    trace = run(optimiser__learning_rate=np.where(np.arange(100) < 60, 1e-4, 1e-2))
    assert seams.alignment(trace, finding(AT, "optimiser/learning_rate")) is None
    assert seams.alignment(trace, finding(AT), within=5).change.metric == "optimiser/learning_rate"


def test_the_diagnosis_says_so_and_puts_the_cause_first():
    kl = 0.01 + 0.001 * np.abs(made.noise(300))
    kl[153:156] = 1.0
    at = 151 * made.STEP
    trace = made.trace(policy__approx_kl=kl, outcome__return=made.rising(300))
    (plain,) = [f for r, f in diagnose(trace, (KL_SPIKE,)).findings]
    resumed = replace(trace, lifecycle=Lifecycle(seams=(at,)))
    (found,) = [f for r, f in diagnose(resumed, (KL_SPIKE,)).findings]
    assert "it began 3 updates after the resume at step 151,000" in found.evidence[-1]
    assert "restored" in found.causes[0]
    assert (found.severity, found.began, found.known) == (plain.severity, plain.began, plain.known)
    assert len(plain.evidence) == len(found.evidence) - 1

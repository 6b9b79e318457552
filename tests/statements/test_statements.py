"""Each number that a report prints is derived again from the trace, by what its words say.

Of every recorded run, of each rule's traces, and of a fixed sample of the benchmark. A number that
nothing derives fails as one that differs does: a new sentence needs a claim beside its rule's.
"""

import random
import re
from pathlib import Path

import numpy as np
import pytest
from check_statements import check, durations, problems, sentences, unlogged
from derivations import ANY_NUMBER, Case, reads
from effort import sampled
from loading import MEASURED, RUNS, TRACES, TRAPS, load, load_run, load_trap

from rlvitals.diagnosis import load as loading
from rlvitals.diagnosis.engine import diagnose
from rlvitals.faults import folder, run_diagnosis
from rlvitals.metrics.canonicalize import Given
from rlvitals.types import Profile, Series, Trace

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # a window may hold one value
ROOT = Path(__file__).resolve().parents[2]
TIER = ROOT / "faults" / "tier-1"
PLANNED = sorted(folder.read(TIER), key=lambda run: (run.task, run.name))[::12]  # a fixed sample
RECORDED = [
    *((load_run, (path.parent.name,)) for path in sorted(RUNS.glob("*/run.toml"))),
    *((load_trap, (path.parent.name,)) for path in sorted(TRAPS.glob("*/run.toml"))),
    *((load, (path.parent.name, "fires")) for path in sorted(TRACES.glob("*/trace.toml"))),
]
QUIET = [(load, (path.parent.name, "quiet")) for path in sorted(TRACES.glob("*/trace.toml"))]
EXAMPLES = [
    *(ROOT / "examples" / name for name in ("failing", "healthy")),
    *sorted((ROOT / "tests/rules/wiring").glob("*.csv")),
]
CHANGED = 40  # numbers changed to see whether it is noticed
KL, ENTROPY = "policy/kl_to_reference", "exploration/entropy"
NOTICED = 0.8  # share of them: a number that another window gives as well passes


def every(parameters):
    """Return pytest's parameters of (function, arguments)."""
    return [pytest.param(*one, id="-".join(map(str, one[1]))) for one in parameters]


def judged(trace):
    return diagnose(trace, rates=MEASURED)


def holds(found):
    checked, false = problems(found)
    assert not false, "\n".join(f"{rule}: {text}\n    {why}" for rule, text, why in false)
    assert not durations(found)
    return checked


@pytest.mark.parametrize(("loader", "names"), sampled(every(RECORDED), 4))
def test_every_number_of_a_recorded_run_follows_from_its_trace(loader, names):
    assert holds(judged(loader(*names)))


@pytest.mark.parametrize(("loader", "names"), sampled(every(QUIET), 8))
def test_every_number_of_a_quiet_trace_follows_from_it(loader, names):
    holds(judged(loader(*names)))


@pytest.mark.parametrize("run", sampled(PLANNED, 12), ids=lambda run: f"{run.task}-{run.name}")
def test_every_number_of_the_benchmark_follows_from_its_trace(run):
    assert holds(judged(run_diagnosis.load(TIER, run)))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_number_of_an_example_follows_from_its_log(path):
    assert holds(judged(loading.load(loading.runs(path)[0], Given())))


def test_a_changed_number_is_noticed():
    """The checker would be worthless if any number could be derived from something."""
    found = judged(load_run("ppo-cartpole-lr-spike"))
    chosen = random.Random(0)
    said = [one for one in sentences(found) if ANY_NUMBER.search(one[1])]
    noticed = 0
    for _ in range(CHANGED):
        rule, text, finding = chosen.choice(said)
        number = chosen.choice(list(ANY_NUMBER.finditer(text)))
        digits = re.sub(r"[1-8]", lambda digit: str(int(digit[0]) + 1), number.group(), count=1)
        changed = text[: number.start()] + digits + text[number.end() :]
        noticed += changed == text or bool(check(changed, Case(found.trace, finding), rule))
    assert noticed >= NOTICED * CHANGED


def test_a_streak_with_an_exception_is_no_streak():
    found = judged(load_trap("reward-zero"))
    finding = next(f for rule, f in found.findings if rule.name == "constant-reward")
    case = Case(found.trace, finding)
    assert not check("return is 0 in 60 values in a row", case, "constant-reward")
    assert check("return is 0 in 61 values in a row", case, "constant-reward")


def test_what_is_logged_is_not_called_unlogged():
    steps, none = np.array([1000, 2000]), np.full(2, np.nan)
    few = {name: Series(steps, none, np.array([0.5, 0.4])) for name in (KL, ENTROPY)}
    run = Trace(few, {}, profile=Profile.CONTROL_PPO)
    assert unlogged("KL is not logged: how far updates move is not known", run)
    assert unlogged("policy/kl_to_reference is not logged", run)
    assert not unlogged("value/loss is not logged", run)
    said = {s.topic: s.text for s in judged(run).tldr}
    assert said["KL"] == (
        "KL to the reference model, per sequence has 2 numbers, too few: how far updates move is "
        "not known."
    )
    assert "2 numbers" in said["entropy"]


@pytest.mark.parametrize(
    ("printed", "value", "same"),
    [
        ("0.23", 0.2262, True), ("0.23", 0.2361, False), ("84%", 0.841, True),
        ("84%", 0.851, False), ("31,744", 31_744, True), ("3.05e+03", 3051.2, True),
        ("3.05e+03", 3061.0, False), ("-0.0019", -0.00187, True), ("inf", float("inf"), True),
    ],
)  # fmt: skip
def test_a_number_is_compared_as_it_is_printed(printed, value, same):
    assert reads(printed, value) is same

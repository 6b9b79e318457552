"""The rules that compare the ranks of a run: on recorded ranks, and on made ones."""

from dataclasses import replace

import numpy as np
import pytest

from rlvitals.diagnosis.engine import diagnose
from rlvitals.metrics.canonicalize import Given, trace
from rlvitals.rules.ranks import rank_clocks_differ, rank_differs, rank_slow, rank_stopped
from rlvitals.rules.rule import Clear, Finding, Undecided
from rlvitals.types import Log, Series

RULES = (rank_clocks_differ.RULE, rank_differs.RULE, rank_slow.RULE, rank_stopped.RULE)


def run_of(columns, times, steps=None):
    """A run whose ranks log `columns` {key: [r, n]} at `times` [r, n]."""
    ranks, count = times.shape
    steps = np.arange(1, count + 1) if steps is None else steps
    series = {
        (f"rank/{rank}/{key}" if rank else key): Series(steps, times[rank], values[rank])
        for key, values in columns.items()
        for rank in range(ranks)
    }
    return trace([Log("made", series, where="run")], Given())


def healthy(seed, ranks, steps, *, apart, noise):
    """Ranks in step with shared gradients, or `apart`; losses with heavy tails or of own data."""
    rng = np.random.default_rng(seed)
    work = rng.gamma(3.0, 0.1, (ranks, steps))
    together = np.cumsum(work.max(axis=0)) + rng.normal(0, 1e-3, (ranks, steps))
    times = 1.7e9 + (np.cumsum(work, axis=1) if apart else together)
    local = noise(rng, ranks, steps) * np.linspace(2, 1, steps)
    norm = noise(rng, 1 if not apart else ranks, steps) * np.ones((ranks, 1))
    return {"loss": local, "grad_norm": np.abs(norm), "step_time": work}, times


NOISES = {
    "normal": lambda rng, r, n: 2 + rng.normal(0, 0.5, (r, n)),
    "heavy": lambda rng, r, n: 2 + rng.standard_t(2, (r, n)),
    "log-normal": lambda rng, r, n: np.exp(rng.normal(0, 1, (r, n))),
    "own data": lambda rng, r, n: rng.normal(2, 1, (r, 1)) + rng.normal(0, 0.1, (r, n)),
}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("apart", [False, True])
def test_healthy_ranks_give_no_finding(noise, apart):
    for seed in range(6):
        for ranks, steps in ((2, 40), (4, 33), (8, 120), (64, 40)):
            columns, times = healthy(seed, ranks, steps, apart=apart, noise=NOISES[noise])
            run = run_of(columns, times)
            for rule in RULES:
                assert not isinstance(rule.judge(run), Finding), (rule.name, seed, ranks, steps)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_run_of_a_single_rank_is_not_asked(rule):
    series = Series(np.arange(50), np.arange(50.0), np.ones(50))
    run = trace([Log("made", {"loss": series})], Given())
    found = diagnose(run)
    assert not run.ranks
    assert rule not in found.clear
    assert rule not in [asked for asked, _ in found.undecided]


def test_a_local_loss_that_leaves_the_others_is_named():
    columns, times = healthy(1, 16, 160, apart=False, noise=NOISES["normal"])
    columns["loss"][11, 80:] += 3.0
    answer = rank_differs.RULE.judge(run_of(columns, times))
    assert isinstance(answer, Finding)
    assert answer.metric == "optimiser/loss"
    assert "rank 11 has come apart" in answer.summary
    assert 80 <= answer.began <= 101


def test_a_rank_without_a_number_differs_from_shared_ones():
    columns, times = healthy(1, 4, 60, apart=False, noise=NOISES["normal"])
    columns["grad_norm"][2, 50:] = np.nan
    answer = rank_differs.RULE.judge(run_of(columns, times))
    assert isinstance(answer, Finding)
    assert "rank 2" in answer.summary
    assert answer.began == 51


def test_last_digits_of_a_shared_value_are_no_difference():
    columns, times = healthy(1, 4, 60, apart=False, noise=NOISES["normal"])
    columns["grad_norm"][2] *= 1 + 1e-6
    columns["loss"] = columns["grad_norm"]
    assert isinstance(rank_differs.RULE.judge(run_of(columns, times)), Clear)


def test_two_ranks_that_differ_accuse_neither():
    columns, times = healthy(1, 2, 60, apart=False, noise=NOISES["normal"])
    columns["grad_norm"][1, 50:] *= 2
    assert isinstance(rank_differs.RULE.judge(run_of(columns, times)), Undecided)


def test_a_straggler_apart_is_found_by_the_times_of_its_rows():
    columns, times = healthy(3, 8, 200, apart=True, noise=NOISES["normal"])
    times[5] = 1.7e9 + 3 * (times[5] - 1.7e9)
    answer = rank_slow.RULE.judge(run_of({"loss": columns["loss"]}, times))
    assert isinstance(answer, Finding)
    assert "rank 5 takes" in answer.summary


def test_a_clock_that_is_off_is_told_from_ranks_apart():
    columns, times = healthy(3, 8, 200, apart=False, noise=NOISES["normal"])
    times[6] -= 60.0
    answer = rank_clocks_differ.RULE.judge(run_of(columns, times))
    assert isinstance(answer, Finding)
    assert "rank 6 is 60 s behind" in answer.summary
    columns, times = healthy(3, 8, 200, apart=True, noise=NOISES["normal"])
    times[6] -= 60.0  # or it began a minute sooner: nobody can say
    assert isinstance(rank_clocks_differ.RULE.judge(run_of(columns, times)), Undecided)


def test_a_rank_that_the_last_launch_lacks_has_not_stopped():
    steps, values = np.arange(100), np.ones(100)
    long = Series(steps, steps * 1.0, values)
    series = {"loss": long, "rank/1/loss": long, "rank/2/loss": long.until(20)}
    log = Log("rlvitals", series, ranks=(0, 1, 2))
    assert isinstance(rank_stopped.RULE.judge(trace([log], Given())), Finding)
    assert isinstance(rank_stopped.RULE.judge(trace([replace(log, ranks=(0, 1))], Given())), Clear)


def test_many_ranks_are_kept_small():
    rng = np.random.default_rng(0)
    steps, times = np.arange(2000), np.arange(2000.0)
    series = {
        (f"rank/{rank}/loss" if rank else "loss"): Series(steps, times, rng.random(2000))
        for rank in range(1024)
    }
    kept = trace([Log("made", series)], Given()).ranks["optimiser/loss"]
    assert kept.values.shape == (1024, 256)
    assert kept.steps[-1] == 1999
    size = kept.values.nbytes + kept.times.nbytes + kept.logged.nbytes
    assert size < 5e6

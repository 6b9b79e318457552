"""pass@k: by hand, by exact fractions, by drawing samples, and its interval by its coverage."""

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from effort import cases

from rlvitals.errors import UsageError
from rlvitals.trainers.language import pass_at_k


def test_by_hand():
    # 2 of 4 samples right: the 6 pairs but the one of both wrong ones hold a right one
    assert pass_at_k.chances(4, 2) == pytest.approx([0, 3 / 6, 5 / 6, 1, 1])
    assert pass_at_k.chances(1, 1).tolist() == [0, 1]
    found = pass_at_k.of_questions([0, 1, 4], 4, (1, 4))
    assert found == pytest.approx(np.array([[0, 0], [1 / 4, 1], [1, 1]]))


def test_against_every_choice_of_k():
    for n, c, k in ((5, 2, 3), (6, 1, 2), (7, 3, 4)):
        samples = [i < c for i in range(n)]
        taken = [any(chosen) for chosen in combinations(samples, k)]
        assert pass_at_k.chances(n, k)[c] == pytest.approx(sum(taken) / len(taken))


@pytest.mark.parametrize("n", [1, 2, 64, 256, 10_000])
def test_against_exact_fractions_to_the_last_digits(n):
    for k in {1, min(2, n), n // 3 or 1, n - 1 or 1, n}:
        found = pass_at_k.chances(n, k)
        for c in {0, 1, 2, n // 2, n - k, n} & set(range(n + 1)):
            exact = 1 - Fraction(comb(n - c, k), comb(n, k))
            assert found[c] == pytest.approx(float(exact), rel=1e-12, abs=1e-15), (c, k)
    assert np.isfinite(pass_at_k.chances(n, n)).all()


def test_it_is_unbiased_where_the_simple_formula_is_not():
    rng = np.random.default_rng(0)
    chance, n, k = 0.1, 8, 4
    right = rng.binomial(n, chance, 200_000)
    truth = 1 - (1 - chance) ** k
    error = np.sqrt(truth * (1 - truth) / 200_000)
    assert pass_at_k.of_questions(right, n, (k,)).mean() == pytest.approx(truth, abs=4 * error)
    assert abs((1 - (1 - right / n) ** k).mean() - truth) > 10 * error


@pytest.mark.soak
def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    chances = rng.beta(0.5, 1.0, 100_000)  # of all questions there are: some hard, some easy
    truth = (1 - (1 - chances) ** 4).mean()
    hits, tries = 0, cases(100, 200)
    for seed in range(tries):
        right = rng.binomial(16, rng.choice(chances, 150))
        (found,) = pass_at_k.estimate(right, 16, (4,), seed=seed)
        hits += found.low <= truth <= found.high
    assert 0.9 * tries <= hits < tries  # 95 % of them, with what chance leaves to it


def test_the_same_seed_gives_the_same_interval():
    right = np.arange(33) % 9
    first, again, other = (pass_at_k.estimate(right, 8, (1, 8), seed=s) for s in (3, 3, 4))
    assert first == again
    assert first != other
    assert [one.value for one in first] == [one.value for one in other]
    assert [one.k for one in first] == [1, 8]


def test_what_cannot_be_told_is_said():
    for n, k in ((4, 5), (4, 0)):
        with pytest.raises(UsageError, match="cannot be told"):
            pass_at_k.chances(n, k)
    with pytest.raises(UsageError, match="more right samples"):
        pass_at_k.of_questions([5], 4, (1,))
    with pytest.raises(UsageError, match="no question"):
        pass_at_k.estimate([], 4, (1,))


def test_powers():
    assert pass_at_k.powers(64) == (1, 2, 4, 8, 16, 32, 64)
    assert pass_at_k.powers(5) == (1, 2, 4)
    assert pass_at_k.powers(1) == (1,)

import pytest

from rlvitals.signals.student import t_quantile

# Two-sided quantiles as printed in any table of Student's t.
TABLE = {
    (0.95, 1): 12.706,
    (0.95, 2): 4.303,
    (0.95, 3): 3.182,
    (0.95, 10): 2.228,
    (0.95, 30): 2.042,
    (0.99, 5): 4.032,
    (0.99, 20): 2.845,
    (0.8, 4): 1.533,
    (0.999, 8): 5.041,
}


@pytest.mark.parametrize(("where", "expected"), TABLE.items())
def test_matches_the_table(where, expected):
    assert t_quantile(*where) == pytest.approx(expected, abs=2e-3)


def test_falls_with_freedom_and_rises_with_confidence():
    by_freedom = [t_quantile(0.95, d / 4) for d in range(4, 400)]
    assert by_freedom == sorted(by_freedom, reverse=True)
    assert t_quantile(0.95, 1e9) == pytest.approx(1.95996, abs=1e-4)
    by_confidence = [t_quantile(c, 6) for c in (0.5, 0.9, 0.99, 0.9999, 0.999999)]
    assert by_confidence == sorted(by_confidence)

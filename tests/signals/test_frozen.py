import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rlvitals.signals.frozen import Stretch, longest_frozen

pytestmark = pytest.mark.filterwarnings("error")
VALUES = arrays(np.float64, st.integers(0, 40), elements=st.sampled_from([0.0, 1.0, np.nan]))


def test_by_hand():
    x = np.array([5.0, 7, 7, np.nan, 7, 1, 1, 2])
    assert longest_frozen(x) == Stretch(1, 4, 3, 7)
    assert longest_frozen(np.array([1.0, 1, 2, 2])) == Stretch(2, 3, 2, 2)
    assert longest_frozen(np.array([1.0, 2, 3])) == Stretch(2, 2, 1, 3)
    assert longest_frozen(np.full(5, np.nan)) is None
    assert longest_frozen(np.array([])) is None


@given(VALUES)
def test_agrees_with_a_loop(x):
    longest, run, last = 0, 0, None
    for value in x[np.isfinite(x)]:
        run = run + 1 if value == last else 1
        longest, last = max(longest, run), value
    found = longest_frozen(x)
    assert (found.count if found else 0) == longest
    if found:
        part = x[found.first : found.last + 1]
        assert (part[np.isfinite(part)] == found.value).all()


def test_nothing_raises_or_warns(edge_case):
    found = longest_frozen(edge_case)
    assert (found is None) == (not np.isfinite(edge_case).any())

"""The glossary explains the guides' terms and our own words, briefly."""

import re
from collections import Counter

import pytest

from rlvitals.metrics import CATALOGUE
from rlvitals.metrics.glossary import TERMS, lookup

GUIDE = [
    "policy", "value function", "advantage", "return", "entropy", "KL divergence", "clipping",
    "GAE", "explained variance",
]  # fmt: skip
VERDICTS = [
    "failed", "hung", "collapsed", "unstable", "stalled", "plateau", "converged", "learning",
    "unknown",
]  # fmt: skip
OURS = ["k1", "k2", "k3", "moving average", "block mean", "undecided", "coverage", "finding"]


@pytest.mark.parametrize("word", [*GUIDE, *VERDICTS, *OURS, "critic", "KL", "gae_lambda"])
def test_a_term_is_explained_whatever_its_case(word):
    assert lookup(word) is lookup(word.upper()) is not None


def test_an_unknown_word_has_no_term():
    assert lookup("flux capacitor") is None


def test_words_are_unique():
    words = Counter(word.lower() for term in TERMS for word in (term.name, *term.also))
    assert [word for word, count in words.items() if count > 1] == []


@pytest.mark.parametrize("term", TERMS, ids=lambda t: t.name)
def test_an_explanation_is_short_and_points_at_real_metrics(term):
    assert term.meaning.endswith(".")
    assert 1 <= len(re.findall(r"\.(?:\s|$)", term.meaning)) <= 3
    assert set(term.see_also) <= {metric.name for metric in CATALOGUE}

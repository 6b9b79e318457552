import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.errors import UNSAFE_CATEGORIES, harmless


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("train/approx_kl", "train/approx_kl"),
        ("Entropie für π₀", "Entropie für π₀"),
        ("\x1b[2Jgone", r"\x1b[2Jgone"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("safe\u202eexe.gnp", r"safe\u202eexe.gnp"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("c1\x9b31m", r"c1\x9b31m"),
        ("\udc80 from bytes", r"\udc80 from bytes"),
    ],
)
def test_what_a_terminal_would_obey_is_shown_as_an_escape(raw, shown):
    assert harmless(raw) == shown


def test_endless_names_are_cut():
    assert len(harmless("x" * 10**6)) == 2000


@given(st.text())
def test_no_dangerous_character_survives(text):
    assert not {unicodedata.category(c) for c in harmless(text)} & UNSAFE_CATEGORIES

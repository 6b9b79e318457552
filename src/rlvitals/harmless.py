"""Text from a log, made harmless: a run's name must not move the cursor or reverse a line."""

import unicodedata

# Control, format (bidirectional overrides, zero width, tags), surrogate, private use,
# unassigned, line and paragraph separators.
DANGEROUS = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
LONGEST = 2000  # characters: no honest name or sentence is longer


def harmless(text: str, longest: int = LONGEST) -> str:
    r"""Show what a terminal would obey as an escape: `\x1b`, `\u202e`; cut what is too long."""
    cut = text if len(text) <= longest else f"{text[: longest - 1]}…"
    if cut.isascii() and cut.isprintable():
        return cut
    return "".join(_escaped(c) if unicodedata.category(c) in DANGEROUS else c for c in cut)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")

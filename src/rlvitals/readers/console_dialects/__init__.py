"""One file per way of printing numbers. Every dialect sees the pieces that hold its hints."""

from rlvitals.readers.console_dialects import (
    bars,
    boxes,
    dicts,
    pairs,
    rsl_rl,
    sample_modes,
    scheduler,
)
from rlvitals.readers.console_dialects.dialect import Dialect

# Bars come first: rows that print no step take it from them.
DIALECTS: tuple[Dialect, ...] = (
    bars.DIALECT,
    sample_modes.DIALECT,
    scheduler.DIALECT,
    boxes.DIALECT,
    rsl_rl.DIALECT,
    dicts.DIALECT,
    pairs.DIALECT,
)

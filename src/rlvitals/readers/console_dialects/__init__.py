"""One file per way of printing numbers. Every dialect sees the pieces that hold its hints.

They are loaded when `DIALECTS` is first used: most logs are no console output.
"""

from typing import TYPE_CHECKING

from rlvitals.startup.lazy_members import load_members_on_use

if TYPE_CHECKING:
    from rlvitals.readers.console_dialects.dialect import Dialect

    DIALECTS: tuple[Dialect, ...]

# Bars come first: rows that print no step take it from them.
DIALECT_FILES = (
    "bars",
    "psr_nsr",
    "vidur",
    "boxes",
    "evaluations",
    "rsl_rl",
    "dicts",
    "nemo_reports",
    "iteration_reports",
    "recent_stats",
    "keras_rl",
    "a2c_ppo_acktr",
    "pairs",
    "reward_calls",
    "reward_lists",
    "step_tables",
    "key_lines",
    "lone_lines",
)

__getattr__ = load_members_on_use(__name__, "DIALECTS", DIALECT_FILES, "DIALECT")

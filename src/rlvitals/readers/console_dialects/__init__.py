"""One file per way of printing numbers. Every dialect sees the pieces that hold its hints.

They are loaded when `DIALECTS` is first used: most logs are no console output.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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


def __getattr__(name: str) -> "tuple[Dialect, ...]":
    """Load the dialects."""
    if name != "DIALECTS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = (import_module(f"{__name__}.{file}") for file in DIALECT_FILES)
    dialects: tuple[Dialect, ...] = tuple(module.DIALECT for module in modules)
    globals()["DIALECTS"] = dialects
    return dialects

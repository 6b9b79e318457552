"""One file per way of printing numbers. Every dialect sees the pieces that hold its hints."""

from rlvitals.readers.console_dialects import (
    a2c_ppo_acktr,
    bars,
    boxes,
    dicts,
    evaluations,
    keras_rl,
    key_lines,
    lone_lines,
    nemo_reports,
    pairs,
    psr_nsr,
    recent_stats,
    reward_calls,
    reward_lists,
    rsl_rl,
    step_tables,
    vidur,
)
from rlvitals.readers.console_dialects.dialect import Dialect

# Bars come first: rows that print no step take it from them.
DIALECTS: tuple[Dialect, ...] = (
    bars.DIALECT,
    psr_nsr.DIALECT,
    vidur.DIALECT,
    boxes.DIALECT,
    evaluations.DIALECT,
    rsl_rl.DIALECT,
    dicts.DIALECT,
    nemo_reports.DIALECT,
    recent_stats.DIALECT,
    keras_rl.DIALECT,
    a2c_ppo_acktr.DIALECT,
    pairs.DIALECT,
    reward_calls.DIALECT,
    reward_lists.DIALECT,
    step_tables.DIALECT,
    key_lines.DIALECT,
    lone_lines.DIALECT,
)

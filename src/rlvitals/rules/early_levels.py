"""What the start of a log says of the rest: a gain at once, a fall, or learning before it."""

import numpy as np

from rlvitals.rules import kinds
from rlvitals.rules.curves import AMPLE, AT_ONCE, FIFTHS, PARTS, rose_at_once
from rlvitals.rules.episode_window import episodes
from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import Array
from rlvitals.signals.outcome_change import MIN_SHARE_LOST, starts_below
from rlvitals.signals.spread import median, noise_sd
from rlvitals.types import Profile, Trace

# Outcomes of training episodes, from the first, untrained policy on.
EPISODE_OUTCOMES = ("outcome/return", "outcome/reward")
FELL_FIRST = "it fell from its very start and ends no higher than that"
MAX_GAP_SPANS = (
    3.0  # times the span of the log: a log from the start begins within its first interval
)
MIN_EARLY_GAIN = 4.0  # times what counts
MIN_START_ERRORS = 3.0  # standard errors of a first block: one chance in a thousand


def is_back_at_start(trace: Trace, name: str, values: Array, last: float, material: float) -> bool:
    """Return True if an outcome fell from its very start and ends no higher than that.

    Its first fifth holds the fall, so that a rise from there is none of the run. The end, `last`,
    has to exceed the first of twenty blocks of `values` [n] by `material`, and by what that block
    scatters. False for a language model, for fewer than 60 values, and for a mean over the last
    episodes, which begins with one of them.
    """
    if name not in EPISODE_OUTCOMES or trace.profile in kinds.LANGUAGE or len(values) < AMPLE:
        return False
    if episodes(trace, name) > 1:
        return False
    width = len(values) // PARTS
    start = float(values[:width].mean())
    error = (noise_sd(values[: len(values) // FIFTHS]) or 0.0) / np.sqrt(width)
    fell = start - float(block_means(values, width).min()) >= material
    return fell and last - start < max(material, MIN_START_ERRORS * float(error))


def rose_early(trace: Trace, name: str, values: Array, last: float, material: float) -> bool:
    """Return True if the first few values lie far below the rest, and the end, `last`, does not."""
    return rose_at_once(values, last, material) or (
        trace.profile not in kinds.LANGUAGE and starts_below(trace[name].values)
    )


def holds_early_gain(trace: Trace, name: str, values: Array, last: float, material: float) -> bool:
    """Return True if an outcome rose early, and less than a third of that is gone at the end.

    A mean over the last episodes begins with one of them: what it gains at once has to be several
    times `material`, the least change that counts.
    """
    if name not in EPISODE_OUTCOMES or trace.profile in kinds.LANGUAGE:
        return False
    best = float(block_means(values, max(1, len(values) // PARTS)).max())
    start = median(values[:AT_ONCE]) or 0.0
    if best - last >= MIN_SHARE_LOST * (best - start):
        return False
    single = episodes(trace, name) <= 1 and starts_below(trace[name].values)
    return single or rose_at_once(values, last, MIN_EARLY_GAIN * material)


def learned_before(trace: Trace) -> str:
    """Say why what was learned may not be in the log; empty where all of it must be.

    The end of a long run alone; a scheduler that began from another's decisions.
    """
    if trace.first_step > MAX_GAP_SPANS * (trace.last_step - trace.first_step):
        return f"the log begins at step {trace.first_step:,} of the run"
    warm = str(trace.settings.get("skip_warmstart", "")).lower() == "false"
    if warm and trace.profile is Profile.SCHEDULER_PPO:
        return "it is flat from a warm start on, and how much there was to gain is not known"
    return ""

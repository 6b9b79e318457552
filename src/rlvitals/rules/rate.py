"""Measured rates of a rule's false alarms and detections."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist

from rlvitals.rules.rule import Finding, Rule, Severity
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile

# Kinds of training whose healthy runs look alike: a rule is measured in each.
ON_POLICY_FAMILY = "on-policy control"
GROUPED_FAMILY = "GRPO-like"
FAMILIES = {
    Profile.CONTROL_PPO: ON_POLICY_FAMILY,
    Profile.ON_POLICY: ON_POLICY_FAMILY,
    Profile.UNKNOWN: ON_POLICY_FAMILY,  # judged like a control task
    Profile.OFF_POLICY: "off-policy control",
    Profile.SCHEDULER_PPO: "scheduler",
    Profile.GRPO: GROUPED_FAMILY,
    Profile.PSR: GROUPED_FAMILY,
    Profile.NSR: GROUPED_FAMILY,
    Profile.W_REINFORCE: GROUPED_FAMILY,
    Profile.RLHF_PPO: "RLHF",
    Profile.SUPERVISED: "supervised",
}
MIN_HEALTHY_RUNS = 10  # of one family: with fewer, a rule is at most a note


@dataclass(frozen=True, slots=True)
class Interval:
    """A share's confidence interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Rate:
    """One rule on the measured runs of one family."""

    family: str  # of kinds of training: "on-policy control"
    healthy: int  # healthy runs that the rule could judge
    rang: int = 0  # of these, with a warning or an error: all of them false alarms
    errors: int = 0  # of these, with an error
    faulted: int = 0  # faulted runs that the rule should name, the fault being effective and logged
    caught: int = 0  # of these, where it rang at all
    first: int = 0  # of these, where it was the first root cause
    frameworks: int = 0  # of the healthy runs; 0: not known
    tasks: int = 0  # of the healthy runs, a framework's own; 0: not known

    @property
    def false_alarms(self) -> Interval:
        """The 95 % interval of the share of healthy runs on which it rings."""
        return wilson(self.rang, self.healthy)

    @property
    def recall(self) -> Interval:
        """The 95 % interval of the share of its faults that it catches."""
        return wilson(self.caught, self.faulted)


def wilson(hits: int, count: int, confidence: float = 0.95) -> Interval:
    """Return the score interval of a share; [0, 1] for no runs. Source: Wilson 1927, JASA 22."""
    if count <= 0:
        return Interval(0.0, 1.0)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share, spread = hits / count, z * z / count
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / count + spread / (4 * count))
    low = 0.0 if hits == 0 else max(centre - half, 0.0)
    high = 1.0 if hits == count else min(centre + half, 1.0)
    return Interval(low, high)


Rates = Mapping[str, Sequence[Rate]]  # by the rule's name


def held_at_note(rule: Rule, finding: Finding, rates: Rates) -> Finding:
    """Hold a finding at a note where no family has enough healthy runs that its rule judged."""
    measured = max((rate.healthy for rate in rates.get(rule.name, ())), default=0)
    if rule.no_threshold or measured >= MIN_HEALTHY_RUNS or finding.severity is Severity.NOTE:
        return finding
    return replace(finding, severity=Severity.NOTE)

"""Ranges of settings in tuned runs, and the limits beyond which a value is hardly meant.

Seen: the 120 tuned runs of RL Baselines3 Zoo's rl-trained-agents that state a setting (A2C, DDPG,
DQN, PPO, QR-DQN, SAC, TD3, TQC, TRPO; their `config.yml`). A limit lies ten times beyond what is
seen there, or where the setting takes away what the algorithm is made of. RLlib's tuned examples of
A2C have an entropy coefficient of -0.01: so much does not hinder it.

Language models are not among them: the recipes of TRL, verl and OpenRLHF for GRPO and PPO train
with 1e-7 (all weights of large ones) to 1e-3 (adapters, small ones), and sample at 0.6 to 1.2.
"""

from collections.abc import Iterator
from math import inf

from rlvitals.rules import kinds
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Setting, Trace

SOFT_UPDATE_ALGORITHMS = (
    "SAC",
    "TD3",
    "DDPG",
    "TQC",
)  # their target networks follow a little at each step
MIN_TARGET_INTERVAL = 2  # steps: a network copied at each step is no target
TUNED_TARGET_INTERVALS = "10 to 1,000"


@dataclass(frozen=True, slots=True)
class Practice:
    """What one setting may be for some kinds of training, and what it does outside of that."""

    setting: str  # canonical
    profiles: tuple[Profile, ...]
    usual: str  # in tuned runs
    low: float = -inf
    high: float = inf
    below: str = ""  # what a value below `low` does
    above: str = ""
    algorithms: tuple[str, ...] = ()  # empty: all of these profiles

    def allows(self, value: float) -> bool:
        """Tell whether a value is one that a run may be given."""
        return self.low <= value <= self.high


OFF_POLICY_PROFILES = (Profile.OFF_POLICY,)
PRACTICES: tuple[Practice, ...] = (
    Practice(
        "gamma", (*kinds.CONTROL, Profile.SCHEDULER_PPO), "0.9 to 0.9999", low=0.5,
        below="only the next reward or two count",
    ),
    Practice(
        "learning_rate", kinds.CONTROL, "2e-5 to 4e-3", low=2e-6, high=4e-2,
        below="updates hardly move the weights", above="each update overshoots",
    ),
    Practice(
        "learning_rate", kinds.LANGUAGE, "1e-7 to 1e-3", low=1e-8, high=1e-2,
        below="updates hardly move the weights", above="each update overshoots",
    ),
    Practice(
        "temperature", kinds.LANGUAGE, "0.6 to 1.2", low=5e-2, high=10.0,
        below="completions of a prompt hardly differ: there is nothing to compare",
        above="completions are noise, whatever the model has learned",
    ),
    Practice(
        "value_coef", kinds.ACTOR_CRITIC, "0.19 to 0.84", low=1e-2,
        below="the critic is hardly trained, or not at all",
    ),
    Practice(
        "entropy_coef", kinds.ACTOR_CRITIC, "0 to 0.01", low=-0.05, high=0.5,
        below="the policy is paid for being certain",
        above="the policy is paid more for being random than for the task",
    ),
    Practice(
        "entropy_coef", OFF_POLICY_PROFILES, "0.005 to 0.1, or tuned automatically", high=1.0,
        above="the policy is paid more for being random than for the task",
    ),
    Practice(
        "clip_range", kinds.PPO, "0.1 to 0.4", low=1e-2, high=0.8,
        below="nearly every sample is clipped: no gradient is left", above="nothing is clipped",
    ),
    Practice(
        "ratio_threshold", (Profile.RLHF_PPO,), "10, or none", low=1.0,
        below="the mean ratio of a first minibatch is 1: nearly all of them are skipped",
    ),
    Practice(
        "target_kl", kinds.PPO, "0.01 to 0.05", low=1e-4,
        below="each update is cut short after its first step",
    ),
    Practice(
        "n_steps", kinds.PPO, "8 to 2,048", low=4,
        below="each update sees hardly more than one moment",
    ),
    Practice(
        "tau", OFF_POLICY_PROFILES, "0.005 to 0.05", low=1e-5, high=0.5,
        algorithms=SOFT_UPDATE_ALGORITHMS,
        below="the target networks never follow",
        above="the target networks are the networks: nothing holds the values down",
    ),
    Practice(
        "buffer_size", OFF_POLICY_PROFILES, "10,000 to 1,000,000", low=1e3,
        below="the replay buffer holds only the last moments",
    ),
    Practice(
        "num_generations", kinds.GROUPED, "2 and more", low=2,
        below="a group of one has no advantage",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Odd:
    """A setting of a run that is outside of practice."""

    setting: str
    value: float
    limit: float
    usual: str
    does: str


def odd(trace: Trace) -> tuple[Odd, ...]:
    """Return the run's settings that hardly can be meant, in the order of the table."""
    return (*_out_of_range(trace), *_target_network(trace))


def has_known_setting(trace: Trace) -> bool:
    """Tell whether the log states any setting that the table knows."""
    return any(trace.number(practice.setting) is not None for practice in _fitting(trace))


def common_settings(trace: Trace) -> tuple[str, ...]:
    """Return those of the commonest settings that the table knows for this kind of training."""
    names = {practice.setting for practice in _fitting(trace)}
    return tuple(name for name in ("learning_rate", "gamma") if name in names)


def _fitting(trace: Trace) -> Iterator[Practice]:
    algorithm: Setting = trace.settings.get("algorithm", "")
    for practice in PRACTICES:
        fits = not practice.algorithms or str(algorithm).upper() in practice.algorithms
        if trace.profile in practice.profiles and fits:
            yield practice


def _out_of_range(trace: Trace) -> Iterator[Odd]:
    for practice in _fitting(trace):
        value = trace.number(practice.setting)
        if value is None or practice.allows(value):
            continue
        low = value < practice.low
        limit, does = (practice.low, practice.below) if low else (practice.high, practice.above)
        yield Odd(practice.setting, value, limit, practice.usual, does)


def _target_network(trace: Trace) -> Iterator[Odd]:
    """Ask what one number alone cannot tell: a target that never follows, or always does."""
    interval, tau = trace.number("target_update_interval"), trace.number("tau")
    if trace.profile is not Profile.OFF_POLICY or interval is None:
        return
    # Both settings count environment steps, whatever the log counts.
    planned_steps = trace.budget.steps if trace.budget else trace.number("total_steps")
    # Less often than every half budget is never.
    max_interval = inf if planned_steps is None else 0.5 * planned_steps
    if interval > max_interval:
        does = "the target network is not updated within this run"
        yield Odd("target_update_interval", interval, max_interval, TUNED_TARGET_INTERVALS, does)
    dqn = str(trace.settings.get("algorithm", "")).upper() == "DQN"
    if (
        # A tau above 0.5 is copying.
        interval < MIN_TARGET_INTERVAL and dqn and (tau is None or tau > 0.5)
    ):  # DQN copies unless told
        does = "the target network is the network: nothing holds the values down"
        yield Odd(
            "target_update_interval", interval, MIN_TARGET_INTERVAL, TUNED_TARGET_INTERVALS, does
        )

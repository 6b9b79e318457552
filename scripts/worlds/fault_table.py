"""The faults of `faults/tier-2` as data: what is wrong, in which trainers, and what names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlvitals.metrics import environments

PPO = ("sb3-ppo", "cleanrl-ppo")
TUNED_PPO = (*PPO, "our-ppo", "skrl-ppo")
GRADIENT = (*TUNED_PPO, "sb3-a2c")  # with a critic
POLICY = (*GRADIENT, "reinforce")
DQN = ("sb3-dqn", "student-dqn")
VALUES = (*DQN, "tabular")
OFF = (*DQN, "sb3-sac")
ALL = (*POLICY, *VALUES, "sb3-sac")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault; `expects` are the rules that may name its cause."""

    name: str
    family: str
    about: str
    trainers: tuple[str, ...]
    expects: tuple[str, ...] = ()
    shown_by: tuple[str, ...] = ()  # metrics that can show the cause; empty: no log can
    sets: Mapping[str, float] = field(default_factory=dict)  # settings
    scales: Mapping[str, float] = field(default_factory=dict)
    onset: float = 0.0  # share of the run
    proven: bool = False  # broken by construction, whatever its returns
    ends: str = ""  # "cut": the log stops at 45 % of the budget
    blind: bool = False  # written from the rules' names alone, without sight of what they do
    needs_task: bool = False  # a log shows it only beside what the environment can pay
    only: tuple[str, ...] = ()  # "discrete", "continuous", "several" (environments), "long"

    @property
    def in_settings(self) -> bool:
        """True if the settings state what is wrong."""
        return bool(self.sets or self.scales)


RETURN = ("outcome/return",)
KL = ("policy/approx_kl", "policy/clip_fraction")
LOSS = ("value/loss", "optimiser/loss")
ENTROPY = ("exploration/entropy", "exploration/std")
LOST = ("return-collapse", "environment-changed")

FAULTS = (
    # Rewards.
    Fault("reward-sign", "reward", "the sign of the reward is wrong", ALL,
          (*LOST, "sign-reversed"), RETURN, needs_task=True),
    Fault("reward-clipped-away", "reward", "rewards are clipped to ±0.001", ALL,
          ("constant-reward", "value-loss-vanishes"), ()),
    Fault("reward-zero", "reward", "the reward is always 0", ALL, ("constant-reward",), RETURN),
    Fault("reward-x1000", "reward", "the reward is 1,000 times too large", ALL,
          ("value-loss-explosion", "q-divergence", "gradient-always-clipped",
           "gradient-explosion", "impossible-value", "updates-hardly-move"), LOSS),
    Fault("reward-noise", "reward", "noise of standard deviation 30 on each reward", ALL,
          ("critic-explains-nothing", "value-loss-explosion", "impossible-value"), ()),
    Fault("reward-shuffled", "reward", "each reward is paid 60 steps late", ALL,
          ("critic-explains-nothing",), (), blind=True),
    Fault("alive-bonus", "reward", "1 a step for being alive, and 5 % of the true reward",
          ALL, (), (), blind=True, only=("long",)),
    Fault("reward-nan", "reward", "one reward in 50 is not a number", ALL,
          ("not-a-number", "failed"), (*RETURN, *LOSS), onset=0.4, proven=True),
    # Observations and actions.
    Fault("observation-blank", "senses", "observations are zeros", ALL,
          ("environment-changed", "no-learning"), ()),
    Fault("observation-frozen-midway", "senses", "the observation freezes at 40 %", ALL,
          LOST, RETURN, onset=0.4),
    Fault("observations-exchanged", "senses", "features change places at 50 %", ALL,
          LOST, RETURN, onset=0.5, blind=True),
    Fault("observation-late", "senses", "observations are 6 steps old", ALL, (), (), blind=True),
    Fault("observation-noise", "senses", "noise of standard deviation 3", (*POLICY, *OFF)),
    Fault("observation-nan", "senses", "one observation in 100 is not a number",
          (*POLICY, *OFF), ("not-a-number", "failed"), (*RETURN, *LOSS), onset=0.4, proven=True),
    Fault("action-mapping-changed", "senses", "actions are numbered anew at 60 %", ALL,
          LOST, RETURN, onset=0.6),
    Fault("action-ignored", "senses", "the environment acts at random", ALL, ("no-learning",), ()),
    Fault("action-clipped-away", "senses", "actions are scaled to 2 %", ALL, (), (),
          blind=True, only=("continuous",)),
    # Ends of episodes.
    Fault("end-not-reported", "ends", "terminal states are not reported", ALL,
          ("episodes-never-end",), ("outcome/episode_length",)),
    Fault("ends-after-three-steps", "ends", "episodes end after three steps", ALL,
          ("episodes-never-end", "environment-changed", "episode-length-jump"),
          ("outcome/episode_length",), only=("long",)),
    Fault("done-mask-lost", "ends", "targets reach over the ends of episodes",
          ("sb3-ppo", "sb3-a2c", "cleanrl-ppo", *DQN, "tabular"),
          ("q-divergence", "value-loss-explosion"), LOSS),
    # Signs.
    Fault("advantage-sign", "sign", "the sign of the advantage is wrong",
          (*PPO, "sb3-a2c", "reinforce"), (*LOST, "sign-reversed"), RETURN),
    Fault("loss-sign", "sign", "the loss is maximised",
          ("cleanrl-ppo", "student-dqn", "tabular"),
          ("value-loss-explosion", "q-divergence", "gradient-explosion"), LOSS),
    Fault("entropy-sign", "sign", "the entropy bonus has the wrong sign", ("cleanrl-ppo",),
          ("entropy-collapse", "action-collapse"), ENTROPY, sets={"ent_coef": 0.2}),
    # Wiring of policy gradients.
    Fault("actor-not-trained", "wiring", "the actor is not trained", PPO,
          ("updates-hardly-move", "frozen-metric", "policy-loss-flat"), KL, proven=True),
    Fault("rollout-stale", "wiring", "every update sees the first rollout",
          (*PPO, "sb3-a2c", "reinforce"), ("frozen-metric", "kl-spike", "clip-fraction-high",
          "learning-rate-too-high"), (*KL, "optimiser/loss"), blind=True),
    Fault("actions-swapped-between-envs", "wiring", "each environment gets its neighbour's action",
          (*PPO, "sb3-a2c"), ("exploration-never-ends", "no-learning"), ENTROPY, blind=True,
          only=("several",)),
    Fault("actions-shuffled", "wiring", "stored actions are shuffled", ("reinforce",),
          ("exploration-never-ends",), ENTROPY, blind=True),
    Fault("advantages-of-other-envs", "wiring", "advantages belong to the neighbour",
          (*PPO, "sb3-a2c"), ("exploration-never-ends",), ENTROPY, blind=True, only=("several",)),
    Fault("advantage-broadcast", "wiring", "advantages times ratios: all against all",
          ("cleanrl-ppo",), ("policy-loss-flat", "updates-hardly-move"), KL, blind=True),
    Fault("old-logp-recomputed", "wiring", "the old log-probability is the new one",
          ("cleanrl-ppo",), ("frozen-metric",), KL, blind=True, proven=True),
    Fault("clip-takes-maximum", "wiring", "the clipped loss takes the other side",
          ("cleanrl-ppo",), ("kl-spike", "clip-fraction-high", "kl-above-target"), KL, blind=True),
    Fault("critic-target-reward-only", "wiring", "the critic's target is the next reward",
          ("cleanrl-ppo",), ("critic-explains-nothing",), ("value/explained_variance",),
          blind=True),
    Fault("softmax-over-batch", "wiring", "the softmax runs over the batch", ("reinforce",),
          ("exploration-never-ends",), ENTROPY, blind=True),
    Fault("logp-detached", "wiring", "the log-probability carries no gradient", ("reinforce",),
          ("updates-hardly-move", "frozen-metric", "no-gradient"), ("optimiser/grad_norm",
          *ENTROPY), proven=True, blind=True),
    Fault("returns-run-on", "wiring", "returns run on over episodes", ("reinforce",), (), (),
          blind=True),
    Fault("returns-reversed", "wiring", "returns stand in reverse order", ("reinforce",), (), (),
          blind=True),
    Fault("weights-reset-midway", "wiring", "weights are drawn anew at 60 %", PPO, LOST, RETURN,
          onset=0.6),
    Fault("weights-reset-each-time", "wiring", "weights are drawn anew at each update",
          ("reinforce",), ("exploration-never-ends", "frozen-metric"), ENTROPY, blind=True),
    Fault("weight-nan", "wiring", "a weight is not a number at 40 %",
          (*PPO, "sb3-a2c", *DQN, "sb3-sac", "reinforce"), ("not-a-number", "failed"),
          (*LOSS, *RETURN), onset=0.4, proven=True),
    # Wiring of values.
    Fault("target-never-synced", "wiring", "the target network is never synced", DQN,
          ("critic-target-frozen", "setting-out-of-range"), (),
          sets={"target_update_interval": 10**9}),
    Fault("target-always-synced", "wiring", "there is no target network", DQN,
          ("q-divergence", "setting-out-of-range"), LOSS, sets={"target_update_interval": 1}),
    Fault("replay-never-filled", "wiring", "learning waits for more steps than the run has", OFF,
          ("learning-starts-late", "updates-hardly-move", "setting-out-of-range"),
          ("optimiser/updates", "optimiser/loss"), sets={"learning_starts": 10**6}, proven=True),
    Fault("replay-tiny", "wiring", "the replay buffer holds 64 steps", OFF,
          ("setting-out-of-range",), (), sets={"buffer_size": 64}),
    Fault("replay-rows-mixed", "wiring", "next states belong to other rows", DQN,
          ("q-divergence",), LOSS, blind=True),
    Fault("state-not-advanced", "wiring", "`state = next_state` is missing",
          ("student-dqn", "tabular"), (), (), blind=True),
    Fault("wrong-state-updated", "wiring", "the next state's row is updated", ("tabular",), (), (),
          blind=True),
    Fault("bootstraps-with-minimum", "wiring", "the target takes the worst action",
          ("tabular",), (), (), blind=True),
    Fault("table-cleared", "wiring", "the table is cleared every 500 steps", ("tabular",), (), (),
          blind=True),
    Fault("loss-broadcast", "wiring", "values minus targets: all against all",
          ("student-dqn",), (), (), blind=True),
    Fault("gradients-not-cleared", "wiring", "gradients add up", ("student-dqn",),
          ("q-divergence", "gradient-explosion"), LOSS, blind=True),
    Fault("optimiser-holds-old-copy", "wiring", "the optimiser steps other weights",
          ("student-dqn",), ("frozen-metric", "updates-hardly-move"), LOSS, blind=True,
          proven=True),
    Fault("units-dead", "wiring", "the first layer answers 0", ("student-dqn",), (), (),
          blind=True),
    Fault("critic-not-trained", "wiring", "the critic is not trained", ("sb3-sac",),
          ("value-loss-explosion", "critic-explains-nothing"), LOSS, proven=True),
    Fault("actor-optimiser-never-steps", "wiring", "the actor is not trained", ("sb3-sac",),
          ("updates-hardly-move", "frozen-metric"), ENTROPY, proven=True, blind=True),
    # Exploration and schedules.
    Fault("epsilon-stuck", "exploration", "epsilon stays at 1", ("student-dqn", "tabular"),
          ("exploration-never-ends",), ("exploration/epsilon",), proven=True),
    Fault("epsilon-never-falls", "exploration", "the final epsilon is 1", ("sb3-dqn",),
          ("exploration-never-ends", "setting-out-of-range"), ("exploration/epsilon",),
          sets={"exploration_final_eps": 1.0}, proven=True),
    Fault("epsilon-zero", "exploration", "epsilon is 0", ("student-dqn", "tabular"),
          ("entropy-collapse",), ("exploration/epsilon",)),
    Fault("entropy-huge", "exploration", "the entropy coefficient is 2", POLICY,
          ("setting-out-of-range", "exploration-never-ends", "exploration-explodes"), ENTROPY,
          sets={"ent_coef": 2.0}),
    Fault("schedule-ends-early", "schedule", "the learning rate is 0 from 15 %",
          ("sb3-ppo", "cleanrl-ppo", "student-dqn", "reinforce", "sb3-dqn"),
          ("learning-rate-jump", "updates-hardly-move", "frozen-metric"),
          ("optimiser/learning_rate", *KL), onset=0.15, blind=True, proven=True),
    # Settings.
    Fault("gamma-zero", "setting", "gamma is 0", ALL,
          ("setting-out-of-range", "value-loss-vanishes"), (), sets={"gamma": 0.0},
          only=("long",)),
    Fault("gamma-one", "setting", "gamma is 1 on a long horizon", (*GRADIENT, *OFF),
          ("setting-out-of-range", "q-divergence"), (), sets={"gamma": 1.0}, only=("long",)),
    Fault("rate-x300", "setting", "the learning rate is 300 times too large",
          (*POLICY, *OFF), ("setting-out-of-range", "learning-rate-too-high", "kl-spike",
          "kl-above-target", "clip-fraction-high", "entropy-collapse", "action-collapse",
          "value-loss-explosion", "q-divergence", "gradient-explosion",
          "policy-loss-explosion"), (*KL, *ENTROPY, *LOSS), scales={"learning_rate": 300.0}),
    Fault("rate-x1/300", "setting", "the learning rate is 300 times too small", ALL,
          ("setting-out-of-range", "updates-hardly-move"), KL,
          scales={"learning_rate": 1 / 300}),
    Fault("gradient-clipped-to-nothing", "setting", "the gradient's norm is clipped to 1e-9",
          POLICY, ("setting-out-of-range", "updates-hardly-move", "gradient-always-clipped",
          "frozen-metric"), KL, sets={"max_grad_norm": 1e-9}),
    Fault("epochs-60-unclipped", "setting", "60 epochs and a clip range of 5", PPO,
          ("setting-out-of-range", "kl-spike", "kl-above-target", "clip-fraction-high",
           "entropy-collapse"), KL, sets={"n_epochs": 60, "clip_range": 5.0}),
    Fault("critic-coefficient-zero", "setting", "the critic's loss counts nothing", GRADIENT,
          ("setting-out-of-range", "critic-explains-nothing"), ("value/explained_variance",),
          sets={"vf_coef": 0.0}),
    # The evaluation, and the end of the run.
    Fault("evaluated-elsewhere", "evaluation", "the evaluation's features have another order",
          ("sb3-ppo",), ("evaluation-falls",), ("outcome/evaluation",), blind=True),
    Fault("log-cut", "end", "the process is killed at 45 % of its budget",
          tuple(name for name in ALL if name not in {"our-ppo", "skrl-ppo"}),
          ("no-new-rows", "failed", "hung"), (), ends="cut", proven=True, blind=True),
)  # fmt: skip


# What each trainer logs, under the names of the metrics.
_EACH = {"outcome/return", "outcome/episode_length"}
_PPO = _EACH | {*KL, *ENTROPY, *LOSS, "value/explained_variance", "optimiser/learning_rate"}
LOGGED: Mapping[str, frozenset[str]] = {
    "sb3-ppo": frozenset(_PPO | {"outcome/evaluation"}),
    "cleanrl-ppo": frozenset(_PPO - {"optimiser/loss"}),
    "our-ppo": frozenset(_PPO | {"optimiser/grad_norm", "optimiser/updates"}),
    "skrl-ppo": frozenset(_EACH | {"value/loss"}),
    "sb3-a2c": frozenset((_PPO - {*KL, "optimiser/loss"}) | {"optimiser/updates"}),
    "sb3-dqn": frozenset(_EACH | {"exploration/epsilon", "optimiser/loss", "optimiser/updates",
                                  "optimiser/learning_rate"}),
    "sb3-sac": frozenset(_EACH | {"value/loss", "optimiser/updates", "optimiser/learning_rate"}),
    "student-dqn": frozenset({"outcome/return", "exploration/epsilon", "optimiser/loss"}),
    "tabular": frozenset({"outcome/return", "exploration/epsilon"}),
    "reinforce": frozenset(_EACH | {"optimiser/loss", "exploration/entropy",
                                    "optimiser/grad_norm"}),
}  # fmt: skip


def decidable(fault: Fault, trainer: str, env_id: str) -> str:
    """Return what can show the cause: `log`, `settings` (from these too), or `no`.

    A negated reward makes the log of another task, and one that is learned well.
    """
    if fault.needs_task:
        return "no" if environments.lookup(env_id) is None else "settings"
    if LOGGED[trainer] & set(fault.shown_by):
        return "log"
    return "settings" if fault.in_settings or fault.ends == "cut" else "no"


def applies(fault: Fault, trainer: str, traits: frozenset[str]) -> bool:
    """Tell whether a world can have a fault; `traits` as in `Fault.only`."""
    return trainer in fault.trainers and set(fault.only) <= traits

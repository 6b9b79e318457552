"""The mechanisms that are weighed, and the rules and the faults of each."""

from collections.abc import Mapping

# The mechanisms that are weighed, the rules whose finding means one, and the faults of `faults/`
# that are one. A NaN, a stopped log and a slow machine are decided by rules, not weighed.
RULES: Mapping[str, tuple[str, ...]] = {
    "step too large": (
        "learning-rate-too-high", "kl-spike", "kl-above-target", "clip-fraction-high",
        "ratio-off-one", "policy-loss-explosion", "gradient-explosion", "learning-rate-jump",
    ),
    "not trained": (
        "updates-hardly-move", "frozen-metric", "policy-loss-flat", "updates-cut-short",
        "learning-starts-late", "no-gradient", "temperature-out-of-range",
    ),
    "no reward": ("constant-reward", "value-loss-vanishes"),
    "reward too large or noisy": (
        "impossible-value", "reward-spread-grows", "gradient-always-clipped",
        "value-loss-explosion",
    ),
    "changed in mid-run": ("environment-changed", "return-collapse"),
    "wrong direction": (),
    "samples do not fit": ("sampler-mismatch", "samples-stale"),
    "critic": ("critic-explains-nothing", "value-drifts-from-return", "value-clip-high"),
    "targets": ("q-divergence", "critic-target-frozen"),
    "explores too much": ("exploration-never-ends", "exploration-explodes"),
    "explores too little": ("entropy-collapse", "action-collapse"),
    "ends of episodes": ("episodes-never-end", "episode-length-jump"),
}  # fmt: skip
CLASSES = tuple(RULES)
CLASS_BY_RULE = {rule: name for name, rules in RULES.items() for rule in rules}
DECISIVE = (
    "not-a-number", "accounting-broken", "first-update-off", "first-rows-broken", "ended-early",
    "throughput-drop", "no-new-rows",
)  # fmt: skip
FAULTS: Mapping[str, tuple[str, ...]] = {
    "step too large": (
        "learning-rate-x300", "learning-rate-x100", "epochs-60-unclipped", "one-step-rollouts",
        "rate-x300", "clip-takes-maximum", "rollout-stale", "old-logp-recomputed",
    ),
    "not trained": (
        "learning-rate-x1e-4", "clip-range-tiny", "target-kl-tiny", "policy-frozen", "rate-x1/300",
        "gradient-clipped-to-nothing", "actor-not-trained", "logp-detached",
        "optimiser-holds-old-copy", "actor-optimiser-never-steps", "schedule-ends-early",
        "learning-starts-late", "replay-never-filled", "advantage-broadcast", "units-dead",
    ),
    "no reward": ("reward-zero", "reward-clipped-away"),
    "reward too large or noisy": ("reward-x1000", "reward-outliers", "reward-noise"),
    "changed in mid-run": (
        "weights-reset", "observation-frozen-midway", "observations-exchanged",
        "action-mapping-changed", "weights-reset-midway",
    ),
    "wrong direction": (
        "advantages-flipped", "advantage-sign", "reward-sign", "loss-sign", "reward-flipped",
        "bootstraps-with-minimum",
    ),
    "samples do not fit": (
        "observation-constant", "observation-noise", "observation-stale", "observation-flipped",
        "action-random", "action-stuck", "action-swapped", "observation-blank", "observation-late",
        "action-ignored", "action-clipped-away", "actions-swapped-between-envs",
        "advantages-of-other-envs", "actions-shuffled", "softmax-over-batch", "reward-shuffled",
        "returns-run-on", "returns-reversed", "state-not-advanced", "wrong-state-updated",
        "weights-reset-each-time", "table-cleared", "alive-bonus",
    ),
    "critic": (
        "critic-frozen", "value-coefficient-zero", "critic-coefficient-zero", "critic-not-trained",
        "critic-target-reward-only", "discount-zero", "gamma-zero",
    ),
    "targets": (
        "target-network-frozen", "target-network-missing", "replay-buffer-of-64",
        "undiscounted-endless", "target-never-synced", "target-always-synced", "replay-tiny",
        "replay-rows-mixed", "gamma-one", "done-mask-lost", "loss-broadcast",
        "gradients-not-cleared",
    ),
    "explores too much": (
        "entropy-bonus-huge", "policy-too-wide", "epsilon-one", "temperature-five",
        "epsilon-stuck", "epsilon-never-falls", "entropy-huge",
    ),
    "explores too little": (
        "entropy-bonus-negative", "epsilon-zero", "temperature-zero", "entropy-sign",
    ),
    "ends of episodes": (
        "terminal-missing", "terminal-early", "end-not-reported", "ends-after-three-steps",
    ),
}  # fmt: skip
CLASS_BY_FAULT = {fault: name for name, faults in FAULTS.items() for fault in faults}
SENSES = (
    "observation-",
    "action-",
    "reward-flipped",
    "advantages-flipped",
)  # with an onset: a change


def mechanism(fault: str, onset: float) -> str:
    """Return the class of a fault; empty for one that rules decide."""
    if onset and fault.startswith(SENSES):
        return "changed in mid-run"
    return CLASS_BY_FAULT.get(fault, "")

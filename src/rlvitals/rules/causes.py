"""Which faults can keep an outcome from rising or make it fall: what outcome rules stand under.

A rule that judges the outcome alone says that something is wrong, not what. Every rule that
names a mechanism which can do that to the outcome is listed here, deepest causes first.
"""

# What an outcome shows, whatever the reason.
OUTCOMES = ("no-learning", "return-collapse", "plateau", "loss-not-decreasing")

LEARNING = (
    # The signal: what is learned from is broken.
    "not-a-number",
    "impossible-return",
    "ratio-off-one",
    "threshold-off-correctness",
    "return-up-success-flat",
    # The step: too large, too small, or changed.
    "learning-rate-jump",
    "gradient-explosion",
    "kl-above-target",
    "kl-spike",
    "clip-fraction-high",
    "policy-loss-explosion",
    "value-loss-explosion",
    "updates-hardly-move",
    # What the policy has become.
    "action-collapse",
    "temperature-out-of-range",
    "entropy-collapse",
    "reference-kl-negative",
    "reference-kl-out-of-range",
    "kl-coefficient-runaway",
    "kl-penalty-dominates",
    "response-length-explodes",
    "response-length-collapses",
    "eos-missing",
    "responses-truncated",
    # What there is left to learn from.
    "constant-reward",
    "samples-all-filtered",
    "zero-variance-groups",
    "positive-share-falls",
    "policy-loss-flat",
    "advantage-off-centre",
    "value-clip-high",
    "value-drifts-from-return",
    "critic-explains-nothing",
    "loss-oscillating",
)

# Of these, what healthy runs show now and then as well, and a stalled outcome brings about as often
# as it follows from it: such a finding explains nothing graver than itself, and only what no other
# explains.
WEAK = (
    "advantage-off-centre",
    "value-clip-high",
    "value-drifts-from-return",
    "critic-explains-nothing",
    "loss-oscillating",
)

# What is worth knowing by itself and keeps no outcome from rising.
BESIDE = (
    "episode-length-jump",
    "reward-spread-grows",
    "reward-up-throughput-flat",
    "total-negative-absolute-positive",
    "kl-clamped",
    "pulses-without-stagnation",
    "gradient-always-clipped",
    "gradient-not-settling",
    "imbalance-unresolved",
    "throughput-drop",
    "updates-slow",
)

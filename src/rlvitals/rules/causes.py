"""Faults that can keep an outcome from rising or make it fall, as causes of outcome findings.

A rule that judges the outcome alone says that something is wrong, not what. Every rule that
names a mechanism which can do that to the outcome is listed here, deepest causes first.
"""

# What an outcome shows, whatever the reason.
OUTCOME_RULES = (
    "no-learning",
    "return-collapse",
    "return-oscillates",
    "plateau",
    "loss-not-decreasing",
)

# What may cause a collapse, and follows from it where it sets in later; True: than the fall itself,
# as a critic errs as soon as returns change. A mean over a hundred episodes is constant only once
# these are over: later than the fall was known. Of 37 runs of the benchmark whose value loss jumped
# after the return had begun to fall, 30 had a changed environment.
COLLAPSE_RULE = "return-collapse"
CONSEQUENCES = {"value-loss-explosion": True, "constant-reward": False}

MECHANISM_RULES = (
    # The signal: what is learned from is broken.
    "setting-out-of-range",
    "not-a-number",
    "environment-changed",
    "impossible-value",
    "accounting-broken",
    "first-update-off",
    "sign-reversed",
    "judge-outage",
    "rank-differs",
    "failures-scored",
    "answers-copied",
    "no-gradient",
    "first-rows-broken",
    "group-baseline-missing",
    "sampler-mismatch",
    "samples-stale",
    "ratio-off-one",
    "threshold-off-correctness",
    "image-not-seen",
    "image-mismatched",
    "return-up-success-flat",
    # The step: too large, too small, or changed.
    "learning-rate-too-high",
    "learning-starts-late",
    "updates-cut-short",
    "frozen-metric",
    "learning-rate-jump",
    "gradient-explosion",
    "kl-above-target",
    "kl-spike",
    "clip-fraction-high",
    "policy-loss-explosion",
    "value-loss-explosion",
    "updates-hardly-move",
    "q-divergence",
    "critic-target-frozen",
    # What the policy has become.
    "action-collapse",
    "temperature-out-of-range",
    "exploration-never-ends",
    "exploration-explodes",
    "entropy-collapse",
    "component-dominates",
    "reference-kl-out-of-range",
    "kl-coefficient-runaway",
    "kl-penalty-dominates",
    "response-length-explodes",
    "response-length-collapses",
    "eos-missing",
    "responses-truncated",
    "tool-use-fades",
    "text-degenerates",
    "template-collapse",
    "language-switches",
    "turns-inflate",
    "stop-reason-shifts",
    "length-is-paid",
    "experts-collapse",
    "episodes-never-end",
    # What there is left to learn from.
    "constant-reward",
    "value-loss-vanishes",
    "samples-all-filtered",
    "zero-variance-groups",
    "phantom-gradient",
    "tasks-without-signal",
    "positive-share-falls",
    "generation-starved",
    "policy-loss-flat",
    "advantage-off-centre",
    "value-clip-high",
    "value-drifts-from-return",
    "critic-explains-nothing",
    "loss-oscillating",
    "chosen-likelihood-falls",
)

# Of these, what healthy runs show now and then as well, and a stalled outcome brings about as often
# as it follows from it: such a finding explains nothing graver than itself, and only what no other
# explains.
WEAK_CAUSE_RULES = (
    "advantage-off-centre",
    "value-clip-high",
    "value-drifts-from-return",
    "critic-explains-nothing",
    "loss-oscillating",
)

# What is worth knowing by itself and keeps no outcome from rising.
INDEPENDENT_RULES = (
    "episode-length-jump",
    "reward-spread-grows",
    "reward-up-throughput-flat",
    "total-negative-absolute-positive",
    "kl-clamped",
    "pulses-without-stagnation",
    "exploration-cut-under-load",
    "gradient-always-clipped",
    "gradient-not-settling",
    "imbalance-unresolved",
    "throughput-drop",
    "updates-slow",
    "memory-grows",
    "no-new-rows",
    "ended-early",
    "evaluation-falls",
    "task-regresses",
    "rank-slow",
    "rank-stopped",
    "rank-clocks-differ",
)

"""Map alarms of every tool to the faults that they name, with a generous mapping.

A fault and an alarm each have one or more meanings; the alarm names the fault where they share
one. A fault has its cause and every effect that it may have: whoever says of a learning rate 10,000
times too small that the run does not learn, is right. An alarm has every meaning that its own text
and documentation mention: "not learning: check that the learning rate is not too high or too low"
says all three.

Ours are held to the rules that name the cause, which is stricter. What each of those rules means
stands here too, so that whatever counts as right for us counts for a peer, and our own row can be
counted both ways.
"""

LARGE = "the policy moves too far: learning rate, epochs or clip range too large"
SMALL = "the policy hardly moves: learning rate or clip range too small"
FIXED = "the policy has become deterministic"
RANDOM = "the policy stays random"
EXPLORING = "the exploration schedule is wrong"
CONSTANT = "the reward does not vary: there is no signal"
REWARD = "the reward is wrong: its scale, its noise, its outliers, or it is gamed"
CRITIC = "the critic explains nothing, or its loss or target goes wrong"
GRADIENT = "gradients explode, vanish or are always clipped"
BROKEN = "a loss, a gradient or a weight is no number"
STALLED = "the return does not rise, or stays far below what can be had"
COLLAPSED = "the return was there and fell"
CUT = "episodes end at the wrong time"
SLOW = "the run is slow, or becomes slower"
SETTING = "a setting is far from any that works"

# The fault benchmark's, by name.
BENCHMARK: dict[str, frozenset[str]] = {
    "action-random": frozenset({STALLED, COLLAPSED, RANDOM, CRITIC}),
    "action-stuck": frozenset({STALLED, COLLAPSED, FIXED, CRITIC}),
    "action-swapped": frozenset({STALLED, COLLAPSED, CRITIC}),
    "advantages-flipped": frozenset({LARGE, STALLED, COLLAPSED}),
    "clip-range-tiny": frozenset({SETTING, SMALL, LARGE, STALLED}),  # large, by the clip fraction
    "critic-frozen": frozenset({CRITIC, STALLED}),
    "discount-zero": frozenset({SETTING, STALLED, COLLAPSED, CRITIC, CONSTANT}),
    "entropy-bonus-huge": frozenset({SETTING, RANDOM, STALLED, COLLAPSED}),
    "entropy-bonus-negative": frozenset({SETTING, FIXED, STALLED, COLLAPSED}),
    "environment-slow": frozenset({SLOW}),
    "epochs-60-unclipped": frozenset({SETTING, LARGE, FIXED, STALLED, COLLAPSED}),
    "epsilon-one": frozenset({RANDOM, EXPLORING, STALLED, COLLAPSED}),
    "epsilon-zero": frozenset({FIXED, EXPLORING, STALLED}),
    "learning-rate-x100": frozenset({SETTING, LARGE, CRITIC, GRADIENT, STALLED, COLLAPSED}),
    "learning-rate-x1e-4": frozenset({SETTING, SMALL, STALLED}),
    "learning-rate-x300": frozenset({SETTING, LARGE, FIXED, CRITIC, GRADIENT, STALLED, COLLAPSED}),
    "learning-starts-late": frozenset({STALLED, SMALL, EXPLORING}),
    "observation-constant": frozenset({STALLED, COLLAPSED, CRITIC}),
    "observation-flipped": frozenset({COLLAPSED, STALLED, CRITIC}),
    "observation-noise": frozenset({STALLED, COLLAPSED, CRITIC}),
    "observation-stale": frozenset({STALLED, COLLAPSED, CRITIC}),
    "one-step-rollouts": frozenset({SETTING, LARGE, CRITIC, STALLED, COLLAPSED}),
    "policy-frozen": frozenset({SMALL, STALLED}),
    "policy-too-wide": frozenset({RANDOM, STALLED, COLLAPSED}),
    "replay-buffer-of-64": frozenset({SETTING, CRITIC, STALLED, COLLAPSED}),
    "reward-flipped": frozenset({REWARD, CRITIC, STALLED, COLLAPSED}),
    "reward-noise": frozenset({REWARD, CRITIC, STALLED, COLLAPSED}),
    "reward-outliers": frozenset({REWARD, CRITIC, GRADIENT, SMALL, STALLED, COLLAPSED}),
    "reward-x1000": frozenset({REWARD, CRITIC, GRADIENT, SMALL, STALLED, COLLAPSED}),
    "reward-zero": frozenset({CONSTANT, STALLED, COLLAPSED}),
    "target-kl-tiny": frozenset(
        {SETTING, SMALL, LARGE, STALLED}
    ),  # large, as its updates are cut short
    "target-network-frozen": frozenset({SETTING, CRITIC, STALLED}),
    "target-network-missing": frozenset({SETTING, CRITIC, STALLED, COLLAPSED}),
    "temperature-five": frozenset({SETTING, RANDOM, EXPLORING, CRITIC, STALLED, COLLAPSED}),
    "temperature-zero": frozenset({SETTING, FIXED, EXPLORING, STALLED}),
    "terminal-early": frozenset({CUT, COLLAPSED, STALLED}),
    "terminal-missing": frozenset({CUT, CRITIC, STALLED}),
    "undiscounted-endless": frozenset({SETTING, CUT, CRITIC, REWARD, STALLED, COLLAPSED}),
    "value-coefficient-zero": frozenset({SETTING, CRITIC, STALLED}),
    "weight-nan": frozenset({BROKEN, GRADIENT}),
    "weights-reset": frozenset({COLLAPSED, LARGE, CRITIC, STALLED}),
}

# Those of `scripts/control_runs.py`.
RECORDED: dict[str, frozenset[str]] = {
    "alpha-0": frozenset({FIXED, EXPLORING, STALLED}),
    "alpha-5": frozenset({RANDOM, EXPLORING, STALLED, CRITIC}),
    "buffer-100": frozenset({CRITIC, STALLED, COLLAPSED}),
    "clip-1e-4": frozenset({SMALL, STALLED}),
    "constant-observation": frozenset({STALLED, CRITIC}),
    "ent-coef-0.5": frozenset({RANDOM, STALLED}),
    "ent-coef-2": frozenset({RANDOM, STALLED}),
    "ent-coef-minus-3": frozenset({FIXED, STALLED}),
    "ent-coef-negative": frozenset({FIXED, STALLED}),
    "epochs-100": frozenset({LARGE}),
    "eps-0": frozenset({FIXED, EXPLORING, STALLED}),
    "eps-1": frozenset({RANDOM, EXPLORING, STALLED}),
    "gamma-0": frozenset({STALLED, CRITIC}),
    "gamma-1-no-terminal": frozenset({CRITIC, CUT, REWARD}),
    "late-start": frozenset({STALLED, SMALL, EXPLORING}),
    "lr-1e-7": frozenset({SMALL, STALLED}),
    "lr-spike": frozenset({LARGE, COLLAPSED}),
    "lr-x100": frozenset({LARGE, FIXED, STALLED, GRADIENT}),
    "lr-x300": frozenset({LARGE, FIXED, STALLED, GRADIENT}),
    "missing-terminal": frozenset({CUT, CRITIC}),
    "nan-weight": frozenset({BROKEN, GRADIENT}),
    "never-learnt": frozenset({STALLED}),
    "noisy-observation": frozenset({STALLED, CRITIC}),
    "not-normalised": frozenset({STALLED, REWARD}),
    "one-outlier": frozenset({REWARD}),
    "over-target-kl": frozenset({LARGE}),
    "own-instability": frozenset({COLLAPSED, LARGE, CRITIC}),
    "random-action": frozenset({STALLED, RANDOM}),
    "reward-flipped": frozenset({STALLED, REWARD}),
    "reward-hacked": frozenset({REWARD}),
    "reward-noise": frozenset({REWARD, STALLED, CRITIC}),
    "reward-outliers": frozenset({REWARD, STALLED, CRITIC}),
    "reward-x1000": frozenset({REWARD, CRITIC}),
    "reward-zero": frozenset({CONSTANT, STALLED}),
    "sensors-flip": frozenset({COLLAPSED}),
    "slow-second-half": frozenset({SLOW}),
    "sparse-reward": frozenset({STALLED, CONSTANT}),
    "tau-0": frozenset({STALLED, CRITIC}),
    "unclipped-gradient": frozenset({GRADIENT, LARGE}),
    "vf-coef-0": frozenset({CRITIC, STALLED}),
}

FAULTS = {**RECORDED, **BENCHMARK}
# By tool, then by the name of the alarm.
ALARMS: dict[str, dict[str, frozenset[str]]] = {
    "rldoctor": {
        "advantage_collapse": frozenset({CONSTANT}),
        "clip_saturation": frozenset({LARGE}),
        "entropy_collapse": frozenset({FIXED}),
        "gradient_pathology": frozenset({GRADIENT, BROKEN, CONSTANT, SMALL}),
        "kl_drift": frozenset({LARGE, SMALL, STALLED}),  # also "pinned to the reference"
        "length_pathology": frozenset({REWARD, CUT}),
        "plateau": frozenset({STALLED, COLLAPSED}),  # also "has been declining"
        "reward_composition": frozenset({REWARD}),
        "reward_hacking": frozenset({REWARD}),
    },
    "rlwatch": {
        "advantage_variance": frozenset({CRITIC, REWARD}),
        "entropy_collapse": frozenset({FIXED, LARGE}),
        "gradient_norm_spike": frozenset({GRADIENT, LARGE}),
        "kl_explosion": frozenset({LARGE, COLLAPSED}),
        "loss_nan": frozenset({BROKEN, LARGE}),
        "reward_hacking": frozenset({REWARD}),
        "reward_mean_drift": frozenset({REWARD, COLLAPSED}),  # also "policy degradation"
    },
    "zen-rl": {
        "ADVANTAGE_NOT_NORMALIZED": frozenset({REWARD, LARGE}),
        "CAPPED_PERFORMANCE": frozenset({STALLED, RANDOM, CRITIC}),  # ent_coef, epochs, lambda
        "DEAD_RUN": frozenset({STALLED, LARGE, SMALL, COLLAPSED}),
        "LR_TOO_HIGH": frozenset({LARGE}),
        "POLICY_COLLAPSE": frozenset({FIXED, LARGE}),
    },
    "rlprobe": {
        "ADV_COLLAPSE": frozenset({CONSTANT, REWARD}),
        "CLIP_SATURATION": frozenset({LARGE}),
        "DEGENERATE_GROUPS": frozenset({CONSTANT}),
        "ENTROPY_COLLAPSE": frozenset({FIXED, STALLED, LARGE}),
        "FORMAT_GAMING": frozenset({REWARD}),
        "GRAD_PATHOLOGY": frozenset({GRADIENT, BROKEN, LARGE}),
        "KL_BLOWUP": frozenset({LARGE}),
        "REF_POLICY_DRIFT_ASYMMETRY": frozenset({LARGE}),
        "REPETITION_SPIRAL": frozenset({FIXED}),
        "REWARD_HACK_LENGTH": frozenset({REWARD}),
        "REWARD_STD_DEATH": frozenset({CONSTANT, FIXED}),
        "TRUNCATION_STARVE": frozenset({CUT}),
        "VALUE_DIVERGENCE": frozenset({CRITIC, REWARD}),
    },
    "RLExplorer (port)": {
        "entropy-falls-fast": frozenset({FIXED, LARGE, EXPLORING}),
        "entropy-fluctuates": frozenset({LARGE, EXPLORING}),
        "entropy-rises": frozenset({RANDOM, EXPLORING}),
        "entropy-stagnates": frozenset({RANDOM, SMALL, STALLED, EXPLORING}),
        "entropy-starts-low": frozenset({FIXED, EXPLORING}),
        "episodes-capped": frozenset({CUT, STALLED}),
        "exploration-changes-fast": frozenset({EXPLORING}),
        "exploration-rises": frozenset({EXPLORING, RANDOM}),
        "exploration-starts-wrong": frozenset({EXPLORING, FIXED}),
        "kl-high": frozenset({LARGE}),
        "loss-diverges": frozenset({CRITIC, LARGE, REWARD}),
        "loss-fluctuates": frozenset({CRITIC, LARGE}),  # also a target network updated too often
        "loss-not-a-number": frozenset({BROKEN}),
        "loss-stagnates": frozenset({CRITIC, SMALL, STALLED}),
        "reward-low-variability": frozenset({CONSTANT, FIXED, EXPLORING}),
        "reward-not-settling": frozenset({REWARD, COLLAPSED, LARGE}),
        "reward-stagnates": frozenset({STALLED, COLLAPSED}),
    },
    "SageMaker Debugger (port)": {
        "AllZero": frozenset({CONSTANT, FIXED, SMALL, GRADIENT}),
        "ExplodingTensor": frozenset({BROKEN, GRADIENT}),
        "LossNotDecreasing": frozenset({STALLED, CRITIC, LARGE, SMALL}),
        "StalledTrainingRule": frozenset({SLOW}),
        "UnchangedTensor": frozenset({SMALL, CONSTANT, FIXED}),
        "VanishingGradient": frozenset({GRADIENT, SMALL, CONSTANT}),
    },
    "rlvitals": {
        "accounting-broken": frozenset(),  # the log is wrong, not the run
        "action-collapse": frozenset({FIXED}),
        "advantage-off-centre": frozenset({CRITIC}),
        "clip-fraction-high": frozenset({LARGE}),
        "constant-reward": frozenset({CONSTANT}),
        "critic-explains-nothing": frozenset({CRITIC}),
        "critic-target-frozen": frozenset({CRITIC}),
        "ended-early": frozenset({BROKEN}),  # a crash is usually that: see failed
        "entropy-collapse": frozenset({FIXED}),
        "environment-changed": frozenset({COLLAPSED}),
        "episode-length-jump": frozenset({CUT, COLLAPSED}),
        "episodes-never-end": frozenset({CUT}),
        "evaluation-falls": frozenset({COLLAPSED}),
        "exploration-explodes": frozenset({RANDOM}),
        "exploration-never-ends": frozenset({RANDOM, EXPLORING}),
        "failed": frozenset({BROKEN}),
        "first-update-off": frozenset(),
        "frozen-metric": frozenset({SMALL}),
        "gradient-always-clipped": frozenset({GRADIENT}),
        "gradient-explosion": frozenset({GRADIENT}),
        "gradient-not-settling": frozenset({GRADIENT}),
        "impossible-value": frozenset({REWARD}),
        "kl-above-target": frozenset({LARGE}),
        "kl-clamped": frozenset(),
        "kl-spike": frozenset({LARGE}),
        "learning-rate-jump": frozenset({LARGE, SMALL}),
        "learning-rate-too-high": frozenset({LARGE}),
        "learning-starts-late": frozenset({SMALL, EXPLORING}),
        "loss-oscillating": frozenset({CRITIC, LARGE}),
        "memory-grows": frozenset({SLOW}),
        "no-learning": frozenset({STALLED}),
        "no-new-rows": frozenset({SLOW}),
        "not-a-number": frozenset({BROKEN}),
        "plateau": frozenset({STALLED}),
        "policy-loss-explosion": frozenset({LARGE}),
        "policy-loss-flat": frozenset({SMALL, CONSTANT}),
        "q-divergence": frozenset({CRITIC}),
        "ratio-off-one": frozenset({LARGE}),
        "return-collapse": frozenset({COLLAPSED}),
        "return-oscillates": frozenset({COLLAPSED}),
        "return-up-success-flat": frozenset({REWARD}),
        "reward-spread-grows": frozenset({REWARD}),
        "setting-out-of-range": frozenset({SETTING}),
        "sign-reversed": frozenset({REWARD, STALLED}),
        "throughput-drop": frozenset({SLOW}),
        "updates-cut-short": frozenset({LARGE, SMALL}),
        "updates-hardly-move": frozenset({SMALL}),
        "updates-slow": frozenset({SLOW}),
        "value-loss-explosion": frozenset({CRITIC}),
        "value-loss-vanishes": frozenset({CRITIC, CONSTANT}),
    },
}


def of_fault(fault: str) -> frozenset[str]:
    """Return what a fault means. Raises KeyError for a fault it does not know."""
    return FAULTS[fault]


def of_alarm(tool: str, alarm: str) -> frozenset[str]:
    """Return what an alarm of a tool means. Raises KeyError for an alarm it does not know."""
    return ALARMS[tool][alarm]

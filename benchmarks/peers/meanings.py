"""What a fault is, what an alarm says, and so which alarms name which fault: generously.

A fault and an alarm each have one or more meanings; the alarm names the fault where they share
one. A fault has the meanings of the rules of ours that it expects, and those that stand beside its
name below. A peer's alarm has every meaning that its own text and documentation mention, as a cause
or as an effect: an alarm that says "not learning: check that the learning rate is not too high or
too low" names both.
"""

from collections.abc import Iterable

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

# By the names of our rules.
RULES: dict[str, frozenset[str]] = {
    "action-collapse": frozenset({FIXED}),
    "advantage-off-centre": frozenset({CRITIC, REWARD}),
    "clip-fraction-high": frozenset({LARGE}),
    "constant-reward": frozenset({CONSTANT}),
    "critic-explains-nothing": frozenset({CRITIC}),
    "entropy-collapse": frozenset({FIXED}),
    "episode-length-jump": frozenset({CUT}),
    "gradient-always-clipped": frozenset({GRADIENT}),
    "gradient-explosion": frozenset({GRADIENT, LARGE}),
    "gradient-not-settling": frozenset({GRADIENT}),
    "impossible-return": frozenset({REWARD}),
    "kl-above-target": frozenset({LARGE}),
    "kl-clamped": frozenset({LARGE}),
    "kl-spike": frozenset({LARGE}),
    "learning-rate-jump": frozenset({LARGE}),
    "loss-oscillating": frozenset({LARGE, CRITIC}),
    "no-learning": frozenset({STALLED}),
    "not-a-number": frozenset({BROKEN}),
    "plateau": frozenset({STALLED}),
    "policy-loss-explosion": frozenset({LARGE, REWARD}),
    "policy-loss-flat": frozenset({SMALL, CONSTANT}),
    "ratio-off-one": frozenset({LARGE}),
    "return-collapse": frozenset({COLLAPSED}),
    "return-up-success-flat": frozenset({REWARD}),
    "reward-spread-grows": frozenset({REWARD}),
    "throughput-drop": frozenset({SLOW}),
    "updates-hardly-move": frozenset({SMALL}),
    "updates-slow": frozenset({SLOW}),
    "value-loss-explosion": frozenset({CRITIC, REWARD}),
}

# By the names of faults in recordings that expect no rule; and what a name says beyond its rules.
FAULTS: dict[str, frozenset[str]] = {
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
}


def of_fault(fault: str, expects: Iterable[str]) -> frozenset[str]:
    """Return what a fault means. Raises LookupError where nothing is known of it."""
    means = FAULTS.get(fault, frozenset()).union(*(RULES.get(rule, ()) for rule in expects))
    if not means:
        raise LookupError(f"peers/meanings.py says nothing of the fault {fault!r}")
    return means


def of_alarm(tool: str, alarm: str) -> frozenset[str]:
    """Return what an alarm of a peer means. Raises KeyError for an alarm it does not know."""
    return ALARMS[tool][alarm]

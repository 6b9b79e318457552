"""What the faults of the language tier mean, and the alarms of the tools that are asked about them.

As in `meanings.py` a fault has its cause and each effect that it may have, and an alarm has every
meaning that its own text mentions.
"""

from peers.meanings import (
    ALARMS,
    BROKEN,
    COLLAPSED,
    CONSTANT,
    CRITIC,
    CUT,
    FIXED,
    GRADIENT,
    LARGE,
    RANDOM,
    REWARD,
    SETTING,
    SLOW,
    SMALL,
    STALLED,
)

SAMPLER = "the samples are of another policy: late weights, another temperature, old rollouts"
HELD_OUT = "training answers are learned by heart: held-out ones get worse"
PREFERENCE = "the pairs teach nothing, or the chosen answer becomes less likely"

GAMED = frozenset({REWARD, COLLAPSED, STALLED, CUT, FIXED})
SILENT = frozenset({CONSTANT, STALLED})
WILD = frozenset(
    {SETTING, LARGE, GRADIENT, BROKEN, FIXED, RANDOM, COLLAPSED, STALLED, CUT, CONSTANT}
)
OTHER = frozenset({SAMPLER, LARGE, STALLED, COLLAPSED})

FAULTS: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        ("adapter-lost", "sampler-drifts", "sampler-hotter", "sampling-truncated", "stale-16",
         "versions-mixed", "weights-never-synced", "weights-partly-synced", "weights-rarely-synced",
         "old-log-probs-hotter"),
        OTHER,
    ),
    **dict.fromkeys(
        ("all-easy", "all-impossible", "always-paid", "constant-reward", "constant-score",
         "dynamic-starved", "task-impossible", "nsr-threshold-low", "psr-threshold-high"),
        SILENT,
    ),
    **dict.fromkeys(
        ("answers-stated", "calls-paid", "copy-paid", "cyrillic-paid", "dead-component",
         "eos-vanishes", "form-alone", "form-threshold", "length-paid", "length-reward",
         "judge-scores-zero", "judge-silent", "sandbox-fails", "verifier-breaks",
         "verifier-exploited", "tools-given-up", "shuffled-answers"),
        GAMED | SILENT,
    ),
    **dict.fromkeys(
        ("gradient-explosion", "infinite-gradient", "kl-explodes", "loss-oscillates", "lr-high",
         "lr-high-for-solved", "lr-x20", "lr-x50", "nan-gradient", "rate-high",
         "psr-threshold-low", "nsr-threshold-high", "entropy-bonus-high", "temperature-low"),
        WILD,
    ),
    **dict.fromkeys(
        ("beta-10", "kl-dominates", "lr-low", "lr-ends-early", "lr-restarts", "updates-rounded",
         "two-generations"),
        frozenset({SETTING, SMALL, STALLED, LARGE, CONSTANT}),
    ),
    "blank-images": frozenset({STALLED, REWARD}),
    "shuffled-images": frozenset({STALLED, REWARD}),
    "cap-too-short": frozenset({CUT, SETTING, STALLED}),
    "no-eos": frozenset({CUT}),
    "few-prompts": frozenset({HELD_OUT, REWARD, FIXED, STALLED, CONSTANT}),
    "group-baseline-missing": frozenset({REWARD, LARGE, CRITIC}),
    "labels-wrong": frozenset({PREFERENCE, HELD_OUT, STALLED, REWARD}),
    "memory-leak": frozenset({SLOW}),
    "router-loss-of-wrong-sign": frozenset({COLLAPSED, STALLED, LARGE}),
    "value-loss-spike": frozenset({CRITIC, REWARD, LARGE}),
}  # fmt: skip

LANGUAGE_ALARMS: dict[str, dict[str, frozenset[str]]] = {
    **{tool: ALARMS[tool] for tool in ("rldoctor", "rlwatch", "rlprobe")},
    "post-training-toolkit": {
        "reward_variance_spike": frozenset({REWARD, LARGE}),
        "yaml_reward_variance_spike": frozenset({REWARD, LARGE}),
        "kl_instability": frozenset({LARGE}),
        "kl_above_target": frozenset({LARGE}),
        "kl_volatility": frozenset({LARGE}),
        "yaml_kl_divergence_high": frozenset({LARGE}),
        "output_length_collapse": frozenset({REWARD, FIXED, CUT}),
        "mode_collapse_length": frozenset({FIXED, REWARD, CUT}),
        "mode_collapse_entropy": frozenset({FIXED}),
        "gradient_explosion": frozenset({GRADIENT, LARGE}),
        "gradient_vanishing": frozenset({GRADIENT, SMALL, CONSTANT}),
        "dpo_loss_random": frozenset({PREFERENCE, STALLED, SMALL}),
        "yaml_dpo_loss_random": frozenset({PREFERENCE, STALLED, SMALL}),
        "margin_collapse": frozenset({PREFERENCE}),
        "yaml_margin_collapse": frozenset({PREFERENCE}),
        "dpo_logp_gap_collapse": frozenset({PREFERENCE, LARGE}),
        "win_rate_instability": frozenset({PREFERENCE, LARGE}),
        "entropy_collapse": frozenset({FIXED}),
        "yaml_entropy_collapse": frozenset({FIXED}),
        "value_head_divergence": frozenset({CRITIC}),
        "yaml_value_head_divergence": frozenset({CRITIC}),
        "clip_fraction_high": frozenset({LARGE}),
        "yaml_clip_fraction_high": frozenset({LARGE}),
        "response_truncation_rate_high": frozenset({CUT, REWARD}),
        "repetition_rate_high": frozenset({FIXED, COLLAPSED}),
        "yaml_grpo_group_reward_collapse": frozenset({CONSTANT}),
        "grpo_importance_sampling_ratio_anomaly": frozenset({SAMPLER, LARGE}),
    },
    "W&B MCP": {
        "diverging": frozenset({LARGE, GRADIENT, COLLAPSED, REWARD, CRITIC}),
        "nan": frozenset({BROKEN}),
        "overfitting": frozenset({HELD_OUT}),
    },
    "miles (port)": {
        "zero-std": frozenset({CONSTANT, STALLED, REWARD}),
        "truncated": frozenset({CUT}),
    },
}
WORDS = {
    "reward_hack": frozenset({REWARD}), "entropy": frozenset({FIXED}), "kl": frozenset({LARGE}),
    "grad": frozenset({GRADIENT, LARGE}), "loss": frozenset({LARGE, STALLED}),
    "length": frozenset({REWARD, CUT}), "clip": frozenset({LARGE}), "value": frozenset({CRITIC}),
    "advantage": frozenset({LARGE, CONSTANT}), "margin": frozenset({PREFERENCE}),
    "diversity": frozenset({FIXED}), "group_reward": frozenset({CONSTANT}),
    "imbalance": frozenset({REWARD}), "instability": frozenset({LARGE, REWARD}),
    "perplexity": frozenset({LARGE}), "mode_collapse": frozenset({FIXED, REWARD}),
}  # fmt: skip


def of_alarm(tool: str, alarm: str) -> frozenset[str]:
    """Return what an alarm means; one that no table has, by the words of its name."""
    known = LANGUAGE_ALARMS[tool].get(alarm)
    if known is not None:
        return known
    return frozenset().union(*(meaning for word, meaning in WORDS.items() if word in alarm))

"""Measured rates of each rule, by family. Written by `rates_module`: not by hand."""

from collections.abc import Mapping

from rlvitals.rules.rate import Rate

# family, healthy runs judged, of these rang, of these as an error, faulted, caught, named first
RATES: Mapping[str, tuple[Rate, ...]] = {
    "action-collapse": (Rate("scheduler", 15, 0, 0, 0, 0, 0),),
    "advantage-off-centre": (Rate("on-policy control", 2, 0, 0, 0, 0, 0),),
    "clip-fraction-high": (
        Rate("RLHF", 9, 0, 0, 0, 0, 0),
        Rate("on-policy control", 29, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
    ),
    "constant-reward": (
        Rate("GRPO-like", 23, 0, 0, 0, 0, 0),
        Rate("RLHF", 9, 0, 0, 0, 0, 0),
        Rate("off-policy control", 8, 0, 0, 0, 0, 0),
        Rate("on-policy control", 33, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
    ),
    "critic-explains-nothing": (
        Rate("on-policy control", 33, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
    ),
    "entropy-collapse": (
        Rate("GRPO-like", 23, 0, 0, 0, 0, 0),
        Rate("RLHF", 9, 0, 0, 0, 0, 0),
        Rate("on-policy control", 33, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
    ),
    "eos-missing": (Rate("RLHF", 9, 0, 0, 0, 0, 0),),
    "episode-length-jump": (
        Rate("off-policy control", 8, 0, 0, 0, 0, 0),
        Rate("on-policy control", 33, 0, 0, 0, 0, 0),
    ),
    "gradient-always-clipped": (
        Rate("GRPO-like", 23, 0, 0, 0, 0, 0),
        Rate("on-policy control", 5, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
        Rate("supervised", 13, 0, 0, 0, 0, 0),
    ),
    "gradient-explosion": (
        Rate("GRPO-like", 23, 0, 0, 0, 0, 0),
        Rate("on-policy control", 5, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
        Rate("supervised", 13, 0, 0, 0, 0, 0),
    ),
    "gradient-not-settling": (
        Rate("GRPO-like", 23, 0, 0, 0, 0, 0),
        Rate("on-policy control", 5, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
        Rate("supervised", 13, 0, 0, 0, 0, 0),
    ),
    "imbalance-unresolved": (Rate("scheduler", 15, 0, 0, 0, 0, 0),),
    "impossible-value": (
        Rate("off-policy control", 8, 0, 0, 0, 0, 0),
        Rate("on-policy control", 28, 0, 0, 0, 0, 0),
    ),
    "kl-above-target": (
        Rate("RLHF", 9, 0, 0, 0, 0, 0),
        Rate("on-policy control", 29, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
    ),
    "kl-clamped": (
        Rate("RLHF", 9, 0, 0, 0, 0, 0),
        Rate("on-policy control", 29, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
    ),
    "kl-coefficient-runaway": (Rate("RLHF", 9, 0, 0, 0, 0, 0),),
    "kl-penalty-dominates": (Rate("RLHF", 9, 0, 0, 0, 0, 0),),
    "kl-spike": (
        Rate("RLHF", 9, 0, 0, 0, 0, 0),
        Rate("on-policy control", 29, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
    ),
    "learning-rate-jump": (
        Rate("GRPO-like", 23, 0, 0, 0, 0, 0),
        Rate("RLHF", 9, 0, 0, 0, 0, 0),
        Rate("off-policy control", 8, 0, 0, 0, 0, 0),
        Rate("on-policy control", 33, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
        Rate("supervised", 13, 0, 0, 0, 0, 0),
    ),
    "loss-not-decreasing": (
        Rate("GRPO-like", 17, 0, 0, 0, 0, 0),
        Rate("supervised", 13, 0, 0, 0, 0, 0),
    ),
    "loss-oscillating": (
        Rate("RLHF", 9, 0, 0, 0, 0, 0),
        Rate("on-policy control", 33, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
        Rate("supervised", 13, 0, 0, 0, 0, 0),
    ),
    "no-learning": (
        Rate("GRPO-like", 22, 0, 0, 0, 0, 0),
        Rate("RLHF", 9, 0, 0, 0, 0, 0),
        Rate("off-policy control", 8, 0, 0, 0, 0, 0),
        Rate("on-policy control", 33, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
        Rate("supervised", 13, 0, 0, 0, 0, 0),
    ),
    "not-a-number": (
        Rate("GRPO-like", 23, 0, 0, 0, 0, 0),
        Rate("RLHF", 9, 0, 0, 0, 0, 0),
        Rate("off-policy control", 8, 0, 0, 0, 0, 0),
        Rate("on-policy control", 33, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
        Rate("supervised", 13, 0, 0, 0, 0, 0),
    ),
    "plateau": (
        Rate("GRPO-like", 22, 0, 0, 0, 0, 0),
        Rate("RLHF", 9, 0, 0, 0, 0, 0),
        Rate("off-policy control", 8, 0, 0, 0, 0, 0),
        Rate("on-policy control", 33, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
        Rate("supervised", 13, 0, 0, 0, 0, 0),
    ),
    "policy-loss-explosion": (
        Rate("RLHF", 9, 0, 0, 0, 0, 0),
        Rate("on-policy control", 29, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
    ),
    "policy-loss-flat": (
        Rate("GRPO-like", 23, 0, 0, 0, 0, 0),
        Rate("RLHF", 9, 0, 0, 0, 0, 0),
        Rate("on-policy control", 33, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
    ),
    "positive-share-falls": (Rate("GRPO-like", 17, 0, 0, 0, 0, 0),),
    "pulses-without-stagnation": (Rate("scheduler", 15, 0, 0, 0, 0, 0),),
    "ratio-off-one": (Rate("RLHF", 9, 0, 0, 0, 0, 0),),
    "reference-kl-out-of-range": (Rate("RLHF", 9, 0, 0, 0, 0, 0),),
    "response-length-collapses": (Rate("GRPO-like", 23, 0, 0, 0, 0, 0),),
    "response-length-explodes": (Rate("GRPO-like", 23, 0, 0, 0, 0, 0),),
    "responses-truncated": (Rate("GRPO-like", 23, 0, 0, 0, 0, 0),),
    "return-collapse": (
        Rate("GRPO-like", 23, 0, 0, 0, 0, 0),
        Rate("RLHF", 9, 0, 0, 0, 0, 0),
        Rate("off-policy control", 8, 0, 0, 0, 0, 0),
        Rate("on-policy control", 33, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
        Rate("supervised", 13, 0, 0, 0, 0, 0),
    ),
    "return-up-success-flat": (
        Rate("GRPO-like", 22, 0, 0, 0, 0, 0),
        Rate("on-policy control", 3, 0, 0, 0, 0, 0),
    ),
    "reward-spread-grows": (
        Rate("GRPO-like", 23, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
    ),
    "reward-up-throughput-flat": (Rate("scheduler", 15, 0, 0, 0, 0, 0),),
    "samples-all-filtered": (Rate("GRPO-like", 17, 0, 0, 0, 0, 0),),
    "temperature-out-of-range": (Rate("scheduler", 15, 0, 0, 0, 0, 0),),
    "threshold-off-correctness": (Rate("GRPO-like", 13, 0, 0, 0, 0, 0),),
    "throughput-drop": (Rate("scheduler", 15, 0, 0, 0, 0, 0),),
    "total-negative-absolute-positive": (Rate("scheduler", 15, 0, 0, 0, 0, 0),),
    "updates-hardly-move": (
        Rate("on-policy control", 27, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
    ),
    "value-clip-high": (Rate("RLHF", 9, 0, 0, 0, 0, 0),),
    "value-drifts-from-return": (Rate("scheduler", 15, 0, 0, 0, 0, 0),),
    "value-loss-explosion": (
        Rate("RLHF", 9, 0, 0, 0, 0, 0),
        Rate("off-policy control", 4, 0, 0, 0, 0, 0),
        Rate("on-policy control", 33, 0, 0, 0, 0, 0),
        Rate("scheduler", 15, 0, 0, 0, 0, 0),
    ),
    "zero-variance-groups": (Rate("GRPO-like", 23, 0, 0, 0, 0, 0),),
}

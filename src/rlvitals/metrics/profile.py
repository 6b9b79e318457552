"""Which kind of training a run is, from its settings and from what it logs."""

import re
from collections.abc import Collection, Mapping

from rlvitals.types import Measured, Profile, Setting

# What `algorithm` or `mode` may say, in lower case.
SAID = {
    **dict.fromkeys(("dqn", "qr-dqn", "qrdqn", "c51", "sac", "td3", "ddpg", "tqc", "rainbow"),
                    Profile.OFF_POLICY),
    **dict.fromkeys(("a2c", "a3c", "impala", "appo", "vpg", "reinforce"), Profile.ON_POLICY),
    **dict.fromkeys(("psr", "nsr", "w-reinforce", "grpo"), None),
    **dict.fromkeys(("sft", "dpo", "supervised"), Profile.SUPERVISED),
}  # fmt: skip
LANGUAGE_MODES = ("psr", "nsr", "w-reinforce", "grpo")
FRAMEWORKS = {
    "scheduler": Profile.SCHEDULER_PPO,
    "trl-ppo": Profile.RLHF_PPO,
    "trl-ppo-old": Profile.RLHF_PPO,
    "rlvitals-rlhf": Profile.RLHF_PPO,
    **dict.fromkeys(
        (
            "acme-off-policy",
            "dreamerv3",  # learns from replay, its policy from what the model imagines
            "mlagents-sac",
            "rl-games-sac",
            "skrl-off-policy",
            "tianshou-off-policy",
        ),
        Profile.OFF_POLICY,
    ),
    "trl-dpo": Profile.SUPERVISED,
    "tinker-distillation": Profile.SUPERVISED,
}
CLIPPED = frozenset({"rsl-rl"})  # log neither KL nor clipping, yet are PPO
# Trainers of language models: with a critic or without one, and some of them supervised too.
LANGUAGE = frozenset(
    {
        *("verl", "openrlhf", "prime-rl", "areal", "slime", "language-loop", "skyrl"),
        "tinker",
        *("nemo-rl", "rllm", "roll", "open-instruct", "pipeline-rl", "agent-lightning", "miles"),
    }
)
GROUPED = frozenset({"trl-grpo", "unsloth", "ms-swift"})  # where they log responses with rewards
CRITIC = ("gae", "ppo")  # what their advantage estimator may be called where it needs a critic
VALUES = frozenset({"value/loss", "value/mean", "value/prediction_mean"})
KEYS = {
    "psr/": Profile.PSR,
    "nsr/": Profile.NSR,
    "w_reinforce/": Profile.W_REINFORCE,
}


def infer(
    names: Collection[str],
    measured: Mapping[str, Measured],
    settings: Mapping[str, Setting],
) -> Profile:
    """Name the profile: what the settings say, else what only one kind of run logs."""
    frameworks = {m.framework for m in measured.values()}
    language = not LANGUAGE.isdisjoint(frameworks)
    said = _said(settings, language=language)
    if said is not None:
        return said
    if language:
        return _language(names, str(settings.get("algorithm", "")).lower())
    keys = [m.key for m in measured.values()]
    if (found := _by_frameworks(names, keys, frameworks)) is not None:
        return found
    found = _by_metrics(names)
    clipped = "clip_range" in settings or not CLIPPED.isdisjoint(frameworks)
    return Profile.CONTROL_PPO if clipped and found is Profile.ON_POLICY else found


def _said(settings: Mapping[str, Setting], *, language: bool) -> Profile | None:
    for setting in ("mode", "algorithm"):
        said = str(settings.get(setting, "")).lower()
        if said in LANGUAGE_MODES:
            return Profile(said)
        # A language model's "reinforce" is an estimator without a critic, no actor-critic.
        estimator = language and setting == "algorithm"
        if not estimator and (profile := SAID.get(said)) is not None:
            return profile
    return None


def _by_frameworks(
    names: Collection[str], keys: Collection[str], frameworks: Collection[str]
) -> Profile | None:
    for prefix, profile in KEYS.items():
        if any(key.startswith(prefix) for key in keys):
            return profile
    for framework, profile in FRAMEWORKS.items():
        if framework in frameworks:
            return profile
    if "rlvitals-ppo" in frameworks and "scheduler/balance_penalty" in names:
        return Profile.SCHEDULER_PPO
    grouped = {"outcome/reward", "language/length_mean"} <= {*names}
    return Profile.GRPO if grouped and not GROUPED.isdisjoint(frameworks) else None


def _language(names: Collection[str], estimator: str) -> Profile:
    """Tell PPO by its critic: every estimator without one compares a prompt's completions.

    What no reward is logged for is supervised.
    """
    if not any(name.startswith(REWARDED) for name in names):
        return Profile.SUPERVISED if "optimiser/loss" in names else Profile.UNKNOWN
    if estimator in CRITIC or (not estimator and not VALUES.isdisjoint(names)):
        return Profile.RLHF_PPO
    return Profile.GRPO


# What only one kind of run logs, the most telling first.
TELLING: tuple[tuple[Profile, frozenset[str]], ...] = (
    (Profile.RLHF_PPO, frozenset({"outcome/rlhf_reward", "reward/non_score"})),
    (Profile.GRPO, frozenset({"reward/group_zero_std"})),
    (
        Profile.OFF_POLICY,
        frozenset(
            {
                "value/q_mean",
                "exploration/epsilon",
                "exploration/entropy_coef_loss",
                "optimiser/target_updates",
                "policy/actor_loss",
            }
        ),
    ),
    (
        Profile.CONTROL_PPO,
        frozenset({"policy/clip_fraction", "policy/approx_kl", "policy/clip_range"}),
    ),
    (
        Profile.ON_POLICY,
        frozenset({"policy/loss", "policy/loss_sum", "value/loss", "value/explained_variance"}),
    ),
)
ANSWER = re.compile(r"correct|accura", re.IGNORECASE)  # a part of a reward that grades answers
REWARDED = ("outcome/return", "outcome/reward", "outcome/score", "outcome/success", "reward/")


def _by_metrics(names: Collection[str]) -> Profile:
    if any(name.startswith("reward/component/") and ANSWER.search(name) for name in names):
        return Profile.RLHF_PPO if not VALUES.isdisjoint(names) else Profile.GRPO
    for profile, metrics in TELLING:
        if not metrics.isdisjoint(names):
            return profile
    rewarded = any(name.startswith(REWARDED) for name in names)
    return Profile.SUPERVISED if "optimiser/loss" in names and not rewarded else Profile.UNKNOWN

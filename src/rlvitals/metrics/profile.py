"""Infer the kind of training from the settings and the metrics of a run."""

import re
from collections.abc import Collection, Mapping

from rlvitals.types import Measured, Profile, Setting

# Values of `algorithm` or `mode`, in lower case.
PROFILE_OF_ALGORITHM = {
    **dict.fromkeys(("dqn", "qr-dqn", "qrdqn", "c51", "sac", "td3", "ddpg", "tqc", "rainbow"),
                    Profile.OFF_POLICY),
    **dict.fromkeys(("a2c", "a3c", "impala", "appo", "vpg", "reinforce"), Profile.ON_POLICY),
    **dict.fromkeys(("psr", "nsr", "w-reinforce", "grpo"), None),
    **dict.fromkeys(("sft", "dpo", "supervised"), Profile.SUPERVISED),
}  # fmt: skip
PROFILE_OF_FRAMEWORK = {
    "scheduler": Profile.SCHEDULER_PPO,
    "trl-ppo": Profile.RLHF_PPO,
    "trl-ppo-old": Profile.RLHF_PPO,
    "trlx": Profile.RLHF_PPO,
    "rlvitals-rlhf": Profile.RLHF_PPO,
    **dict.fromkeys(
        (
            "acme-off-policy",
            "dreamerv3",  # learns from replay, its policy from imagined trajectories
            "garage-off-policy",
            "mlagents-sac",
            "pytorch-sac",
            "rl-games-sac",
            "rlkit",
            "skrl-off-policy",
            "softlearning",
            "td-mpc",
            "tianshou-off-policy",
        ),
        Profile.OFF_POLICY,
    ),
    "trl-dpo": Profile.SUPERVISED,
    "dpo-reference": Profile.SUPERVISED,
    "tinker-distillation": Profile.SUPERVISED,
    "tinker-dpo": Profile.SUPERVISED,
}
# Trainers of language models: with a critic or without one, and some of them supervised too.
LANGUAGE_FRAMEWORKS = frozenset(
    {
        *("verl", "openrlhf", "prime-rl", "areal", "slime", "language-loop", "skyrl", "tinker"),
        *("nemo-rl", "rllm", "roll", "open-instruct", "pipeline-rl", "agent-lightning", "miles"),
        "verifiers",
        "language-words",  # keys named by their words alone
    }
)
CRITIC_METRICS = frozenset({"value/loss", "value/mean", "value/prediction_mean"})


def infer(
    names: Collection[str],
    measured: Mapping[str, Measured],
    settings: Mapping[str, Setting],
) -> Profile:
    """Return the profile from the settings, else from metrics that only one kind of run logs."""
    frameworks = {m.framework for m in measured.values()}
    language = not LANGUAGE_FRAMEWORKS.isdisjoint(frameworks)
    declared = _from_settings(settings, language=language)
    if declared is not None:
        return declared
    if language:
        estimator = str(settings.get("algorithm", "")).lower()
        # Without a reward a run is supervised, unless it compares a sampler with the trainer, or
        # logs what is clipped, or the loss of a policy or of a critic.
        learner = ("policy/sampler_", "policy/clip_fraction", "policy/loss", "value/loss")
        if not any(name.startswith((*REWARD_PREFIXES, *learner)) for name in names):
            return Profile.SUPERVISED if "optimiser/loss" in names else Profile.UNKNOWN
        # These advantage estimators need a critic; others compare the completions of a prompt.
        if estimator in ("gae", "ppo") or (not estimator and not CRITIC_METRICS.isdisjoint(names)):
            return Profile.RLHF_PPO
        return Profile.GRPO
    keys = [m.key for m in measured.values()]
    if (inferred := _by_frameworks(names, keys, frameworks)) is not None:
        return inferred
    inferred = _by_metrics(names)
    # RSL-RL logs neither KL nor clipping, yet is PPO.
    clipped = "clip_range" in settings or "rsl-rl" in frameworks
    return Profile.CONTROL_PPO if clipped and inferred is Profile.ON_POLICY else inferred


def _from_settings(settings: Mapping[str, Setting], *, language: bool) -> Profile | None:
    for setting in ("mode", "algorithm"):
        mode = str(settings.get(setting, "")).lower()
        if mode in ("psr", "nsr", "w-reinforce", "grpo"):
            return Profile(mode)
        # A language model's "reinforce" is an estimator without a critic, no actor-critic.
        estimator = language and setting == "algorithm"
        if not estimator and (profile := PROFILE_OF_ALGORITHM.get(mode)) is not None:
            return profile
    return None


def _by_frameworks(
    names: Collection[str], keys: Collection[str], frameworks: Collection[str]
) -> Profile | None:
    for prefix, profile in {
        "psr/": Profile.PSR,
        "nsr/": Profile.NSR,
        "w_reinforce/": Profile.W_REINFORCE,
    }.items():
        if any(key.startswith(prefix) for key in keys):
            return profile
    for framework, profile in PROFILE_OF_FRAMEWORK.items():
        if framework in frameworks:
            return profile
    if "rlvitals-ppo" in frameworks and "scheduler/balance_penalty" in names:
        return Profile.SCHEDULER_PPO
    # A row of transformers' `Trainer` with a reward and its spread in it has no length at times.
    trainer = {"outcome/reward", "reward/std", "progress/epoch", "optimiser/loss"}
    trainer |= {"optimiser/grad_norm", "optimiser/learning_rate"}
    grouped = {"outcome/reward", "language/length_mean"} <= {*names} or trainer <= {*names}
    # These frameworks run GRPO where they log responses with rewards.
    return (
        Profile.GRPO
        if grouped and not {"trl-grpo", "unsloth", "ms-swift"}.isdisjoint(frameworks)
        else None
    )


# Metrics that only one kind of run logs, the most specific first.
PROFILE_METRICS: tuple[tuple[Profile, frozenset[str]], ...] = (
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
REWARD_PREFIXES = (
    "outcome/return",
    "outcome/reward",
    "outcome/score",
    "outcome/success",
    "reward/",
)


def _by_metrics(names: Collection[str]) -> Profile:
    # Some part of the reward grades answers, or responses are cut: episodes have a length too.
    graded = any(
        name.startswith("reward/component/") and re.search(r"correct|accura", name, re.IGNORECASE)
        for name in names
    )
    if graded or {"outcome/reward", "language/length_mean", "language/truncated_share"} <= {*names}:
        return Profile.RLHF_PPO if not CRITIC_METRICS.isdisjoint(names) else Profile.GRPO
    for profile, metrics in PROFILE_METRICS:
        if not metrics.isdisjoint(names):
            return profile
    rewarded = any(name.startswith(REWARD_PREFIXES) for name in names)
    return Profile.SUPERVISED if "optimiser/loss" in names and not rewarded else Profile.UNKNOWN

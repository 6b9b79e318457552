"""Which kind of training a run is, from its settings and from what it logs."""

from collections.abc import Collection, Mapping

from rlvitals.records import Measured, Profile, Setting

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
}
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
    for setting in ("mode", "algorithm"):
        said = str(settings.get(setting, "")).lower()
        if said in LANGUAGE_MODES:
            return Profile(said)
        if (profile := SAID.get(said)) is not None:
            return profile
    for m in measured.values():
        for prefix, profile in KEYS.items():
            if m.key.startswith(prefix):
                return profile
    for m in measured.values():
        if m.framework in FRAMEWORKS:
            return FRAMEWORKS[m.framework]
    return _by_metrics(names)


def _by_metrics(names: Collection[str]) -> Profile:
    logged = set(names)
    has_outcome = any(n.startswith(("outcome/", "reward/")) for n in logged)
    if "outcome/rlhf_reward" in logged or "reward/non_score" in logged:
        return Profile.RLHF_PPO
    if "reward/group_zero_std" in logged:
        return Profile.GRPO
    if logged & {"value/q_mean", "exploration/epsilon", "policy/actor_loss"}:
        return Profile.OFF_POLICY
    if logged & {"policy/clip_fraction", "policy/approx_kl"}:
        return Profile.CONTROL_PPO
    if logged & {"policy/loss", "policy/loss_sum", "value/loss", "value/explained_variance"}:
        return Profile.ON_POLICY
    if "optimiser/loss" in logged and not has_outcome:
        return Profile.SUPERVISED
    return Profile.UNKNOWN

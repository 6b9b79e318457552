"""rl_games: PPO and A2C, as commit 262cf202 of 2026 (2.0.0) writes them.

The step is the frame: environment steps over all environments, divided by the agents of each.
The same numbers are written against epochs ("/iter") and seconds ("/time") too: those are left
out. What `use_diagnostics` and the environments' "Episode/..." count in epochs is put at frames.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    optimiser,
    outcome,
    policy,
    progress,
    reward,
    throughput,
    value,
)
from rlvitals.metrics.frameworks.key import RETURN_WINDOW, Family, Name, OffAxis, Table

RUNNING_EPISODE_MEAN = "running mean of about the last 100 episodes"
OVER_MINI_EPOCHS = "mean over all mini-epochs and minibatches"

RL_GAMES_KEYS = {
    # Before 1.2 steps are called frames, and the first value head has a number.
    **dict.fromkeys(
        ("rewards/step", "rewards/frame", "rewards0/frame"),
        Name(outcome.RETURN, f"{RUNNING_EPISODE_MEAN}, before shaping", window=RETURN_WINDOW),
    ),
    **dict.fromkeys(
        ("episode_lengths/step", "episode_lengths/frame"),
        Name(outcome.EPISODE_LENGTH, RUNNING_EPISODE_MEAN, window=RETURN_WINDOW),
    ),
    "performance/step_inference_rl_update_fps": Name(
        throughput.STEPS_PER_SECOND, "of this iteration, the update included"
    ),
    "performance/step_inference_fps": Name(
        throughput.SAMPLER_RATE, "of this iteration, environment and policy"
    ),
    "info/epochs": Name(progress.ITERATION),
}
RL_GAMES_FAMILIES = (
    Family(
        r"performance/(rl_update|step_inference|step)_time",
        Name(throughput.PHASE_TIME, "seconds of one iteration"),
    ),
    Family(
        r"rewards([1-9]\d*)/(?:step|frame)",
        Name(reward.COMPONENT, f"{RUNNING_EPISODE_MEAN}, of one value head"),
    ),
    # What environments hand over: Isaac Lab with its own prefix, IsaacGymEnvs as "rew_...".
    Family(
        r"Episode/(?:Episode_Reward/|rew_)(.+)", Name(reward.COMPONENT, "per second of an episode")
    ),
    Family(r"Episode/Episode_Termination/(.+)", Name(outcome.ENDING, "environments a reset")),
    Family(r"Episode/Curriculum/(.+)", Name(progress.CURRICULUM)),
)
RL_GAMES_SETTINGS = {
    "params/seed": "seed",
    "params/algo/name": "algorithm",
    "params/config/env_name": "env_id",
    "params/config/learning_rate": "learning_rate",
    "params/config/gamma": "gamma",
    "params/config/tau": "gae_lambda",
    "params/config/e_clip": "clip_range",
    "params/config/entropy_coef": "entropy_coef",
    "params/config/critic_coef": "value_coef",
    "params/config/grad_norm": "max_grad_norm",
    "params/config/kl_threshold": "desired_kl",
    "params/config/horizon_length": "n_steps",
    "params/config/num_actors": "n_envs",
    "params/config/minibatch_size": "minibatch_size",
    "params/config/mini_epochs": "n_epochs",
    "params/config/max_frames": "total_steps",
    "params/config/weight_decay": "weight_decay",
    "e_clip": "clip_range",
    "horizon_length": "n_steps",
    "mini_epochs": "n_epochs",
    "num_actors": "n_envs",
}
RL_GAMES_SETTINGS_UNDER = r"(?:train|agent)/"  # IsaacGymEnvs' config.yaml
BY_EPOCH = OffAxis(r"(?:Episode|diagnostics)/.+", clock=("info/epochs",))

NAMES = Table(
    "rl-games",
    "rl_games",
    keys={
        **RL_GAMES_KEYS,
        # common/a2c_common.py, write_stats
        "losses/a_loss": Name(
            policy.LOSS, f"clipped surrogate, {OVER_MINI_EPOCHS}; advantages whitened"
        ),
        "losses/c_loss": Name(
            value.LOSS,
            "squared error, not halved, of values normalised if normalize_value;"
            f" {OVER_MINI_EPOCHS}",
        ),
        "losses/entropy": Name(
            exploration.ENTROPY, f"positive, summed over dimensions; {OVER_MINI_EPOCHS}"
        ),
        "info/last_lr": Name(optimiser.LEARNING_RATE, "adaptive: follows the KL"),
        "diagnostics/exp_var": Name(
            value.EXPLAINED_VARIANCE, "values of the rollout, mean over minibatches"
        ),
        "info/e_clip": Name(policy.CLIP_RANGE),
        "info/kl": Name(
            policy.APPROX_KL,
            "continuous: exact KL of the Gaussians, new to old, old being the policy of the pass"
            f" before; discrete: k2; {OVER_MINI_EPOCHS}",
            estimator="exact",
        ),
    },
    families=(
        *RL_GAMES_FAMILIES,
        Family(r"losses/(\w+)_loss", Name(optimiser.LOSS_PART, OVER_MINI_EPOCHS)),
    ),
    settings=RL_GAMES_SETTINGS,
    settings_under=RL_GAMES_SETTINGS_UNDER,
    step_unit="frames",
    off_axis=BY_EPOCH,
    read_from="Denys88/rl_games 262cf202 (2.0.0): rl_games/common/a2c_common.py (write_stats,"
    " train_epoch, train), common_losses.py, algo_observer.py, algos_torch/a2c_continuous.py,"
    " a2c_discrete.py (calc_gradients), torch_ext.py (policy_kl, AverageMeter)",
)

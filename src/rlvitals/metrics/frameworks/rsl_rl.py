"""rsl_rl: PPO and distillation for legged robots and Isaac Lab, versions 1.0 to 5.4.

The step is the iteration: one rollout of `num_steps_per_env` steps in every environment and its
update. `Train/.../time` holds the same numbers against seconds and is left out. The exact KL that
steers the adaptive learning rate is not logged.
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
from rlvitals.metrics.frameworks.key import OVER_ALL_MINIBATCHES, RETURN_WINDOW, Family, Name, Table

OVER_LAST_EPISODES = "mean of the last 100 episodes"

CLIPPED_VALUE_LOSS = Name(
    value.LOSS, f"squared error, clipped if use_clipped_value_loss; {OVER_ALL_MINIBATCHES}"
)
ACTION_STD = Name(exploration.STD, "mean over action dimensions")

PPO_SETTINGS = {
    "learning_rate": "learning_rate",
    "num_learning_epochs": "n_epochs",
    "num_mini_batches": "n_minibatches",
    "clip_param": "clip_range",
    "desired_kl": "desired_kl",
    "entropy_coef": "entropy_coef",
    "value_loss_coef": "value_coef",
    "gamma": "gamma",
    "lam": "gae_lambda",
    "max_grad_norm": "max_grad_norm",
}

NAMES = Table(
    "rsl-rl",
    "rsl_rl",
    keys={
        "Train/mean_reward": Name(
            outcome.RETURN,
            f"{OVER_LAST_EPISODES}; with RND the intrinsic reward is in it",
            window=RETURN_WINDOW,
        ),
        "Train/mean_episode_length": Name(
            outcome.EPISODE_LENGTH, OVER_LAST_EPISODES, window=RETURN_WINDOW
        ),
        "Loss/value_function": CLIPPED_VALUE_LOSS,  # until 3.2
        "Loss/value": CLIPPED_VALUE_LOSS,
        "Loss/surrogate": Name(
            policy.LOSS, f"clipped surrogate, advantages whitened; {OVER_ALL_MINIBATCHES}"
        ),
        "Loss/entropy": Name(
            exploration.ENTROPY, f"positive, summed over dimensions; {OVER_ALL_MINIBATCHES}"
        ),
        "Loss/learning_rate": Name(
            optimiser.LEARNING_RATE, "adaptive: follows the exact KL towards desired_kl"
        ),
        "Loss/behavior": Name(optimiser.LOSS, "distillation: distance to the teacher's actions"),
        "Policy/mean_noise_std": ACTION_STD,  # until 4
        "Policy/mean_std": ACTION_STD,
        "Perf/total_fps": Name(throughput.STEPS_PER_SECOND, "of this iteration, all environments"),
        "Rnd/mean_intrinsic_reward": Name(
            reward.INTRINSIC, OVER_LAST_EPISODES, window=RETURN_WINDOW
        ),
    },
    families=(
        Family(r"Loss/(rnd|symmetry)", Name(optimiser.LOSS_PART, OVER_ALL_MINIBATCHES)),
        Family(
            r"Perf/(collection|learning)[ _]time",
            Name(throughput.PHASE_TIME, "seconds of one iteration"),
        ),
        # What environments hand over: Isaac Lab with its own prefix, legged_gym as "rew_...".
        Family(r"Episode_Reward/(.+)", Name(reward.COMPONENT, "per second of an episode")),
        Family(r"Episode/(?:Episode_Reward/|rew_)(.+)", Name(reward.COMPONENT, "per second")),
        Family(
            r"Episode_Termination/(.+)",
            Name(outcome.ENDING, "environments a reset, mean over the rollout's resets"),
        ),
        Family(r"Curriculum/(.+)", Name(progress.CURRICULUM)),
        Family(r"Episode/(terrain_level|max_command_x)", Name(progress.CURRICULUM, "legged_gym")),
    ),
    settings={
        "seed": "seed",
        "num_steps_per_env": "n_steps",
        "max_iterations": "total_steps",  # its steps are iterations
        "algorithm/class_name": "algorithm",
        **PPO_SETTINGS,
        **{f"algorithm/{key}": canonical for key, canonical in PPO_SETTINGS.items()},
        "scene/num_envs": "n_envs",  # params/env.yaml
    },
    settings_under=r"(?:runner|agent|train_cfg|runner_cfg)/",
    step_unit="iterations",
    read_from="leggedrobotics/rsl_rl 5.4.2 (c281c32e): rsl_rl/utils/logger.py (process_env_step,"
    " log), rsl_rl/algorithms/ppo.py (update), distillation.py; 1.0.2, 2.3.3, 3.3.0:"
    " rsl_rl/runners/on_policy_runner.py (log); isaac-sim/IsaacLab: reward_manager.py,"
    " termination_manager.py (reset)",
)

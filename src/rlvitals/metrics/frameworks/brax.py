"""Brax at 0b96d05 of 2026, and MuJoCo Playground with it: what `progress_fn` is handed.

A row an evaluation, with the numbers of the training since the last one; "episode/" is of training
episodes. The step counts environment steps.
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
from rlvitals.metrics.frameworks.key import Family, Name, Table

NAMES = Table(
    "brax",
    "Brax",
    keys={
        # training/acting.py, run_evaluation; training/logger.py
        "eval/episode_reward": Name(outcome.EVAL_RETURN, "mean over the evaluation episodes"),
        "eval/avg_episode_length": Name(
            outcome.EVAL_EPISODE_LENGTH, "mean over the evaluation episodes"
        ),
        "episode/sum_reward": Name(outcome.RETURN, "mean over the last training episodes"),
        "episode/length": Name(outcome.EPISODE_LENGTH, "mean over the last training episodes"),
        "training/sps": Name(throughput.STEPS_PER_SECOND, "since the last evaluation"),
        "training/walltime": Name(throughput.ELAPSED, "seconds of training"),
        "num_steps": Name(progress.STEPS),
        # training/agents/ppo/losses.py, compute_ppo_loss
        "training/policy_loss": Name(
            policy.LOSS, "PPO: clipped surrogate, mean since the last evaluation"
        ),
        "training/v_loss": Name(
            value.LOSS,
            "PPO: squared error times vf_coefficient / 2, mean since the last evaluation",
        ),
        "training/entropy_loss": Name(
            exploration.ENTROPY_BONUS,
            "PPO: minus entropy_cost * entropy, mean since the last evaluation",
            scale=-1.0,
        ),
        "training/total_loss": Name(optimiser.LOSS, "mean since the last evaluation"),
        "training/kl_mean": Name(
            policy.APPROX_KL,
            "PPO: new to old, exact, mean since the last evaluation",
            estimator="exact",
        ),
        "training/policy_dist_mean_std": Name(exploration.STD, "PPO: mean over dimensions"),
        # training/agents/sac/losses.py
        "training/critic_loss": Name(
            value.LOSS, "SAC: half the squared error, mean since the last evaluation"
        ),
        "training/actor_loss": Name(policy.ACTOR_LOSS, "SAC: mean since the last evaluation"),
        "training/alpha": Name(exploration.ENTROPY_COEF, "SAC's alpha"),
        "training/alpha_loss": Name(
            exploration.ENTROPY_COEF_LOSS, "SAC: mean since the last evaluation"
        ),
    },
    families=(
        Family(
            r"eval/episode_(reward_(?!std\Z)\w+(?<!_std))",
            Name(reward.EVAL_COMPONENT, "sum of an episode, mean over the evaluation"),
        ),
    ),
    settings={
        "num_timesteps": "total_steps",
        "unroll_length": "n_steps",
        "num_updates_per_batch": "n_epochs",
        "num_minibatches": "n_minibatches",
        "discounting": "gamma",
        "learning_rate": "learning_rate",
        "entropy_cost": "entropy_coef",
        "clipping_epsilon": "clip_range",
        "max_grad_norm": "max_grad_norm",
        "num_envs": "n_envs",
        "seed": "seed",
    },
    step_unit="environment steps",
    marks=(
        ("eval/episode_reward", "eval/avg_episode_length"),
        ("eval/episode_reward", "training/sps"),
        ("training/v_loss", "training/policy_loss"),
    ),
    read_from="google/brax 0b96d05: brax/training/acting.py (run_evaluation), training/logger.py,"
    " training/agents/ppo/losses.py, training/agents/sac/losses.py, train.py of both",
)

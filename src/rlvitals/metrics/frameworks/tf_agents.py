"""TF-Agents at eb24cf5f of 2026: event files whose step is the training step.

`Metrics/` in `train/` is of the last episodes that were collected; the same keys in `eval/` are an
evaluation. What stands below "Metrics_vs_..." holds the same numbers at other steps.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    optimiser,
    outcome,
    policy,
    progress,
    reward,
    surrogate,
    value,
)
from rlvitals.metrics.frameworks.key import Family, Name, Table

NAMES = Table(
    "tf-agents",
    "TF-Agents",
    keys={
        # metrics/tf_metrics.py
        "Metrics/AverageReturn": Name(outcome.RETURN, "mean over the last 10 episodes", window=10),
        "Metrics/MaxReturn": Name(outcome.RETURN_MAX, "over the last 10 episodes"),
        "Metrics/MinReturn": Name(outcome.RETURN_MIN, "over the last 10 episodes"),
        "Metrics/AverageEpisodeLength": Name(
            outcome.EPISODE_LENGTH, "mean over the last 10 episodes", window=10
        ),
        "Metrics/EnvironmentSteps": Name(progress.STEPS),
        "Metrics/NumberOfEpisodes": Name(progress.EPISODE),
        "eval/Metrics/AverageReturn": Name(
            outcome.EVAL_RETURN, "mean over the evaluation episodes"
        ),
        "eval/Metrics/AverageEpisodeLength": Name(
            outcome.EVAL_EPISODE_LENGTH, "mean over the evaluation episodes"
        ),
        # agents/ppo/ppo_agent.py, _train
        "Losses/policy_gradient_loss": Name(
            policy.LOSS, "PPO: clipped surrogate, mean over all epochs"
        ),
        "Losses/value_estimation_loss": Name(
            value.LOSS, "PPO: squared error times value_pred_loss_coef, mean over all epochs"
        ),
        "Losses/entropy_regularization_loss": Name(
            exploration.ENTROPY_BONUS,
            "PPO: minus entropy_regularization * entropy, mean over all epochs",
            scale=-1.0,
        ),
        "Losses/kl_penalty_loss": Name(
            surrogate.KL_LOSS, "PPO: 0 without a penalty", zero_if_off=True
        ),
        "Losses/entropy": Name(exploration.ENTROPY, "PPO: positive, of one batch"),
        "LearningRate/learning_rate": Name(optimiser.LEARNING_RATE),
        # agents/sac/sac_agent.py, ddpg, td3, dqn
        "Losses/critic_loss": Name(value.LOSS, "SAC, DDPG, TD3: one batch, critics added up"),
        "Losses/actor_loss": Name(policy.ACTOR_LOSS, "SAC, DDPG, TD3: one batch"),
        "Losses/alpha_loss": Name(exploration.ENTROPY_COEF_LOSS, "SAC: one batch"),
        "Losses/td_loss": Name(value.LOSS, "DQN: one batch"),
    },
    families=(
        Family(r"(?:.+/)?clip_fraction", Name(policy.CLIP_FRACTION, "PPO: one batch")),
        Family(
            r"(?:.+/)?mean_kl_divergence",
            Name(policy.APPROX_KL, "PPO: old to new, exact, after the update", estimator="exact"),
        ),
        Family(
            r"(?:.+/)?policy_entropy_mean",
            Name(exploration.ENTROPY, "PPO: positive, of one batch"),
        ),
        Family(r"(?:.+/)?rewards_mean", Name(reward.MEAN, "PPO: mean over the batch")),
        Family(r"(?:.+/)?importance_ratio_mean", Name(policy.RATIO, "PPO: one batch")),
    ),
    step_unit="updates",
    marks=(("Metrics/AverageReturn",), ("eval/Metrics/AverageReturn",)),
    read_from="tensorflow/agents eb24cf5f: tf_agents/metrics/tf_metrics.py, tf_metric.py"
    " (tf_summaries), agents/ppo/ppo_agent.py (_train, policy_gradient_loss), agents/sac/sac_agent"
    ".py, agents/dqn/dqn_agent.py",
)

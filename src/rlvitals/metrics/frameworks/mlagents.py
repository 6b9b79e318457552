"""Unity ML-Agents with PPO and POCA, as 0.28.0 writes them, and PPO of 0.3 ("Info/").

The step counts the decisions of all agents of a behaviour. Every `summary_freq` steps what was
reported since the last summary is averaged.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    optimiser,
    outcome,
    policy,
    progress,
    reward,
    value,
)
from rlvitals.metrics.frameworks.key import Family, Name, Table

SINCE_LAST_SUMMARY = "since the last summary"
OVER_UPDATES_SINCE_SUMMARY = (
    f"mean over epochs and minibatches, then over the updates {SINCE_LAST_SUMMARY}"
)

ML_AGENTS_KEYS = {
    # trainer/rl_trainer.py, agent_processor.py, ghost/trainer.py
    "Environment/Cumulative Reward": Name(
        outcome.RETURN, f"mean over the episodes that ended {SINCE_LAST_SUMMARY}, of all agents"
    ),
    "Environment/Episode Length": Name(
        outcome.EPISODE_LENGTH, f"decisions, mean over the episodes that ended {SINCE_LAST_SUMMARY}"
    ),
    "Policy/Entropy": Name(
        exploration.ENTROPY,
        "positive; mean over continuous dimensions, sum over discrete branches;"
        f" {SINCE_LAST_SUMMARY}",
    ),
    "Policy/Learning Rate": Name(optimiser.LEARNING_RATE),
    "Self-play/ELO": Name(outcome.ELO, f"mean {SINCE_LAST_SUMMARY}"),
    "Step": Name(progress.STEPS),
}
ML_AGENTS_FAMILIES = (
    Family(
        r"Losses/((?:Curiosity|RND|GAIL|Pretraining|Baseline).*)",
        Name(optimiser.LOSS_PART, f"mean {SINCE_LAST_SUMMARY}"),
    ),
    Family(r"Environment/Lesson(?: Number)?/(.+)", Name(progress.CURRICULUM, "lesson")),
    Family(r"Policy/(Extrinsic) Reward", Name(reward.COMPONENT, "sum of an episode")),
)
INTRINSIC_REWARDS = {
    f"Policy/{name} Reward": Name(
        reward.INTRINSIC, f"mean over the episodes ended {SINCE_LAST_SUMMARY}"
    )
    for name in ("Curiosity", "Rnd")
}
ML_AGENTS_SETTINGS = {
    "max_steps": "total_steps",
    "trainer_type": "algorithm",
    "hyperparameters/learning_rate": "learning_rate",
    "hyperparameters/batch_size": "minibatch_size",
    "hyperparameters/buffer_size": "batch_size",  # PPO: experiences between two updates
    "hyperparameters/beta": "entropy_coef",
    "hyperparameters/epsilon": "clip_range",
    "hyperparameters/lambd": "gae_lambda",
    "hyperparameters/num_epoch": "n_epochs",
    "reward_signals/extrinsic/gamma": "gamma",
    "time_horizon": "n_steps",
    "env_settings/seed": "seed",
    "num_envs": "n_envs",
    "env_settings/num_envs": "n_envs",
}
ML_AGENTS_SETTINGS_UNDER = r"behaviors/[^/]+/"

NAMES = Table(
    "mlagents",
    "Unity ML-Agents",
    keys={
        **ML_AGENTS_KEYS,
        **INTRINSIC_REWARDS,
        # ppo/optimizer_torch.py and poca/optimizer_torch.py, update; ppo/trainer.py
        "Losses/Policy Loss": Name(
            policy.LOSS_MAGNITUDE,
            f"absolute value of each minibatch's loss, {OVER_UPDATES_SINCE_SUMMARY}",
        ),
        "Losses/Value Loss": Name(
            value.LOSS,
            f"squared error, clipped, mean over the reward signals; {OVER_UPDATES_SINCE_SUMMARY}",
        ),
        "Policy/Epsilon": Name(policy.CLIP_RANGE, "decays with the learning rate's schedule"),
        "Policy/Beta": Name(exploration.ENTROPY_COEF, "decays with the learning rate's schedule"),
        "Policy/Extrinsic Value Estimate": Name(
            value.MEAN, f"mean over the trajectories {SINCE_LAST_SUMMARY}"
        ),
        "Environment/Group Cumulative Reward": Name(
            outcome.GROUP_RETURN, f"POCA: mean over the groups that ended {SINCE_LAST_SUMMARY}"
        ),
        # 0.3: python/unitytrainers/ppo/trainer.py
        "Info/cumulative_reward": Name(
            outcome.RETURN, f"mean over the episodes that ended {SINCE_LAST_SUMMARY}, of all agents"
        ),
        "Info/episode_length": Name(
            outcome.EPISODE_LENGTH, f"mean over the episodes that ended {SINCE_LAST_SUMMARY}"
        ),
        "Info/entropy": Name(
            exploration.ENTROPY, f"positive; of the steps taken {SINCE_LAST_SUMMARY}"
        ),
        "Info/value_estimate": Name(value.MEAN, f"of the steps taken {SINCE_LAST_SUMMARY}"),
        "Info/value_loss": Name(value.LOSS_SUM, "added up over an update's epochs and minibatches"),
        "Info/policy_loss": Name(
            policy.LOSS_SUM, "added up over an update's epochs and minibatches"
        ),
        "Info/learning_rate": Name(optimiser.LEARNING_RATE),
    },
    families=(
        *ML_AGENTS_FAMILIES,
        Family(r"Info/(Lesson)", Name(progress.CURRICULUM)),
    ),
    settings=ML_AGENTS_SETTINGS,
    settings_under=ML_AGENTS_SETTINGS_UNDER,
    step_unit="agent steps",
    read_from="Unity-Technologies/ml-agents, mlagents 0.28.0: mlagents/trainers/stats.py"
    " (StatsSummary), trainer/rl_trainer.py (_update_end_episode_stats), agent_processor.py,"
    " ppo/trainer.py (_update_policy), ppo/optimizer_torch.py, poca/optimizer_torch.py (update),"
    " torch/utils.py (trust_region_policy_loss, trust_region_value_loss); 0.3 (df8d8a32):"
    " python/unitytrainers/ppo/trainer.py (update_model, write_summary)",
)

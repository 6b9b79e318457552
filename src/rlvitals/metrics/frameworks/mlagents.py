"""Unity ML-Agents with PPO and POCA, as 0.28.0 writes them.

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

SUMMARY = "since the last summary"
ALL = f"mean over epochs and minibatches, then over the updates {SUMMARY}"

SHARED = {
    # trainer/rl_trainer.py, agent_processor.py, ghost/trainer.py
    "Environment/Cumulative Reward": Name(
        outcome.RETURN, f"mean over the episodes that ended {SUMMARY}, of all agents"
    ),
    "Environment/Episode Length": Name(
        outcome.EPISODE_LENGTH, f"decisions, mean over the episodes that ended {SUMMARY}"
    ),
    "Policy/Entropy": Name(
        exploration.ENTROPY,
        f"positive; mean over continuous dimensions, sum over discrete branches; {SUMMARY}",
    ),
    "Policy/Learning Rate": Name(optimiser.LEARNING_RATE),
    "Self-play/ELO": Name(outcome.ELO, f"mean {SUMMARY}"),
    "Step": Name(progress.STEPS),
}
SHARED_FAMILIES = (
    Family(
        r"Losses/((?:Curiosity|RND|GAIL|Pretraining|Baseline).*)",
        Name(optimiser.LOSS_PART, f"mean {SUMMARY}"),
    ),
    Family(r"Environment/Lesson(?: Number)?/(.+)", Name(progress.CURRICULUM, "lesson")),
    Family(r"Policy/(Extrinsic) Reward", Name(reward.COMPONENT, "sum of an episode")),
)
INTRINSIC = {
    f"Policy/{name} Reward": Name(reward.INTRINSIC, f"mean over the episodes ended {SUMMARY}")
    for name in ("Curiosity", "Rnd")
}
SETTINGS = {
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
UNDER = r"behaviors/[^/]+/"
STEP = "agent steps"

NAMES = Table(
    "mlagents",
    "Unity ML-Agents",
    keys={
        **SHARED,
        **INTRINSIC,
        # ppo/optimizer_torch.py and poca/optimizer_torch.py, update; ppo/trainer.py
        "Losses/Policy Loss": Name(
            policy.LOSS_MAGNITUDE, f"absolute value of each minibatch's loss, {ALL}"
        ),
        "Losses/Value Loss": Name(
            value.LOSS, f"squared error, clipped, mean over the reward signals; {ALL}"
        ),
        "Policy/Epsilon": Name(policy.CLIP_RANGE, "decays with the learning rate's schedule"),
        "Policy/Beta": Name(exploration.ENTROPY_COEF, "decays with the learning rate's schedule"),
        "Policy/Extrinsic Value Estimate": Name(
            value.MEAN, f"mean over the trajectories {SUMMARY}"
        ),
        "Environment/Group Cumulative Reward": Name(
            outcome.GROUP_RETURN, f"POCA: mean over the groups that ended {SUMMARY}"
        ),
    },
    families=SHARED_FAMILIES,
    settings=SETTINGS,
    settings_under=UNDER,
    step_unit=STEP,
    read_from="Unity-Technologies/ml-agents, mlagents 0.28.0: mlagents/trainers/stats.py"
    " (StatsSummary), trainer/rl_trainer.py (_update_end_episode_stats), agent_processor.py,"
    " ppo/trainer.py (_update_policy), ppo/optimizer_torch.py, poca/optimizer_torch.py (update),"
    " torch/utils.py (trust_region_policy_loss, trust_region_value_loss)",
)

"""skrl's on-policy agents (PPO, RPO, A2C, TRPO, AMP, IPPO, MAPPO, CEM), as 2.0.0 writes them.

The step is the trainer's timestep: environment steps of each environment, not of all together.
Every `write_interval` steps (by default a hundredth of the run) what was tracked since the last
write is averaged; of "(min)" and "(max)" the extreme is taken. `skrl_off_policy.py` holds the
agents with a replay buffer: there "Loss / Policy loss" and "Loss / Entropy loss" mean others.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    optimiser,
    outcome,
    policy,
    reward,
    throughput,
    value,
)
from rlvitals.metrics.frameworks.key import Family, Name, Table

SINCE_LAST_WRITE = "since the last write"
ENDED_EPISODES = (
    f"the episodes that ended {SINCE_LAST_WRITE}, at most 100, re-averaged at each step"
)

# agents/torch/base.py, record_transition; trainers/torch/*.py; agents of all kinds
SKRL_KEYS = {
    "Reward / Total reward (mean)": Name(outcome.RETURN, f"mean over {ENDED_EPISODES}"),
    "Reward / Total reward (min)": Name(outcome.RETURN_MIN, f"over {ENDED_EPISODES}"),
    "Reward / Total reward (max)": Name(outcome.RETURN_MAX, f"over {ENDED_EPISODES}"),
    "Reward / Instantaneous reward (mean)": Name(
        reward.MEAN, f"over all environments {SINCE_LAST_WRITE}"
    ),
    "Reward / Instantaneous reward (min)": Name(
        reward.MIN, f"over all environments {SINCE_LAST_WRITE}"
    ),
    "Reward / Instantaneous reward (max)": Name(
        reward.MAX, f"over all environments {SINCE_LAST_WRITE}"
    ),
    "Episode / Total timesteps (mean)": Name(outcome.EPISODE_LENGTH, f"mean over {ENDED_EPISODES}"),
    "Learning / Learning rate": Name(optimiser.LEARNING_RATE, "only where a scheduler is set"),
}
SKRL_FAMILIES = (
    Family(r"Stats / (.+) time \(ms\)", Name(throughput.PHASE_TIME, "milliseconds")),
    # What environments hand over as `log`: Isaac Lab's terms.
    Family(r"(?:Info / )?Episode_Reward/(.+)", Name(reward.COMPONENT, "per second of an episode")),
    Family(
        r"(?:Info / )?Episode_Termination/(.+)",
        Name(outcome.ENDING, "environments a reset, mean over the resets"),
    ),
)
SKRL_SETTINGS = {
    "timesteps": "total_steps",
    "class": "algorithm",
    "rollouts": "n_steps",
    "learning_epochs": "n_epochs",
    "mini_batches": "n_minibatches",
    "discount_factor": "gamma",
    "learning_rate": "learning_rate",
    "actor_learning_rate": "learning_rate",  # critic_learning_rate is the critics'
    "learning_starts": "learning_starts",
    "grad_norm_clip": "max_grad_norm",
    "ratio_clip": "clip_range",
    "value_clip": "clip_range_value",
    "entropy_loss_scale": "entropy_coef",
    "value_loss_scale": "value_coef",
    "kl_threshold": "target_kl",
    "gae_lambda": "gae_lambda",
    "lambda": "gae_lambda",  # until 1.4
    "polyak": "tau",
    "batch_size": "minibatch_size",
    "memory_size": "buffer_size",
    "seed": "seed",
}
SKRL_SETTINGS_UNDER = r"(?:agent|trainer|memory)/"
SKRL_READ_FROM = (
    "Toni-SM/skrl 2.0.0 (c29ced63), keys unchanged since 1.4: skrl/agents/torch/base.py"
    " (record_transition, write_tracking_data), skrl/trainers/torch/base.py"
)

NAMES = Table(
    "skrl",
    "skrl",
    keys={
        **SKRL_KEYS,
        # agents/torch/{ppo,rpo,a2c,amp}: mean over all minibatches and epochs
        "Loss / Policy loss": Name(
            policy.LOSS, "clipped surrogate (A2C: -mean(A log pi)), mean over all epochs"
        ),
        "Loss / Value loss": Name(
            value.LOSS,
            "squared error times value_loss_scale, of values normalised where a preprocessor is"
            " set; mean over all epochs",
        ),
        "Loss / Entropy loss": Name(
            exploration.ENTROPY_BONUS,
            "logged with its sign flipped and times entropy_loss_scale; mean over all epochs",
            scale=-1.0,
        ),
        "Policy / Standard deviation": Name(
            exploration.STD, "mean over the last minibatch and all dimensions"
        ),
        "Learning / Value learning rate": Name(optimiser.LEARNING_RATE, "TRPO: the critic's"),
        "Coefficient / Mean discounted returns": Name(value.RETURN_MEAN, "CEM: of the rollout"),
    },
    families=(
        *SKRL_FAMILIES,
        Family(r"Loss / (Discriminator) loss", Name(optimiser.LOSS_PART, "AMP")),
        # Several agents (IPPO, MAPPO), each with losses of its own.
        Family(r"Loss / (Policy loss \(.+\))", Name(optimiser.LOSS_PART, "of one agent")),
        Family(r"Loss / (Value loss \(.+\))", Name(optimiser.LOSS_PART, "of one agent")),
    ),
    settings=SKRL_SETTINGS,
    settings_under=SKRL_SETTINGS_UNDER,
    step_unit="steps of each environment",
    read_from=f"{SKRL_READ_FROM}, skrl/agents/torch/ppo/ppo.py, a2c/a2c.py, rpo/rpo.py,"
    " trpo/trpo.py,"
    " amp/amp.py, cem/cem.py (update)",
)

"""BenchMARL 1.5.0 (commit 179a956 of 2025): TorchRL for several agents, in groups.

The step is the iteration. Weights & Biases gets keys with slashes; event files and tables the same
with underscores. Losses stand below the name of their group: the first group's are read.
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

OVER_GROUP_UPDATES = "of one group, mean over the iteration's updates"

NAMES = Table(
    "benchmarl",
    "BenchMARL",
    keys={
        f"{prefix}{mark}reward{mark}{key}": name
        for mark in ("/", "_")
        for prefix, names in (
            (
                "collection",
                {
                    "episode_reward_mean": Name(
                        outcome.RETURN, "mean over the episodes that ended, agents and groups"
                    ),
                    "episode_reward_max": Name(outcome.RETURN_MAX, "over the episodes that ended"),
                    "episode_reward_min": Name(outcome.RETURN_MIN, "over the episodes that ended"),
                    "reward_mean": Name(reward.MEAN, "mean over steps and agents"),
                    "reward_max": Name(reward.MAX, "over steps and agents"),
                    "reward_min": Name(reward.MIN, "over steps and agents"),
                },
            ),
            (
                "eval",
                {
                    "episode_reward_mean": Name(
                        outcome.EVAL_RETURN, "mean over the evaluation episodes, agents and groups"
                    ),
                    "episode_reward_max": Name(
                        outcome.EVAL_RETURN_MAX, "over the evaluation episodes"
                    ),
                    "episode_reward_min": Name(
                        outcome.EVAL_RETURN_MIN, "over the evaluation episodes"
                    ),
                    "episode_len_mean": Name(
                        outcome.EVAL_EPISODE_LENGTH, "mean over the evaluation episodes"
                    ),
                },
            ),
        )
        for key, name in names.items()
    },
    families=(
        *(
            Family(rf"train[/_]\w+?[/_]{key}", name)
            for key, name in {
                "loss_objective": Name(
                    policy.LOSS, f"clipped surrogate with the entropy term, {OVER_GROUP_UPDATES}"
                ),
                "loss_critic": Name(value.LOSS, f"times critic_coef, {OVER_GROUP_UPDATES}"),
                "loss(?:_qvalue|_value)?": Name(
                    value.LOSS, f"of the critics, {OVER_GROUP_UPDATES}"
                ),
                "loss_actor": Name(policy.ACTOR_LOSS, OVER_GROUP_UPDATES),
                "loss_alpha": Name(exploration.ENTROPY_COEF_LOSS, OVER_GROUP_UPDATES),
                "alpha": Name(exploration.ENTROPY_COEF, "SAC's alpha"),
                "entropy": Name(exploration.ENTROPY, f"positive; {OVER_GROUP_UPDATES}"),
                "kl_approx": Name(policy.KL_SIGNED, f"k1, {OVER_GROUP_UPDATES}", estimator="k1"),
                "clip_fraction": Name(policy.CLIP_FRACTION, OVER_GROUP_UPDATES),
                "grad_norm_loss_(?:objective|actor)": Name(
                    optimiser.GRAD_NORM, f"of the policy, before clipping, {OVER_GROUP_UPDATES}"
                ),
                "grad_norm_loss_(?:critic|qvalue|value)": Name(
                    optimiser.CRITIC_GRAD_NORM, f"before clipping, {OVER_GROUP_UPDATES}"
                ),
            }.items()
        ),
        Family(r"counters[/_]total_frames", Name(progress.STEPS)),
        Family(r"counters[/_]current_frames", Name(progress.STEPS_NEW)),
        Family(r"counters[/_]iter", Name(progress.ITERATION)),
        Family(r"timers[/_]total_time", Name(throughput.ELAPSED, "seconds of all iterations")),
        Family(
            r"timers(?:/|_)(collection|training|iteration|evaluation)_time",
            Name(throughput.PHASE_TIME, "seconds of one iteration"),
        ),
    ),
    settings={
        "experiment_config/gamma": "gamma",
        "experiment_config/lr": "learning_rate",
        "experiment_config/max_n_frames": "total_steps",
        "algorithm_config/clip_epsilon": "clip_range",
        "algorithm_config/entropy_coef": "entropy_coef",
        "algorithm_config/critic_coef": "value_coef",
        "algorithm_config/lmbda": "gae_lambda",
        "algorithm_name": "algorithm",
        "task_name": "env_id",
        "seed": "seed",
    },
    step_unit="iterations",
    mark_pattern=r"(?:collection|eval)[/_]reward[/_]episode_reward_mean",
    read_from="facebookresearch/BenchMARL 179a956 (1.5.0): benchmarl/experiment/logger.py"
    " (log_collection, log_evaluation, log), experiment.py (_collection_loop, _optimizer_loop),"
    " algorithms/{ippo,mappo,isac,iddpg,iql}.py",
)

"""MAPPO's own code ("on-policy") and HARL, which continues it: PPO for cooperating agents.

on-policy is read at de66d7a of 2024, HARL at d539bad of 2025. The step counts environment steps of
all threads. Where agents have a policy each, "agent0/" and so on stand before its numbers: the
first agent's are read.
"""

from rlvitals.metrics.catalogue import exploration, optimiser, outcome, policy, reward, value
from rlvitals.metrics.frameworks.key import OVER_ALL_MINIBATCHES, Family, Name, Table

NAMES = Table(
    "mappo",
    "MAPPO, HARL",
    keys={
        # runner/shared/mpe_runner.py, football_runner.py; HARL: harl/common/base_logger.py
        "average_episode_rewards": Name(
            outcome.RETURN, "mean step reward of the rollout times episode_length"
        ),
        "train_episode_rewards": Name(
            outcome.RETURN, "mean over the episodes since the last row, and over agents"
        ),
        "train_episode_rewards/aver_rewards": Name(
            outcome.RETURN, "mean over the episodes since the last row, and over agents"
        ),
        "eval_average_episode_rewards": Name(
            outcome.EVAL_RETURN, "mean over the evaluation episodes"
        ),
        "eval_max_episode_rewards": Name(outcome.EVAL_RETURN_MAX, "over the evaluation episodes"),
        "incre_win_rate": Name(outcome.SUCCESS_RATE, "share of battles won since the last row"),
        "win_rate": Name(outcome.SUCCESS_RATE, "share of matches won since the last row"),
        "eval_win_rate": Name(outcome.EVAL_SUCCESS_RATE, "share won of the evaluation episodes"),
        # algorithms/r_mappo/r_mappo.py, train
        **{
            f"{under}{key}": name
            for under in ("", "critic/")
            for key, name in {
                "average_step_rewards": Name(reward.MEAN, "mean over the rollout"),
                "value_loss": Name(
                    value.LOSS,
                    f"squared or Huber error, clipped, returns normalised; {OVER_ALL_MINIBATCHES}",
                ),
                "critic_grad_norm": Name(
                    optimiser.CRITIC_GRAD_NORM, f"before clipping, {OVER_ALL_MINIBATCHES}"
                ),
            }.items()
        },
    },
    families=(
        Family(r"(?:agent\d+/)?policy_loss", Name(policy.LOSS, OVER_ALL_MINIBATCHES)),
        Family(
            r"(?:agent\d+/)?dist_entropy",
            Name(exploration.ENTROPY, f"positive; {OVER_ALL_MINIBATCHES}"),
        ),
        Family(
            r"(?:agent\d+/)?actor_grad_norm",
            Name(optimiser.GRAD_NORM, f"before clipping, {OVER_ALL_MINIBATCHES}"),
        ),
        Family(r"(?:agent\d+/)?ratio", Name(policy.RATIO, f"mean ratio, {OVER_ALL_MINIBATCHES}")),
        Family(r"agent\d+/value_loss", Name(value.LOSS, OVER_ALL_MINIBATCHES)),
        Family(
            r"agent\d+/critic_grad_norm",
            Name(optimiser.CRITIC_GRAD_NORM, f"before clipping, {OVER_ALL_MINIBATCHES}"),
        ),
        Family(
            r"agent\d+/kl", Name(policy.APPROX_KL, "HATRPO: of the step taken", estimator="exact")
        ),
        Family(
            r"(agent\d+)/individual_rewards",
            Name(reward.COMPONENT, "mean step reward of this agent"),
        ),
    ),
    settings={
        "num_env_steps": "total_steps",
        "episode_length": "n_steps",
        "n_rollout_threads": "n_envs",
        "ppo_epoch": "n_epochs",
        "num_mini_batch": "n_minibatches",
        "clip_param": "clip_range",
        "entropy_coef": "entropy_coef",
        "value_loss_coef": "value_coef",
        "max_grad_norm": "max_grad_norm",
        "gamma": "gamma",
        "gae_lambda": "gae_lambda",
        "lr": "learning_rate",
        "seed": "seed",
    },
    settings_under=r"algo_args/(?:train|model|algo|seed)/",
    step_unit="environment steps",
    marks=(
        ("average_episode_rewards", "dist_entropy"),
        ("average_step_rewards", "dist_entropy"),
        ("eval_average_episode_rewards",),
        ("critic/average_step_rewards",),
        ("train_episode_rewards/aver_rewards",),
    ),
    mark_pattern=r"agent\d+/dist_entropy",
    read_from="marlbenchmark/on-policy de66d7a: onpolicy/runner/{shared,separated}/*_runner.py,"
    " algorithms/r_mappo/r_mappo.py (train, ppo_update); PKU-MARL/HARL d539bad:"
    " harl/common/base_logger.py, algorithms/actors/{happo,mappo,hatrpo}.py,"
    " algorithms/critics/v_critic.py",
)

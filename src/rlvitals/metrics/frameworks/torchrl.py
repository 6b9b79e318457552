"""TorchRL's example scripts, trainers and tutorials, as commit ae9719f17 of 2026 logs them.

The step counts collected frames. The scripts log means over the updates of a batch; `reward` of a
script is the return of an episode, of a trainer or a tutorial the mean reward of a step.
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

OVER_BATCH_UPDATES = "mean over the updates of a batch"

NAMES = Table(
    "torchrl",
    "TorchRL",
    keys={
        # sota-implementations/*/*.py
        **{
            key: name
            for keys, name in (
                (
                    ("train/reward", "train/episode_reward"),
                    Name(outcome.RETURN, "mean over the episodes that ended in the batch"),
                ),
                (
                    ("train/episode_length",),
                    Name(outcome.EPISODE_LENGTH, "mean over the episodes that ended in the batch"),
                ),
                (
                    ("eval/reward", "test/reward"),
                    Name(outcome.EVAL_RETURN, "mean over the evaluation episodes"),
                ),
                (
                    ("train/batch_reward_mean",),
                    Name(reward.MEAN, "mean over the steps of the batch"),
                ),
                (("train/intrinsic_reward",), Name(reward.INTRINSIC, "RND")),
                (
                    ("loss_critic",),
                    Name(value.LOSS, f"times critic_coeff; {OVER_BATCH_UPDATES}"),
                ),
                (
                    ("loss_objective",),
                    Name(policy.LOSS, f"PPO, A2C: without entropy; {OVER_BATCH_UPDATES}"),
                ),
                (
                    ("loss_entropy",),
                    Name(
                        exploration.ENTROPY_BONUS,
                        f"minus entropy_coeff * entropy; {OVER_BATCH_UPDATES}",
                        scale=-1.0,
                    ),
                ),
                (("train/entropy",), Name(exploration.ENTROPY, "positive, of the batch")),
                (
                    ("kl_approx",),
                    Name(policy.KL_SIGNED, f"k1, {OVER_BATCH_UPDATES}", estimator="k1"),
                ),
                (("train/clip_fraction",), Name(policy.CLIP_FRACTION, OVER_BATCH_UPDATES)),
                (("train/clip_epsilon",), Name(policy.CLIP_RANGE)),
                (("train/mean_ratio",), Name(policy.RATIO, OVER_BATCH_UPDATES)),
                (("train/grad_norm",), Name(optimiser.GRAD_NORM, OVER_BATCH_UPDATES)),
                (("train/lr",), Name(optimiser.LEARNING_RATE)),
                (
                    ("train/q_loss", "loss_qvalue"),
                    Name(value.LOSS, f"of the critics, {OVER_BATCH_UPDATES}"),
                ),
                (
                    ("train/actor_loss", "train/a_loss", "loss_actor"),
                    Name(policy.ACTOR_LOSS, OVER_BATCH_UPDATES),
                ),
                (("train/alpha",), Name(exploration.ENTROPY_COEF, "SAC's alpha")),
                (
                    ("train/alpha_loss", "loss_alpha"),
                    Name(exploration.ENTROPY_COEF_LOSS, OVER_BATCH_UPDATES),
                ),
                (
                    ("train/q_values",),
                    Name(value.Q_MEAN, "DQN: of the actions taken, mean over the batch"),
                ),
                (("train/epsilon",), Name(exploration.EPSILON)),
                (
                    ("time/speed", "collector/fps"),
                    Name(throughput.STEPS_PER_SECOND, "frames"),
                ),
                (("collector/collected_frames",), Name(progress.STEPS)),
            )
            for key in keys
        },
        # trainers/trainers.py: LogScalar, LogValidationReward, optim_steps
        "r_training": Name(reward.MEAN, "mean over the steps of the batch"),
        "total_r_evaluation": Name(outcome.EVAL_RETURN, "mean over the evaluation rollouts"),
        "r_evaluation": Name(outcome.EVAL_REWARD, "mean step reward of the evaluation"),
        "optim_steps": Name(optimiser.UPDATES),
        "n_frames": Name(progress.STEPS, "with skipped frames"),
        # tutorials/sphinx-tutorials/coding_ppo.py
        "eval reward (sum)": Name(outcome.EVAL_RETURN, "one rollout, deterministic"),
        "eval reward": Name(outcome.EVAL_REWARD, "mean step reward of the evaluation"),
        "eval step_count": Name(outcome.EVAL_EPISODE_LENGTH, "one rollout"),
        "reward": Name(reward.MEAN, "mean over the steps of the batch"),
        "lr": Name(optimiser.LEARNING_RATE),
    },
    families=(
        Family(r"train/(discriminator|cql)_loss", Name(optimiser.LOSS_PART, OVER_BATCH_UPDATES)),
        Family(r"train/(value)_loss", Name(optimiser.LOSS_PART, f"IQL: {OVER_BATCH_UPDATES}")),
        Family(r"time/((?!speed)\w[\w ]*)", Name(throughput.PHASE_TIME, "seconds of one pass")),
    ),
    settings={
        "collector/total_frames": "total_steps",
        "collector/frames_per_batch": "batch_size",
        "loss/mini_batch_size": "minibatch_size",
        "loss/ppo_epochs": "n_epochs",
        "loss/clip_epsilon": "clip_range",
        "loss/entropy_coeff": "entropy_coef",
        "loss/critic_coeff": "value_coef",
        "loss/gamma": "gamma",
        "loss/gae_lambda": "gae_lambda",
        "optim/lr": "learning_rate",
        "optim/max_grad_norm": "max_grad_norm",
        "env/env_name": "env_id",
    },
    prefixes=("train/",),
    step_unit="frames",
    marks=(
        ("train/loss_objective", "train/loss_critic"),
        ("train/loss_qvalue", "time/speed"),
        ("train/q_loss", "time/speed"),
        ("r_training",),
        ("total_r_evaluation",),
        ("eval reward (sum)",),
    ),
    read_from="pytorch/rl ae9719f17: sota-implementations/{ppo,ppo-async,a2c,dqn,sac,td3,ddpg,iql,"
    "cql}/*.py, torchrl/objectives/ppo.py (ClipPPOLoss.forward), torchrl/trainers/trainers.py,"
    " tutorials/sphinx-tutorials/coding_ppo.py",
)

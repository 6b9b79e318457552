"""pytorch_sac, DrQ and DrQ-v2: `train.csv`, `eval.csv` and event files of one logger.

A row an episode or a logging interval, each number a mean over it. `eval.csv` is an evaluation,
whose keys get "eval/" from the name of their file. DrQ-v2 counts frames: steps times the repeats of
an action; its `actor_ent` is of noise whose width is scheduled, and is left out.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    outcome,
    policy,
    progress,
    reward,
    throughput,
    value,
)
from rlvitals.metrics.frameworks.key import Family, Name, Table

NAMES = Table(
    "pytorch-sac",
    "pytorch_sac, DrQ, DrQ-v2",
    keys={
        # train.py, run and evaluate
        "episode_reward": Name(outcome.RETURN, "of the interval's episodes, one as a rule"),
        "episode_length": Name(outcome.EPISODE_LENGTH, "frames of the interval's episodes"),
        "eval/episode_reward": Name(outcome.EVAL_RETURN, "mean over the evaluation episodes"),
        "eval/episode_length": Name(
            outcome.EVAL_EPISODE_LENGTH, "frames, mean over the evaluation episodes"
        ),
        "episode": Name(progress.EPISODE),
        "step": Name(progress.STEPS),
        "fps": Name(throughput.STEPS_PER_SECOND, "frames of this episode a second"),
        "total_time": Name(throughput.ELAPSED, "seconds"),
        # agent/sac.py, drq.py, drqv2.py: tables join prefix and key with "_", event files with "/"
        **{
            key: name
            for keys, name in (
                (("batch_reward",), Name(reward.MEAN, "of the replayed batch")),
                (
                    ("critic_loss", "train_critic/loss"),
                    Name(value.LOSS, "squared error, both critics added up"),
                ),
                (
                    ("actor_loss", "train_actor/loss"),
                    Name(policy.ACTOR_LOSS, "mean over the batches"),
                ),
                (
                    ("actor_entropy", "train_actor/entropy"),
                    Name(exploration.ENTROPY, "minus the log-probability of its own actions"),
                ),
                (
                    ("alpha_value", "train_alpha/value"),
                    Name(exploration.ENTROPY_COEF, "SAC's alpha"),
                ),
                (("alpha_loss", "train_alpha/loss"), Name(exploration.ENTROPY_COEF_LOSS)),
                (("critic_q1",), Name(value.Q_MEAN, "first critic, of the batch's own actions")),
                (("critic_target_q",), Name(value.RETURN_MEAN, "of the batch")),
            )
            for key in keys
        },
    },
    families=(
        Family(r"(?:train/)?critic_(q2)", Name(value.CRITIC_Q, "of the batch's own actions")),
    ),
    settings={
        "num_train_steps": "total_steps",
        "num_train_frames": "total_steps",
        "num_seed_steps": "learning_starts",
        "num_seed_frames": "learning_starts",
        "replay_buffer_capacity": "buffer_size",
        "replay_buffer_size": "buffer_size",
        "batch_size": "batch_size",
        "discount": "gamma",
        "lr": "learning_rate",
        "task_name": "env_id",
    },
    prefixes=("train/",),
    step_unit="environment steps",
    marks=(
        ("episode_reward", "batch_reward"),
        ("episode_reward", "buffer_size", "total_time"),
        ("train_critic/loss",),
    ),
    read_from="denisyarats/pytorch_sac 81c5b53: train.py, logger.py, agent/sac.py (update);"
    " denisyarats/drq dd040f1: train.py, drq.py; facebookresearch/drqv2 c0c650b: train.py,"
    " logger.py, drqv2.py (update_critic, update_actor)",
)

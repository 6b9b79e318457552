"""TD-MPC (commit f4d85ec of 2023) and TD-MPC2 (e9f5932): Weights & Biases, and `eval.csv`.

"train/" is a training episode with the last update of the model in it, "eval/" an evaluation,
"pretrain/" an update without an environment. The step counts environment steps, TD-MPC's before
the repeats of an action.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    optimiser,
    outcome,
    policy,
    progress,
    throughput,
    value,
)
from rlvitals.metrics.frameworks.key import Family, Name, Table

NAMES = Table(
    "td-mpc",
    "TD-MPC, TD-MPC2",
    keys={
        # trainer/online_trainer.py, train and eval
        "episode_reward": Name(outcome.RETURN, "one episode"),
        "episode_success": Name(outcome.SUCCESS_RATE, "one episode: 0 or 1"),
        "episode_length": Name(outcome.EPISODE_LENGTH, "one episode"),
        "eval/episode_reward": Name(outcome.EVAL_RETURN, "mean over the evaluation episodes"),
        "eval/episode_success": Name(outcome.EVAL_SUCCESS_RATE, "share of the evaluation episodes"),
        "eval/episode_length": Name(
            outcome.EVAL_EPISODE_LENGTH, "mean over the evaluation episodes"
        ),
        "episode": Name(progress.EPISODE),
        "step": Name(progress.STEPS),
        "env_step": Name(progress.STEPS, "with the repeats of an action"),
        "elapsed_time": Name(throughput.ELAPSED, "seconds"),
        "total_time": Name(throughput.ELAPSED, "seconds"),
        "steps_per_second": Name(throughput.STEPS_PER_SECOND, "since the start"),
        # tdmpc2.py, _update and update_pi
        "value_loss": Name(
            value.LOSS, "TD-MPC2: cross-entropy of all critics; TD-MPC: squared error of two"
        ),
        "pi_loss": Name(policy.ACTOR_LOSS, "minus Q, scaled to a range of 1 in TD-MPC2"),
        "pi_entropy": Name(exploration.ENTROPY, "minus the log-probability of its own actions"),
        "total_loss": Name(optimiser.LOSS, "of the world model and the critics"),
        "grad_norm": Name(optimiser.GRAD_NORM, "of the world model, before clipping"),
    },
    families=(
        Family(
            r"(consistency|reward|termination)_loss",
            Name(optimiser.LOSS_PART, "of the world model"),
        ),
    ),
    settings={
        "steps": "total_steps",
        "train_steps": "total_steps",
        "seed_steps": "learning_starts",
        "buffer_size": "buffer_size",
        "batch_size": "batch_size",
        "lr": "learning_rate",
        "entropy_coef": "entropy_coef",
        "task": "env_id",
        "seed": "seed",
    },
    prefixes=("train/", "pretrain/"),
    step_unit="environment steps",
    marks=(("consistency_loss",),),
    read_from="nicklashansen/tdmpc2 e9f5932: tdmpc2/trainer/online_trainer.py,"
    " tdmpc2/tdmpc2.py (_update, update_pi), common/logger.py; nicklashansen/tdmpc f4d85ec:"
    " src/train.py, src/algorithm/tdmpc.py (update), src/logger.py",
)

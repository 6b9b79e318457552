"""OpenAI Baselines' DDPG and HER, and Stable Baselines' after them, one row an epoch."""

from rlvitals.metrics.catalogue import outcome, policy, progress, throughput, value
from rlvitals.metrics.frameworks.key import OVER_EPOCH, Name, Table

NAMES = Table(
    "baselines-off-policy",
    "OpenAI Baselines, DDPG and HER",
    keys={
        "rollout/return": Name(outcome.RETURN, "mean over the episodes of the epoch"),
        "rollout/episode_steps": Name(
            outcome.EPISODE_LENGTH, "mean over the episodes of the epoch"
        ),
        "rollout/Q_mean": Name(value.Q_MEAN, f"of the actions taken, {OVER_EPOCH}"),
        "eval/return": Name(outcome.EVAL_RETURN, "mean over the test episodes"),
        "train/loss_actor": Name(policy.ACTOR_LOSS, f"less Q of the actor's action, {OVER_EPOCH}"),
        "train/loss_critic": Name(
            value.LOSS, f"squared error, with any weight decay added, {OVER_EPOCH}"
        ),
        "train/success_rate": Name(outcome.SUCCESS_RATE, OVER_EPOCH),
        "test/success_rate": Name(outcome.EVAL_SUCCESS_RATE, OVER_EPOCH),
        "test/mean_Q": Name(value.Q_MEAN, f"of the test episodes, {OVER_EPOCH}"),
        "total/steps": Name(progress.STEPS),
        "total/epochs": Name(progress.EPOCH),
        "total/episodes": Name(progress.EPISODE),
        "total/duration": Name(throughput.ELAPSED),
        "total/steps_per_second": Name(throughput.STEPS_PER_SECOND, "since the start"),
        "epoch": Name(progress.EPOCH),
    },
    step_unit="environment steps",
    marks=(("rollout/return_history",), ("train/success_rate", "stats_o/mean")),
    read_from="openai/baselines at ea25b9e: baselines/ddpg/{ddpg.py, ddpg_learner.py},"
    " baselines/her/{her.py, rollout.py, ddpg.py}",
)

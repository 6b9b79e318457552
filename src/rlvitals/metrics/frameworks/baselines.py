"""OpenAI Baselines: `progress.csv`, `log.txt` and the tables it prints."""

from rlvitals.metrics.catalogue import (
    exploration,
    optimiser,
    outcome,
    policy,
    progress,
    throughput,
    value,
)
from rlvitals.metrics.frameworks.key import Name, Table

OVER_UPDATE_EPOCHS = "mean over epochs and minibatches of the update"
OVER_LAST_EPISODES_100 = "mean over the last 100 episodes"

NAMES = Table(
    "baselines",
    "OpenAI Baselines",
    keys={
        "eprewmean": Name(outcome.RETURN, OVER_LAST_EPISODES_100, window=100),
        "eplenmean": Name(outcome.EPISODE_LENGTH, OVER_LAST_EPISODES_100, window=100),
        "EpRewMean": Name(outcome.RETURN, OVER_LAST_EPISODES_100, window=100),
        "EpLenMean": Name(outcome.EPISODE_LENGTH, OVER_LAST_EPISODES_100, window=100),
        "mean 100 episode reward": Name(outcome.RETURN, OVER_LAST_EPISODES_100, window=100),
        "eval_eprewmean": Name(outcome.EVAL_RETURN, OVER_LAST_EPISODES_100, window=100),
        "loss/policy_loss": Name(policy.LOSS, OVER_UPDATE_EPOCHS),
        "loss/value_loss": Name(value.LOSS, f"half the squared error, {OVER_UPDATE_EPOCHS}"),
        "loss/policy_entropy": Name(exploration.ENTROPY, OVER_UPDATE_EPOCHS),
        "loss/approxkl": Name(
            policy.APPROX_KL, f"half the squared log-ratio, {OVER_UPDATE_EPOCHS}", estimator="k2"
        ),
        "loss/clipfrac": Name(policy.CLIP_FRACTION, OVER_UPDATE_EPOCHS),
        "misc/explained_variance": Name(value.EXPLAINED_VARIANCE, "of the rollout"),
        "explained_variance": Name(value.EXPLAINED_VARIANCE, "of the rollout"),
        "policy_loss": Name(policy.LOSS, OVER_UPDATE_EPOCHS),
        "approxkl": Name(
            policy.APPROX_KL,
            f"half the squared log-ratio, {OVER_UPDATE_EPOCHS}",
            estimator="k2",
        ),
        "clipfrac": Name(policy.CLIP_FRACTION, OVER_UPDATE_EPOCHS),
        "policy_entropy": Name(exploration.ENTROPY, "of the batch"),
        "value_loss": Name(value.LOSS, "squared error, mean over the batch"),
        "% time spent exploring": Name(exploration.EPSILON, "in hundredths", 0.01),
        "misc/total_timesteps": Name(progress.STEPS),
        "total_timesteps": Name(progress.STEPS),
        "misc/nupdates": Name(optimiser.UPDATES),
        "nupdates": Name(optimiser.UPDATES),
        "misc/time_elapsed": Name(throughput.ELAPSED),
        "time_elapsed": Name(throughput.ELAPSED),
        "fps": Name(throughput.STEPS_PER_SECOND, "PPO: of the last update; A2C: since the start"),
    },
    marks=(("eprewmean",), ("EpRewMean",), ("mean 100 episode reward",)),
    read_from="openai/baselines at ea25b9e: baselines/ppo2/{ppo2.py, model.py},"
    " baselines/deepq/deepq.py, baselines/a2c/a2c.py, baselines/trpo_mpi/trpo_mpi.py",
)

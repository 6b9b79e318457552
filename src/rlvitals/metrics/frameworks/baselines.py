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

MEANS = "mean over epochs and minibatches of the update"
LAST = "mean over the last 100 episodes"

NAMES = Table(
    "baselines",
    "OpenAI Baselines",
    keys={
        "eprewmean": Name(outcome.RETURN, LAST, window=100),
        "eplenmean": Name(outcome.EPISODE_LENGTH, LAST, window=100),
        "EpRewMean": Name(outcome.RETURN, LAST, window=100),
        "EpLenMean": Name(outcome.EPISODE_LENGTH, LAST, window=100),
        "mean 100 episode reward": Name(outcome.RETURN, LAST, window=100),
        "eval_eprewmean": Name(outcome.EVAL_RETURN, LAST, window=100),
        "loss/policy_loss": Name(policy.LOSS, MEANS),
        "loss/value_loss": Name(value.LOSS, f"half the squared error, {MEANS}"),
        "loss/policy_entropy": Name(exploration.ENTROPY, MEANS),
        "loss/approxkl": Name(
            policy.APPROX_KL, f"half the squared log-ratio, {MEANS}", estimator="k2"
        ),
        "loss/clipfrac": Name(policy.CLIP_FRACTION, MEANS),
        "misc/explained_variance": Name(value.EXPLAINED_VARIANCE, "of the rollout"),
        "explained_variance": Name(value.EXPLAINED_VARIANCE, "of the rollout"),
        "policy_entropy": Name(exploration.ENTROPY, "of the batch"),
        "value_loss": Name(value.LOSS, "squared error, mean over the batch"),
        "% time spent exploring": Name(exploration.EPSILON, "in hundredths", 0.01),
        "misc/total_timesteps": Name(progress.STEPS),
        "total_timesteps": Name(progress.STEPS),
        "misc/nupdates": Name(optimiser.UPDATES),
        "nupdates": Name(optimiser.UPDATES),
        "misc/time_elapsed": Name(throughput.ELAPSED),
        "fps": Name(throughput.STEPS_PER_SECOND, "PPO: of the last update; A2C: since the start"),
    },
    marks=(("eprewmean",), ("EpRewMean",), ("mean 100 episode reward",)),
    read_from="openai/baselines at ea25b9e: baselines/ppo2/{ppo2.py, model.py},"
    " baselines/deepq/deepq.py, baselines/a2c/a2c.py, baselines/trpo_mpi/trpo_mpi.py",
)

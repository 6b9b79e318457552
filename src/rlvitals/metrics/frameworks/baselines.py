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
AFTER_UPDATE = "mean over the minibatches after the update"

NAMES = Table(
    "baselines",
    "OpenAI Baselines",
    keys={
        "eprewmean": Name(outcome.RETURN, OVER_LAST_EPISODES_100, window=100),
        "eplenmean": Name(outcome.EPISODE_LENGTH, OVER_LAST_EPISODES_100, window=100),
        "EpRewMean": Name(outcome.RETURN, f"{OVER_LAST_EPISODES_100}; TRPO: 40", window=100),
        "EpLenMean": Name(
            outcome.EPISODE_LENGTH, f"{OVER_LAST_EPISODES_100}; TRPO: 40", window=100
        ),
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
        # ppo1/pposgd_simple.py, learn: after the update's last step
        "loss_pol_surr": Name(policy.LOSS, f"PPO1: clipped surrogate, {AFTER_UPDATE}"),
        "loss_pol_entpen": Name(
            exploration.ENTROPY_BONUS,
            f"PPO1: minus entcoeff * entropy, {AFTER_UPDATE}",
            scale=-1.0,
        ),
        "loss_vf_loss": Name(value.LOSS, f"PPO1: squared error, {AFTER_UPDATE}"),
        "loss_kl": Name(
            policy.APPROX_KL, f"PPO1: old to new, exact, {AFTER_UPDATE}", estimator="exact"
        ),
        "loss_ent": Name(exploration.ENTROPY, f"PPO1: positive; {AFTER_UPDATE}"),
        # trpo_mpi/trpo_mpi.py, learn: of the step that was taken
        "meankl": Name(
            policy.APPROX_KL, "TRPO: old to new, exact, of the step taken", estimator="exact"
        ),
        "surrgain": Name(
            policy.LOSS, "TRPO: the surrogate's gain, logged with its sign flipped", scale=-1.0
        ),
        "entloss": Name(exploration.ENTROPY_BONUS, "TRPO: ent_coef * entropy, a gain"),
        "entropy": Name(exploration.ENTROPY, "TRPO, ACER: mean over the batch"),
        "ev_tdlam_before": Name(value.EXPLAINED_VARIANCE, "PPO1, TRPO: before the update"),
        "TimestepsSoFar": Name(progress.STEPS, "of episodes that have ended"),
        "EpisodesSoFar": Name(progress.EPISODE),
        "EpThisIter": Name(progress.EPISODES_NEW),
        "TimeElapsed": Name(throughput.ELAPSED),
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
    " baselines/deepq/deepq.py, baselines/a2c/a2c.py, baselines/trpo_mpi/trpo_mpi.py,"
    " baselines/ppo1/pposgd_simple.py (learn)",
)

"""OpenAI's Spinning Up: `progress.txt` and the tables it prints, one row an epoch.

`log_tabular` writes the mean of what was stored in the epoch, and with `with_min_max` the rest.
"""

from rlvitals.metrics.catalogue import exploration, outcome, policy, progress, throughput, value
from rlvitals.metrics.frameworks.key import OVER_EPOCH, Name, Table

BEFORE_FIRST_STEP = "before the epoch's first policy step"

NAMES = Table(
    "spinning-up",
    "OpenAI Spinning Up",
    keys={
        "AverageEpRet": Name(outcome.RETURN, "mean over the episodes of the epoch"),
        "AverageTestEpRet": Name(outcome.EVAL_RETURN, "mean over the test episodes"),
        "MinEpRet": Name(outcome.RETURN_MIN, "over the episodes of the epoch"),
        "MaxEpRet": Name(outcome.RETURN_MAX, "over the episodes of the epoch"),
        "MinTestEpRet": Name(outcome.EVAL_RETURN_MIN, "over the test episodes"),
        "MaxTestEpRet": Name(outcome.EVAL_RETURN_MAX, "over the test episodes"),
        "TestEpLen": Name(outcome.EVAL_EPISODE_LENGTH, "mean over the test episodes"),
        "EpLen": Name(outcome.EPISODE_LENGTH, "mean over the episodes of the epoch"),
        "AverageVVals": Name(value.MEAN, OVER_EPOCH),
        "AverageQVals": Name(value.Q_MEAN, OVER_EPOCH),
        "AverageQ1Vals": Name(value.Q_MEAN, f"of the first critic, {OVER_EPOCH}"),
        "LossPi": Name(policy.LOSS, f"PPO, TRPO, VPG: {BEFORE_FIRST_STEP}; else {OVER_EPOCH}"),
        "LossV": Name(value.LOSS, f"squared error, {BEFORE_FIRST_STEP}"),
        "LossQ": Name(value.LOSS, f"squared error, both critics added up, {OVER_EPOCH}"),
        "KL": Name(policy.KL_SIGNED, "old less new log-probability, last policy step", 1.0, "k1"),
        "ClipFrac": Name(policy.CLIP_FRACTION, "of the last policy step"),
        "Entropy": Name(exploration.ENTROPY, f"of the policy, {BEFORE_FIRST_STEP}"),
        "TotalEnvInteracts": Name(progress.STEPS),
        "Epoch": Name(progress.EPOCH),
        "Time": Name(throughput.ELAPSED),
    },
    settings={
        "clip_ratio": "clip_range",
        "target_kl": "target_kl",
        "pi_lr": "learning_rate",
        "steps_per_epoch": "n_steps",
        "train_pi_iters": "n_epochs",
        "gamma": "gamma",
        "lam": "gae_lambda",
        "seed": "seed",
    },
    step_unit="environment steps",
    marks=(("AverageEpRet",), ("AverageTestEpRet",)),
    read_from="openai/spinningup at 038665d: spinup/utils/logx.py (EpochLogger.log_tabular),"
    " spinup/algos/pytorch/{ppo/ppo.py, sac/sac.py, ddpg/ddpg.py, td3/td3.py} (update)",
)

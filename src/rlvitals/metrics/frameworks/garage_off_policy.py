"""garage 2d594803 and rllab with replay: DDPG, TD3, SAC, MTSAC and DQN evaluate on their own.

`AverageReturn` is of evaluation episodes here, of training ones in `garage.py`.
"""

from rlvitals.metrics.catalogue import exploration, outcome, policy, progress, value
from rlvitals.metrics.frameworks.key import OVER_EPOCH, Family, Name, Table

NAMES = Table(
    "garage-off-policy",
    "garage, rllab: off-policy algorithms",
    keys={
        **{
            f"{under}{key}": name
            for under in ("Evaluation/", "Average/", "")
            for key, name in {
                "AverageReturn": Name(outcome.EVAL_RETURN, "mean over the evaluation episodes"),
                "MaxReturn": Name(outcome.EVAL_RETURN_MAX, "over the evaluation episodes"),
                "MinReturn": Name(outcome.EVAL_RETURN_MIN, "over the evaluation episodes"),
                "SuccessRate": Name(outcome.EVAL_SUCCESS_RATE, "share of the evaluation episodes"),
                "Iteration": Name(progress.ITERATION),
            }.items()
        },
        "TotalEnvSteps": Name(progress.STEPS),
        "Epoch": Name(progress.EPOCH),
        # torch/algos/sac.py, _log_statistics
        "Average/TrainAverageReturn": Name(
            outcome.RETURN, "mean over the last 30 batches of episodes", window=30
        ),
        "AverageEsReturn": Name(outcome.RETURN, "rllab: episodes with exploration, of the epoch"),
        "Policy/Loss": Name(policy.ACTOR_LOSS, "SAC: last gradient step"),
        "QF/Qf1Loss": Name(value.LOSS, "squared error, first critic, last gradient step"),
        "AlphaTemperature/mean": Name(exploration.ENTROPY_COEF, "SAC's alpha, mean over tasks"),
        # torch/algos/ddpg.py, td3.py, dqn.py; tf/algos of the same names
        "Policy/AveragePolicyLoss": Name(policy.ACTOR_LOSS, OVER_EPOCH),
        "QFunction/AverageQFunctionLoss": Name(value.LOSS, OVER_EPOCH),
        "QFunction/AverageQ": Name(value.Q_MEAN, OVER_EPOCH),
        "QFunction/MaxQ": Name(value.Q_MAX, "most of the epoch"),
        "QFunction/AverageY": Name(value.RETURN_MEAN, f"targets, {OVER_EPOCH}"),
        "DQN/QFLossMean": Name(value.LOSS, OVER_EPOCH),
        "EpsilonGreedyPolicy/Epsilon": Name(exploration.EPSILON),
        # rllab: algos/ddpg.py, evaluate
        "AverageQLoss": Name(value.LOSS, f"squared error, {OVER_EPOCH}"),
        "AveragePolicySurr": Name(policy.ACTOR_LOSS, f"minus the critic's value, {OVER_EPOCH}"),
        "AverageQ": Name(value.Q_MEAN, OVER_EPOCH),
        "AverageY": Name(value.RETURN_MEAN, f"targets, {OVER_EPOCH}"),
    },
    families=(
        Family(
            r"QF/(Qf2)Loss",
            Name(value.CRITIC_LOSS, "squared error, second critic, last gradient step"),
        ),
    ),
    settings={"discount": "gamma", "n_epochs": "total_epochs"},
    step_unit="environment steps",
    marks=(
        ("QFunction/AverageQ",),
        ("QF/Qf1Loss",),
        ("DQN/QFLossMean",),
        ("AverageQLoss", "AveragePolicySurr"),
    ),
    read_from="rlworkgroup/garage 2d594803: src/garage/_functions.py (log_performance),"
    " torch/algos/{sac,mtsac,ddpg,td3,dqn}.py,"
    " tf/algos/{ddpg,td3,dqn}.py; rll/rllab ba78e4c: rllab/algos/ddpg.py (evaluate)",
)

"""rlkit: `progress.csv` of 0.1 (bare names), 0.2 ("evaluation/", "exploration/"), later ("eval/").

One row an epoch; the step is the number of environment steps so far. The trainer's numbers are of
the epoch's first gradient step alone.
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

FIRST_GRADIENT_STEP = "one batch of the epoch"

NAMES = Table(
    "rlkit",
    "rlkit",
    keys={
        # core/eval_util.py, get_generic_path_information; samplers/data_collector/path_collector.py
        **{
            f"{under}{key}": name
            for under in ("evaluation/", "eval/", "Test ")
            for key, name in {
                "Returns Mean": Name(outcome.EVAL_RETURN, "mean over the evaluation episodes"),
                "Returns Max": Name(outcome.EVAL_RETURN_MAX, "over the evaluation episodes"),
                "Returns Min": Name(outcome.EVAL_RETURN_MIN, "over the evaluation episodes"),
                "Average Returns": Name(outcome.EVAL_RETURN, "again", again=True),
                "path length Mean": Name(
                    outcome.EVAL_EPISODE_LENGTH, "mean over the evaluation episodes"
                ),
            }.items()
        },
        **{
            f"{under}{key}": name
            for under in ("exploration/", "expl/", "Exploration ")
            for key, name in {
                "Returns Mean": Name(outcome.RETURN, "mean over the epoch's episodes"),
                "Returns Max": Name(outcome.RETURN_MAX, "over the epoch's episodes"),
                "Returns Min": Name(outcome.RETURN_MIN, "over the epoch's episodes"),
                "Average Returns": Name(outcome.RETURN, "again", again=True),
                "Rewards Mean": Name(reward.MEAN, "mean over the epoch's steps"),
                "path length Mean": Name(outcome.EPISODE_LENGTH, "mean over the epoch's episodes"),
                "num steps total": Name(progress.STEPS),
                "num paths total": Name(progress.EPISODE),
            }.items()
        },
        "AverageReturn": Name(outcome.EVAL_RETURN, "mean over the evaluation episodes"),
        "Number of env steps total": Name(progress.STEPS),
        "Number of rollouts total": Name(progress.EPISODE),
        "Number of train steps total": Name(optimiser.UPDATES, "gradient steps"),
        "Epoch": Name(progress.EPOCH),
        "epoch": Name(progress.EPOCH),
        "Total Train Time (s)": Name(throughput.ELAPSED),
        "Epoch Time (s)": Name(throughput.STEP_TIME, "seconds of one epoch"),
        "time/total (s)": Name(throughput.ELAPSED),
        "time/epoch (s)": Name(throughput.STEP_TIME, "seconds of one epoch"),
        # torch/sac/sac.py, td3/td3.py, ddpg/ddpg.py, dqn/dqn.py: eval_statistics
        **{
            f"{under}{key}": name
            for under in ("trainer/", "")
            for key, name in {
                "QF1 Loss": Name(value.LOSS, f"squared error, first critic, {FIRST_GRADIENT_STEP}"),
                "QF Loss": Name(value.LOSS, f"squared error, {FIRST_GRADIENT_STEP}"),
                "Policy Loss": Name(policy.ACTOR_LOSS, FIRST_GRADIENT_STEP),
                "Alpha": Name(exploration.ENTROPY_COEF, "SAC's alpha"),
                "Alpha Loss": Name(exploration.ENTROPY_COEF_LOSS, FIRST_GRADIENT_STEP),
                "Q1 Predictions Mean": Name(value.Q_MEAN, f"first critic, {FIRST_GRADIENT_STEP}"),
                "Q1 Predictions Max": Name(value.Q_MAX, f"first critic, {FIRST_GRADIENT_STEP}"),
                "Q1 Predictions Min": Name(value.Q_MIN, f"first critic, {FIRST_GRADIENT_STEP}"),
                "Q Predictions Mean": Name(value.Q_MEAN, FIRST_GRADIENT_STEP),
                "Y Predictions Mean": Name(value.Q_MEAN, f"DQN, {FIRST_GRADIENT_STEP}"),
                "Q Targets Mean": Name(value.RETURN_MEAN, FIRST_GRADIENT_STEP),
                "Log Pis Mean": Name(
                    exploration.ENTROPY,
                    f"minus the log-probability of the policy's own actions, {FIRST_GRADIENT_STEP}",
                    scale=-1.0,
                ),
                "policy/normal/std Mean": Name(
                    exploration.STD, f"before tanh, {FIRST_GRADIENT_STEP}"
                ),
                "num train calls": Name(optimiser.UPDATES, "gradient steps"),
            }.items()
        },
    },
    families=(
        Family(
            r"(?:trainer/)?(QF2) Loss",
            Name(value.CRITIC_LOSS, f"squared error, {FIRST_GRADIENT_STEP}"),
        ),
        Family(r"(?:trainer/)?(Q2) Predictions Mean", Name(value.CRITIC_Q, FIRST_GRADIENT_STEP)),
        Family(
            r"(?:trainer/)?(VF) Loss",
            Name(optimiser.LOSS_PART, f"SAC of 0.1, IQL: {FIRST_GRADIENT_STEP}"),
        ),
        Family(r"time/((?!total|epoch).+) \(s\)", Name(throughput.PHASE_TIME, "seconds an epoch")),
    ),
    settings={
        "algorithm_kwargs/num_epochs": "total_epochs",
        "algorithm_kwargs/batch_size": "batch_size",
        "trainer_kwargs/discount": "gamma",
        "trainer_kwargs/policy_lr": "learning_rate",
        "trainer_kwargs/soft_target_tau": "tau",
        "replay_buffer_size": "buffer_size",
    },
    step_unit="environment steps",
    marks=(
        ("evaluation/Returns Mean",),
        ("exploration/Returns Mean",),
        ("eval/Returns Mean",),
        ("Test Returns Mean",),
        ("AverageReturn", "Number of env steps total"),
    ),
    read_from="rail-berkeley/rlkit ac45a9d, v0.2.1 (55ace41), v0.1.2 (86db9c2):"
    " rlkit/core/rl_algorithm.py, core/eval_util.py, samplers/data_collector/path_collector.py,"
    " torch/sac/sac.py (compute_loss), torch/sac/iql_trainer.py, torch/td3/td3.py,"
    " torch/ddpg/ddpg.py, torch/dqn/dqn.py",
)

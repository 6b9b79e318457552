"""PFRL and ChainerRL: `scores.txt`, a row an evaluation, tabs between its columns; event files.

`steps` counts all steps of training so far. What has no prefix is of the evaluation; the agent's
own statistics are averages over its last 100 or 1000 values, as PFRL c8cb3328 of 2024 keeps them.
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

OVER_LAST_UPDATES = "mean over the last updates"

NAMES = Table(
    "pfrl",
    "PFRL, ChainerRL",
    keys={
        # experiments/evaluator.py, write_header and record_tb_stats
        **{
            f"{under}{key}": name
            for under in ("", "eval/")
            for key, name in {
                "mean": Name(outcome.EVAL_RETURN, "mean over the evaluation episodes"),
                "max": Name(outcome.EVAL_RETURN_MAX, "over the evaluation episodes"),
                "min": Name(outcome.EVAL_RETURN_MIN, "over the evaluation episodes"),
            }.items()
        },
        "steps": Name(progress.STEPS),
        "episodes": Name(progress.EPISODE),
        "elapsed": Name(throughput.ELAPSED, "seconds"),
        # agents/*.py, get_statistics
        **{
            f"{under}{key}": name
            for under in ("", "agent/")
            for key, name in {
                "average_q": Name(value.Q_MEAN, f"of the actions taken, {OVER_LAST_UPDATES}"),
                "average_q1": Name(value.Q_MEAN, f"first critic, {OVER_LAST_UPDATES}"),
                "average_loss": Name(
                    optimiser.LOSS, f"DQN: Huber or of distributions, {OVER_LAST_UPDATES}"
                ),
                "average_critic_loss": Name(value.LOSS, f"DDPG: {OVER_LAST_UPDATES}"),
                "average_q_func1_loss": Name(value.LOSS, f"first critic, {OVER_LAST_UPDATES}"),
                "average_value_loss": Name(value.LOSS, f"PPO: {OVER_LAST_UPDATES}"),
                "average_actor_loss": Name(policy.ACTOR_LOSS, f"DDPG: {OVER_LAST_UPDATES}"),
                "average_actor": Name(policy.LOSS, "A2C: moving average"),
                "average_policy_loss": Name(
                    policy.LOSS, f"PPO: clipped surrogate; TD3: the actor's; {OVER_LAST_UPDATES}"
                ),
                "average_value": Name(value.MEAN, "of the steps taken, mean over the last of them"),
                "average_entropy": Name(exploration.ENTROPY, f"positive; {OVER_LAST_UPDATES}"),
                "average_kl": Name(
                    policy.APPROX_KL,
                    "TRPO: old to new, exact, mean over the last updates; ACER: to the average"
                    " policy",
                    estimator="exact",
                ),
                "temperature": Name(exploration.ENTROPY_COEF, "SAC's alpha"),
                "explained_variance": Name(value.EXPLAINED_VARIANCE, "of the last batch"),
                "n_updates": Name(optimiser.UPDATES, "gradient steps"),
                "q_func_n_updates": Name(optimiser.UPDATES, "gradient steps of the critics"),
            }.items()
        },
    },
    families=(
        Family(r"(?:agent/)?average_(q2)", Name(value.CRITIC_Q, OVER_LAST_UPDATES)),
        Family(r"(?:agent/)?average_(q_func2)_loss", Name(value.CRITIC_LOSS, OVER_LAST_UPDATES)),
    ),
    step_unit="environment steps",
    marks=(("elapsed", "mean", "median", "stdev"), ("eval/mean", "eval/median", "eval/stdev")),
    read_from="pfnet/pfrl c8cb3328: pfrl/experiments/evaluator.py (write_header, record_stats,"
    " record_tb_stats), pfrl/agents/*.py (get_statistics)",
)

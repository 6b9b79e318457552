"""softlearning and MBPO, which builds on it: SAC under Ray Tune, `progress.csv` or `result.json`.

softlearning is read at 13cf187 of 2021, its older names in MBPO at ac694ff. One row an epoch; both
write the losses as half the squared error.
"""

from rlvitals.metrics.catalogue import exploration, optimiser, outcome, policy, progress, value
from rlvitals.metrics.frameworks.key import OVER_EPOCH, Family, Name, Table

NAMES = Table(
    "softlearning",
    "softlearning, MBPO",
    keys={
        # algorithms/rl_algorithm.py, _evaluate_rollouts: now, and before 2019
        **{
            f"evaluation/{key}": name
            for keys, name in (
                (
                    ("episode-reward-mean", "return-average"),
                    Name(outcome.EVAL_RETURN, "mean over the evaluation episodes"),
                ),
                (
                    ("episode-reward-max", "return-max"),
                    Name(outcome.EVAL_RETURN_MAX, "over the evaluation episodes"),
                ),
                (
                    ("episode-reward-min", "return-min"),
                    Name(outcome.EVAL_RETURN_MIN, "over the evaluation episodes"),
                ),
                (
                    ("episode-length-mean", "episode-length-avg"),
                    Name(outcome.EVAL_EPISODE_LENGTH, "mean over the evaluation episodes"),
                ),
            )
            for key in keys
        },
        **{
            f"training/{key}": name
            for keys, name in (
                (
                    ("episode-reward-mean", "return-average"),
                    Name(outcome.RETURN, "mean over the last episodes, an epoch's length of them"),
                ),
                (
                    ("episode-reward-max", "return-max"),
                    Name(outcome.RETURN_MAX, "over the last episodes"),
                ),
                (
                    ("episode-reward-min", "return-min"),
                    Name(outcome.RETURN_MIN, "over the last episodes"),
                ),
                (
                    ("episode-length-mean", "episode-length-avg"),
                    Name(outcome.EPISODE_LENGTH, "mean over the last episodes"),
                ),
            )
            for key in keys
        },
        # algorithms/sac.py, _do_updates; before "update/" was put in front as well
        **{
            f"{under}{key}": name
            for under in ("update/", "")
            for key, name in {
                "Q_value-mean": Name(value.Q_MEAN, f"mean over the critics, {OVER_EPOCH}"),
                "Q_loss-mean": Name(
                    value.LOSS, f"half the squared error, mean over the critics, {OVER_EPOCH}"
                ),
                "policy_loss-mean": Name(policy.ACTOR_LOSS, OVER_EPOCH),
                "alpha": Name(exploration.ENTROPY_COEF, "SAC's alpha"),
                "alpha-mean": Name(exploration.ENTROPY_COEF, f"SAC's alpha, {OVER_EPOCH}"),
                "alpha_loss-mean": Name(exploration.ENTROPY_COEF_LOSS, OVER_EPOCH),
            }.items()
        },
        "policy/entropy-mean": Name(
            exploration.ENTROPY,
            "minus the log-probability of the policy's own actions, one batch",
        ),
        # MBPO: algorithms/mbpo.py, get_diagnostics; policies/gaussian_policy.py
        "Q-avg": Name(value.Q_MEAN, "mean over the critics, one batch"),
        "Q_loss": Name(
            value.LOSS,
            "half the squared error, mean over the critics, one batch",
        ),
        "policy/-log-pis-mean": Name(
            exploration.ENTROPY,
            "minus the log-probability of the policy's own actions, one batch",
        ),
        "timesteps_total": Name(progress.STEPS),
        "total_timestep": Name(progress.STEPS),
        "sampler/total-samples": Name(progress.STEPS, again=True),
        "sampler/episodes": Name(progress.EPISODE),
        "epoch": Name(progress.EPOCH),
        "num_train_steps": Name(optimiser.UPDATES, "gradient steps"),
        "train-steps": Name(optimiser.UPDATES, "gradient steps"),
    },
    families=(
        Family(r"model/(\w*loss)", Name(optimiser.LOSS_PART, "MBPO: of the ensemble of models")),
    ),
    settings={
        "algorithm_params/kwargs/n_epochs": "total_epochs",
        "algorithm_params/kwargs/lr": "learning_rate",
        "algorithm_params/kwargs/discount": "gamma",
        "algorithm_params/kwargs/tau": "tau",
    },
    settings_under=r"config/",
    sources=("rllib",),  # Ray Tune's files: told from RLlib's by their keys
    step_unit="environment steps",
    marks=(
        ("evaluation/episode-reward-mean",),
        ("training/episode-reward-mean",),
        ("evaluation/return-average",),
        ("training/return-average",),
    ),
    read_from="rail-berkeley/softlearning 13cf187: softlearning/algorithms/rl_algorithm.py"
    " (_train, _evaluate_rollouts), algorithms/sac.py (_do_updates), policies/gaussian_policy.py;"
    " jannerm/mbpo ac694ff: mbpo/algorithms/mbpo.py (get_diagnostics),"
    " softlearning/algorithms/rl_algorithm.py",
)

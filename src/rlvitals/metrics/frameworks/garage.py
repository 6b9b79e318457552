"""garage and its ancestor rllab, on-policy: `progress.csv`, `log.txt`, and dowel's event files.

What garage 2d594803 calls `Evaluation/` is of the episodes that the update is made of. Its step is
`TotalEnvSteps`; rllab counts iterations. `garage_off_policy.py` holds the algorithms with replay.
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

OVER_BATCH_EPISODES = "over the episodes of the update's batch"

NAMES = Table(
    "garage",
    "garage, rllab",
    keys={
        # garage: _functions.py, log_performance; of several tasks: log_multitask_performance
        **{
            f"{under}{key}": name
            for under in ("Evaluation/", "Average/", "")
            for key, name in {
                "AverageReturn": Name(outcome.RETURN, f"mean {OVER_BATCH_EPISODES}"),
                "MaxReturn": Name(outcome.RETURN_MAX, OVER_BATCH_EPISODES),
                "MinReturn": Name(outcome.RETURN_MIN, OVER_BATCH_EPISODES),
                "SuccessRate": Name(outcome.SUCCESS_RATE, f"share {OVER_BATCH_EPISODES}"),
                "Iteration": Name(progress.ITERATION),
            }.items()
        },
        "TotalEnvSteps": Name(progress.STEPS),
        # rllab: sampler/base.py, algos/npo.py and vpg.py, policies/gaussian_mlp_policy.py
        "AvgTrajLen": Name(outcome.EPISODE_LENGTH, f"mean {OVER_BATCH_EPISODES}"),
        "Entropy": Name(
            exploration.ENTROPY, "positive; of the policy that collected, mean over the batch"
        ),
        "ExplainedVariance": Name(value.EXPLAINED_VARIANCE, "before the baseline is fitted"),
        "MeanKL": Name(
            policy.APPROX_KL, "old to new, exact, mean over the batch", estimator="exact"
        ),
        "LossAfter": Name(policy.LOSS, "surrogate over the batch, after the update"),
        "AveragePolicyStd": Name(exploration.STD, "mean over steps and dimensions"),
        "Time": Name(throughput.ELAPSED, "seconds"),
        "ItrTime": Name(throughput.STEP_TIME, "seconds of one iteration"),
    },
    families=(
        # garage: torch/algos/vpg.py (_train_once), maml.py; tf/algos/npo.py (_optimize_policy)
        Family(
            r"\w*Policy\w*/KL(?:After)?",
            Name(
                policy.APPROX_KL,
                "old to new, exact, mean over the batch, after the update; padding counts",
                estimator="exact",
            ),
        ),
        Family(
            r"\w*Policy\w*/Entropy",
            Name(
                exploration.ENTROPY,
                "positive; mean over the batch, after the update; softplus of it if"
                " use_softplus_entropy",
            ),
        ),
        Family(
            r"\w*Policy\w*/LossAfter",
            Name(policy.LOSS, "over the batch, after the update; entropy is in it if regularised"),
        ),
        Family(
            r"\w*(?:Baseline|ValueFunction)\w*/ExplainedVariance",
            Name(value.EXPLAINED_VARIANCE, "before the baseline is fitted"),
        ),
        Family(
            r"(\w*(?:Baseline|ValueFunction)\w*)/LossAfter",
            Name(optimiser.LOSS_PART, "negative log-likelihood of the returns, after the update"),
        ),
    ),
    settings={"discount": "gamma", "step_size": "desired_kl", "n_itr": "total_steps"},
    step_unit="environment steps",
    marks=(
        ("Evaluation/AverageReturn", "Evaluation/AverageDiscountedReturn"),
        ("Average/AverageReturn", "Average/AverageDiscountedReturn"),
        ("AverageReturn", "AverageDiscountedReturn"),
        ("AverageReturn", "NumTrajs"),
    ),
    read_from="rlworkgroup/garage 2d594803: src/garage/_functions.py (log_performance),"
    " trainer.py, torch/algos/vpg.py (_train_once), torch/algos/maml.py, tf/algos/npo.py"
    " (_optimize_policy); rll/rllab ba78e4c: rllab/sampler/base.py (process_samples),"
    " rllab/algos/{npo,vpg}.py, rllab/policies/gaussian_mlp_policy.py",
)

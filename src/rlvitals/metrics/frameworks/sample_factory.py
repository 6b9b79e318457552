"""Sample Factory: event files and Weights & Biases, as 2.1.3 (commit 1894bd1e of 2025) writes them.

The step counts environment steps, frames of a skip included. Of an iteration the learner writes
its last minibatch; returns and lengths are means over the last 100 episodes.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    optimiser,
    outcome,
    policy,
    progress,
    surrogate,
    throughput,
    value,
)
from rlvitals.metrics.frameworks.key import RETURN_WINDOW, Family, Name, Table

NAMES = Table(
    "sample-factory",
    "Sample Factory",
    keys={
        # algo/runners/runner.py, _report_experiment_summaries
        "reward/reward": Name(
            outcome.RETURN, "mean over the last 100 episodes", window=RETURN_WINDOW
        ),
        "reward/reward_min": Name(outcome.RETURN_MIN, "over the last 100 episodes"),
        "reward/reward_max": Name(outcome.RETURN_MAX, "over the last 100 episodes"),
        "len/len": Name(
            outcome.EPISODE_LENGTH, "mean over the last 100 episodes", window=RETURN_WINDOW
        ),
        "perf/_fps": Name(throughput.STEPS_PER_SECOND, "of all policies, the last seconds"),
        "perf/_sample_throughput": Name(throughput.SAMPLER_RATE, "of one policy"),
        # algo/learning/learner.py, _record_summaries
        "train/env_steps": Name(progress.STEPS),
        "train/kl_divergence": Name(
            policy.APPROX_KL, "new to old, exact, the last minibatch", estimator="exact"
        ),
        "train/fraction_clipped": Name(
            policy.CLIP_FRACTION, "ratios outside the clip range, the last minibatch"
        ),
        "train/entropy": Name(exploration.ENTROPY, "positive; the last minibatch"),
        "train/exploration_loss": Name(
            exploration.ENTROPY_BONUS,
            "minus exploration_loss_coeff * entropy; symmetric KL if so set",
            scale=-1.0,
        ),
        "train/policy_loss": Name(policy.LOSS, "clipped surrogate, the last minibatch"),
        "train/value_loss": Name(
            value.LOSS, "clipped squared error times value_loss_coeff, the last minibatch"
        ),
        "train/kl_loss": Name(
            surrogate.KL_LOSS, "times kl_loss_coeff; 0 where that is 0", zero_if_off=True
        ),
        "train/loss": Name(optimiser.LOSS, "total of the last minibatch"),
        "train/value": Name(value.PREDICTION_MEAN, "while updating, normalised"),
        "train/lr": Name(optimiser.LEARNING_RATE),
        "train/actual_lr": Name(optimiser.LEARNING_RATE, "again, scaled by valid data", again=True),
        "train/grad_norm": Name(optimiser.CLIPPED_GRAD_NORM, "after clipping"),
        "train/adv_mean": Name(policy.ADVANTAGE_MEAN, "before whitening"),
        "train/adv_std": Name(policy.ADVANTAGE_STD, "before whitening"),
        "train/adv_min": Name(surrogate.ADVANTAGE_MIN, "after whitening"),
        "train/adv_max": Name(surrogate.ADVANTAGE_MAX, "after whitening"),
        "train/version_diff_avg": Name(optimiser.POLICY_LAG, "mean over the minibatch"),
        "train/version_diff_max": Name(optimiser.POLICY_LAG_MAX, "over the minibatch"),
    },
    families=(
        # No ratio: the mean distance of the ratios from 1.
        Family(
            r"train/(ratio_(?:mean|min|max))",
            Name(surrogate.LOSS_WEIGHT, "last minibatch; of the mean: |1 - ratio|"),
        ),
        # What an environment hands over; `true_objective` is what populations are chosen by.
        Family(
            r"policy_stats/avg_((?!.+_(?:min|max)\Z).+)",
            Name(outcome.DOMAIN, "mean over the last 100 episodes"),
        ),
    ),
    settings={
        "train_for_env_steps": "total_steps",
        "ppo_clip_ratio": "clip_range",
        "ppo_clip_value": "clip_range_value",
        "exploration_loss_coeff": "entropy_coef",
        "value_loss_coeff": "value_coef",
        "num_epochs": "n_epochs",
        "rollout": "n_steps",
        "num_batches_per_epoch": "n_minibatches",
        "kl_loss_coeff": "kl_coef",
        "learning_rate": "learning_rate",
        "gamma": "gamma",
        "gae_lambda": "gae_lambda",
        "max_grad_norm": "max_grad_norm",
        "env": "env_id",
        "seed": "seed",
    },
    step_unit="environment steps",
    marks=(
        ("reward/reward", "len/len"),
        ("train/kl_divergence", "train/fraction_clipped"),
        ("train/version_diff_avg",),
    ),
    read_from="alex-petrenko/sample-factory 1894bd1e: sample_factory/algo/runners/runner.py"
    " (_report_experiment_summaries), algo/learning/learner.py (_record_summaries, _value_loss)",
)

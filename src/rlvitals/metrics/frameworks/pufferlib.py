"""PufferLib 3.0 (commit 02b8f4b1) and 1.0 (91460f7): the names are CleanRL's, the step its own.

`agent_steps` counts the steps of all agents. What environments hand over stands below
"environment/", averaged since the last row; 1.0 puts "0verview/" before the rest.
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
from rlvitals.metrics.frameworks.key import OVER_ALL_MINIBATCHES, Family, Name, Table

NAMES = Table(
    "pufferlib",
    "PufferLib",
    keys={
        "environment/episode_return": Name(
            outcome.RETURN, "mean over the episodes that ended since the last row"
        ),
        "environment/episode_length": Name(
            outcome.EPISODE_LENGTH, "mean over the episodes that ended since the last row"
        ),
        "losses/policy_loss": Name(
            policy.LOSS, f"clipped surrogate, advantages whitened; {OVER_ALL_MINIBATCHES}"
        ),
        "losses/value_loss": Name(
            value.LOSS, f"half the clipped squared error, {OVER_ALL_MINIBATCHES}"
        ),
        "losses/entropy": Name(exploration.ENTROPY, f"positive; {OVER_ALL_MINIBATCHES}"),
        "losses/old_approx_kl": Name(
            policy.KL_SIGNED, f"k1, {OVER_ALL_MINIBATCHES}", estimator="k1"
        ),
        "losses/approx_kl": Name(
            policy.APPROX_KL,
            f"k3, {OVER_ALL_MINIBATCHES}; 1.0 adds up its epochs",
            estimator="k3",
        ),
        "losses/clipfrac": Name(
            policy.CLIP_FRACTION,
            f"|ratio - 1| > clip_coef, {OVER_ALL_MINIBATCHES}; 1.0 adds up its epochs",
        ),
        "losses/importance": Name(policy.RATIO, OVER_ALL_MINIBATCHES),
        "losses/explained_variance": Name(value.EXPLAINED_VARIANCE, "of the whole batch"),
        **{
            f"{under}{key}": name
            for under in ("", "0verview/")
            for key, name in {
                "SPS": Name(throughput.STEPS_PER_SECOND, "agent steps, since the last row"),
                "agent_steps": Name(progress.STEPS, "of all agents"),
                "epoch": Name(progress.ITERATION, "batches collected and learned from"),
                "learning_rate": Name(optimiser.LEARNING_RATE),
                "uptime": Name(throughput.ELAPSED, "seconds"),
            }.items()
        },
    },
    families=(
        Family(r"environment/(score|perf)", Name(outcome.DOMAIN, "as the environment counts it")),
        Family(r"performance/(\w+)", Name(throughput.PHASE_TIME, "seconds since the start")),
    ),
    settings={
        "train/total_timesteps": "total_steps",
        "train/learning_rate": "learning_rate",
        "train/gamma": "gamma",
        "train/gae_lambda": "gae_lambda",
        "train/clip_coef": "clip_range",
        "train/vf_clip_coef": "clip_range_value",
        "train/ent_coef": "entropy_coef",
        "train/vf_coef": "value_coef",
        "train/max_grad_norm": "max_grad_norm",
        "train/update_epochs": "n_epochs",
        "train/batch_size": "batch_size",
        "train/minibatch_size": "minibatch_size",
        "train/bptt_horizon": "n_steps",
        "train/seed": "seed",
        "env_name": "env_id",
    },
    step_unit="agent steps",
    # A tracker takes `agent_steps` for its steps: it is no key of a log then.
    mark_pattern=r"environment/(?:episode_return|score|perf)|0verview/SPS",
    read_from="PufferAI/PufferLib 02b8f4b1: pufferlib/pufferl.py (train, mean_and_log);"
    " 91460f7 (1.0): clean_pufferl.py (train)",
)

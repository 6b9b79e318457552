"""TRL's PPOTrainer of 0.12 to 1.12: no prefix, means over all epochs and processes."""

from rlvitals.metrics.catalogue import (
    exploration,
    language,
    optimiser,
    outcome,
    policy,
    progress,
    reward,
    throughput,
    value,
)
from rlvitals.metrics.frameworks.key import Name, Table

OVER_EPOCHS_AND_PROCESSES = "mean over epochs, minibatches and processes"

NAMES = Table(
    "trl-ppo",
    "TRL PPOTrainer",
    keys={
        "eps": Name(throughput.EPISODES_PER_SECOND, "since the start, cut to a whole number"),
        "objective/kl": Name(
            policy.KL_TO_REFERENCE,
            "summed over the response; k1 unless kl_estimator is k3",
            estimator="k1",
        ),
        "objective/kl_coef": Name(
            policy.KL_COEF, "constant in this trainer, which does not log it"
        ),
        "objective/entropy": Name(
            exploration.ENTROPY_SEQUENCE, "-log pi of the sampled tokens, summed over the response"
        ),
        "objective/non_score_reward": Name(
            reward.NON_SCORE, "-kl_coef * KL, summed over the response: negative where KL > 0"
        ),
        "objective/rlhf_reward": Name(
            outcome.RLHF_REWARD, "scores + non_score_reward, the latter being negative"
        ),
        "objective/scores": Name(outcome.SCORE, "after the penalty for a missing end token"),
        "policy/approxkl_avg": Name(
            policy.APPROX_KL,
            f"k2, padding counted as 0, {OVER_EPOCHS_AND_PROCESSES}",
            estimator="k2",
        ),
        "policy/clipfrac_avg": Name(
            policy.CLIP_FRACTION_EFFECTIVE,
            f"clipped loss above the plain one, {OVER_EPOCHS_AND_PROCESSES}",
        ),
        "policy/entropy_avg": Name(
            exploration.ENTROPY, f"of the softmax, padding included, {OVER_EPOCHS_AND_PROCESSES}"
        ),
        "loss/policy_avg": Name(policy.LOSS, f"clipped surrogate, {OVER_EPOCHS_AND_PROCESSES}"),
        "loss/value_avg": Name(
            value.LOSS, f"half the clipped squared error, {OVER_EPOCHS_AND_PROCESSES}"
        ),
        "val/clipfrac_avg": Name(value.CLIP_FRACTION, OVER_EPOCHS_AND_PROCESSES),
        "val/ratio": Name(policy.RATIO, f"padding counted as 1, {OVER_EPOCHS_AND_PROCESSES}"),
        "val/ratio_var": Name(
            policy.RATIO_VAR, "variance of the microbatches' means, not of the tokens"
        ),
        "val/num_eos_tokens": Name(language.EOS_TOKENS, "count, on the main process"),
        "lr": Name(optimiser.LEARNING_RATE),
        "episode": Name(progress.EPISODE),
        "epoch": Name(progress.EPOCH),
    },
    settings={
        "learning_rate": "learning_rate",
        "num_ppo_epochs": "n_epochs",
        "num_mini_batches": "n_minibatches",
        "batch_size": "batch_size",
        "mini_batch_size": "minibatch_size",
        "gradient_accumulation_steps": "gradient_accumulation",
        "total_episodes": "total_episodes",
        "num_train_epochs": "total_epochs",
        "max_steps": "total_steps",
        "kl_coef": "kl_coef",
        "cliprange": "clip_range",
        "cliprange_value": "clip_range_value",
        "vf_coef": "value_coef",
        "gamma": "gamma",
        "lam": "gae_lambda",
        "response_length": "max_completion_length",
        "temperature": "temperature",
        "max_grad_norm": "max_grad_norm",
        "seed": "seed",
        "model_name_or_path": "model",
        "dataset_name": "dataset",
    },
    sources=("trainer-state",),
    prefixes=("train/",),
    read_from="huggingface/trl v0.12.0: trl/trainer/ppo_trainer.py (train); v1.9.0:"
    " trl/experimental/ppo/ppo_trainer.py (train), ppo_config.py",
)

"""TRL's PPOTrainer of 0.7 to 0.11: `ppo/...`, `objective/...`, `env/...`, `tokens/...`.

Keys are kept without "ppo/", which `record_step_stats` puts before what `loss` returns. Those
are means over all epochs and minibatches, masked to the response.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    language,
    optimiser,
    outcome,
    policy,
    reward,
    throughput,
    value,
)
from rlvitals.metrics.frameworks.key import Family, Name, Table

OVER_TOKENS_AND_EPOCHS = "mean over response tokens, epochs and minibatches"


NAMES = Table(
    "trl-ppo-old",
    "TRL PPOTrainer before 0.12",
    keys={
        # ppo_trainer.py, loss; read here with and without "ppo/"
        "policy/entropy": Name(exploration.ENTROPY, f"of the softmax, {OVER_TOKENS_AND_EPOCHS}"),
        "policy/approxkl": Name(policy.APPROX_KL, f"k2, {OVER_TOKENS_AND_EPOCHS}", estimator="k2"),
        "policy/policykl": Name(policy.KL_SIGNED, f"k1, {OVER_TOKENS_AND_EPOCHS}", estimator="k1"),
        "policy/clipfrac": Name(
            policy.CLIP_FRACTION_EFFECTIVE,
            f"clipped loss above the plain one, {OVER_TOKENS_AND_EPOCHS}",
        ),
        "policy/ratio": Name(policy.RATIO, "every token: a histogram; a scalar is their mean"),
        "policy/advantages": Name(policy.ADVANTAGE_DISTRIBUTION, "every token, whitened"),
        "policy/advantages_mean": Name(
            policy.ADVANTAGE_MEAN, f"whitened, so about 0 by construction; {OVER_TOKENS_AND_EPOCHS}"
        ),
        "returns/mean": Name(value.RETURN_MEAN, OVER_TOKENS_AND_EPOCHS),
        "returns/var": Name(value.RETURN_VAR, OVER_TOKENS_AND_EPOCHS),
        "val/mean": Name(value.MEAN, f"before the update, {OVER_TOKENS_AND_EPOCHS}"),
        "val/var": Name(value.VAR, f"before the update, {OVER_TOKENS_AND_EPOCHS}"),
        "val/vpred": Name(value.PREDICTION_MEAN, OVER_TOKENS_AND_EPOCHS),
        "val/error": Name(value.ERROR, OVER_TOKENS_AND_EPOCHS),
        "val/clipfrac": Name(value.CLIP_FRACTION, OVER_TOKENS_AND_EPOCHS),
        "val/var_explained": Name(
            value.MSE_EXPLAINED_VARIANCE, "1 - val/error / returns/var: squared error, not residual"
        ),
        "loss/policy": Name(policy.LOSS, f"clipped surrogate, {OVER_TOKENS_AND_EPOCHS}"),
        "loss/value": Name(value.LOSS, f"half the clipped squared error, {OVER_TOKENS_AND_EPOCHS}"),
        "loss/total": Name(optimiser.LOSS, "loss/policy + vf_coef * loss/value"),
        "mean_non_score_reward": Name(reward.NON_SCORE_PER_TOKEN, "mean over response tokens"),
        "mean_scores": Name(outcome.SCORE, "after scaling and clipping, where switched on"),
        "std_scores": Name(reward.SCORE_STD, "after scaling and clipping, where switched on"),
        "learning_rate": Name(optimiser.LEARNING_RATE),
        # ppo_trainer.py, record_step_stats and log_stats
        "objective/kl": Name(
            policy.KL_TO_REFERENCE,
            "k1 unless kl_penalty says else, summed over the response",
            estimator="k1",
        ),
        "objective/kl_dist": Name(policy.KL_TO_REFERENCE_DISTRIBUTION, "one per sequence"),
        "objective/kl_coef": Name(policy.KL_COEF, "the controller's value"),
        "objective/entropy": Name(
            exploration.ENTROPY_SEQUENCE, "-log pi of the sampled tokens, summed over the response"
        ),
        "objective/logprobs": Name(language.LOGPROBS, "every token"),
        "objective/ref_logprobs": Name(language.REF_LOGPROBS, "every token"),
        "env/reward_mean": Name(outcome.REWARD, "per response, as handed to log_stats"),
        "env/reward_std": Name(reward.STD, "over sequences, as handed to log_stats"),
        "env/reward_dist": Name(reward.DISTRIBUTION, "one per sequence"),
        "tokens/queries_len_mean": Name(language.QUERY_LENGTH_MEAN, "main process"),
        "tokens/queries_len_std": Name(language.QUERY_LENGTH_STD, "main process"),
        "tokens/queries_dist": Name(language.QUERY_LENGTH_DISTRIBUTION, "main process"),
        "tokens/responses_len_mean": Name(language.LENGTH_MEAN, "main process"),
        "tokens/responses_len_std": Name(language.LENGTH_STD, "main process"),
        "tokens/responses_dist": Name(language.LENGTH_DISTRIBUTION, "main process"),
        "time/ppo/total": Name(throughput.STEP_TIME, "one call of step, without generation"),
    },
    families=(Family(r"time/ppo/(.+)", Name(throughput.PHASE_TIME, "seconds")),),
    settings={
        "learning_rate": "learning_rate",
        "ppo_epochs": "n_epochs",
        "batch_size": "batch_size",
        "mini_batch_size": "minibatch_size",
        "gradient_accumulation_steps": "gradient_accumulation",
        "steps": "total_steps",
        "init_kl_coef": "kl_coef",
        "target": "kl_target",
        "horizon": "kl_horizon",
        "target_kl": "target_kl",
        "cliprange": "clip_range",
        "cliprange_value": "clip_range_value",
        "vf_coef": "value_coef",
        "gamma": "gamma",
        "lam": "gae_lambda",
        "max_grad_norm": "max_grad_norm",
        "seed": "seed",
        "model_name": "model",
        "query_dataset": "dataset",
    },
    sources=("trainer-state",),
    prefixes=("ppo/", "train/"),
    read_from="huggingface/trl v0.11.4: trl/trainer/ppo_trainer.py (loss, record_step_stats,"
    " log_stats, step), ppo_config.py",
)

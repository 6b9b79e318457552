"""Our own RLHF trainer, `rlvitals train rlhf`: the keys of TRL's PPO from 0.12 on, and before it.

A number that it logs under two keys is read from one.
"""

from dataclasses import replace

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
from rlvitals.metrics.frameworks.key import Family, Name, Table

OVER_MINIBATCH_TOKENS = "mean over minibatches, of response tokens"
EVERY = "of all processes"

KEYS = {
    "eps": Name(throughput.EPISODES_PER_SECOND, "since this attempt's start"),
    "objective/kl": Name(
        policy.KL_TO_REFERENCE,
        "summed over the response; k1 unless kl_estimator is k3",
        estimator="k1",
    ),
    "objective/kl_coef": Name(policy.KL_COEF, "the controller's value, before it answers"),
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
    "policy/approxkl_avg": Name(policy.APPROX_KL, f"k2, {OVER_MINIBATCH_TOKENS}", estimator="k2"),
    "policy/clipfrac_avg": Name(
        policy.CLIP_FRACTION_EFFECTIVE, f"clipped loss above the plain one, {OVER_MINIBATCH_TOKENS}"
    ),
    "policy/entropy_avg": Name(
        exploration.ENTROPY, f"of the distribution drawn from, tempered; {OVER_MINIBATCH_TOKENS}"
    ),
    "loss/policy_avg": Name(
        policy.LOSS, f"clipped surrogate, {OVER_MINIBATCH_TOKENS}; advantages whitened"
    ),
    "loss/value_avg": Name(value.LOSS, f"half the clipped squared error, {OVER_MINIBATCH_TOKENS}"),
    "val/clipfrac_avg": Name(value.CLIP_FRACTION, OVER_MINIBATCH_TOKENS),
    "val/ratio": Name(policy.RATIO, OVER_MINIBATCH_TOKENS),
    "val/ratio_var": Name(policy.RATIO_VAR, "over the tokens of a minibatch, mean over them"),
    "val/num_eos_tokens": Name(language.EOS_TOKENS, f"count, {EVERY}"),
    "lr": Name(optimiser.LEARNING_RATE),
    "episode": Name(progress.EPISODE),
}


# The same numbers as TRL called them before 0.12.
AGAIN = {
    "ppo/mean_scores": "objective/scores",
    "ppo/policy/approxkl": "policy/approxkl_avg",
    "ppo/policy/clipfrac": "policy/clipfrac_avg",
    "ppo/policy/entropy": "policy/entropy_avg",
    "ppo/loss/policy": "loss/policy_avg",
    "ppo/loss/value": "loss/value_avg",
    "ppo/val/clipfrac": "val/clipfrac_avg",
    "ppo/learning_rate": "lr",
}

NAMES = Table(
    "rlvitals-rlhf",
    "rlvitals train rlhf",
    keys={
        **KEYS,
        "env/reward_mean": Name(outcome.REWARD, "per response, before any penalty"),
        "env/reward_std": Name(reward.STD, "over responses, before any penalty"),
        "ppo/std_scores": Name(reward.SCORE_STD, "after the penalty for a missing end token"),
        "ppo/mean_non_score_reward": Name(reward.NON_SCORE_PER_TOKEN, "mean over response tokens"),
        "ppo/policy/policykl": Name(
            policy.KL_SIGNED, f"k1, {OVER_MINIBATCH_TOKENS}", estimator="k1"
        ),
        "ppo/policy/advantages_mean": Name(
            policy.ADVANTAGE_MEAN, "whitened, so about 0 by construction"
        ),
        "ppo/returns/mean": Name(value.RETURN_MEAN, OVER_MINIBATCH_TOKENS),
        "ppo/returns/var": Name(value.RETURN_VAR, OVER_MINIBATCH_TOKENS),
        "ppo/val/mean": Name(value.MEAN, f"before the update, {OVER_MINIBATCH_TOKENS}"),
        "ppo/val/var": Name(value.VAR, f"before the update, {OVER_MINIBATCH_TOKENS}"),
        "ppo/val/vpred": Name(value.PREDICTION_MEAN, OVER_MINIBATCH_TOKENS),
        "ppo/val/error": Name(value.ERROR, OVER_MINIBATCH_TOKENS),
        "ppo/val/var_explained": Name(
            value.MSE_EXPLAINED_VARIANCE, "1 - val/error / returns/var: squared error, not residual"
        ),
        "ppo/loss/total": Name(optimiser.LOSS, "loss/policy + vf_coef * loss/value"),
        "tokens/queries_len_mean": Name(language.QUERY_LENGTH_MEAN, EVERY),
        "tokens/queries_len_std": Name(language.QUERY_LENGTH_STD, EVERY),
        "tokens/responses_len_mean": Name(language.LENGTH_MEAN, EVERY),
        "tokens/responses_len_std": Name(language.LENGTH_STD, EVERY),
        "tokens/truncated_share": Name(language.TRUNCATED_SHARE, "responses without an end token"),
        "applied_share": Name(
            optimiser.UPDATE_SUCCESS,
            "of minibatches; skipped: without a reward, above ratio_threshold, gradient not finite",
        ),
        "grad_norm": Name(optimiser.GRAD_NORM, "before clipping, mean over minibatches"),
        "time/ppo/total": Name(throughput.STEP_TIME, "one update, generation included"),
        "env/reward_dist": Name(reward.DISTRIBUTION, "one per response"),
        "objective/kl_dist": Name(policy.KL_TO_REFERENCE_DISTRIBUTION, "one per response"),
        "objective/logprobs": Name(language.LOGPROBS, "every token"),
        "objective/ref_logprobs": Name(language.REF_LOGPROBS, "every token"),
        "ppo/policy/ratio": Name(policy.RATIO, "every token of the last minibatch: a histogram"),
        "ppo/policy/advantages": Name(policy.ADVANTAGE_DISTRIBUTION, "every token, whitened"),
        "tokens/queries_dist": Name(language.QUERY_LENGTH_DISTRIBUTION, EVERY),
        "tokens/responses_dist": Name(language.LENGTH_DISTRIBUTION, EVERY),
        **{old: replace(KEYS[new], again=True) for old, new in AGAIN.items()},
    },
    families=(
        Family(r"time/ppo/(.+)", Name(throughput.PHASE_TIME, "seconds")),
        Family(r"rewards/(.+)/mean", Name(reward.COMPONENT, "mean over responses, unweighted")),
        Family(
            r"rewards/(.+)/none_share",
            Name(
                reward.NONE_SHARE, "of an update's responses; total: that no function could judge"
            ),
        ),
    ),
    settings={
        "lr": "learning_rate",
        "num_ppo_epochs": "n_epochs",
        "num_mini_batches": "n_minibatches",
        "batch_size": "batch_size",
        "total_episodes": "total_episodes",
        "total_steps": "total_steps",
        "kl_coef": "kl_coef",
        "kl_target": "kl_target",
        "kl_horizon": "kl_horizon",
        "target_kl": "target_kl",
        "ratio_threshold": "ratio_threshold",
        "cliprange": "clip_range",
        "cliprange_value": "clip_range_value",
        "vf_coef": "value_coef",
        "gamma": "gamma",
        "lam": "gae_lambda",
        "response_length": "max_completion_length",
        "temperature": "temperature",
        "max_grad_norm": "max_grad_norm",
        "seed": "seed",
        "vlm_name": "model",
        "dataset_name": "dataset",
    },
    step_unit="updates",
    marks=(("objective/rlhf_reward", "ppo/returns/var", "lr"),),
    read_from="rlvitals/trainers/language/rlhf/statistics.py and ppo.py",
)

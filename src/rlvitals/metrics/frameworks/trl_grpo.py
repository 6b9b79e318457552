"""TRL's GRPOTrainer (and RLOOTrainer, which shares its names); PSR, NSR, W-REINFORCE beside it.

`trainer_state.json` holds the bare keys; trackers put "train/" before them and turn "eval_"
into "eval/". Values are means over the steps since the previous row.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    language,
    optimiser,
    outcome,
    policy,
    reward,
    rollouts,
    sampler,
    surrogate,
    throughput,
)
from rlvitals.metrics.frameworks import hf_trainer
from rlvitals.metrics.frameworks.key import OVER_ALL_RESPONSE_TOKENS, Family, Name, Table

OVER_GENERATION_BATCH = "over the generation batch, all processes"
OVER_LOGGED_SEQUENCES = "over sequences; before TRL 1.x over processes"
CLIPPED_OUTWARDS = "ratio outside the range where the advantage pushes it further out"

GENERATION = {  # grpo_trainer.py, _generate and _generate_and_score_completions
    "num_tokens": Name(throughput.TOKENS, "prompt and response tokens since the start"),
    "step_time": Name(throughput.STEP_TIME, "one optimiser step, generation included"),
    "completions/mean_length": Name(language.LENGTH_MEAN, OVER_GENERATION_BATCH),
    "completions/min_length": Name(language.LENGTH_MIN, OVER_GENERATION_BATCH),
    "completions/max_length": Name(language.LENGTH_MAX, OVER_GENERATION_BATCH),
    "completion_length": Name(language.LENGTH_MEAN, f"{OVER_GENERATION_BATCH} (TRL before 0.17)"),
    "completions/clipped_ratio": Name(
        language.TRUNCATED_SHARE, "last token is neither end nor padding"
    ),
    "completions/mean_terminated_length": Name(
        language.TERMINATED_LENGTH_MEAN, OVER_GENERATION_BATCH
    ),
    "completions/min_terminated_length": Name(
        language.TERMINATED_LENGTH_MIN, OVER_GENERATION_BATCH
    ),
    "completions/max_terminated_length": Name(
        language.TERMINATED_LENGTH_MAX, OVER_GENERATION_BATCH
    ),
    "tools/call_frequency": Name(language.TOOL_CALLS, "calls / responses"),
    "tools/failure_frequency": Name(language.TOOL_FAILURES, "failures / calls, 0 without calls"),
    "reward": Name(
        outcome.REWARD, f"weighted sum of the reward functions, mean {OVER_GENERATION_BATCH}"
    ),
    "reward_std": Name(
        reward.STD, "over the batch; before TRL 0.27 the mean of the groups' spreads"
    ),
    "frac_reward_zero_std": Name(
        reward.GROUP_ZERO_STD, "by group; by batch where scale_rewards is batch"
    ),
    "sampling/sampling_logp_difference/mean": Name(sampler.LOGP_DIFFERENCE_MEAN),
    "sampling/sampling_logp_difference/max": Name(sampler.LOGP_DIFFERENCE_MAX),
    "sampling/importance_sampling_ratio/min": Name(sampler.RATIO_MIN),
    "sampling/importance_sampling_ratio/mean": Name(sampler.RATIO_MEAN),
    "sampling/importance_sampling_ratio/max": Name(sampler.RATIO_MAX),
}

LOSS_KEYS = {  # grpo_trainer.py, _compute_loss
    "kl": Name(
        policy.KL_TO_REFERENCE_PER_TOKEN,
        f"k3 (RLOO: k1), times the ratio if use_bias_correction_kl, {OVER_ALL_RESPONSE_TOKENS};"
        " only if beta > 0",
        estimator="k3",
    ),
    "entropy": Name(exploration.ENTROPY, f"of the softmax, {OVER_ALL_RESPONSE_TOKENS}"),
    "entropy_coef": Name(exploration.ENTROPY_COEF),
    "policy_loss": Name(policy.LOSS, "only where an entropy bonus is added to it"),
    "aux_loss": Name(optimiser.ROUTER_LOSS),
    "clip_ratio": Name(
        policy.CLIP_FRACTION_EFFECTIVE,
        f"{CLIPPED_OUTWARDS}, {OVER_ALL_RESPONSE_TOKENS} (TRL before 0.17)",
    ),
    "clip_ratio/region_mean": Name(
        policy.CLIP_FRACTION_EFFECTIVE, f"{CLIPPED_OUTWARDS}, {OVER_ALL_RESPONSE_TOKENS}"
    ),
    "clip_ratio/low_mean": Name(policy.CLIP_FRACTION_LOW, OVER_ALL_RESPONSE_TOKENS),
    "clip_ratio/high_mean": Name(policy.CLIP_FRACTION_HIGH, OVER_ALL_RESPONSE_TOKENS),
    "clip_ratio/low_min": Name(policy.CLIP_FRACTION_LOW_MIN, OVER_LOGGED_SEQUENCES),
    "clip_ratio/high_max": Name(policy.CLIP_FRACTION_HIGH_MAX, OVER_LOGGED_SEQUENCES),
    "cispo_clip_ratio": Name(policy.CISPO_CLIP_FRACTION, OVER_ALL_RESPONSE_TOKENS),
    "vespo/phi_seq_mean": Name(policy.VESPO_WEIGHT),
}

FILTERED = Name(language.FILTERED_REWARD, "after the filter, signed")
COMPARED = Name(language.COMPARED_REWARD, "before the filter")
MODES = {
    "psr/positive_samples": Name(language.POSITIVE_SAMPLES, "per batch"),
    "psr/positive_ratio": Name(language.POSITIVE_SHARE, "per batch"),
    "psr/avg_reward": FILTERED,
    "psr/mean_reward": COMPARED,
    "nsr/negative_samples": Name(language.NEGATIVE_SAMPLES, "per batch"),
    "nsr/negative_ratio": Name(language.NEGATIVE_SHARE, "per batch"),
    "nsr/avg_reward": FILTERED,
    "nsr/mean_reward": COMPARED,
    "w_reinforce/positive_samples": Name(language.POSITIVE_SAMPLES, "per batch"),
    "w_reinforce/negative_samples": Name(language.NEGATIVE_SAMPLES, "per batch"),
    "w_reinforce/pos_neg_ratio": Name(
        language.POS_NEG_RATIO, "positive / negative; chartrl: (negative + 1e-6)"
    ),
    "w_reinforce/avg_reward": FILTERED,
    "w_reinforce/mean_reward": COMPARED,
}


REWARD_COMPONENT = Name(
    reward.COMPONENT, f"mean {OVER_GENERATION_BATCH}; samples it did not score are left out"
)

OLD_COMPONENT = r"rewards/([^/]+)"  # TRL before 0.16

NAMES = Table(
    "trl-grpo",
    "TRL GRPOTrainer",
    keys={
        **hf_trainer.TRAINER,
        **GENERATION,
        **LOSS_KEYS,
        **MODES,
        **hf_trainer.name_evaluations(
            {
                **hf_trainer.EVALUATION_KEYS,
                "reward": Name(outcome.EVAL_REWARD, "on the evaluation set"),
            }
        ),
    },
    families=(
        Family(r"((?:self_distillation|iw_opd)/.+)", Name(surrogate.DISTILLATION)),
        Family(r"rewards/(.+)/mean", REWARD_COMPONENT),
        Family(r"rewards/(.+)/std", Name(reward.COMPONENT_STD, OVER_GENERATION_BATCH)),
        Family(OLD_COMPONENT, REWARD_COMPONENT),
        Family(r"eval[_/]rewards/(.+)/mean", Name(reward.EVAL_COMPONENT, "evaluation set")),
        Family(r"eval(?:_|/)(rewards/.+/std)", Name(rollouts.HELD_OUT, "on the evaluation set")),
        hf_trainer.held_out((*GENERATION, *LOSS_KEYS)),
    ),
    settings={
        **hf_trainer.TRAINING_ARGUMENTS,
        "beta": "beta",
        "epsilon": "clip_range",
        "epsilon_high": "clip_range_high",
        "num_generations": "num_generations",
        "num_iterations": "num_iterations",
        "max_completion_length": "max_completion_length",
        "max_prompt_length": "max_prompt_length",
        "generation_batch_size": "batch_size",
        "temperature": "temperature",
        "loss_type": "loss_type",
        "scale_rewards": "scale_rewards",
        "entropy_coef": "entropy_coef",
        "mode": "mode",
        "lambda_psr": "lambda_psr",
        "reward_threshold": "reward_threshold",
    },
    sources=("trainer-state", "trl-completions"),
    prefixes=("train/",),
    # One key that the Trainer alone does not write: its "train_loss" is no hand-written one.
    marks=tuple((key,) for key in (*GENERATION, *LOSS_KEYS, *MODES)),
    read_from="huggingface/trl v1.9.0: trl/trainer/grpo_trainer.py (_generate,"
    " _generate_and_score_completions, _compute_loss, log), older names at v0.15.0 to v0.27.0;"
    " transformers: src/transformers/trainer.py",
)

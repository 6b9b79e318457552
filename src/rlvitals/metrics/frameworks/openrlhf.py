"""OpenRLHF's PPO trainer (GAE, REINFORCE++, GRPO, RLOO), and its DPO, reward and SFT trainers.

Trackers see "train/" and "eval/" before the keys; one row per generated batch. Numbers of the
actor are means over the batch's microbatches, weighted by tokens or by samples since 0.9.
"""

from rlvitals.metrics.catalogue import (
    exploration,
    language,
    optimiser,
    outcome,
    policy,
    preference,
    progress,
    reward,
    rollouts,
    sampler,
    throughput,
    value,
)
from rlvitals.metrics.frameworks.key import (
    OVER_GENERATED_BATCH,
    OVER_RESPONSE_TOKENS,
    Family,
    Name,
    Table,
)

OVER_SAMPLES = "mean over samples"


OPENRLHF_SETTINGS = {
    "actor/model_name_or_path": "model",
    "data/prompt_dataset": "dataset",
    "train/seed": "seed",
    "algo/advantage/estimator": "algorithm",
    "actor/adam/lr": "learning_rate",
    "actor/adam/weight_decay": "weight_decay",
    "actor/max_norm": "max_grad_norm",
    "actor/eps_clip": "clip_range",
    "critic/value_clip": "clip_range_value",
    "algo/kl/init_coef": "kl_coef",
    "actor/entropy_coef": "entropy_coef",
    "algo/advantage/gamma": "gamma",
    "algo/advantage/lambd": "gae_lambda",
    "rollout/n_samples_per_prompt": "num_generations",
    "rollout/batch_size": "prompt_batch_size",
    "train/batch_size": "minibatch_size",
    "train/max_epochs": "n_epochs",
    "train/num_episodes": "total_epochs",
    "rollout/max_new_tokens": "max_completion_length",
    "rollout/temperature": "temperature",
    "actor/policy_loss_type": "loss_type",
}

NAMES = Table(
    "openrlhf",
    "OpenRLHF",
    keys={
        # ray/ppo_actor.py, training_step; models/loss.py, PolicyLoss; experience_maker.py
        "policy_loss": Name(policy.LOSS, f"{OVER_RESPONSE_TOKENS}; over samples for GSPO"),
        "entropy_loss": Name(
            exploration.ENTROPY,
            f"the entropy itself, positive, {OVER_RESPONSE_TOKENS}; only where entropy_coef is set",
        ),
        "ppo_clip_ratio": Name(
            policy.CLIP_FRACTION_EFFECTIVE,
            f"clipped surrogate below the plain one, {OVER_RESPONSE_TOKENS}",
        ),
        "ppo_kl": Name(
            policy.KL_SIGNED,
            f"k1, {OVER_RESPONSE_TOKENS}; 0 where one update is made of each batch",
            estimator="k1",
        ),
        "vllm_kl": Name(sampler.KL_SIGNED, f"k1, {OVER_RESPONSE_TOKENS}", estimator="k1"),
        "kl": Name(
            policy.KL_TO_REFERENCE_PER_TOKEN,
            "kl.estimator, by default k1: mean over tokens, then over samples; before the update,"
            " but while updating where KL is part of the loss; 0 without a reference",
            zero_if_off=True,
        ),
        "reward": Name(
            outcome.REWARD, f"reward model or function, after length penalties, {OVER_SAMPLES}"
        ),
        "score": Name(
            outcome.SCORE, f"what the agent or reward function calls its score, {OVER_SAMPLES}"
        ),
        "return": Name(
            reward.SHAPED, "summed over tokens: reward after baseline, clipping and KL penalty"
        ),
        "group_reward_std": Name(reward.GROUP_STD, OVER_SAMPLES),
        "response_length": Name(language.LENGTH_MEAN, OVER_SAMPLES),
        "total_length": Name(rollouts.SEQUENCE_LENGTH_MEAN, OVER_SAMPLES),
        "truncated": Name(language.TRUNCATED_SHARE, f"cut at max_new_tokens, {OVER_SAMPLES}"),
        "response_clip_ratio": Name(
            language.TRUNCATED_SHARE, "prompt and response reach max_len (OpenRLHF before 0.9.10)"
        ),
        "actor_lr": Name(optimiser.LEARNING_RATE, "of the last minibatch"),
        "actor_grad_norm": Name(optimiser.GRAD_NORM, "before clipping, of the last minibatch"),
        "dynamic_filtering_pass_rate": Name(
            rollouts.KEPT_SHARE, "logged in per cent of the prompts", scale=0.01
        ),
        # ppo_trainer.py, ppo_train, 0.2 to 0.8: what the progress bar calls them
        "pg": Name(policy.LOSS, OVER_RESPONSE_TOKENS),
        "rm": Name(outcome.REWARD, OVER_SAMPLES),
        "ret": Name(reward.SHAPED, "summed over tokens"),
        "glen": Name(language.LENGTH_MEAN, OVER_SAMPLES),
        "tlen": Name(rollouts.SEQUENCE_LENGTH_MEAN, OVER_SAMPLES),
        "act_lr": Name(optimiser.LEARNING_RATE),
        "cri": Name(value.LOSS, OVER_RESPONSE_TOKENS),
        "vals": Name(value.PREDICTION_MEAN, OVER_RESPONSE_TOKENS),
        "cri_lr": Name(optimiser.CRITIC_LEARNING_RATE),
        # ray/ppo_critic.py, training_step; models/loss.py, ValueLoss
        "critic_loss": Name(value.LOSS, f"half the clipped squared error, {OVER_RESPONSE_TOKENS}"),
        "values": Name(value.PREDICTION_MEAN, OVER_RESPONSE_TOKENS),
        "critic_lr": Name(optimiser.CRITIC_LEARNING_RATE, "mean over minibatches"),
        "critic_grad_norm": Name(
            optimiser.CRITIC_GRAD_NORM, "before clipping, mean over minibatches"
        ),
        # ppo_trainer.py, _compute_rollout_stats, train_step, fit
        "rollout/reward_mean": Name(outcome.REWARD, OVER_GENERATED_BATCH),
        "rollout/reward_std": Name(reward.STD, "over the generated batch"),
        "rollout/response_length_mean": Name(language.LENGTH_MEAN, OVER_GENERATED_BATCH),
        "rollout/truncated_rate": Name(
            language.TRUNCATED_SHARE, f"cut at max_new_tokens, {OVER_GENERATED_BATCH}"
        ),
        "rollout/num_samples": Name(progress.BATCH_SIZE, "samples of the step"),
        "timing/step_total": Name(throughput.STEP_TIME, "sum of the phases, generation included"),
        # dpo_trainer.py, rm_trainer.py, sft_trainer.py: of one microbatch
        "loss": Name(optimiser.LOSS, "of the microbatch"),
        "gpt_loss": Name(optimiser.LOSS, "of the microbatch, mean over tokens"),
        "loss_mean": Name(optimiser.LOSS, "mean over the accumulated microbatches"),
        "acc": Name(preference.ACCURACY, "of the microbatch"),
        "acc_mean": Name(preference.ACCURACY, "mean over the accumulated microbatches"),
        "chosen_reward": Name(preference.CHOSEN_REWARD, "of the microbatch"),
        "reject_reward": Name(preference.REJECTED_REWARD, "of the microbatch"),
        "nll_loss": Name(preference.NLL_LOSS, "of the microbatch"),
        "aux_loss": Name(optimiser.ROUTER_LOSS),
        "lr": Name(optimiser.LEARNING_RATE),
        "grad_norm": Name(optimiser.GRAD_NORM),
    },
    families=(
        Family(
            r"(?:eval/)?eval_(.+_pass\d+)",
            Name(outcome.EVAL_TASK, "pass1 is the mean of k answers, passk the best of them"),
        ),
        Family(
            r"((?:eval/)?eval_(?:.+_)?truncated_rate)", Name(rollouts.SHARE_OF, "of an evaluation")
        ),
        Family(
            r"((?:eval/)?eval_(?:.+_)?response_length_mean)",
            Name(rollouts.LENGTH_OF, "of an evaluation"),
        ),
        Family(
            r"((?:eval/)?eval_(?:.+_)?num_samples|generated_samples|num_samples|num_action_tokens)",
            Name(rollouts.COUNT),
        ),
        Family(r"(weights)", Name(rollouts.LOGGED_SETTING)),
        Family(r"timing/(.+)", Name(throughput.PHASE_TIME, "seconds of one step")),
    ),
    settings={
        # before 0.10 an option had no group
        "pretrain": "model",
        "prompt_data": "dataset",
        "seed": "seed",
        "advantage_estimator": "algorithm",
        "actor_learning_rate": "learning_rate",
        "l2": "weight_decay",
        "max_norm": "max_grad_norm",
        "eps_clip": "clip_range",
        "value_clip": "clip_range_value",
        "init_kl_coef": "kl_coef",
        "entropy_loss_coef": "entropy_coef",
        "gamma": "gamma",
        "lambd": "gae_lambda",
        "n_samples_per_prompt": "num_generations",
        "rollout_batch_size": "prompt_batch_size",
        "train_batch_size": "minibatch_size",
        "max_epochs": "n_epochs",
        "num_episodes": "total_epochs",
        "generate_max_len": "max_completion_length",
        "prompt_max_len": "max_prompt_length",
        "temperature": "temperature",
        "policy_loss_type": "loss_type",
        **OPENRLHF_SETTINGS,
        **{key.replace("/", "."): name for key, name in OPENRLHF_SETTINGS.items()},
    },
    sources=(),
    prefixes=("train/",),
    marks=(
        ("policy_loss", "actor_lr"),
        ("policy_loss", "response_length"),
        ("pg", "rm", "glen"),
        ("rollout/reward_mean", "rollout/truncated_rate"),
        ("chosen_reward", "reject_reward"),
        ("gpt_loss",),
    ),
    read_from="OpenRLHF/OpenRLHF 3c3be62 (0.11.0), v0.7.5, v0.8.11, v0.9.10:"
    " openrlhf/trainer/ray/ppo_actor.py (ppo_train, training_step), ray/ppo_critic.py"
    " (training_step), ppo_trainer.py (train_step, _compute_rollout_stats, compute_eval_metrics),"
    " ppo_utils/experience_maker.py (make_experience, compute_advantages_and_returns),"
    " openrlhf/models/loss.py (PolicyLoss, ValueLoss), openrlhf/utils/logging_utils.py,"
    " openrlhf/trainer/dpo_trainer.py, rm_trainer.py, sft_trainer.py (fit)",
)

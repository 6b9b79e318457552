"""AReaL: asynchronous PPO and GRPO, and its supervised trainers.

One row per training step. Every tensor has "/avg", "/min" and "/max", taken over the step's
tokens (or sequences) and processes. The actor's scope is "ppo_actor", in 0.3-lite "grpo_actor".
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
    value,
)
from rlvitals.metrics.catalogue import preference as pairs
from rlvitals.metrics.frameworks.key import OVER_TRAINED_TOKENS, Family, Name, Table

OVER_TRAINED_SEQUENCES = "mean over trained sequences"


UPDATE = {  # trainer/ppo/actor.py, grpo_loss_fn; utils/functional, ppo_actor_loss_fn
    "actor_loss/avg": Name(policy.LOSS, f"{OVER_TRAINED_TOKENS}, then over minibatches"),
    "clip_ratio/avg": Name(
        policy.CLIP_FRACTION_EFFECTIVE, f"clipped loss above the plain one, {OVER_TRAINED_TOKENS}"
    ),
    "dual_clip_ratio/avg": Name(surrogate.DUAL_CLIP_FRACTION, OVER_TRAINED_TOKENS),
    "importance_weight/avg": Name(
        policy.RATIO,
        "to the policy before the update (proximal), not the sampler's; rejected tokens count as"
        f" 0, {OVER_TRAINED_TOKENS}",
    ),
    "approx_kl/avg": Name(
        policy.KL_SIGNED,
        f"logged as log pi_new - log pi_old, so minus k1, {OVER_TRAINED_TOKENS}",
        scale=-1.0,
        estimator="k1",
    ),
    "entropy/avg": Name(exploration.ENTROPY, f"of the tempered softmax, {OVER_TRAINED_TOKENS}"),
    "behave_imp_weight/avg": Name(
        sampler.RATIO_MEAN, "proximal policy over the sampler's, over tokens that are kept"
    ),
    "behave_imp_weight/min": Name(sampler.RATIO_MIN, "over tokens that are kept"),
    "behave_imp_weight/max": Name(sampler.RATIO_MAX, "over tokens that are kept"),
    "behave_approx_kl/avg": Name(
        sampler.KL_SIGNED,
        "logged as log pi_proximal - log pi_sampler, so minus k1, over tokens that are kept",
        scale=-1.0,
        estimator="k1",
    ),
    "compute_logp/kl_div_dual/avg": Name(
        sampler.KL, f"k3, staleness included, {OVER_TRAINED_TOKENS}", estimator="k3"
    ),
    "rs_filtered_fraction": Name(sampler.REJECTED_TOKENS, "rejection sampling"),
    "version_stats/sample_staleness_theta_avg": Name(
        optimiser.POLICY_LAG, f"versions behind the policy being trained, {OVER_TRAINED_TOKENS}"
    ),
    "head_offpolicyness/avg": Name(
        optimiser.POLICY_LAG, "versions at the first token of a sequence (AReaL before 0.4)"
    ),
    "version_stats/sample_staleness_theta_max": Name(optimiser.POLICY_LAG_MAX, "over tokens"),
    "grad_norm": Name(optimiser.GRAD_NORM, "before clipping, mean over minibatches"),
    "lr": Name(optimiser.LEARNING_RATE, "mean over minibatches"),
    "update_successful": Name(optimiser.UPDATE_SUCCESS, "over minibatches"),
}


ACTORS = ("ppo_actor", "grpo_actor")

NAMES = Table(
    "areal",
    "AReaL",
    keys={
        **{
            f"{actor}/{key}": name
            for actor in ACTORS
            for key, name in {  # trainer/ppo/actor.py, _ppo_update, before the first minibatch
                "task_reward/avg": Name(
                    reward.TRAINED_MEAN,
                    f"before bias, scaling and normalisation, {OVER_TRAINED_SEQUENCES}",
                ),
                "task_reward/min": Name(reward.MIN, "over trained sequences, before scaling"),
                "task_reward/max": Name(reward.MAX, "over trained sequences, before scaling"),
                "kl_rewards/avg": Name(
                    reward.NON_SCORE_PER_TOKEN,
                    f"-kl_ctl * KL, by default k1, {OVER_TRAINED_TOKENS}; 0 where kl_ctl is 0",
                    zero_if_off=True,
                ),
                "advantages/avg": Name(
                    policy.ADVANTAGE_MEAN, f"after normalisation, {OVER_TRAINED_TOKENS}"
                ),
                "advantages/min": Name(surrogate.ADVANTAGE_MIN, "after normalisation"),
                "advantages/max": Name(surrogate.ADVANTAGE_MAX, "after normalisation"),
                "seq_len/avg": Name(rollouts.SEQUENCE_LENGTH_MEAN, OVER_TRAINED_SEQUENCES),
                "seq_len/min": Name(rollouts.SEQUENCE_LENGTH_MIN, "over trained sequences"),
                "seq_len/max": Name(rollouts.SEQUENCE_LENGTH_MAX, "over trained sequences"),
                "prompt_len/avg": Name(
                    language.QUERY_LENGTH_MEAN,
                    f"tokens that are not trained, tool output too, {OVER_TRAINED_SEQUENCES}",
                ),
                "prompt_len/min": Name(rollouts.QUERY_LENGTH_MIN, "tokens that are not trained"),
                "prompt_len/max": Name(rollouts.QUERY_LENGTH_MAX, "tokens that are not trained"),
                "correct_seq_len/avg": Name(
                    rollouts.LENGTH_RIGHT, "reward above 0, prompt included"
                ),
                "incorrect_seq_len/avg": Name(
                    rollouts.LENGTH_WRONG, "reward 0 or below, prompt included"
                ),
            }.items()
        },
        **{f"{actor}/update/{key}": name for actor in ACTORS for key, name in UPDATE.items()},
        # before 0.5 the minibatches had no scope of their own
        **{f"{actor}/{key}": name for actor in ACTORS for key, name in UPDATE.items()},
        **{
            f"ppo_critic/{key}": name
            for key, name in {  # trainer/ppo/critic.py, ppo_loss_fn
                "critic_loss/avg": Name(
                    value.LOSS, f"half the clipped squared error, {OVER_TRAINED_TOKENS}"
                ),
                "clip_ratio/avg": Name(value.CLIP_FRACTION, OVER_TRAINED_TOKENS),
                "new_value/avg": Name(value.PREDICTION_MEAN, OVER_TRAINED_TOKENS),
                "old_value/avg": Name(value.MEAN, OVER_TRAINED_TOKENS),
                "target_value/avg": Name(value.RETURN_MEAN, OVER_TRAINED_TOKENS),
                "grad_norm": Name(
                    optimiser.CRITIC_GRAD_NORM, "before clipping, mean over minibatches"
                ),
                "lr": Name(optimiser.CRITIC_LEARNING_RATE, "mean over minibatches"),
            }.items()
        },
        "rollout/reward": Name(
            outcome.REWARD,
            "mean over the rollouts finished since the previous row, accepted or not",
        ),
        "eval-rollout/reward": Name(outcome.EVAL_REWARD, "validation set"),
        "sft/loss/avg": Name(optimiser.LOSS, "mean over tokens"),
        "sft/grad_norm": Name(optimiser.GRAD_NORM),
        "sft/lr": Name(optimiser.LEARNING_RATE),
        "sft-eval/loss/avg": Name(optimiser.EVAL_LOSS, "mean over tokens"),
        "rw/loss/avg": Name(optimiser.LOSS, "mean over pairs"),
        "dpo/loss/avg": Name(optimiser.LOSS, "mean over pairs"),
        "rw/acc/avg": Name(pairs.ACCURACY, "mean over pairs"),
    },
    families=(
        # Of a tensor only the mean has a name above; its extremes and the rest stand here.
        Family(r"((?:\w+_actor/(?:\w+/)*|ppo_critic/)\w+/(?:min|max))", Name(rollouts.EXTREME)),
        *(
            Family(rf"(?:ppo|grpo)_actor/(?:\w+/)?{keys}(?:/avg)?", name)
            # By regular expression. What stands under another scope too is read from there.
            for keys, name in {
                "kl_div_direct": Name(sampler.KL_SIGNED, "k1", estimator="k1", again=True),
                "kl_div_(?:taylor|dual)": Name(sampler.KL, "k2 and k3", again=True),
                "rs_filtered_fraction": Name(
                    sampler.REJECTED_TOKENS, "rejection sampling", again=True
                ),
                "sample_staleness_theta_avg": Name(
                    optimiser.POLICY_LAG, OVER_TRAINED_TOKENS, again=True
                ),
                "sample_staleness_theta_max": Name(
                    optimiser.POLICY_LAG_MAX, "over tokens", again=True
                ),
                "(sample_staleness_(?:proximal_\\w+|theta_min))": Name(
                    rollouts.COUNT, "updates of lag"
                ),
                "(v_(?:theta|proximal))": Name(rollouts.COUNT, "version of the policy"),
                "correct_seq_len": Name(rollouts.LENGTH_RIGHT, "prompt included", again=True),
                "incorrect_seq_len": Name(rollouts.LENGTH_WRONG, "prompt included", again=True),
                "((?:clipped_)?(?:new|old)_logp|prox_logp_gt)": Name(
                    sampler.PERPLEXITY, "log-probability"
                ),
                "(vocab_(?:min|max)_logits)": Name(rollouts.EXTREME, "over the vocabulary"),
                "(sapo_\\w+)": Name(surrogate.LOSS_WEIGHT, "soft gate of SAPO"),
                "(rkl_loss)": Name(
                    surrogate.DISTILLATION, "reverse KL to the teacher, in the loss"
                ),
            }.items()
        ),
        Family(
            r"(?:ppo|grpo)_actor/((?:update/|compute_logp/|version_stats/)*\w+(?:/avg)?)",
            Name(rollouts.STATISTIC),
        ),
        Family(r"ppo_critic/(clipped_\w+)/avg", Name(rollouts.EXTREME, "of the clipped values")),
        Family(r"ppo_critic/(\w+)(?:/avg)?", Name(rollouts.STATISTIC)),
        Family(r"timeperf/(.+)", Name(throughput.PHASE_TIME, "seconds of one training step")),
    ),
    settings={
        "seed": "seed",
        "total_train_epochs": "total_epochs",
        "total_train_steps": "total_steps",
        "actor/path": "model",
        "train_dataset/path": "dataset",
        "train_dataset/batch_size": "prompt_batch_size",
        "gconfig/n_samples": "num_generations",
        "gconfig/max_new_tokens": "max_completion_length",
        "gconfig/temperature": "temperature",
        "actor/optimizer/lr": "learning_rate",
        "actor/optimizer/weight_decay": "weight_decay",
        "actor/optimizer/gradient_clipping": "max_grad_norm",
        "actor/eps_clip": "clip_range",
        "actor/eps_clip_higher": "clip_range_high",
        "actor/kl_ctl": "kl_coef",
        "actor/discount": "gamma",
        "actor/gae_lambda": "gae_lambda",
        "actor/ppo_n_minibatches": "n_minibatches",
        "critic/eps_clip": "clip_range_value",
        "rollout/max_head_offpolicyness": "max_policy_lag",
    },
    sources=(),
    read_from="inclusionAI/AReaL 4aef98d (after v1.0.4): areal/trainer/ppo/actor.py"
    " (_compute_advantages, _ppo_update, grpo_loss_fn, _log_proximal_approximation_stats,"
    " _log_version_staleness_stats), trainer/ppo/critic.py (ppo_loss_fn),"
    " utils/functional/functional.py (ppo_actor_loss_fn), utils/stats_tracker.py (export),"
    " utils/stats_logger.py (commit), workflow/rlvr.py, trainer/sft/lm_engine.py",
)

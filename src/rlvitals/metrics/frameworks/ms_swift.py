"""ms-swift's GRPO and supervised trainers: TRL's names, some with a meaning of their own.

`logging.jsonl` in the output directory holds a row per log; its step is the first number of
"global_step/max_steps" ("10/100"). The Megatron trainers say "iteration" instead.
"""

from dataclasses import replace

from rlvitals.metrics.catalogue import (
    exploration,
    outcome,
    policy,
    reward,
    rollouts,
    sampler,
    surrogate,
    throughput,
)
from rlvitals.metrics.frameworks import trl_grpo
from rlvitals.metrics.frameworks.key import OVER_ALL_RESPONSE_TOKENS, Family, Name

NAMES = replace(
    trl_grpo.NAMES,
    framework="ms-swift",
    title="ms-swift",
    keys={
        **trl_grpo.NAMES.keys,
        # swift/rlhf_trainers/grpo_trainer.py, _compute_advantages, _update_metrics
        "reward": Name(
            outcome.REWARD, "weighted sum of the reward functions; less beta * KL with kl_in_reward"
        ),
        "reward_std": Name(
            reward.GROUP_STD, "mean of the groups' spreads; of the batch with scale_rewards batch"
        ),
        "kl": Name(
            policy.KL_TO_REFERENCE_PER_TOKEN,
            f"k3, {OVER_ALL_RESPONSE_TOKENS}; with kl_in_reward k1, summed over the response:"
            " not per token then",
            estimator="k3",
        ),
        "entropy/mean": Name(
            exploration.ENTROPY, "of the softmax: token mean, then mean over sequences; log_entropy"
        ),
        "teacher_kl": Name(surrogate.KL_TO_TEACHER, OVER_ALL_RESPONSE_TOKENS),
        "num_turns": Name(rollouts.TURNS_MEAN, "mean over responses"),
        "token_acc": Name(outcome.ACCURACY, "share of right next tokens (SFT)"),
        "eval_token_acc": Name(outcome.EVAL_ACCURACY, "share of right next tokens (SFT)"),
        "eval/token_acc": Name(outcome.EVAL_ACCURACY, "share of right next tokens (SFT)"),
        "train_speed(iter/s)": Name(
            throughput.UPDATES_PER_SECOND, "averaged since this process began (ms-swift 3)"
        ),
        "train_speed(s/it)": Name(throughput.STEP_TIME, "averaged since this process began"),
        **{
            f"rollout_correction/{key}": name
            for key, name in {  # _compute_rollout_offpolicy_metrics, _compute_is_correction_metrics
                "kl": Name(sampler.KL_SIGNED, f"k1, {OVER_ALL_RESPONSE_TOKENS}", estimator="k1"),
                "k3_kl": Name(sampler.KL, f"k3, {OVER_ALL_RESPONSE_TOKENS}", estimator="k3"),
                "chi2_token": Name(sampler.CHI2_TOKEN),
                "chi2_seq": Name(sampler.CHI2_SEQUENCE),
                "is_weight_mean": Name(
                    sampler.RATIO_MEAN, f"truncated or masked weights, {OVER_ALL_RESPONSE_TOKENS}"
                ),
                "ess": Name(sampler.ESS),
                "clipped_frac": Name(sampler.RATIO_HIGH_SHARE, "above the threshold"),
            }.items()
        },
    },
    families=(
        *(f for f in trl_grpo.NAMES.families if f.pattern != trl_grpo.OLD_COMPONENT),
        Family(r"(entropy/(?:max|min))", Name(rollouts.EXTREME, "over tokens")),
        Family(
            r"(entropy/threshold|rlsd_lambda|sdar/coef)",
            Name(rollouts.LOGGED_SETTING),
        ),
        Family(r"rollout_correction/(.*ppl.*)", Name(sampler.PERPLEXITY)),
        Family(r"((?:rollout_correction|fipo|sdar|gkd)/.+)", Name(surrogate.LOSS_WEIGHT)),
        Family(r"(MFU)", Name(throughput.MFU, "averaged since this process began")),
        Family(r"(memory)\(GiB\)", Name(throughput.MEMORY, "most reserved so far")),
    ),
    settings={
        **trl_grpo.NAMES.settings,
        "advantage_estimator": "algorithm",
        "max_epochs": "total_epochs",
        "model": "model",
        "dataset": "dataset",
    },
    marks=(
        ("train_speed(s/it)",),
        ("train_speed(iter/s)",),
        ("token_acc",),
        ("entropy/mean",),
        ("num_turns", "completions/mean_length"),
        ("rollout_correction/kl",),
    ),
    read_from="modelscope/ms-swift 3602360 (4.6.0.dev0): swift/rlhf_trainers/grpo_trainer.py"
    " (_compute_advantages, _compute_loss_and_metrics, _update_metrics,"
    " _compute_rollout_offpolicy_metrics), swift/trainers/patcher.py (add_train_message),"
    " swift/callbacks/perf_log.py, swift/trainers/mixin.py; the rest is TRL's",
)

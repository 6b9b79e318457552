"""TRL's DPOTrainer, KTOTrainer and RewardTrainer: training on pairs, no rollouts."""

from rlvitals.metrics.catalogue import exploration, optimiser, preference, rollouts, throughput
from rlvitals.metrics.frameworks.hf_trainer import (
    EVALUATION_KEYS,
    TRAINER,
    TRAINING_ARGUMENTS,
    held_out,
    name_evaluations,
)
from rlvitals.metrics.frameworks.key import Family, Name, Table

OVER_PAIRS = "mean over pairs"


NAMES = Table(
    "trl-dpo",
    "TRL DPOTrainer, KTOTrainer and RewardTrainer",
    keys={
        **TRAINER,
        **name_evaluations(
            {
                **EVALUATION_KEYS,
                "rewards/accuracies": Name(preference.EVAL_ACCURACY, OVER_PAIRS),
                "rewards/margins": Name(preference.EVAL_MARGIN, OVER_PAIRS),
                "logps/chosen": Name(preference.EVAL_CHOSEN_LOGP, "summed over the response"),
                "accuracy": Name(preference.EVAL_ACCURACY, OVER_PAIRS),
                "margin": Name(preference.EVAL_MARGIN, OVER_PAIRS),
            }
        ),
        # dpo_trainer.py and kto_trainer.py, _compute_loss
        "rewards/chosen": Name(preference.CHOSEN_REWARD, f"beta * log ratio, summed, {OVER_PAIRS}"),
        "rewards/rejected": Name(
            preference.REJECTED_REWARD, f"beta * log ratio, summed, {OVER_PAIRS}"
        ),
        "rewards/accuracies": Name(preference.ACCURACY, OVER_PAIRS),
        "rewards/margins": Name(preference.MARGIN, OVER_PAIRS),
        "logps/chosen": Name(preference.CHOSEN_LOGP, "summed over the response; IPO: mean over it"),
        "logps/rejected": Name(
            preference.REJECTED_LOGP, "summed over the response; IPO: mean over it"
        ),
        "logits/chosen": Name(preference.CHOSEN_LOGITS, "over tokens and vocabulary"),
        "logits/rejected": Name(preference.REJECTED_LOGITS, "over tokens and vocabulary"),
        "nll_loss": Name(preference.NLL_LOSS, "where rpo_alpha or sft is part of the loss"),
        # reward_trainer.py, compute_loss
        "accuracy": Name(preference.ACCURACY, OVER_PAIRS),
        "margin": Name(preference.MARGIN, OVER_PAIRS),
        "mean_reward": Name(preference.REWARD_MEAN, "both sides of the pairs"),
        "min_reward": Name(preference.REWARD_MIN, "both sides of the pairs"),
        "max_reward": Name(preference.REWARD_MAX, "both sides of the pairs"),
        "entropy": Name(exploration.ENTROPY, "of the softmax at the data's tokens"),
        "num_tokens": Name(throughput.TOKENS, "since the start"),
        "aux_loss": Name(optimiser.ROUTER_LOSS),
    },
    families=(
        Family(r"(?:eval_)?(count/(?:chosen|rejected))", Name(rollouts.COUNT, "of the step, KTO")),
        held_out(
            (
                *("rewards/chosen", "rewards/rejected", "logps/rejected", "logits/chosen"),
                *("logits/rejected", "nll_loss", "mean_reward", "min_reward", "max_reward"),
                *("entropy", "num_tokens", "aux_loss"),
            )
        ),
    ),
    settings={**TRAINING_ARGUMENTS, "loss_type": "loss_type"},
    sources=("trainer-state",),
    prefixes=("train/",),
    marks=(
        ("rewards/margins",),
        ("rewards/chosen", "rewards/rejected"),
        ("margin", "mean_reward"),
        ("eval_rewards/margins",),  # a notebook's table has the evaluations' alone
    ),
    read_from="huggingface/trl v1.16: trl/trainer/dpo_trainer.py (_compute_loss),"
    " kto_trainer.py (_compute_loss), reward_trainer.py (compute_loss)",
)

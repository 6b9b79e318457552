"""TRL's DPOTrainer, KTOTrainer and RewardTrainer: training on pairs, no rollouts."""

from rlvitals.metrics.catalogue import exploration, optimiser, preference, throughput
from rlvitals.metrics.frameworks.hf_trainer import EVALUATION, SETTINGS, TRAINER, evaluated
from rlvitals.metrics.frameworks.key import Name, Table

PAIRS = "mean over pairs"

PREFERENCE = {  # dpo_trainer.py and kto_trainer.py, _compute_loss
    "rewards/chosen": Name(preference.CHOSEN_REWARD, f"beta * log ratio, summed, {PAIRS}"),
    "rewards/rejected": Name(preference.REJECTED_REWARD, f"beta * log ratio, summed, {PAIRS}"),
    "rewards/accuracies": Name(preference.ACCURACY, PAIRS),
    "rewards/margins": Name(preference.MARGIN, PAIRS),
    "logps/chosen": Name(preference.CHOSEN_LOGP, "summed over the response; IPO: mean over it"),
    "logps/rejected": Name(preference.REJECTED_LOGP, "summed over the response; IPO: mean over it"),
    "logits/chosen": Name(preference.CHOSEN_LOGITS, "over tokens and vocabulary"),
    "logits/rejected": Name(preference.REJECTED_LOGITS, "over tokens and vocabulary"),
    "nll_loss": Name(preference.NLL_LOSS, "where rpo_alpha or sft is part of the loss"),
}
REWARD = {  # reward_trainer.py, compute_loss
    "accuracy": Name(preference.ACCURACY, PAIRS),
    "margin": Name(preference.MARGIN, PAIRS),
    "mean_reward": Name(preference.REWARD_MEAN, "both sides of the pairs"),
    "min_reward": Name(preference.REWARD_MIN, "both sides of the pairs"),
    "max_reward": Name(preference.REWARD_MAX, "both sides of the pairs"),
}

HELD_OUT = {
    "rewards/accuracies": Name(preference.EVAL_ACCURACY, PAIRS),
    "rewards/margins": Name(preference.EVAL_MARGIN, PAIRS),
    "logps/chosen": Name(preference.EVAL_CHOSEN_LOGP, "summed over the response"),
    "accuracy": Name(preference.EVAL_ACCURACY, PAIRS),
    "margin": Name(preference.EVAL_MARGIN, PAIRS),
}

NAMES = Table(
    "trl-dpo",
    "TRL DPOTrainer, KTOTrainer and RewardTrainer",
    keys={
        **TRAINER,
        **evaluated({**EVALUATION, **HELD_OUT}),
        **PREFERENCE,
        **REWARD,
        "entropy": Name(exploration.ENTROPY, "of the softmax at the data's tokens"),
        "num_tokens": Name(throughput.TOKENS, "since the start"),
        "aux_loss": Name(optimiser.ROUTER_LOSS),
    },
    settings={**SETTINGS, "loss_type": "loss_type"},
    sources=("trainer-state",),
    prefixes=("train/",),
    marks=(("rewards/margins",), ("rewards/chosen", "rewards/rejected"), ("margin", "mean_reward")),
    read_from="huggingface/trl v1.16: trl/trainer/dpo_trainer.py (_compute_loss),"
    " kto_trainer.py (_compute_loss), reward_trainer.py (compute_loss)",
)

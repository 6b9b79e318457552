"""Tinker's cookbook, preference training: pairs, a reference and no rollouts."""

from rlvitals.metrics.catalogue import optimiser, preference, progress, rollouts, throughput
from rlvitals.metrics.frameworks.key import Family, Name, Table

NAMES = Table(
    "tinker-dpo",
    "Tinker cookbook, DPO",
    keys={
        # preference/train_dpo.py, compute_dpo_loss
        "dpo_loss": Name(optimiser.LOSS, "mean over pairs"),
        "accuracy": Name(preference.ACCURACY, "mean over pairs"),
        "margin": Name(preference.MARGIN, "mean over pairs"),
        "chosen_reward": Name(preference.CHOSEN_REWARD, "beta * log ratio, mean over pairs"),
        "rejected_reward": Name(preference.REJECTED_REWARD, "beta * log ratio, mean over pairs"),
        # preference/train_dpo.py, do_update
        "num_pairs": Name(progress.BATCH_SIZE, "pairs"),
        "num_tokens": Name(progress.TOKENS_NEW, "both sides of the pairs"),
        "learning_rate": Name(optimiser.LEARNING_RATE),
        "epoch": Name(progress.EPOCH),
        "batch_time": Name(throughput.STEP_TIME, "one batch, evaluations included"),
    },
    families=(
        Family(r"(progress)", Name(rollouts.SHARE_OF, "of the budget")),
        # It rises as rejected responses become less likely: no loss of what is trained.
        Family(r"(test/(?:nll|bpb))", Name(rollouts.HELD_OUT, "over both sides of the pairs")),
        Family(r"time/(.+)", Name(throughput.PHASE_TIME, "seconds of one batch")),
    ),
    settings={
        "model_name": "model",
        "learning_rate": "learning_rate",
        "dpo_beta": "beta",
        "num_epochs": "total_epochs",
    },
    marks=(("dpo_loss", "margin"), ("dpo_loss", "chosen_reward", "rejected_reward")),
    step_unit="steps",
    read_from="thinking-machines-lab/tinker-cookbook 9dfcc3a:"
    " tinker_cookbook/preference/train_dpo.py (compute_dpo_loss, do_update)",
)

"""LLaMA-Factory's trainer_log.jsonl, of PPO, DPO, KTO and supervised training.

A row has `current_steps` beside `total_steps`: its step and that of the end. It holds few of the
numbers that `trainer_state.json`, in the same folder, has under the names of TRL.
"""

from rlvitals.metrics.catalogue import optimiser, outcome, preference, progress, throughput
from rlvitals.metrics.frameworks.key import Name, Table

NAMES = Table(
    "llama-factory",
    "LLaMA-Factory",
    keys={
        "loss": Name(optimiser.LOSS, "mean over the steps since the previous row"),
        "eval_loss": Name(optimiser.EVAL_LOSS, "on the evaluation set"),
        "reward": Name(outcome.REWARD, "of PPO: mean over the steps since the previous row"),
        "accuracy": Name(preference.ACCURACY, "TRL's rewards/accuracies: mean over pairs"),
        "lr": Name(optimiser.LEARNING_RATE, "of the last step"),
        "learning_rate": Name(optimiser.LEARNING_RATE, "of the last step; versions of 2023"),
        "epoch": Name(progress.EPOCH),
        "percentage": Name(progress.PERCENTAGE),
        "throughput": Name(throughput.TOKENS_PER_SECOND, "averaged since the start"),
        "total_tokens": Name(throughput.TOKENS, "of input, since the start"),
    },
    marks=(("percentage", "lr"), ("percentage", "learning_rate")),
    read_from="hiyouga/LLaMA-Factory 0583d06: src/llamafactory/train/callbacks.py"
    " (LogCallback.on_log)",
)

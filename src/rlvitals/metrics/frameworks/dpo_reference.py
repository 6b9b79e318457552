"""The reference implementation of DPO by its authors: `trainers.py` with its own loop."""

from rlvitals.metrics.catalogue import optimiser, preference, throughput
from rlvitals.metrics.frameworks.key import Name, Table

NAMES = Table(
    "dpo-reference",
    "the reference implementation of DPO",
    keys={
        # trainers.py, get_batch_metrics
        "rewards_train/chosen": Name(preference.CHOSEN_REWARD, "beta * log ratio, summed"),
        "rewards_train/rejected": Name(preference.REJECTED_REWARD, "beta * log ratio, summed"),
        "rewards_train/accuracies": Name(preference.ACCURACY, "mean over pairs"),
        "rewards_train/margins": Name(preference.MARGIN, "mean over pairs"),
        "logps_train/chosen": Name(preference.CHOSEN_LOGP, "summed over the response"),
        "logps_train/rejected": Name(preference.REJECTED_LOGP, "summed over the response"),
        "loss/train": Name(optimiser.LOSS, "mean over pairs"),
        "rewards_eval/accuracies": Name(preference.EVAL_ACCURACY, "mean over pairs"),
        "rewards_eval/margins": Name(preference.EVAL_MARGIN, "mean over pairs"),
        "logps_eval/chosen": Name(preference.EVAL_CHOSEN_LOGP, "summed over the response"),
        # trainers.py, train
        "grad_norm": Name(optimiser.GRAD_NORM, "before clipping"),
        "examples_per_second": Name(throughput.SAMPLES_PER_SECOND),
    },
    step_unit="samples",
    marks=(("rewards_train/margins",), ("rewards_train/chosen", "rewards_train/rejected")),
    read_from="eric-mitchell/direct-preference-optimization: trainers.py (get_batch_metrics,"
    " train)",
)

"""PyTorch Lightning: what it writes itself. Every other name is the user's.

A value logged both on the step and on the epoch is written twice: "_step" is the last batch's,
"_epoch" the mean over the epoch.
"""

from rlvitals.metrics.catalogue import optimiser, outcome, progress, throughput
from rlvitals.metrics.frameworks.key import Family, Name, Table

OF_LAST_BATCH = "of the last batch before the row"

NAMES = Table(
    "lightning",
    "PyTorch Lightning",
    keys={
        "epoch": Name(progress.EPOCH, "whole epochs, counted from 0"),
        # The name before the suffix is the user's; this is what the documentation uses.
        "train_loss_step": Name(optimiser.LOSS, OF_LAST_BATCH),
        "train/loss_step": Name(optimiser.LOSS, OF_LAST_BATCH),
        "loss_step": Name(optimiser.LOSS, OF_LAST_BATCH),
        "val_loss": Name(optimiser.EVAL_LOSS, "mean over the validation set"),
        "val/loss": Name(optimiser.EVAL_LOSS, "mean over the validation set"),
        "val_loss_epoch": Name(optimiser.EVAL_LOSS, "mean over the validation set"),
        "val_acc": Name(outcome.EVAL_ACCURACY, "mean over the validation set"),
        "val/acc": Name(outcome.EVAL_ACCURACY, "mean over the validation set"),
    },
    families=(
        # callbacks/lr_monitor.py, _get_lr_momentum_stat: "lr-" and the optimiser's class
        Family(r"lr-[A-Za-z0-9]+(?:/pg1)?", Name(optimiser.LEARNING_RATE, "first group")),
        # utilities/grads.py, grad_norm: logged where the user asks for it
        Family(r"grad_2\.0_norm_total", Name(optimiser.GRAD_NORM, "before clipping, L2")),
        # fabric/utilities/throughput.py, Throughput.compute; stage names come from the monitor
        Family(
            r"(?:train[/|])?samples_per_sec",
            Name(throughput.SAMPLES_PER_SECOND, "of all devices, over a window of batches"),
        ),
        Family(r"(?:train[/|])?(device)[/|]mfu", Name(throughput.MFU, "of one device")),
    ),
    sources=("lightning",),
    yields=True,  # CSVLogger writes whatever a framework hands it
    marks=(
        ("epoch", "train_loss_step"),
        ("epoch", "train/loss_step"),
        ("epoch", "loss_step"),
        ("epoch", "trainer/global_step"),
        *(("epoch", f"lr-{optimiser_name}") for optimiser_name in ("Adam", "AdamW", "SGD")),
    ),
    read_from="lightning 2.6.6: src/lightning/pytorch/trainer/connectors/logger_connector/"
    "logger_connector.py (log_metrics), callbacks/lr_monitor.py (_get_lr_momentum_stat),"
    " utilities/grads.py (grad_norm), fabric/utilities/throughput.py (Throughput.compute),"
    " loggers/wandb.py, loggers/csv_logs.py",
)

"""What the names of folders and files say: which run they are, or only what they hold."""

import re
from pathlib import Path

from rlvitals.readers.discovery import settings_files
from rlvitals.readers.formats.compressed import bare

# Folders, and files without their suffix, that say what they hold and not which run they are.
PARTS = frozenset(
    {
        *("tensorboard", "tensorboard_logs", "tb", "tb_log", "tb_logs", "tf_logs", "tflogs"),
        *("metrics", "metric", "logs", "log", "csv", "json", "jsonl", "events", "scalars"),
        *("summaries", "monitor", "monitors", "stats", "history", "progress", "result"),
        *("results", "train", "training", "rollout", "rollouts", "trainer_state", "output"),
        *("artifacts", "dvclive"),
        settings_files.HYDRA,
        *("params", "actor", "learner"),  # Isaac Lab's settings; Acme's tables
    }
)
EVALUATIONS = frozenset(
    {"eval", "evals", "evaluation", "evaluator", "val", "valid", "validation", "test"}
)
CHECKPOINT = re.compile(r"checkpoint-(\d+)")
HPARAMS = re.compile(r"\d{10}\.\d+")  # torch's add_hparams writes a folder named by the time
TRACKED = re.compile(r"(?:offline-)?run-\d{8}_\d{6}-(.+)")  # a run's folder of W&B, SwanLab
TRACKERS = frozenset({"wandb", "swanlog"})  # the folders that hold those
MONITOR = re.compile(r"(?:(.*)\.)?monitor\.csv")
# What a process printed is called after the process, not after the run.
PRINTED = re.compile(
    r"(?:nohup|debug|console|std(?:out|err)|screenlog|(?:\w+_)?(?:train|training)(?:[_-]log)?|run)"
    r"\.(?:log|out|err|txt)"
)
EVENTS = "tfevents"  # in the name of every TensorBoard file


def up(folder: Path, root: Path) -> Path:
    """Go up from folders that say what they hold to the one that says which run it is."""
    while folder != root and _is_part(folder):
        folder = folder.parent
    return folder


def _is_part(folder: Path) -> bool:
    name = folder.name.lower()
    return (
        name in PARTS
        or name in EVALUATIONS
        or CHECKPOINT.fullmatch(name) is not None
        or HPARAMS.fullmatch(name) is not None
        or (name == "files" and TRACKED.fullmatch(folder.parent.name) is not None)
    )


def own_name(file: Path) -> str:
    """Return the name that a file gives its run; "" where it says what the file holds."""
    if EVENTS in file.name:
        return ""
    found = MONITOR.fullmatch(bare(file).name)
    stem = (found[1] or "") if found else bare(file).stem
    word = stem.lower()
    if word.isdigit() and found:
        return ""
    is_part = word in PARTS or word in EVALUATIONS or word.startswith("ppo_metrics_")
    return "" if is_part or PRINTED.fullmatch(bare(file).name.lower()) else stem


def is_evaluation(file: Path, root: Path) -> bool:
    """Tell whether a file, or a folder below the run's it lies in, is named for evaluation."""
    *folders, name = file.relative_to(root).parts
    return any(part.lower() in EVALUATIONS for part in (*folders, name.split(".")[0]))

"""Derive the name of a run from the names of its folders and files."""

import re
from pathlib import Path

from rlvitals.readers.formats.compressed import bare

# Folders, and files without their suffix, that say what they hold and not which run they are.
CONTENT_NAMES = frozenset(
    {
        *("tensorboard", "tensorboard_logs", "tb", "tb_log", "tb_logs", "tf_logs", "tflogs"),
        *("metrics", "metric", "logs", "log", "csv", "json", "jsonl", "events", "scalars"),
        *("summaries", "monitor", "monitors", "stats", "history", "progress", "result"),
        *("results", "train", "training", "rollout", "rollouts", "trainer_state", "output"),
        *("artifacts", "dvclive"),
        ".hydra",
        *("params", "actor", "learner"),  # Isaac Lab's settings; Acme's tables
    }
)
EVALUATION_NAMES = frozenset(
    {"eval", "evals", "evaluation", "evaluator", "val", "valid", "validation", "test"}
)
CHECKPOINT_FOLDER = re.compile(r"checkpoint-(\d+)")
TRACKED_RUN_FOLDER = re.compile(
    r"(?:offline-)?run-\d{8}_\d{6}-(.+)"
)  # a run's folder of W&B, SwanLab
TRACKER_FOLDERS = frozenset({"wandb", "swanlog"})  # the folders that hold those


def up(folder: Path, root: Path) -> Path:
    """Go up from folders that say what they hold to the one that says which run it is."""
    while folder != root and _is_part(folder):
        folder = folder.parent
    return folder


def _is_part(folder: Path) -> bool:
    name = folder.name.lower()
    return (
        name in CONTENT_NAMES
        or name in EVALUATION_NAMES
        or CHECKPOINT_FOLDER.fullmatch(name) is not None
        # `add_hparams` of torch writes a folder named by the time.
        or re.fullmatch(r"\d{10}\.\d+", name) is not None
        or (name == "files" and TRACKED_RUN_FOLDER.fullmatch(folder.parent.name) is not None)
    )


def folder_name(folder: Path) -> str:
    """Return a folder's name, after its parent's where it says nothing of the run."""
    folder = folder.resolve()
    collections = "runs experiments outputs out data logdir log_dir saved models checkpoints tmp"
    if _is_part(folder) or folder.name.lower() in collections.split():
        return "/".join(folder.parts[-2:]).lstrip("/")
    return folder.name or str(folder)


def own_name(file: Path) -> str:
    """Return the name that a file gives its run; "" where it says what the file holds."""
    if "tfevents" in file.name:  # in the name of every TensorBoard file
        return ""
    monitor = re.fullmatch(r"(?:(.*)\.)?monitor\.csv", bare(file).name)
    stem = (monitor[1] or "") if monitor else bare(file).stem
    lower = stem.lower()
    if lower.isdigit() and monitor:
        return ""
    is_part = (
        re.fullmatch(r"(?:rank|worker|node|process|gpu|chunk|part)[-_.]?\d+", lower) is not None
        or lower in CONTENT_NAMES
        or lower in EVALUATION_NAMES
        or lower.startswith("ppo_metrics_")
        or bare(file).name in {"info.json", "evaluations.npz"}  # Sacred's, Stable-Baselines3's
    )
    # What a process printed is called after the process, not after the run.
    is_console = re.fullmatch(
        r"(?:nohup|debug|console|std(?:out|err)|screenlog|(?:\w+_)?train(?:ing)?(?:[_-]log)?|run)"
        r"\.(?:log|out|err|txt)",
        bare(file).name.lower(),
    )
    return "" if is_part or is_console else stem


def is_evaluation(file: Path, root: Path) -> bool:
    """Return True if a file, or a folder below the run's it lies in, is named for evaluation."""
    *folders, name = file.relative_to(root).parts
    return any(segment.lower() in EVALUATION_NAMES for segment in (*folders, name.split(".")[0]))

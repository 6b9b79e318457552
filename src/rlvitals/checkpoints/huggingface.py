"""The files that a Hugging Face checkpoint needs for a training to continue from it.

The Trainer loads what it finds: without `optimizer.pt` it begins a new optimizer, without the
random states it draws other numbers, both without a warning. Read from transformers 5.23:
src/transformers/trainer.py, `_save_checkpoint`, `_load_optimizer_and_scheduler`.
"""

import errno
import json
import zipfile
import zlib
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Protocol

from rlvitals.checkpoints import disk
from rlvitals.checkpoints.naming import MANIFEST_FILE

TRAINER_STATE_FILE = "trainer_state.json"  # written last of all
ADAPTER_FILES = ("adapter_model.safetensors", "adapter_model.bin", "adapter_config.json")
INCOMPLETE_FILE = "checkpoint-is-incomplete.txt"  # there while the Trainer saves on SIGTERM
HEADER_LENGTH_BYTES = 8  # bytes: the length of the header, little-endian


class Arguments(Protocol):
    """The attributes used of a trainer's TrainingArguments."""

    output_dir: str | None

    @property
    def world_size(self) -> int:
        """Number of training processes."""

    @property
    def process_index(self) -> int:
        """Rank of this process."""

    def to_dict(self) -> dict[str, Any]:
        """Return all arguments by name."""


def training_arguments(args: Arguments) -> dict[str, object]:
    """Return the arguments that a training must share with the one it continues."""
    # Arguments that change nothing of what is computed.
    prefixes = (
        "output_dir", "run_name", "resume_from_checkpoint", "report_to", "project", "disable_tqdm",
        "log_", "logging_", "save_", "push_to_hub", "hub_", "trackio_", "do_",
    )  # fmt: skip
    return {key: value for key, value in args.to_dict().items() if not key.startswith(prefixes)}


def missing_files(
    names: Iterable[str], world_size: int, *, weights_only: bool = False, scaler: bool = False
) -> tuple[str, ...]:
    """Return what a checkpoint of `world_size` processes lacks.

    `names`: its files, relative to it. `weights_only`: as `save_only_model` saves; such a
    checkpoint contains only the weights, and cannot be resumed from.
    """
    present = set(names)
    # By what: the names of which one must be there. FSDP and DeepSpeed shard into folders.
    needed = {
        "model or adapter weights": (
            "model*.safetensors",
            "pytorch_model*.bin",
            "*adapter_model.safetensors",
            "*adapter_model.bin",
            "pytorch_model_fsdp*",
            "global_step*/*",
        ),
        TRAINER_STATE_FILE: (TRAINER_STATE_FILE,),
    }
    if not weights_only:
        needed |= {
            "optimizer.pt": (
                "optimizer.pt",
                "optimizer.bin",
                "optimizer_*/*",
                "global_step*/*",
                "rank*-of-*",
            ),
            "scheduler.pt": ("scheduler.pt", "global_step*/*"),
        }
        needed |= {name: (name,) for name in random_state_files(world_size)}
    if scaler and not weights_only:
        needed |= {"scaler.pt": ("scaler.pt", "global_step*/*")}
    return tuple(
        label
        for label, patterns in needed.items()
        if not any(fnmatch(name, pattern) for name in present for pattern in patterns)
    )


def random_state_files(world_size: int) -> tuple[str, ...]:
    """Return the names of the random state files, one for each process."""
    if world_size <= 1:
        return ("rng_state.pth",)
    return tuple(f"rng_state_{rank}.pth" for rank in range(world_size))


def count_processes(names: Iterable[str]) -> int:
    """Return how many processes saved a checkpoint, by its files."""
    return max(1, sum(fnmatch(name, "rng_state_*.pth") for name in names))


def find_damage(folder: Path, step: int) -> str:
    """Return why a checkpoint without a manifest is not complete; "" if it looks complete.

    Truncated files are detected, and flipped bits in what torch saved, whose archives have
    checksums. A flipped bit in the weights is not: safetensors has no checksum. Raises OSError for
    a file that cannot be read.
    """
    names = [path.relative_to(folder).as_posix() for path in disk.walk_files(folder)]
    if INCOMPLETE_FILE in names:
        return f"{INCOMPLETE_FILE} is there"
    absent = missing_files(names, count_processes(names))
    if TRAINER_STATE_FILE in absent:
        return f"it holds no {TRAINER_STATE_FILE}, which is written last"
    try:
        saved_step = json.loads((folder / TRAINER_STATE_FILE).read_bytes())["global_step"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"its {TRAINER_STATE_FILE} is damaged"
    if saved_step != step:
        return f"its {TRAINER_STATE_FILE} is of step {saved_step}"
    if absent:
        return f"it holds no {', no '.join(absent)}"
    unreadable = [
        name for name in names if name != MANIFEST_FILE and not _is_readable(folder / name)
    ]
    return f"{unreadable[0]} is damaged" if unreadable else ""


def _is_readable(path: Path) -> bool:
    try:
        if path.suffix in {".pt", ".pth", ".bin"}:  # torch.save writes zip archives
            with zipfile.ZipFile(path) as archive:
                return archive.testzip() is None
        if path.suffix == ".safetensors":
            return _has_announced_length(path)
    except OSError as error:
        if error.errno != errno.EINVAL:  # zipfile seeks where a damaged archive points to
            raise
        return False
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError,
            NotImplementedError, RuntimeError, zlib.error, zipfile.BadZipFile):  # fmt: skip
        return False
    return True


def _has_announced_length(path: Path) -> bool:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(HEADER_LENGTH_BYTES), "little")
        if length > path.stat().st_size:
            return False
        header = json.loads(file.read(length))
    ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
    return bool(path.stat().st_size == HEADER_LENGTH_BYTES + length + max(ends, default=0))

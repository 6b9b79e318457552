"""Keep the newest state, adapter and arguments in the root of a Hugging Face run.

Tools find `trainer_state.json`, an adapter and the arguments in the output folder during training;
each file is replaced atomically. The Trainer itself writes them into its checkpoints only.
"""

import copy
import json
import shutil
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rlvitals.checkpoints import disk
from rlvitals.checkpoints.huggingface import ADAPTER_FILES, TRAINER_STATE_FILE
from rlvitals.storage.safe_files import atomic_write


def keep(checkpoint: Path, root: Path, args: Any) -> None:
    """Copy a checkpoint's state, adapter and arguments into the root. Raises OSError."""
    _copy(checkpoint, root, (TRAINER_STATE_FILE, *ADAPTER_FILES))
    write_arguments(root, args)


def finish(root: Path, args: Any, state: Any, model: Any, last: Path | None) -> None:
    """Write the final state and adapter into the root. Raises OSError.

    `last`: the checkpoint of the last step, if it was saved.
    """
    disk.replace_text(
        root / TRAINER_STATE_FILE, json.dumps(asdict(state), indent=2, sort_keys=True) + "\n"
    )
    write_arguments(root, args)
    if args.load_best_model_at_end and state.best_model_checkpoint:
        last = Path(state.best_model_checkpoint)
    if last is not None:
        _copy(last, root, ADAPTER_FILES)
    elif hasattr(model, "peft_config") and not (args.fsdp or args.deepspeed):
        with TemporaryDirectory(dir=root, prefix=".adapter-") as temporary:
            model.save_pretrained(temporary)
            _copy(Path(temporary), root, ADAPTER_FILES)


def write_arguments(folder: Path, args: Any) -> None:
    """Write the arguments as the Trainer does, without the Hub token. Raises OSError."""
    import torch  # noqa: PLC0415 - a trainer has loaded it

    public_args = copy.copy(args)
    public_args.hub_token = None
    with atomic_write(folder / "training_args.bin") as file:
        torch.save(public_args, file)


def _copy(source: Path, root: Path, names: Iterable[str]) -> None:
    for name in names:
        if (source / name).is_file():
            with (source / name).open("rb") as source_file, atomic_write(root / name) as file:
                shutil.copyfileobj(source_file, file)

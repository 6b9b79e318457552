"""What lies in the root of a Hugging Face run besides its checkpoints: the newest of each.

A tool that looks for `trainer_state.json`, an adapter or the arguments in the output folder finds
them there during training, whole at every moment. The Trainer itself writes them into its
checkpoints alone.
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
from rlvitals.storage.safe_files import beside

ARGUMENTS = "training_args.bin"


def keep(checkpoint: Path, root: Path, args: Any) -> None:
    """Bring the root up to a checkpoint: state, adapter, arguments, each whole. OSError."""
    _copy(checkpoint, root, (TRAINER_STATE_FILE, *ADAPTER_FILES))
    write_arguments(root, args)


def finish(root: Path, args: Any, state: Any, model: Any, last: Path | None) -> None:
    """Leave the root as the training leaves it: its whole log, and its adapter. OSError.

    `last`: the checkpoint of the last step, if one was saved.
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
        with TemporaryDirectory(dir=root, prefix=".adapter-") as made:
            model.save_pretrained(made)
            _copy(Path(made), root, ADAPTER_FILES)


def write_arguments(folder: Path, args: Any) -> None:
    """Write the arguments as the Trainer does, but for the token of the Hub. OSError."""
    import torch  # noqa: PLC0415 - a trainer has loaded it

    said = copy.copy(args)
    said.hub_token = None
    with beside(folder / ARGUMENTS) as file:
        torch.save(said, file)


def _copy(source: Path, root: Path, names: Iterable[str]) -> None:
    for name in names:
        if (source / name).is_file():
            with (source / name).open("rb") as found, beside(root / name) as file:
                shutil.copyfileobj(found, file)

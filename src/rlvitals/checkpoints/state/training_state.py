"""The state of a training program, as named parts."""

import json
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rlvitals.checkpoints.manifest import BadCheckpoint, File
from rlvitals.checkpoints.state.serialize import TreeReader, TreeWriter
from rlvitals.checkpoints.state.tensors import BufferPool, TensorReader, TensorWriter
from rlvitals.errors import UsageError
from rlvitals.startup.fast_dataclass import dataclass

TREE_FILE = "state.json"
GENERATORS_KEY = "random"  # the name of Python's, numpy's and torch's own generators
NOT_SAVED_KEY = "not_saved"  # the name of what could not be taken along
RANK_PREFIX = "rank-"  # folder of one of several processes


class State:
    """The parts that a run needs to continue: models, optimizers, environments, counters.

    >>> state = State(model=model, optimizer=optimizer, envs=envs)  # doctest: +SKIP
    >>> checkpoints.save_state(step, state)  # doctest: +SKIP
    >>> checkpoints.restore_state(state)  # doctest: +SKIP

    A part is anything with `state_dict`, an array, a tensor, a number, a container, or an object
    made of these: Gymnasium environments and vectors of them, normalisers, schedules, samplers. The
    random number generators of Python, numpy and torch (also on CUDA) are saved too.

    Parameters
    ----------
    **parts : object
        The parts by name. A value that is no object (a counter) is read back by `state[name]`.

    Raises
    ------
    UsageError
        If a part is called "random" or "not_saved".
    """

    def __init__(self, **parts: object) -> None:
        """Name the parts."""
        for name in {GENERATORS_KEY, NOT_SAVED_KEY} & set(parts):
            raise UsageError(f"{name!r} is taken: the state has a part of that name of its own")
        self.parts = parts
        self.not_saved: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - whatever was given
        """Return the current value of a part."""
        return self.parts[name]

    def __setitem__(self, name: str, value: object) -> None:
        """Set the value of a part, such as an incremented step."""
        self.parts[name] = value

    def copy(self, into: BufferPool | None = None) -> "StateCopy":
        """Return a copy of the current state, to be written later.

        Parameters
        ----------
        into : BufferPool, optional
            Memory of an earlier copy that has been written. Without it arrays and tensors are not
            copied: write the result before anything changes.

        Raises
        ------
        Unsaveable
            If a part cannot be written at all.
        """
        if into is not None:
            into.reset()
        writer = TreeWriter(TensorWriter(into))
        tree = {name: writer.named_node(name, value) for name, value in self.parts.items()}
        states: dict[str, object] = {
            "python": random.getstate(),
            "numpy": np.random.get_state(legacy=False),  # noqa: NPY002 - libraries use it
        }
        torch = sys.modules.get("torch")
        if torch is not None:
            states["torch"] = torch.get_rng_state()
            if torch.cuda.is_available() and torch.cuda.is_initialized():
                states["cuda"] = torch.cuda.get_rng_state_all()
        tree[GENERATORS_KEY] = writer.node(states)
        writer.blobs.settle()
        self.not_saved = tuple(writer.lost)
        return StateCopy(tree, writer.blobs, self.not_saved)

    def save(self, folder: Path) -> Mapping[str, object]:
        """Write the state into a folder.

        Parameters
        ----------
        folder : pathlib.Path
            An existing folder.

        Returns
        -------
        mapping
            Facts for the manifest: under "not_saved" the names of what could not be saved.

        Raises
        ------
        Unsaveable
            If a part cannot be written at all.
        OSError
            If a file cannot be written.
        """
        copy = self.copy()
        copy.save(folder)
        return {"not_saved": list(copy.not_saved)}

    def load(self, folder: Path, *, streams: bool = True) -> tuple[str, ...]:
        """Load the state into the parts.

        Parameters
        ----------
        folder : pathlib.Path
            A folder that `save` has written.
        streams : bool
            Load the states of the random number generators too.

        Returns
        -------
        tuple of str
            Sentences that name what was not saved.

        Raises
        ------
        BadCheckpoint
            If the state cannot be read, or does not fit the parts.
        """
        try:
            tree = json.loads((folder / TREE_FILE).read_bytes())
        except (OSError, ValueError) as error:
            raise BadCheckpoint(f"its state cannot be read: {error}", where=str(folder)) from None
        names, saved_names = set(self.parts), set(tree) - {GENERATORS_KEY, NOT_SAVED_KEY}
        if names != saved_names:
            unmatched = ", ".join(sorted(names ^ saved_names))
            raise BadCheckpoint(
                f"the state does not fit: {unmatched} is only in one of the program and the "
                "checkpoint",
                where=str(folder),
                hint="name the same parts in State(...) as when it was saved",
            )
        reader = TreeReader(TensorReader(folder), streams=streams)
        for name in self.parts:
            self.parts[name] = reader.named_value(name, tree[name], self.parts[name])
        if streams:
            states = reader.value(tree[GENERATORS_KEY])
            random.setstate(states["python"])
            np.random.set_state(states["numpy"])  # noqa: NPY002 - libraries use it
            if "torch" in states:
                import torch  # noqa: PLC0415 - only where it was used

                torch.set_rng_state(states["torch"])
                if "cuda" in states and torch.cuda.is_available():
                    # As many as this machine has: nobody draws from the others' streams.
                    torch.cuda.set_rng_state_all(states["cuda"][: torch.cuda.device_count()])
        # Only the first few are named: a C engine has hundreds of parts.
        unsaved = tree.get(NOT_SAVED_KEY, ())
        sentences = tuple(f"{name} was not saved" for name in unsaved[:3])
        more = len(unsaved) - len(sentences)
        return (*sentences, f"{more} more like these were not saved") if more else sentences

    def load_rank(self, folder: Path, rank: int) -> tuple[str, ...]:
        """Load the state of one of several processes, as `load` does.

        Parameters
        ----------
        folder : pathlib.Path
            A checkpoint, with a folder for each process that saved, or without any.
        rank : int
            Number of this process, from 0. If it did not exist at the save it gets the state of
            another process, without the random streams.

        Returns
        -------
        tuple of str
            As for `load`.
        """
        saved = len(list(folder.glob(f"{RANK_PREFIX}*")))
        if not saved:
            return self.load(folder, streams=rank == 0)
        return self.load(folder / f"{RANK_PREFIX}{rank % saved}", streams=rank < saved)


@dataclass(frozen=True, slots=True)
class StateCopy:
    """The state of a program at one moment."""

    tree: Mapping[str, object]
    blobs: TensorWriter
    not_saved: tuple[str, ...]

    def save(self, folder: Path) -> dict[str, File]:
        """Write the copy; return the sizes and hashes of its array files. Raises OSError."""
        files = self.blobs.write(folder)
        tree = {**self.tree, NOT_SAVED_KEY: list(self.not_saved)}
        (folder / TREE_FILE).write_text(json.dumps(tree, allow_nan=False))
        return files


def rank_folder(folder: Path, rank: int, processes: int) -> Path:
    """Return the folder in a checkpoint for the state of one process."""
    return folder / f"{RANK_PREFIX}{rank}" if processes > 1 else folder

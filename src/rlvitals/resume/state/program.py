"""The whole state of a training program, by names that its author gives."""

import json
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rlvitals.errors import UsageError
from rlvitals.resume.manifest import BadCheckpoint
from rlvitals.resume.state.blobs import Stored
from rlvitals.resume.state.tree import Reader, Writer

TREE = "state.json"
GLOBALS = "random"  # the name of Python's, numpy's and torch's own generators


class State:
    """What must be there again for a run to go on: models, optimizers, environments, counters.

    >>> state = State(model=model, optimizer=optimizer, envs=envs)  # doctest: +SKIP
    >>> with checkpoints.save(step) as folder:  # doctest: +SKIP
    ...     state.save(folder)
    >>> checkpoints.restore(state.load)  # doctest: +SKIP

    Anything with `state_dict`, arrays, tensors, numbers, containers, and objects made of these:
    Gymnasium environments and vectors of them, normalisers, schedules, samplers. The generators of
    random numbers of Python, numpy and torch (also on CUDA) are saved with them.
    """

    def __init__(self, **parts: object) -> None:
        """Name the parts; a value that is no object (a counter) is read back by `state[name]`."""
        if GLOBALS in parts:
            raise UsageError(f"{GLOBALS!r} is taken: the generators of random numbers")
        self.parts = parts
        self.not_saved: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - whatever was given
        """Return a part as it is now."""
        return self.parts[name]

    def __setitem__(self, name: str, value: object) -> None:
        """Give a part another value: a step that was counted on."""
        self.parts[name] = value

    def save(self, folder: Path) -> Mapping[str, object]:
        """Write the state; returns the facts for the manifest: what could not be saved.

        Raises OSError, and Unsaveable for a part that cannot be written at all.
        """
        writer = Writer()
        tree = {name: writer.part(name, part) for name, part in self.parts.items()}
        tree[GLOBALS] = writer.node(_generators())
        writer.blobs.write(folder)
        (folder / TREE).write_text(json.dumps(tree, allow_nan=False))
        self.not_saved = tuple(writer.lost)
        return {"not_saved": list(self.not_saved)}

    def load(self, folder: Path) -> None:
        """Put the state back. Raises BadCheckpoint where it does not fit."""
        try:
            tree = json.loads((folder / TREE).read_bytes())
        except (OSError, ValueError) as error:
            raise BadCheckpoint(f"its state cannot be read: {error}", where=str(folder)) from None
        here, there = set(self.parts), set(tree) - {GLOBALS}
        if here != there:
            odd = ", ".join(sorted(here ^ there))
            raise BadCheckpoint(
                f"the state does not fit: {odd} is only in one of the program and the checkpoint",
                where=str(folder),
                hint="name the same parts in State(...) as when it was saved",
            )
        reader = Reader(Stored(folder))
        for name in self.parts:
            self.parts[name] = reader.part(name, tree[name], self.parts[name])
        _set_generators(reader.value(tree[GLOBALS]))


def _generators() -> dict[str, object]:
    found: dict[str, object] = {
        "python": random.getstate(),
        "numpy": np.random.get_state(legacy=False),  # noqa: NPY002 - libraries use it
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        found["torch"] = torch.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            found["cuda"] = torch.cuda.get_rng_state_all()
    return found


def _set_generators(found: Mapping[str, Any]) -> None:
    random.setstate(found["python"])
    np.random.set_state(found["numpy"])  # noqa: NPY002 - libraries use it
    if "torch" in found:
        import torch  # noqa: PLC0415 - only where it was used

        torch.set_rng_state(found["torch"])
        if "cuda" in found and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(found["cuda"])

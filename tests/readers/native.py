"""Makes the bytes of our own block files."""

import tempfile
from pathlib import Path

import numpy as np

from rlvitals.storage import compact
from rlvitals.storage.blocks import Writer
from rlvitals.storage.run_folder import BlockFile


def blocks(*rows):
    """Return a block file of (step, {key: value}) rows, each flushed by itself."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "1-0.rlv"
        writer = Writer(path)
        for step, values in rows:
            columns = np.array([[value] for value in values.values()], float)
            writer.scalars(tuple(values), np.array([step]), np.array([1e9 + step]), columns)
            writer.flush()
        writer.close()
        return path.read_bytes()


def packed(data):
    """Return the packed file that stands for a block file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "1-0.rlv"
        path.write_bytes(data)
        why, target = compact.pack(BlockFile(1, 0, path))
        assert not why
        return target.read_bytes()

"""What a hook wrote, read back with the store's own readers."""

import math
from dataclasses import dataclass
from pathlib import Path

from rlvitals.storage import blocks, events
from rlvitals.storage.run_folder import RunFolder


@dataclass(frozen=True)
class Recorded:
    about: object
    scans: list
    events: tuple

    @classmethod
    def read(cls, folder):
        run = RunFolder.open(Path(folder))
        scans = [blocks.scan(file.path) for file in run.block_files()]
        assert not any(scan.damage or scan.torn for scan in scans)
        return cls(run.about, scans, events.read(run.events_path).events)

    def rows(self):
        """Every row as a dict of what it has, "step" among it, in the order logged."""
        for scan in self.scans:
            for part in scan.scalars:
                for i, step in enumerate(part.steps.tolist()):
                    values = zip(part.keys, part.values[:, i].tolist(), strict=True)
                    yield {"step": step, **{k: v for k, v in values if not math.isnan(v)}}

    def series(self, key):
        return [(row["step"], row[key]) for row in self.rows() if key in row]

    def tables(self, key):
        return [table for scan in self.scans for name, table in scan.tables if name == key]

    def texts(self, key):
        return [text for scan in self.scans for name, text in scan.texts if name == key]

    def kinds(self):
        return [event.kind for event in self.events]

    def of(self, kind):
        return [event for event in self.events if event.kind == kind]

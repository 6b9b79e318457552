"""The recorded runs that the tools are asked about, with what was done to them.

A folder is one of two: the fault benchmark's, `runs.jsonl` with a trace packed by zstd per run, or
recordings as `scripts/record_control_runs.py` leaves them, `settings.json` beside `progress.csv`.
"""

import json
import os
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rlvitals.metrics import environments

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TOLD = frozenset({"fault", "made_by", "ended", "variant"})  # settings that give the answer away
DAY = 86_400  # seconds
ALGORITHMS = ("ppo", "a2c", "dqn", "sac", "td3")


@dataclass(frozen=True)
class Run:
    """One recorded run."""

    name: str
    task: str  # algorithm and environment: runs of a task resemble each other
    fault: str  # "" where nothing was done to it
    trace: Path
    settings: Mapping[str, object]
    steps: int  # that it was meant to last
    onset: int = 0  # the step from which the fault was there
    expects: tuple[str, ...] = ()  # rlvitals' rules that name it
    effective: bool = True  # whether the fault did any harm

    @property
    def algorithm(self) -> str:
        """The algorithm, in small letters."""
        return self.task.split("-", 1)[0]

    @property
    def env_id(self) -> str:
        """The environment, by its settings or else by its task."""
        return str(self.settings.get("env_id") or self.task.split("-", 1)[-1])

    def csv(self) -> bytes:
        """Unpack the run's progress.csv."""
        data = self.trace.read_bytes()
        return zstd.decompress(data) if self.trace.suffix == ".zst" else data


def read(folder: Path) -> list[Run]:
    """Read every run under a folder that has its trace, in the order of their names."""
    listed = [
        _listed(folder, file.parent, json.loads(line))
        for file in sorted(folder.rglob("runs.jsonl"))
        for line in file.read_text().splitlines()
        if line.strip()
    ]
    found = listed or [_recorded(place) for place in sorted(folder.glob("*/settings.json"))]
    if not found:
        raise SystemExit(f"{folder}: no runs.jsonl, and no folder with a settings.json")
    return sorted((run for run in found if run.trace.exists()), key=lambda run: run.name)


def _listed(root: Path, folder: Path, entry: Mapping[str, object]) -> Run:
    packed = f"{entry['name']}.csv.zst"
    trace = next(iter([*folder.glob(packed), *folder.glob(f"*/{packed}")]), folder / packed)
    settings = dict(entry.get("settings") or {})
    return Run(
        name=str(trace.relative_to(root)).removesuffix(".csv.zst"),
        task=str(entry.get("task") or _task(trace, settings)),
        fault=str(entry.get("fault") or ""),
        trace=trace,
        settings=settings,
        steps=int(entry["steps"]),
        onset=int(entry.get("onset") or 0),
        expects=_names(entry.get("expects")),
        effective=entry.get("effective") is not False,
    )


def _task(trace: Path, settings: Mapping[str, object]) -> str:
    """Take the task from the trace's folder, else from the settings."""
    if trace.parent.name.split("-", 1)[0] in ALGORITHMS:
        return trace.parent.name
    return f"{settings['algorithm']}-{settings['env_id']}".lower()


def _names(value: object) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value or ())


def _recorded(place: Path) -> Run:
    settings = json.loads(place.read_text())
    return Run(
        name=place.parent.name,
        task="-".join(place.parent.name.split("-", 2)[:2]),
        fault=settings.get("fault") or "",
        trace=place.parent / "progress.csv",
        settings=settings,
        steps=int(settings["total_timesteps"]),
    )


def give(runs: Iterable[Run], folder: Path) -> dict[str, Run]:
    """Write runs for the tools, numbered and without what was done to them."""
    given, index = {}, []
    for number, run in enumerate(runs):
        place = folder / f"run-{number:04}"
        place.mkdir(parents=True)
        (place / "progress.csv").write_bytes(run.csv())
        os.utime(place / "progress.csv", (time.time() - DAY,) * 2)  # the run is over
        told = {key: value for key, value in run.settings.items() if key not in TOLD}
        (place / "settings.json").write_text(json.dumps(told))
        env = environments.lookup(run.env_id)
        index.append(
            {
                "run": place.name,
                "algorithm": run.algorithm,
                "budget": run.steps,
                "actions": env.actions if env else None,
                "solved": env.solved_return if env else None,
                "horizon": env.horizon if env else None,
            }
        )
        given[place.name] = run
    (folder / "index.json").write_text(json.dumps(index))
    return given

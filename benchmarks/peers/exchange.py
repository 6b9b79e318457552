"""Exchange runs and alarms with a tool as files, with the standard library only.

Every tool runs in an environment and a process of its own. It is given a folder with `index.json`
and one folder per run, numbered, without the run's name and without what was done to it; it
leaves one JSON file of alarms.
"""

import csv
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

WARNING, ERROR = "warning", "error"
STEPS = "time/total_timesteps"


class Alarm(NamedTuple):
    """What a tool says of a run: its own name for it, how bad, and since which step if it tells."""

    id: str
    severity: str
    step: int | None = None


@dataclass(frozen=True)
class Given:
    """One run as Stable-Baselines3 logged it, with what a person who started it knows."""

    folder: Path  # holds `progress.csv` and `settings.json`
    algorithm: str  # ppo, a2c, dqn, sac, td3
    rows: tuple[Mapping[str, float], ...]  # what a row does not log is absent; NaN is kept
    settings: Mapping[str, object]
    budget: int  # environment steps the run was meant to last
    ended: str  # "finished", or the exception that ended it
    actions: int | None  # number of discrete actions; None for continuous ones
    solved: float | None  # the environment's reward threshold
    horizon: int | None  # the environment's time limit, in steps

    @property
    def steps(self) -> list[int]:
        """The environment step of each row."""
        return [int(row.get(STEPS, index)) for index, row in enumerate(self.rows)]

    def column(self, key: str) -> list[tuple[int, float]]:
        """Every (step, value) that was logged under a key, in order."""
        pairs = zip(self.steps, self.rows, strict=True)
        return [(step, row[key]) for step, row in pairs if key in row]


@dataclass(frozen=True)
class Tool:
    """What the table says of a tool beside its alarms."""

    name: str
    version: str
    licence: str
    source: str
    not_mapped: tuple[str, ...]  # what of the tool these logs cannot feed, and why


def installed(package: str, licence: str, source: str, not_mapped: Sequence[str]) -> Tool:
    """Describe a tool that is installed here."""
    return Tool(package, version(package), licence, source, tuple(not_mapped))


def read(folder: Path) -> list[Given]:
    """Read the runs of a folder that `run.give` wrote."""
    return [_given(folder, entry) for entry in json.loads((folder / "index.json").read_text())]


def _given(folder: Path, entry: Mapping[str, object]) -> Given:
    path = folder / str(entry["run"])
    with (path / "progress.csv").open(newline="") as file:
        rows = tuple(numbers(row) for row in csv.DictReader(file))
    facts = {key: value for key, value in entry.items() if key != "run"}
    settings = json.loads((path / "settings.json").read_text())
    return Given(folder=path, rows=rows, settings=settings, **facts)


def numbers(row: Mapping[str, str | None]) -> dict[str, float]:
    """Keep what a row of a CSV logs: an empty cell is not logged, "nan" is."""
    return {key: float(cell) for key, cell in row.items() if key is not None and cell}


def first(row: Mapping[str, float], *keys: str) -> float | None:
    """Return the first of some keys that a row has."""
    return next((row[key] for key in keys if key in row), None)


def known(**values: float | None) -> dict[str, float]:
    """Drop what is not known."""
    return {key: value for key, value in values.items() if value is not None}


def worst(alarms: Iterable[Alarm]) -> list[Alarm]:
    """Keep one alarm of each id: its worst severity and its first step."""
    worst_by_id: dict[str, Alarm] = {}
    for alarm in alarms:
        if (previous := worst_by_id.get(alarm.id)) is None:
            worst_by_id[alarm.id] = alarm
            continue
        steps = [step for step in (previous.step, alarm.step) if step is not None]
        severity = ERROR if ERROR in {previous.severity, alarm.severity} else WARNING
        worst_by_id[alarm.id] = Alarm(alarm.id, severity, min(steps, default=None))
    return list(worst_by_id.values())


def answer(tool: Tool, ask: Callable[[Given], Sequence[Alarm]]) -> None:
    """Ask a tool about every run of the folder argv[1], write its alarms to argv[2]."""
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    alarms = {run.folder.name: ask(run) for run in read(folder)}
    out.write_text(json.dumps({**vars(tool), "alarms": alarms}, indent=1))


def finite(value: float | None) -> bool:
    """Whether there is a value and it is a number."""
    return value is not None and math.isfinite(value)

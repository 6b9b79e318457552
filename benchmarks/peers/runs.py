"""The recorded runs for the tools, with their labels.

A folder is one of two: the fault benchmark's, which tells for itself what is healthy, what is
broken and what a log can show; or recordings as `scripts/record_control_runs.py` leaves them,
`settings.json` beside `progress.csv`, where every fault counts.
"""

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import rlvitals
from rlvitals.faults import folder, ground_truth, run_diagnosis
from rlvitals.faults.catalogue import find_fault
from rlvitals.faults.folder import Recorded
from rlvitals.faults.ground_truth import Label, Level
from rlvitals.metrics import environments

TOLD = frozenset({"fault", "made_by", "ended"})  # settings that give the answer away
DAY = 86_400  # seconds
FINISHED = "finished"


@dataclass(frozen=True)
class Run:
    """One recorded run."""

    name: str
    task: str  # algorithm and environment: runs of a task resemble each other
    csv: str
    settings: Mapping[str, object]
    steps: int  # that it was meant to last
    fault: str = ""
    onset: int = 0  # the step from which the fault was there
    healthy: bool = False
    broken: bool = False  # the fault did harm; neither: a fault without, or no fault but harm
    visible: bool = True  # whether the log holds what can show the fault
    expects: tuple[str, ...] = ()  # our rules that name it
    ended: str = FINISHED  # or the exception that ended it
    split: str = ""  # the benchmark's: "tuning", of which our numbers were chosen, "seen" or "test"

    @property
    def algorithm(self) -> str:
        """The algorithm, in small letters."""
        return self.task.split("-", 1)[0]

    @property
    def env_id(self) -> str:
        """The environment, by its settings or else by its task."""
        return str(self.settings.get("env_id") or self.task.split("-", 1)[-1])


def read(root: Path) -> list[Run]:
    """Read every run under a folder, by task and name."""
    if places := sorted(root.glob("*/settings.json")):
        return [_recorded(path) for path in places]
    if any(root.glob(f"*/{folder.INDEX_NAME}")):
        return _benchmark(root)
    raise SystemExit(f"{root}: no folder in it has a {folder.INDEX_NAME} or a settings.json")


def _recorded(path: Path) -> Run:
    settings = json.loads(path.read_text())
    fault = settings.get("fault") or ""
    return Run(
        name=path.parent.name,
        task="-".join(path.parent.name.split("-", 2)[:2]),
        csv=(path.parent / "progress.csv").read_text(),
        settings=settings,
        steps=int(settings["total_timesteps"]),
        fault=fault,
        healthy=not fault,
        broken=bool(fault),
        ended=settings.get("ended", FINISHED),
    )


def _benchmark(root: Path) -> list[Run]:
    """Read the runs of every task that has enough healthy seeds to tell what harm is."""
    recorded = folder.read(root)
    levels = ground_truth.levels(recorded)
    return [_labelled(root, run, levels[run.task]) for run in recorded if run.task in levels]


def _labelled(root: Path, run: Recorded, level: Level) -> Run:
    path = folder.trace(root, run)
    label = ground_truth.label(run, level)
    is_visible = bool(run.fault) and run_diagnosis.is_visible(run, rlvitals.trace(path))
    return Run(
        name=f"{run.task}/{run.name}",
        task=run.task,
        csv=folder.zstd.decompress(path.read_bytes()).decode(),
        settings=run_diagnosis.settings(run),
        steps=run.steps,
        fault=run.fault,
        onset=run.onset or 0,
        healthy=label is Label.HEALTHY,
        broken=label is Label.BROKEN,
        visible=is_visible and not ground_truth.looks_healthy(run, level),
        expects=find_fault(run.fault).expects if run.fault else (),
        ended=run.ended,
        split=run.split,
    )


def give(runs: Iterable[Run], root: Path) -> dict[str, Run]:
    """Write runs for the tools, numbered and without what was done to them."""
    run_ids, index = {}, []
    for number, run in enumerate(runs):
        path = root / f"run-{number:04}"
        path.mkdir(parents=True)
        (path / "progress.csv").write_text(run.csv)
        os.utime(path / "progress.csv", (time.time() - DAY,) * 2)  # the run is over
        settings = {key: value for key, value in run.settings.items() if key not in TOLD}
        (path / "settings.json").write_text(json.dumps(settings))
        env = environments.lookup(run.env_id)
        index.append(
            {
                "run": path.name,
                "algorithm": run.algorithm,
                "budget": run.steps,
                "ended": run.ended,
                "actions": env.actions if env else None,
                "solved": env.solved_return if env else None,
                "horizon": env.horizon if env else None,
            }
        )
        run_ids[path.name] = run
    (root / "index.json").write_text(json.dumps(index))
    return run_ids

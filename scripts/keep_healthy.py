"""Copy healthy recorded runs, compressed, for the measured rates: `keep_healthy.py FOLDER...`.

Each FOLDER holds one folder per run as `record_language_runs.py`, `record_rlhf_runs.py`,
`record_scheduler_runs.py`, `record_systems_runs.py`, `record_rollout_runs.py` and
`record_evaluated_runs.py` leave them; a `settings.json` whose `fault` is "none" or null says that a
run is healthy. Its log goes to `faults/healthy/<folder>-<run>.<format>.zst`, a line about it to
`faults/healthy/runs.jsonl`; lines of runs that are not in a FOLDER stay. A run that lost its reward
on its own is left out, and named."""

from __future__ import annotations

import csv
import json
import sys
from math import isfinite
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGET = Path(__file__).resolve().parent.parent / "faults" / "healthy"
# What a log of these recordings does not hold, and a person would say.
TOLD = ("env_id", "algorithm", "target_kl", "n_steps", "n_envs", "n_epochs", "max_grad_norm")
TOLD += ("mode", "entropy_min")
SAVED_REWARD = "rollout/reward_mean"  # of the series of saved rollouts


def main(folders: list[str]) -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    index = TARGET / "runs.jsonl"
    lines = read_index(index)
    names: set[str] = set()
    for run in (run for folder in folders for run in healthy(Path(folder))):
        log = log_of(run)
        name = f"{run.parent.name}-{run.name}{log.suffix}.zst"
        if name in names:  # recorded twice
            continue
        names.add(name)
        if lost(log):
            print(f"left out, its reward fell: {name}")
            continue
        settings = json.loads((run / "settings.json").read_text())
        (TARGET / name).write_bytes(zstd.compress(log.read_bytes(), level=19))
        logged_settings = {key: settings[key] for key in TOLD if settings.get(key) is not None}
        lines[name] = {"file": name, "settings": logged_settings, "made_by": settings["made_by"]}
    index.write_text("".join(json.dumps(lines[name]) + "\n" for name in sorted(lines)))
    print(f"{len(lines)} runs, {sum(f.stat().st_size for f in TARGET.iterdir()):,} bytes")


def read_index(path: Path) -> dict[str, dict[str, Any]]:
    """Return the lines of an index, by the file of the run; none where there is no index."""
    rows = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return {row["file"]: row for row in rows}


def log_of(run: Path) -> Path:
    """Return the table of a run, or the state that its trainer left."""
    return max(run.rglob("*.csv"), default=None) or max(run.rglob("trainer_state.json"))


def lost(log: Path) -> bool:
    """Tell a run that failed on its own: its last third earned less than its first."""
    if log.suffix == ".json":
        rows = json.loads(log.read_text())["log_history"]
        paid = [row["reward"] for row in rows if isinstance(row.get("reward"), int | float)]
    else:
        with log.open(newline="") as file:
            paid = [float(row.get(SAVED_REWARD) or "nan") for row in csv.DictReader(file)]
        if not all(map(isfinite, paid)):  # a table without rollouts
            return False
    third = max(len(paid) // 3, 1)
    return len(paid) >= 10 and mean(paid[-third:]) < mean(paid[:third])


def healthy(folder: Path) -> Iterator[Path]:
    for settings in sorted(folder.glob("*/settings.json")):
        if json.loads(settings.read_text()).get("fault") in {None, "", "none"}:
            yield settings.parent


if __name__ == "__main__":
    main(sys.argv[1:])

"""Keep recorded language runs for the benchmark's language tier: `keep_language.py FOLDER...`.

Each FOLDER is named `charts`, `evaluated`, `language`, `rlhf`, `rollouts` or `systems` and holds
what `record_chart_runs.py`, `record_evaluated_runs.py`, `record_language_runs.py`,
`record_rlhf_runs.py`, `record_rollout_runs.py` or `record_systems_runs.py` left. The log of a run
goes to `faults/language/<folder>-<run>.<format>.zst`, a line with its trainer, task, fault and
settings to `faults/language/runs.jsonl`. Lines of runs that are not in a FOLDER stay. The healthy
runs of `faults/healthy` get a line, with the settings that the scripts give them, and no copy.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Container, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from backports import zstd
from keep_healthy import log_of, read_index

FAULTS = Path(__file__).resolve().parent.parent / "faults"
TARGET = FAULTS / "language"
INDEX = TARGET / "runs.jsonl"
# What a tracker would not hold, or what says how the run was made.
UNTRACKED = {"fault", "injected", "made_by", "name", "output_dir", "prompts", "group", "fails"}
UNTRACKED |= {"form", "brief", "needs_call", "limit", "rate", "task", "synced_every"}
PREFERENCE = ("dpo", "orpo", "kto")
NO_FAULT = {None, "", "none", "fast"}  # "fast": a learning rate that fails now and then
TOOL_RUNS = ("asynchronous", "tools-")


def main(folders: list[str]) -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    lines = read_index(INDEX)
    lines |= {row["file"]: row for row in healthy_lines(lines)}
    for folder in map(Path, folders):
        for place in sorted(folder.glob("*/settings.json")):
            settings = json.loads(place.read_text())
            log = log_of(place.parent)
            name = f"{folder.name}-{place.parent.name}{log.suffix}.zst"
            if settings.get("fault") in NO_FAULT:
                continue
            (TARGET / name).write_bytes(zstd.compress(log.read_bytes(), level=19))
            lines[name] = line(folder.name, place.parent.name, name, settings)
    ordered = [lines[name] for name in sorted(lines)]
    INDEX.write_text("".join(json.dumps(each) + "\n" for each in ordered))
    print(f"{len(ordered)} runs")


def healthy_lines(known: Container[str]) -> Iterator[dict[str, Any]]:
    """Yield a line for each healthy run of a language model that has none yet."""
    for row in read_index(FAULTS / "healthy" / "runs.jsonl").values():
        recorder, _, rest = row["file"].partition("-")
        if recorder != "scheduler" and f"../healthy/{row['file']}" not in known:
            run = rest.removesuffix(".zst").removesuffix(".json").removesuffix(".csv")
            settings = {**planned(recorder, run), **row["settings"], "made_by": row["made_by"]}
            yield line(recorder, run, f"../healthy/{row['file']}", settings)


def planned(recorder: str, name: str) -> dict[str, Any]:
    """Return the settings that a script gives a run; empty for charts, whose presets are long."""
    if recorder == "charts":
        return {}
    names = {"rollouts": "rollout"}
    module = importlib.import_module(f"record_{names.get(recorder, recorder)}_runs")
    run = next(each for each in module.RUNS if each.name == name)
    if recorder == "rollouts":
        return {**asdict(run), "num_generations": run.group}
    if recorder == "rlhf":
        return {**module.PPO, **run.config}
    kind = getattr(run, "mode", getattr(run, "trainer", "grpo"))
    base = kind.upper() if kind in {"sft", *PREFERENCE} else "GRPO"
    return {**getattr(module, base), **run.config, "task": getattr(run, "task", "sums")}


def line(recorder: str, run: str, file: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return what the index says of a run."""
    fault = settings.get("fault")
    rate = settings.get("learning_rate", settings.get("rate"))
    tracked = {key: value for key, value in settings.items() if key not in UNTRACKED}
    return {
        "file": file,
        "trainer": trainer_of(recorder, str(settings.get("mode", "grpo"))),
        "task": task_of(recorder, run, settings),
        "fault": "" if fault in NO_FAULT else fault,
        "settings": {**tracked, **({} if rate is None else {"learning_rate": rate})},
        "made_by": settings["made_by"],
    }


def trainer_of(recorder: str, mode: str) -> str:
    """Name the trainer: the class of TRL, ours, or a loop of its own."""
    if recorder in {"charts", "rollouts", "rlhf", "systems"}:
        names = {"charts": "rlvitals", "rollouts": "own loop", "rlhf": "TRL PPO"}
        return names.get(recorder, "TRL GRPO, own sampler")
    return f"TRL {mode.upper()}" if mode in {"grpo", "sft", *PREFERENCE} else "TRL GRPO, one-sided"


def task_of(recorder: str, run: str, settings: Mapping[str, Any]) -> str:
    """Name the task that the policy is asked."""
    mode, pairs = settings.get("mode", "grpo"), settings.get("task", "sums")
    if recorder in {"charts", "rollouts"}:
        return {"charts": "charts", "rollouts": "word problems with a tool"}[recorder]
    if recorder == "systems":
        return "sums with a tool" if run.startswith(TOOL_RUNS) else "sums"
    if recorder == "evaluated":
        return f"pairs of {pairs}" if mode in PREFERENCE else "held-out sums"
    return "sums, taught" if mode == "sft" else "sums"


if __name__ == "__main__":
    main(sys.argv[1:])

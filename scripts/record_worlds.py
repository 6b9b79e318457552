"""Record the worlds benchmark: runs of many trainers and environments, healthy and broken.

Worlds and faults are data: `worlds/world_table.py`, `worlds/fault_table.py`. Each run is a process
of its own with one torch thread; its log is what its trainer writes, packed as
`faults/tier-2/<world>/<number>.tar.zst`. `runs.jsonl` holds what a tracker would know of a run
(environment, settings), `labels.jsonl` what is true of it: its fault, and evaluations on the
environment's own reward, which the log does not hold. Runs that are there are left, so that it may
be stopped and started again. The clock of the logs is the processor's, 60 times as fast, without
the evaluations.

    scripts/record_worlds.py                    # what is missing
    scripts/record_worlds.py --only reinforce/  # runs whose name contains this
    scripts/record_worlds.py --plan             # print the runs
    scripts/record_worlds.py --labels           # take the labels of runs anew from the tables
    scripts/record_worlds.py --healthy 60 61    # a healthy run of each world for each seed, into
                                                # faults/lives, for benchmarks/stopping.py

Needs gymnasium[box2d], minatar, minigrid and skrl beside the extra `record`.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import multiprocessing
import os
import re
import resource
import sys
import tarfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from worlds.fault_table import FAULTS, Fault, decidable
from worlds.world_table import GROUPS, UNSEEN_WORLDS, Job, World, plan, plan_healthy

from rlvitals.faults.folder import compress

TIER = Path(__file__).resolve().parent.parent / "faults" / "tier-2"
LIVES = TIER.parent / "lives"
MODULES = {
    "sb3-ppo": "sb3", "sb3-a2c": "sb3", "sb3-dqn": "sb3", "sb3-sac": "sb3",
    "student-dqn": "student_dqn", "tabular": "tabular", "reinforce": "reinforce",
    "cleanrl-ppo": "cleanrl_ppo", "our-ppo": "ours", "skrl-ppo": "skrl_ppo",
}  # fmt: skip
CUT_SHARE = 0.45  # of the budget, of a run whose process is killed
LIMIT_SECONDS = 60  # of processor time, of one run
KEPT_OF_OURS = ("metrics-1.csv", "console.txt")  # the folder also holds settings and checkpoints
START = 1_700_000_000.0  # of every run, by its log's clock


class Killed(BaseException):
    """The process is killed: nothing more is written."""


def settings(job: Job) -> dict[str, Any]:
    """Return the settings of a run, with those that its fault changes."""
    values = {
        "env_id": job.world.env_id.removeprefix("tabular/"),
        "n_envs": job.world.n_envs,
        "total_timesteps": job.world.steps,
        **job.world.settings,
    }
    if job.fault:
        values.update({k: v for k, v in job.fault.sets.items() if k in values or "replay" in k})
        values.update({k: values[k] * v for k, v in job.fault.scales.items()})
    return values


def train(job: Job, folder: Path, reply: Path) -> None:
    """Train a run in this process, and write what is true of it to `reply`."""
    import torch
    from worlds.run import CLOCK_RATE, Run

    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_SECONDS, LIMIT_SECONDS + 5))
    os.chdir(folder)
    world, fault = job.world, job.fault
    run = Run(
        world.name, world.env_id, world.steps, job.seed, settings(job), folder,
        fault=fault.name if fault else "", onset=fault.onset if fault else 0.0,
        n_envs=world.n_envs,
    )  # fmt: skip
    start = time.process_time()

    def now() -> float:
        return START + CLOCK_RATE * (time.process_time() - start - run.spent)

    time.time, time.perf_counter = now, now
    time.time_ns = time.perf_counter_ns = lambda: int(1e9 * now())
    if fault and fault.ends == "cut":
        follow = run.follow

        def follow_until_killed(act: Callable[[Any], Any]) -> None:
            follow(act)
            if run.share >= CUT_SHARE:
                raise Killed

        run.follow = follow_until_killed  # type: ignore[method-assign]
    ended = "finished"
    module = importlib.import_module(f"worlds.{MODULES[world.trainer]}")
    with (folder / "console.txt").open("w") as console, \
            contextlib.redirect_stdout(console), contextlib.redirect_stderr(console):  # fmt: skip
        try:
            module.train(run)
        except Killed:
            ended = "killed"
        except Exception as error:  # noqa: BLE001 - whatever a broken run ends with
            traceback.print_exc()
            ended = f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"
    answer = {"ended": ended, "truth": run.truth, "paid": run.paid, "steps_done": run.steps_done}
    reply.write_text(json.dumps(answer))


def pack(folder: Path, trainer: str, *, crashed: bool) -> bytes:
    """Pack a run's log, without names and times of this machine."""
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.stat().st_size
    }
    if not crashed:
        files.pop("console.txt", None)  # warnings of libraries; else it has the traceback
    if trainer == "our-ppo":
        files = {name: data for name, data in files.items() if name.endswith(KEPT_OF_OURS)}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in sorted(files.items()):
            text = data if "tfevents" in name else _without_machine(name, data)
            info = tarfile.TarInfo(re.sub(r"tfevents\..*", "tfevents.1700000000.world", name))
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
    return compress(buffer.getvalue())


def _without_machine(name: str, data: bytes) -> bytes:
    """Remove paths of this machine, and the column of its clock."""
    text = data.decode()
    text = re.sub(r"/[^\s\"']*/site-packages", "/home/user/.venv/site-packages", text)
    text = re.sub(r"/tmp/tmp\w+", "/home/user", text)  # noqa: S108 - of the recording
    for path in (str(TIER.parent.parent), sys.base_prefix):
        text = text.replace(path, "/home/user")
    if name.startswith("metrics/"):
        rows = [row.split(",") for row in text.splitlines()]
        at = rows[0].index("time")
        text = "".join(",".join(row[:at] + row[at + 1 :]) + "\n" for row in rows)
    return text.encode()


def level(paid: list[list[float]], share: tuple[float, float], steps: int) -> float | None:
    """Return the mean true return of a part of the training."""
    values = [r for at, r in paid if share[0] * steps < at <= share[1] * steps]
    return round(sum(values) / len(values), 4) if values else None


def record(job: Job, tier: Path) -> dict[str, Any]:
    """Record one run below a folder; return its label."""
    with TemporaryDirectory() as scratch:
        folder, reply = Path(scratch) / "run", Path(scratch) / "reply.json"
        folder.mkdir()
        begun = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = multiprocessing.get_context("fork").Process(
            target=train, args=(job, folder, reply)
        )
        process.start()
        process.join()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = used.ru_utime + used.ru_stime - begun.ru_utime - begun.ru_stime
        if not reply.exists():
            raise RuntimeError(f"{job.name}: exit code {process.exitcode} after {cpu:.0f} CPU s")
        answer = json.loads(reply.read_text())
        target = tier / f"{job.name}.tar.zst"
        target.parent.mkdir(parents=True, exist_ok=True)
        crashed = answer["ended"] not in {"finished", "killed"}
        target.write_bytes(pack(folder, job.world.trainer, crashed=crashed))
    steps, paid = job.world.steps, answer["paid"]
    twelfths = [level(paid, (i / 12, (i + 1) / 12), steps) for i in range(12)]
    truth = answer["truth"] or [
        (round((i + 1) * steps / 12), value)
        for i, value in enumerate(twelfths)
        if value is not None
    ]
    return {
        "name": job.name, "cpu_s": round(cpu, 2), "ended": answer["ended"],
        "steps_done": answer["steps_done"], "truth": truth, "paid": twelfths,
        **label(job.fault, job.world),
    }  # fmt: skip


def label(fault: Fault | None, world: World) -> dict[str, Any]:
    """Return what the table says of a fault."""
    if fault is None:
        return {"fault": ""}
    return {
        "fault": fault.name, "family": fault.family, "onset": fault.onset,
        "process": fault.ends or "faulty", "expects": fault.expects,
        "decidable": decidable(fault, world.trainer, world.env_id), "proven": fault.proven,
        "blind": fault.blind,
    }  # fmt: skip


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Read JSON lines; the last may have been cut."""
    if path.exists():
        yield from (json.loads(s) for s in path.read_text().splitlines() if s.endswith("}"))


def append(path: Path, row: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def relabel() -> None:
    """Take the labels of recorded runs anew from the table of faults."""
    faults = {fault.name: fault for fault in FAULTS} | {"": None}
    worlds = {world.name: world for group in GROUPS for world in group}
    measured = ("name", "cpu_s", "ended", "steps_done", "truth", "paid")
    rows = [
        {
            **{key: row[key] for key in measured},
            **label(faults[row["fault"]], worlds[row["name"].rpartition("/")[0]]),
        }
        for row in read(TIER / "labels.jsonl")
    ]
    (TIER / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def record_levels() -> None:
    """Measure what random actions get in each environment."""
    from worlds.run import random_level

    path = TIER / "worlds.json"
    levels = json.loads(path.read_text()) if path.exists() else {}
    for world in (world for group in GROUPS for world in group):
        if world.name not in levels:
            random = random_level(world.env_id)
            levels[world.name] = {"random": random, "traits": sorted(world.traits)}
        levels[world.name].pop("split", None)  # of a world that was unseen once
        if world in UNSEEN_WORLDS:
            levels[world.name]["split"] = "unseen"
    path.write_text(json.dumps(levels, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default="")
    parser.add_argument("--unseen", action="store_true", help="worlds that score the rules alone")
    parser.add_argument("--runs", type=int, default=10_000, help="at most")
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--labels", action="store_true")
    parser.add_argument("--healthy", type=int, nargs="+", metavar="SEED", help="see above")
    args = parser.parse_args()
    jobs = plan_healthy(args.healthy) if args.healthy else plan()
    if args.labels:
        relabel()
        return 0
    if args.plan:
        for job in jobs:
            print(job.name, job.fault.name if job.fault else "-")
        print(Counter(job.fault.name if job.fault else "-" for job in jobs))
        return 0
    import stable_baselines3  # noqa: F401 - once, for all processes that are forked
    import torch

    torch.set_num_threads(1)
    tier = LIVES if args.healthy else TIER
    tier.mkdir(parents=True, exist_ok=True)
    if not args.healthy:
        record_levels()
    jobs = [
        job for job in jobs
        if args.only in job.name and (job.world in UNSEEN_WORLDS or not args.unseen)
    ]  # fmt: skip
    record_missing(jobs, args.runs, tier)
    return 0


def record_missing(jobs: Iterable[Job], count: int, tier: Path) -> None:
    """Record at most `count` of the runs that are not below a folder yet."""
    recorded = [(row["name"], row["fault"]) for row in read(tier / "labels.jsonl")]
    there = {name for name, _ in recorded}
    dealt = {(name.rpartition("/")[0], fault) for name, fault in recorded if fault}
    missing = [
        job for job in jobs
        if job.name not in there
        and not (job.fault and (job.world.name, job.fault.name) in dealt)
    ]  # fmt: skip
    for job in missing[:count]:
        try:
            row = record(job, tier)
        except RuntimeError as error:
            print(error, flush=True)
            continue
        world = job.world
        append(tier / "runs.jsonl", {
            "name": job.name, "world": world.name, "trainer": world.trainer, "seed": job.seed,
            "settings": {k: v for k, v in settings(job).items()
                         if isinstance(v, int | float | str)},
        })  # fmt: skip
        append(tier / "labels.jsonl", row)
        ends = [value for _, value in (row["truth"][:1] + row["truth"][-1:])]
        print(job.name, row["fault"] or "-", row["ended"], ends, row["cpu_s"], flush=True)


if __name__ == "__main__":
    sys.exit(main())

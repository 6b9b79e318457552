"""Whether what the run says of itself holds: its progress, its processes."""

import re
import socket
from collections.abc import Iterable

from psutil import pid_exists

from rlvitals.checkpoints.progress import RUNNING
from rlvitals.checkpoints.progress_file import FILE
from rlvitals.doctor.check import Check, Trouble
from rlvitals.doctor.context import FRESH, Scene
from rlvitals.following.duration_text import span
from rlvitals.rules.going_on import LIVE
from rlvitals.rules.rule import Severity
from rlvitals.storage.run_folder import block_files

EVENTS = re.compile(r"events\.out\.tfevents\.\d+\.(?P<host>.+?)\.(?P<pid>\d+)\.\d+$")


def look_at_progress(scene: Scene) -> Iterable[Trouble]:
    """Tell of a progress file that is damaged, or that says what no longer holds."""
    found = scene.progress
    if found is None:
        return
    if found.damage:
        yield Trouble(
            Severity.WARNING,
            found.damage,
            ("it is set aside and written anew by the next process that trains",),
            (f"rlvitals status {scene.path}", f"jq . {scene.path / FILE}"),
        )
    lost = next((t.lifecycle.lost for t in scene.traces if t.lifecycle.lost), "")
    if found.status == RUNNING and lost:
        held = scene.checkpoints
        taken = held.taken.folder.name if held is not None and held.taken is not None else ""
        again = f"run the same command again: it resumes from {taken}" if taken else ""
        yield Trouble(
            Severity.WARNING,
            "it says running, yet its process is gone",
            (lost,),
            tuple(filter(None, (again, f"rlvitals diagnose {scene.path}"))),
        )
        return
    alive = any(trace.lifecycle.alive for trace in scene.traces)
    moments = [found.updated, *(trace.lifecycle.last_row for trace in scene.traces)]
    known = [moment for moment in moments if moment is not None]
    silent = scene.now - max(known) if known else 0.0
    if found.status == RUNNING and not alive and silent > LIVE:
        yield Trouble(
            Severity.WARNING,
            f"it says running, yet its last sign is {span(silent)} old by this machine's clock",
            (f"{FILE} was last written at step {found.step or 0:,}",),
            (f"rlvitals diagnose {scene.path}",),
        )


def look_at_record(scene: Scene) -> Iterable[Trouble]:
    """Tell of a `run.json`, or a copy of it, that is damaged or gone."""
    if scene.damage:
        lost = scene.about is None
        yield Trouble(
            Severity.ERROR if lost else Severity.WARNING,
            scene.damage,
            ("it is written anew by the next process that records into this folder",),
            (f"rlvitals verify {scene.path}",),
        )


def look_at_processes(scene: Scene) -> Iterable[Trouble]:
    """Tell of two processes that write to one folder."""
    evidence = _of_ours(scene) or _of_event_files(scene)
    if evidence:
        yield Trouble(
            Severity.ERROR,
            "two processes write to this folder at once",
            tuple(evidence),
            ("stop one of them, and give the other a folder of its own",),
        )


def _of_ours(scene: Scene) -> list[str]:
    """Name the attempts whose files grow, unless their process is known to be gone."""
    if scene.about is None:
        return []
    known = {one.number: one for one in scene.about.attempts}
    said = {}
    for file in block_files(scene.path):
        age = scene.age(file.path)
        attempt = known.get(file.attempt)
        gone = (
            attempt is not None
            and attempt.host == socket.gethostname()
            and not pid_exists(attempt.pid)
        )
        if age is not None and age < FRESH and not gone:
            who = "" if attempt is None else f", process {attempt.pid} on {attempt.host}"
            said[file.attempt if attempt is None else attempt.pid] = (
                f"attempt {file.attempt}{who}: written {span(age)} ago"
            )
    return list(said.values()) if len(said) > 1 else []


def _of_event_files(scene: Scene) -> list[str]:
    said = {}
    for file in scene.files():
        match = EVENTS.search(file.name)
        age = scene.age(file)
        if match is None or age is None or age >= FRESH:
            continue
        if match["host"] == socket.gethostname() and not pid_exists(int(match["pid"])):
            continue
        who = f"process {match['pid']} on {match['host']}"
        said[match["pid"]] = f"{who} writes {scene.inside(file)}: {span(age)} ago"
    return list(said.values()) if len(said) > 1 else []


PROGRESS = Check("progress", "Does its progress file hold?", look_at_progress)
PROCESSES = Check("processes", "Does one process alone write to it?", look_at_processes)
RECORD = Check("record", "Is its run.json whole?", look_at_record)

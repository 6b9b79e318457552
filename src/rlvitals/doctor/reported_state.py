"""Check what the run reports of itself: its progress, its processes."""

import re
import socket
from collections.abc import Iterable

from psutil import pid_exists

from rlvitals.checkpoints.progress import RUNNING
from rlvitals.checkpoints.progress_file import PROGRESS_FILE
from rlvitals.doctor.check import Check, Problem
from rlvitals.doctor.context import RECENT_WRITE_SECONDS, Context
from rlvitals.following.duration_text import format_duration
from rlvitals.rules.going_on import MAX_LIVE_SILENCE_S
from rlvitals.rules.rule import Severity
from rlvitals.storage.run_folder import block_files


def check_progress(context: Context) -> Iterable[Problem]:
    """Yield a problem for a progress file that is damaged or out of date."""
    progress = context.progress
    if progress is None:
        return
    if progress.damage:
        yield Problem(
            Severity.WARNING,
            progress.damage,
            ("it is set aside and written anew by the next process that trains",),
            (f"rlvitals status {context.path}", f"jq . {context.path / PROGRESS_FILE}"),
        )
    end_reason = next((t.lifecycle.lost for t in context.traces if t.lifecycle.lost), "")
    if progress.status == RUNNING and end_reason:
        checkpoints = context.checkpoints
        advice = ""
        if checkpoints is not None and checkpoints.taken is not None:
            checkpoint_name = checkpoints.taken.folder.name
            advice = f"run the same command again: it resumes from {checkpoint_name}"
        yield Problem(
            Severity.WARNING,
            "it says running, yet its process is gone",
            (end_reason,),
            tuple(filter(None, (advice, f"rlvitals diagnose {context.path}"))),
        )
        return
    is_alive = any(trace.lifecycle.alive for trace in context.traces)
    moments = [progress.updated, *(trace.lifecycle.last_row for trace in context.traces)]
    times = [moment for moment in moments if moment is not None]
    silent_s = context.time_s - max(times) if times else 0.0
    if progress.status == RUNNING and not is_alive and silent_s > MAX_LIVE_SILENCE_S:
        yield Problem(
            Severity.WARNING,
            f"it says running, yet its last sign is {format_duration(silent_s)} old "
            "by this machine's clock",
            (f"{PROGRESS_FILE} was last written at step {progress.step or 0:,}",),
            (f"rlvitals diagnose {context.path}",),
        )


def check_record(context: Context) -> Iterable[Problem]:
    """Yield a problem for a `run.json`, or its copy, that is damaged or missing."""
    if context.damage:
        is_lost = context.about is None
        yield Problem(
            Severity.ERROR if is_lost else Severity.WARNING,
            context.damage,
            ("it is written anew by the next process that records into this folder",),
            (f"rlvitals verify {context.path}",),
        )


def check_processes(context: Context) -> Iterable[Problem]:
    """Yield a problem for two processes that write to one folder."""
    evidence = _find_attempts(context) or _find_event_writers(context)
    if evidence:
        yield Problem(
            Severity.ERROR,
            "two processes write to this folder at once",
            tuple(evidence),
            ("stop one of them, and give the other a folder of its own",),
        )


def _find_attempts(context: Context) -> list[str]:
    """Return a sentence for each attempt that is being written, by a live process."""
    if context.about is None:
        return []
    attempts = {attempt_info.number: attempt_info for attempt_info in context.about.attempts}
    sentences = {}
    for file in block_files(context.path):
        age = context.age(file.path)
        attempt = attempts.get(file.attempt)
        has_exited = (
            attempt is not None
            and attempt.host == socket.gethostname()
            and not pid_exists(attempt.pid)
        )
        if age is not None and age < RECENT_WRITE_SECONDS and not has_exited:
            process = "" if attempt is None else f", process {attempt.pid} on {attempt.host}"
            sentences[file.attempt if attempt is None else attempt.pid] = (
                f"attempt {file.attempt}{process}: written {format_duration(age)} ago"
            )
    return list(sentences.values()) if len(sentences) > 1 else []


def _find_event_writers(context: Context) -> list[str]:
    sentences = {}
    for file in context.files():
        match = re.search(
            r"events\.out\.tfevents\.\d+\.(?P<host>.+?)\.(?P<pid>\d+)\.\d+$", file.name
        )
        age = context.age(file)
        if match is None or age is None or age >= RECENT_WRITE_SECONDS:
            continue
        if match["host"] == socket.gethostname() and not pid_exists(int(match["pid"])):
            continue
        process = f"process {match['pid']} on {match['host']}"
        sentences[match["pid"]] = (
            f"{process} writes {context.inside(file)}: {format_duration(age)} ago"
        )
    return list(sentences.values()) if len(sentences) > 1 else []


PROGRESS_CHECK = Check("progress", "Does its progress file hold?", check_progress)
PROCESSES_CHECK = Check("processes", "Does one process alone write to it?", check_processes)
RECORD_CHECK = Check("record", "Is its run.json whole?", check_record)

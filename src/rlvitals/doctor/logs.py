"""Check that logs appear, in this folder or in another place."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from rlvitals.doctor.check import Check, Problem
from rlvitals.doctor.context import RECENT_WRITE_SECONDS, Context
from rlvitals.errors import UnreadableLog
from rlvitals.following.duration_text import format_duration
from rlvitals.readers import READERS, select
from rlvitals.readers.discovery.sources import is_folder
from rlvitals.rules.rule import Severity
from rlvitals.types import RECORDER_NOTE_PREFIX

MAX_LOGS = 3
SINK_NOTE_PATTERN = re.compile(
    rf"{RECORDER_NOTE_PREFIX}sink (?P<name>[\w-]+): (?P<why>.+)", re.DOTALL
)


def check_logs(context: Context) -> Iterable[Problem]:
    """Yield why nothing can be read, and where other logs are."""
    if context.traces:
        yield from _failing_sinks(context)
        return
    tries = [f"rlvitals follow {context.path}"]
    if not os.path.lexists(context.path):
        sentence = "there is nothing at this path"
        up = next(
            folder
            for folder in (context.path, *context.path.resolve().parents)
            if is_folder(folder)
        )
        evidence = [f"the nearest folder that is there: {up}"]
        tries = [f"ls {up}"]
    elif context.folder is None:
        sentence, evidence = "this file is not a readable log", [context.problem]
        tries = ["rlvitals readers"]
    else:
        sentence = "no log appears in this folder"
        names = ("native", "rlvitals", "trainer-state", "tensorboard", "sb3-csv", "wandb-offline")
        patterns = ", ".join(reader.looks_for for reader in READERS if reader.name in names)
        search = f"looked for {patterns}, and others (rlvitals readers)"
        evidence = [_describe_contents(context), search]
    evidence += _find_processes(context)
    for log_folder, age in list(_find_other_logs(context))[:MAX_LOGS]:
        evidence.append(f"logs lie in {log_folder}, the last written {format_duration(age)} ago")
        tries.insert(0, f"rlvitals diagnose {log_folder}")
    yield Problem(Severity.ERROR, sentence, tuple(filter(None, evidence)), tuple(tries))


def _failing_sinks(context: Context) -> Iterator[Problem]:
    """Yield the sinks that failed, as noted by the recorder."""
    reasons: dict[str, list[str]] = {}
    for trace in context.traces:
        for note in trace.notes:
            if (match := SINK_NOTE_PATTERN.search(note)) and match["why"] not in reasons.get(
                match["name"], []
            ):
                reasons.setdefault(match["name"], []).append(match["why"])
    for name, texts in reasons.items():
        yield Problem(
            Severity.WARNING,
            f"the sink {name} does not get all that is logged",
            (*texts[:MAX_LOGS], "the run's own files are written apart from it"),
            (f"rlvitals export {context.path} numbers.csv", f"rlvitals diagnose {context.path}"),
        )


def _describe_contents(context: Context) -> str:
    """Describe the files of a folder without a log, and the last write."""
    newest = context.newest()
    if newest is None or context.walk is None:
        return "it is empty"
    file, age = newest
    name = context.inside(file)
    fresh = age < RECENT_WRITE_SECONDS
    last = f"{name} is being written" if fresh else f"{name} came last, {format_duration(age)} ago"
    checkpoints = context.checkpoints
    count = len(checkpoints.seen) if checkpoints is not None else 0
    details = f", {count} of them checkpoints' folders" if count else ""
    return f"it holds {context.walk.kinds()}{details}; {last}"


def _find_processes(context: Context) -> list[str]:
    """Return sentences for the processes that were started with this path."""
    name = context.path.resolve().name
    readers = {"status", "follow", "doctor", "diagnose", "checkpoints", "watch", "serve", "backup"}
    own_pids = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    sentences = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        arguments = process.info["cmdline"] or []
        if process.info["pid"] in own_pids or (
            readers & {*arguments} and "rlvitals" in " ".join(arguments)
        ):
            continue
        if name and any(
            name in Path(argument).parts or f"={name}" in argument for argument in arguments
        ):
            sentences.append(f"process {process.info['pid']} was started with {name}: it is there")
    return sentences[:MAX_LOGS] or [f"no process on this machine was started with {name}"]


def _find_other_logs(context: Context) -> Iterator[tuple[Path, float]]:
    """Yield the default log folders of other programs, and their ages in seconds."""
    bases = dict.fromkeys((context.path.parent, context.working_folder))
    folders = [
        base / name
        for base in bases
        for name in (
            "runs",
            "logs",
            "tensorboard",
            "tb",
            "tb_logs",
            "lightning_logs",
            "ray_results",
        )
    ]
    visited: set[Path] = set()
    newest_logs = []
    for folder in folders:
        resolved = folder.resolve()
        if (
            resolved in visited
            or context.path.resolve().is_relative_to(resolved)
            or not is_folder(folder)
        ):
            continue
        visited.add(resolved)
        ages = [
            (file.parent, age)
            for file in _walk_logs(folder)
            if (age := context.age(file)) is not None
        ]
        newest_logs += [min(ages, key=lambda pair: pair[1])] if ages else []
    yield from sorted(newest_logs, key=lambda pair: pair[1])


def _walk_logs(folder: Path) -> Iterator[Path]:
    count = 0
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in names:
            count += 1
            if count > 2000:  # entries of such a folder that are examined
                return
            file = Path(root) / name
            if "tfevents" in name and _is_log(file):
                yield file


def _is_log(file: Path) -> bool:
    try:
        return select.claim(file) is not None
    except UnreadableLog:
        return False


LOGS_CHECK = Check("logs", "Do logs appear?", check_logs)

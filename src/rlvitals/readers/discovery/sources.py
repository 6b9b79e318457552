"""Group files into runs, and select the reader of each file.

    for run in find(path):
        logs = read(run)

A run's files lie in one folder and in those below it whose names say what they hold, not which
run they are (`tensorboard/`, `metrics/`, `train/`, `eval/`, `checkpoint-500/`). A database holds
several runs: `mlflow.db/NAME` is one of them.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlvitals.errors import UnreadableLog, nearest
from rlvitals.readers import console, select
from rlvitals.readers.discovery import (
    hide_secrets,
    join,
    ownership,
    run_names,
    settings_files,
)
from rlvitals.readers.discovery.copies import without_copies
from rlvitals.readers.discovery.walk import Walk
from rlvitals.readers.formats import plain_pickle, run_labels
from rlvitals.readers.reader import Files, Reader
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import typed
from rlvitals.types import Log


@dataclass(frozen=True, slots=True)
class Run:
    """The files of one run, each with its reader, in a fixed order."""

    name: str
    root: Path
    files: tuple[tuple[Path, Reader], ...]
    notes: tuple[str, ...] = ()
    settings: tuple[Path, ...] = ()  # files that hold settings alone
    # With other logs: whose the folder's rollouts are is not known. None: see `has_rival`.
    shares_folder: bool | None = False

    @property
    def trackers(self) -> frozenset[str]:
        """The names of the readers of its files."""
        return frozenset(reader.name for _, reader in self.files)


def find(path: Path, walk: Walk | None = None) -> tuple[Run, ...]:
    """Find the runs at a path: a log file is one, a folder holds any number of them.

    `walk` is the folder's, where it was walked just now.
    Raises UnreadableLog where there is none, saying what was looked for and what was found.
    """
    if not is_folder(path):
        return _of_file(path)
    walk = walk or Walk(path)
    notes = list(walk.notes)
    claimed = _claim_files(walk.files, path, notes) or _claim_lone_text(walk.files)
    if not claimed:
        raise UnreadableLog(
            "no training log in this folder",
            where=f"{path} ({f'found {walk.kinds()}' if walk.files else 'it is empty'}"
            + "".join(f"; {note}" for note in notes)
            + ")",
            hint=f"name the pickle that holds its numbers, or {plain_pickle.PICKLE_HINT}"
            if any(map(plain_pickle.is_pickle, walk.files))
            else select.READERS_HINT,
        )
    runs = _in_databases(claimed, path, notes)
    groups: dict[Path, list[tuple[Path, Reader]]] = defaultdict(list)
    for file, reader in claimed:
        if reader.runs is None:
            folder = reader.home(file) if reader.home else file.parent
            # The folder of the run, `path` at the highest.
            folder = run_names.up(folder if folder.is_relative_to(path) else path, path)
            groups[folder].append((file, reader))
    ownership.adopt_trainer_runs(groups)
    ownership.adopt_tracked_runs(groups)
    settings = ownership.settings_of(walk.files, path, groups.keys())
    for home, files in sorted(groups.items(), key=lambda pair: pair[0].parts):
        home_runs = _runs(home, files, path, tuple(notes))
        if len(home_runs) == 1:  # of several runs in one folder nobody can say whose they are
            home_runs = [replace(home_runs[0], settings=tuple(settings[home]))]
        runs += _mark_owner(home_runs)
    return _make_names_unique(runs)


def _mark_owner(home_runs: Sequence[Run]) -> list[Run]:
    """Mark the runs of one folder that cannot own its rollouts: all but the only logged one."""
    logged = [run for run in home_runs if run.trackers != {"console"}] or home_runs
    owner = logged[0] if len(logged) == 1 else None
    return [replace(run, shares_folder=run is not owner) for run in home_runs]


def _make_names_unique(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Put the folder's name, or else the file's, behind a name that two runs have."""
    counts = Counter(run.name for run in runs)
    return tuple(
        replace(run, name=f"{run.name} ({run.root.name[:8] or run.files[0][0].name})")
        if counts[run.name] > 1
        else run
        for run in runs
    )


def _of_file(path: Path) -> tuple[Run, ...]:
    """Return the run, or the runs, of one file; `runs.db/NAME` is a run in a file."""
    holder = next((p for p in path.parents if os.path.isfile(p)), None)  # noqa: PTH113
    if holder is not None:
        name = path.relative_to(holder).as_posix()
        reader = select.reader_of(holder)
        runs = _runs_in_file(holder, reader, "") if reader.runs else ()
        for run in runs:
            if run.name == name:
                return (run,)
        hint = nearest(name, (run.name for run in runs))
        hint = hint or ", ".join(run.name for run in runs[:3])
        raise UnreadableLog(f"no run called {name!r}", where=str(holder), hint=hint)
    reader = select.reader_of(path)
    if reader.runs is not None:
        return tuple(_runs_in_file(path, reader, ""))
    name, settings = _file_name(path, reader), settings_files.settings_of_log(path)
    return (Run(name, path.parent, ((path, reader),), settings=settings, shares_folder=None),)


def has_rival(path: Path) -> bool:
    """Return True if a log is not of the run that its folder's rollouts belong to.

    It opens every log of the folder, of which there may be thousands.
    """
    try:
        siblings = sorted(file for file in path.parent.iterdir() if file.is_file())
    except OSError:  # a folder that may be entered and not be listed
        return False
    claimed = [pair for pair in _claim_files(siblings, path.parent, []) if pair[1].runs is None]
    runs = _mark_owner(_runs(path.parent, claimed, path.parent, ())) if claimed else []
    owned = {file for run in runs if not run.shares_folder for file, _ in run.files}
    return bool(runs) and path not in owned


def _in_databases(claimed: Files, root: Path, notes: list[str]) -> list[Run]:
    """Return the runs that files hold; one without a run becomes a note, unless it is all."""
    runs: list[Run] = []
    errors: list[UnreadableLog] = []
    for file, reader in claimed:
        if reader.runs is not None:
            inside = file.relative_to(root)
            try:
                runs += _runs_in_file(file, reader, inside.with_suffix("").as_posix())
            except UnreadableLog as error:
                errors.append(error)
                notes.append(f"{inside}: {error.problem}")
    if errors and len(errors) == len(claimed):
        raise _none_readable(errors)
    return [replace(run, notes=tuple(notes)) for run in runs]


def _runs_in_file(file: Path, reader: Reader, within: str) -> list[Run]:
    """Return the runs that a file holds, each under its own name. Raises UnreadableLog."""
    readers = reader.runs(file) if reader.runs else {}
    if reader.runs and not readers:
        raise UnreadableLog("a database without a run", where=str(file))
    return [
        Run(
            f"{within}/{name}" if within else name,
            file.parent,
            ((file, inner),),
            shares_folder=len(readers) > 1,
        )
        for name, inner in readers.items()
    ]


def is_folder(path: Path) -> bool:
    """Return True if there is a folder; what may not be looked at is none."""
    try:
        return path.is_dir()
    except OSError:  # no permission, a name that is too long: whoever opens it says so
        return False


def _claim_files(files: Iterable[Path], root: Path, notes: list[str]) -> list[tuple[Path, Reader]]:
    """Return the files that a reader claims; note those that no one can open."""
    claimed: list[tuple[Path, Reader]] = []
    for file in files:
        if not select.may_be_log(file):
            continue
        try:
            reader = select.claim(file)
        except UnreadableLog as error:
            notes.append(f"{file.relative_to(root)}: {error.problem}")
            continue
        if reader is not None:
            claimed.append((file, reader))
    return claimed


def _claim_lone_text(files: Sequence[Path]) -> list[tuple[Path, Reader]]:
    """Return the only console log of a folder, where it is one by itself: it failed at its start.

    Of several texts nobody can say which is the log.
    """
    texts = [file for file in files if file.suffix.lower() in console.CONSOLE_SUFFIXES]
    try:
        return [(file, select.reader_of(file)) for file in texts] if len(texts) == 1 else []
    except UnreadableLog:
        return []


def _runs(home: Path, files: Files, root: Path, notes: tuple[str, ...]) -> list[Run]:
    """Make the runs of one folder: one, unless its files have names of their own.

    What programs printed there, each into a file with a name, are runs beside the others.
    """
    # A reader that tells the run's folder says that its files have no names of their own.
    stems = ["" if reader.home else run_names.own_name(file) for file, reader in files]
    inside = "" if home == root else str(home.relative_to(root))
    printed = [
        pair for pair, stem in zip(files, stems, strict=True) if stem and pair[1].name == "console"
    ]
    written = [pair for pair in files if pair not in printed]
    if written and not all(stems) and len({run_names.own_name(file) for file, _ in printed}) > 1:
        return [*_runs(home, written, root, notes), *_runs(home, printed, root, notes)]
    stems = _by_curves(stems, stems[0] and run_names.folder_name(home))
    if all(stems) and len(set(stems)) > 1:
        by_name: dict[str, list[tuple[Path, Reader]]] = defaultdict(list)
        for pair, stem in zip(files, stems, strict=True):
            by_name[stem].append(pair)
        return [
            _run(f"{inside}/{stem}" if inside else stem, home, by_name[stem], notes)
            for stem in sorted(by_name)
        ]
    called = next((reader.run_name(file) for file, reader in files if reader.run_name), "")
    return [_run(called or inside or run_names.folder_name(root), home, files, notes)]


def _by_curves(stems: list[str], folder: str) -> list[str]:
    """Return the names of runs for files that hold a measure each: one run, or one for each label.

    The names are unchanged where a file's is no measure's, or where two files of a run would hold
    the same measure: then it is the files that are compared.
    """
    curves = [run_labels.split_curve(stem) for stem in stems]
    names = [curve[0] or folder for curve in curves if curve]
    is_each_once = len(set(curves)) == len(stems) and len(set(names)) < len(names)
    return names if len(names) == len(stems) and is_each_once else stems


def _file_name(path: Path, reader: Reader) -> str:
    if reader.run_name:
        return reader.run_name(path)
    if name := run_names.own_name(path):
        return name
    file = path.resolve()
    is_only_log = reader.in_parts or not _has_company(file)
    name = run_names.folder_name(file.parent)
    return name if is_only_log else f"{name}/{file.name}"


def _has_company(file: Path) -> bool:
    """Return True if the folder has another log, so that its name does not identify this one."""
    try:
        return any(
            sibling != file and select.may_be_log(sibling) for sibling in file.parent.iterdir()
        )
    except OSError:  # a folder that may be entered and not be listed
        return False


def _run(name: str, home: Path, files: Files, notes: tuple[str, ...]) -> Run:
    remaining, dropped = without_copies(files)
    inside = all(file.is_relative_to(home) for file, _ in files)
    root = home if inside else home.parent  # a tracker's folders of one run lie side by side
    # The names of a resumed run's files hold their start.
    remaining.sort(key=lambda pair: (pair[0].parent.parts, pair[0].name))
    return Run(name, root, tuple(remaining), (*notes, *dropped))


def read(run: Run, *, thin: bool = False) -> tuple[Log, ...]:
    """Read a run's files; a file that fails becomes a note, unless all of them fail.

    `thin`: of a large run only the points that rules judge and charts draw, where its reader can.

    Files of one run that go on where another ended (event files, the scheduler's tables)
    become one log, monitors of parallel environments one stream of episodes. What a process printed
    stands last. The keys of evaluation files have "eval/" before them. Settings that look
    like secrets are left out, and secrets are taken out of notes and tracebacks.
    A run without files, of saved rollouts alone, has no log. Raises UnreadableLog.
    """
    by_file: dict[Path, Log | UnreadableLog] = {}
    for file, reader in run.files:
        try:
            may_thin = thin and (len(run.files) == 1 or not reader.thins_alone)
            reading = reader.read_thin(file) if may_thin and reader.read_thin else None
            by_file[file] = _read_whole(file, reader) if reading is None else reading.whole_log()
        except UnreadableLog as error:
            by_file[file] = error
    return together(run, by_file)


def _read_whole(file: Path, reader: Reader) -> Log:
    return reader.read_whole(file) if reader.read_whole else reader.read(file, None)[0]


def together(run: Run, by_file: Mapping[Path, Log | UnreadableLog]) -> tuple[Log, ...]:
    """Put together what each of a run's files holds, as `read` does. Raises UnreadableLog."""
    logs: list[tuple[Hashable, Log]] = []  # each with what it shares with those it is one with
    notes: list[str] = list(run.notes)
    errors: list[UnreadableLog] = []
    failed: dict[str, list[str]] = defaultdict(list)
    evaluations = {
        file: reader.home is None and run_names.is_evaluation(file, run.root)
        for file, reader in run.files
    }
    for file, reader in run.files:
        inside = str(file.relative_to(run.root))
        log = by_file[file]
        if isinstance(log, UnreadableLog):
            errors.append(log)
            failed[log.problem].append(inside)
            continue
        role = "eval/" if evaluations[file] else ""
        key = (reader.name, role) if reader.in_parts else inside
        series = {k if k.startswith(role) else f"{role}{k}": s for k, s in log.series.items()}
        logs.append((key, replace(log, where=inside, series=series)))
    if errors and not logs:
        raise _none_readable(errors)
    for problem, files in failed.items():
        more = f" and {len(files) - 1} more files" if len(files) > 1 else ""
        notes.append(f"{files[0]}{more} not read: {problem}")
    joined = join.printed_last(join.join(logs))
    ends = [last for _, log in logs if (last := join.last_step(log)) is not None]
    for file in run.settings:
        settings, settings_notes = settings_files.read(file, run.root.name)
        location = os.path.relpath(file, run.root)
        saved_step = settings.pop("num_timesteps", None) if file.suffix == ".zip" else None
        if isinstance(saved_step, int) and saved_step > join.MAX_STEP_RATIO * max(ends, default=0):
            settings, settings_notes = {}, [f"saved at step {saved_step:,}, by another training"]
        joined.append(Log("settings", {}, settings, tuple(settings_notes), location))
    if notes:
        joined.append(Log(source="files", series={}, notes=tuple(notes)))
    return tuple(_tidy(hide_secrets.clean(log)) for log in joined)


def _tidy(log: Log) -> Log:
    """Drop settings that float64 cannot hold, with a note; escape what UTF-8 cannot encode."""
    fields = typed.Fields(dict(log.settings), "settings")
    settings: dict[str, Any] = fields.tidy(fields.values)
    notes = (*log.notes, *typed.summary(fields.wrong))
    return replace(
        log,
        settings=settings,
        notes=tuple(map(typed.text, notes)),
        series={typed.text(key): value for key, value in log.series.items()},
        histograms={typed.text(key): value for key, value in log.histograms.items()},
        texts={typed.text(key): value for key, value in log.texts.items()},
        tables={typed.text(key): value for key, value in log.tables.items()},
    )


def _none_readable(errors: Sequence[UnreadableLog]) -> UnreadableLog:
    if len(errors) == 1:
        return errors[0]
    first = errors[0]
    return UnreadableLog(
        f"none of {len(errors)} files can be read; the first: {first.problem}",
        where=first.where,
        hint=first.hint,
    )

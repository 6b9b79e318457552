"""Which files are one run, and which reader reads each.

    for run in find(path):
        logs = read(run)

A run's files lie in one folder and in those below it whose names say what they hold, not which
run they are (`tensorboard/`, `metrics/`, `train/`, `eval/`, `checkpoint-500/`). A database holds
several runs: `mlflow.db/NAME` is one of them.
"""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlvitals.errors import UnreadableLog, nearest
from rlvitals.readers import joining, lookup, rllib, settings_files, trainer_state
from rlvitals.readers.compressed import bare
from rlvitals.readers.lines import read_head
from rlvitals.readers.reader import Reader
from rlvitals.readers.walk import Walk
from rlvitals.records import Log, Series

# Folders, and files without their suffix, that say what they hold and not which run they are.
PARTS = frozenset(
    {
        *("tensorboard", "tensorboard_logs", "tb", "tb_log", "tb_logs", "tf_logs", "tflogs"),
        *("metrics", "metric", "logs", "log", "csv", "json", "jsonl", "events", "scalars"),
        *("summaries", "monitor", "monitors", "stats", "history", "progress", "result"),
        *("results", "train", "training", "rollout", "rollouts", "trainer_state", "output"),
        *("artifacts", "dvclive"),
        settings_files.HYDRA,
        *("params", "actor", "learner"),  # Isaac Lab's settings; Acme's tables
    }
)
EVALUATIONS = frozenset(
    {"eval", "evals", "evaluation", "evaluator", "val", "valid", "validation", "test"}
)
CHECKPOINT = re.compile(r"checkpoint-(\d+)")
HPARAMS = re.compile(r"\d{10}\.\d+")  # torch's add_hparams writes a folder named by the time
TRACKED = re.compile(r"(?:offline-)?run-\d{8}_\d{6}-(.+)")  # a run's folder of W&B, SwanLab
TRACKERS = frozenset({"wandb", "swanlog"})  # the folders that hold those
MONITOR = re.compile(r"(?:(.*)\.)?monitor\.csv")
# What a process printed is called after the process, not after the run.
PRINTED = re.compile(
    r"(?:nohup|debug|console|std(?:out|err)|screenlog|(?:\w+_)?(?:train|training)(?:[_-]log)?|run)"
    r"\.(?:log|out|err|txt)"
)
EVENTS = "tfevents"  # in the name of every TensorBoard file
MAX_NAMED = 3  # files that a note names
NAME_LETTERS = 8  # of a folder's name, where two runs have one name

Files = Sequence[tuple[Path, Reader]]


@dataclass(frozen=True, slots=True)
class Run:
    """The files of one run, each with its reader, in a fixed order."""

    name: str
    root: Path
    files: tuple[tuple[Path, Reader], ...]
    notes: tuple[str, ...] = ()
    settings: tuple[Path, ...] = ()  # files that hold settings alone


def find(path: Path) -> tuple[Run, ...]:
    """Find the runs at a path: a log file is one, a folder holds any number of them.

    Raises UnreadableLog where there is none, saying what was looked for and what was found.
    """
    if not _is_folder(path):
        return _of_file(path)
    walk = Walk(path)
    notes = list(walk.notes)
    claimed = _claimed(walk.files, path, notes)
    if not claimed:
        raise UnreadableLog(
            "no training log in this folder",
            where=f"{path} ({f'found {walk.kinds()}' if walk.files else 'it is empty'}"
            + "".join(f"; {note}" for note in notes)
            + ")",
            hint=f"point at a folder with one of these: {lookup.looked_for()}",
        )
    runs = _in_databases(claimed, path, notes)
    groups: dict[Path, list[tuple[Path, Reader]]] = defaultdict(list)
    for file, reader in claimed:
        if reader.runs is None:
            groups[_home(file, reader, path)].append((file, reader))
    _adopt_trainer_runs(groups)
    _adopt_tracked_runs(groups)
    settings = _settings(walk.files, path, groups.keys())
    for home, files in sorted(groups.items(), key=lambda pair: pair[0].parts):
        found = _runs(home, files, path, tuple(notes))
        if len(found) == 1:  # of several runs in one folder nobody can say whose they are
            found = [replace(found[0], settings=tuple(settings[home]))]
        runs += found
    return _told_apart(runs)


def _told_apart(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Put the folder's name behind a run's name that another run has too."""
    counts = Counter(run.name for run in runs)
    return tuple(
        replace(run, name=f"{run.name} ({run.root.name[:NAME_LETTERS]})")
        if counts[run.name] > 1
        else run
        for run in runs
    )


def _settings(files: Iterable[Path], root: Path, homes: Collection[Path]) -> dict[Path, list[Path]]:
    """Return the files of settings that belong to the run at each home.

    They lie in the run's folder, in one just below it (rl-zoo), or above it where it is the only
    run there (Hydra, DVC); ML-Agents' are every behaviour's. Of a trainer's checkpoints, which
    all hold the same, the first is taken.
    """
    found: dict[Path, dict[tuple[Path, str], Path]] = defaultdict(dict)
    for file in filter(settings_files.is_settings, files):
        folder = _up(file.parent, root)
        owners = [folder] if folder in homes else _owners(file, folder, homes)
        if not owners and folder != root and folder.parent in homes:
            owners = [folder.parent]
        place = folder if CHECKPOINT.fullmatch(file.parent.name) else file.parent
        for owner in owners:
            found[owner].setdefault((place, file.name), file)
    return defaultdict(list, {home: list(files.values()) for home, files in found.items()})


def _owners(file: Path, folder: Path, homes: Collection[Path]) -> list[Path]:
    """Return the runs below a folder that a file of settings in it belongs to."""
    below = [home for home in homes if home.is_relative_to(folder)]
    if file.name.startswith(settings_files.ML_AGENTS):
        return [home for home in below if home.parent == folder]
    return below if len(below) == 1 else []


def _of_file(path: Path) -> tuple[Run, ...]:
    """Return the run, or the runs, of one file; `runs.db/NAME` is a run in a file."""
    holder = next((p for p in path.parents if os.path.isfile(p)), None)  # noqa: PTH113
    if holder is not None:
        name = path.relative_to(holder).as_posix()
        reader = lookup.reader_of(holder)
        found = _contained(holder, reader, "") if reader.runs else ()
        for run in found:
            if run.name == name:
                return (run,)
        hint = nearest(name, (run.name for run in found))
        hint = hint or ", ".join(run.name for run in found[:MAX_NAMED])
        raise UnreadableLog(f"no run called {name!r}", where=str(holder), hint=hint)
    reader = lookup.reader_of(path)
    if reader.runs is not None:
        return tuple(_contained(path, reader, ""))
    settings = settings_files.beside(path)
    return (Run(_file_name(path, reader), path.parent, ((path, reader),), settings=settings),)


def _in_databases(claimed: Files, root: Path, notes: list[str]) -> list[Run]:
    """Return the runs that files hold; one without a run becomes a note, unless it is all."""
    runs: list[Run] = []
    errors: list[UnreadableLog] = []
    for file, reader in claimed:
        if reader.runs is not None:
            inside = file.relative_to(root)
            try:
                runs += _contained(file, reader, inside.with_suffix("").as_posix())
            except UnreadableLog as error:
                errors.append(error)
                notes.append(f"{inside}: {error.problem}")
    if errors and len(errors) == len(claimed):
        raise _none_readable(errors)
    return [replace(run, notes=tuple(notes)) for run in runs]


def _contained(file: Path, reader: Reader, within: str) -> list[Run]:
    """Return the runs that a file holds, each under its own name. Raises UnreadableLog."""
    found = reader.runs(file) if reader.runs else {}
    if reader.runs and not found:
        raise UnreadableLog("a database without a run", where=str(file))
    return [
        Run(f"{within}/{name}" if within else name, file.parent, ((file, inner),))
        for name, inner in found.items()
    ]


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long; whoever opens it says so
        return False


def _claimed(files: Iterable[Path], root: Path, notes: list[str]) -> list[tuple[Path, Reader]]:
    """Return the files that a reader claims; note those that no one can open."""
    claimed: list[tuple[Path, Reader]] = []
    for file in files:
        if not lookup.may_be_log(file):
            continue
        try:
            reader = lookup.claim(file)
        except UnreadableLog as error:
            notes.append(f"{file.relative_to(root)}: {error.problem}")
            continue
        if reader is not None:
            claimed.append((file, reader))
    return claimed


def _home(file: Path, reader: Reader, root: Path) -> Path:
    """Return the folder of the run that a file belongs to, `root` at the highest."""
    home = reader.home(file) if reader.home else file.parent
    return _up(home if home.is_relative_to(root) else root, root)


def _up(folder: Path, root: Path) -> Path:
    """Go up from folders that say what they hold to the one that says which run it is."""
    while folder != root and _is_part(folder):
        folder = folder.parent
    return folder


def _is_part(folder: Path) -> bool:
    name = folder.name.lower()
    return (
        name in PARTS
        or name in EVALUATIONS
        or CHECKPOINT.fullmatch(name) is not None
        or HPARAMS.fullmatch(name) is not None
        or (name == "files" and TRACKED.fullmatch(folder.parent.name) is not None)
    )


def _adopt_trainer_runs(groups: dict[Path, list[tuple[Path, Reader]]]) -> None:
    """Hand `<output>/runs/<start>/events*` of Hugging Face's Trainer to `<output>`'s run."""
    for home in sorted(groups):
        owner = home.parent.parent
        if home.parent.name == "runs" and owner in groups and _has_state(groups[owner]):
            groups[owner] += groups.pop(home)


def _adopt_tracked_runs(groups: dict[Path, list[tuple[Path, Reader]]]) -> None:
    """Join a tracker's folders of one run; hand the only one under `<run>/wandb/` to `<run>`."""
    tracked: dict[Path, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for home in sorted(groups):
        if found := TRACKED.fullmatch(home.name):
            tracked[home.parent][found[1]].append(home)
    for folder, runs in tracked.items():
        for first, *resumed in runs.values():
            for home in resumed:  # the same id: another attempt of the run
                groups[first] += groups.pop(home)
        if len(runs) == 1 and folder.name in TRACKERS and folder.parent in groups:
            ((home, *_),) = runs.values()
            groups[folder.parent] += groups.pop(home)


def _has_state(files: Files) -> bool:
    return any(reader.name == trainer_state.READER.name for _, reader in files)


def _runs(home: Path, files: Files, root: Path, notes: tuple[str, ...]) -> list[Run]:
    """Make the runs of one folder: one, unless its files have names of their own."""
    # A reader that tells the run's folder says that its files have no names of their own.
    stems = ["" if reader.home else _own_name(file) for file, reader in files]
    name = home.name or str(home)
    if home == root:
        name = root.resolve().name or str(root)
    inside = "" if home == root else str(home.relative_to(root))
    if all(stems) and len(set(stems)) > 1:
        by_name: dict[str, list[tuple[Path, Reader]]] = defaultdict(list)
        for pair, stem in zip(files, stems, strict=True):
            by_name[stem].append(pair)
        return [
            _run(f"{inside}/{stem}" if inside else stem, home, by_name[stem], notes)
            for stem in sorted(by_name)
        ]
    called = next((reader.run_name(file) for file, reader in files if reader.run_name), "")
    return [_run(called or inside or name, home, files, notes)]


def _own_name(file: Path) -> str:
    """Return the name that a file gives its run; "" where it says what the file holds."""
    if EVENTS in file.name:
        return ""
    found = MONITOR.fullmatch(bare(file).name)
    stem = (found[1] or "") if found else bare(file).stem
    word = stem.lower()
    if word.isdigit() and found:
        return ""
    is_part = word in PARTS or word in EVALUATIONS or word.startswith("ppo_metrics_")
    return "" if is_part or PRINTED.fullmatch(bare(file).name.lower()) else stem


def _file_name(path: Path, reader: Reader) -> str:
    if reader.run_name:
        return reader.run_name(path)
    return _own_name(path) or path.resolve().parent.name


def _run(name: str, home: Path, files: Files, notes: tuple[str, ...]) -> Run:
    kept, dropped = _without_copies(files)
    inside = all(file.is_relative_to(home) for file, _ in files)
    root = home if inside else home.parent  # a tracker's folders of one run lie side by side
    kept.sort(key=lambda pair: _order(pair[0]))
    return Run(name, root, tuple(kept), (*notes, *dropped))


def _order(file: Path) -> tuple[tuple[str, ...], str]:
    """Order by folder, then by name: the names of a resumed run's files hold their start."""
    return file.parent.parts, file.name


def _without_copies(files: Files) -> tuple[list[tuple[Path, Reader]], list[str]]:
    """Drop what another file of the run holds in full; say what was dropped."""
    plain = {file for file, _ in files}
    packed = [file for file in plain if bare(file) != file and bare(file) in plain]
    kept = [pair for pair in files if pair[0] not in packed]
    notes = [f"{file.name} not read: {bare(file).name} stands beside it" for file in sorted(packed)]
    states = [file for file, reader in kept if reader.name == trainer_state.READER.name]
    if len(states) > 1:
        best = max(states, key=_state_rank)
        kept = [pair for pair in kept if pair[0] not in states or pair[0] == best]
        notes.append(f"read of {len(states)} trainer_state.json: {best.parent.name}'s, the newest")
    tuned = [file for file, reader in kept if reader.name == rllib.READER.name]
    results = {file.parent for file in tuned if bare(file).name == "result.json"}
    twins = [f for f in tuned if bare(f).suffix == ".csv" and f.parent in results]
    if twins:
        kept = [pair for pair in kept if pair[0] not in twins]
        notes.append("progress.csv not read: result.json holds the same and more")
    return kept, notes


def _state_rank(file: Path) -> tuple[int, bool]:
    """Rank a trainer's states by their last step; of equals the output folder's own wins."""
    found = CHECKPOINT.fullmatch(file.parent.name)
    try:
        head = read_head(file)
    except UnreadableLog:  # gone since it was found: reading it says so
        head = b""
    written = re.search(rb'"global_step":\s*(\d+)', head)
    step = int(written[1]) if written else 0
    return (int(found[1]) if found else step), found is None


def read(run: Run) -> tuple[Log, ...]:
    """Read a run's files; a file that fails becomes a note, unless all of them fail.

    Files of one run that go on where another ended (event files, the scheduler's tables)
    become one log, monitors of parallel environments one stream of episodes. What a process printed
    stands last. Evaluation files beside others have "eval/" before their keys.
    Raises UnreadableLog.
    """
    logs: list[tuple[str, Log]] = []
    notes: list[str] = list(run.notes)
    errors: list[UnreadableLog] = []
    evaluations = {
        file: reader.home is None and _is_evaluation(file, run.root) for file, reader in run.files
    }
    for file, reader in run.files:
        inside = str(file.relative_to(run.root))
        try:
            log, _ = reader.read(file, None)
        except UnreadableLog as error:
            errors.append(error)
            notes.append(f"{inside} not read: {error.problem}")
            continue
        role = "eval/" if evaluations[file] and not all(evaluations.values()) else ""
        logs.append((role, replace(log, where=inside, series=_prefixed(log.series, role))))
    if not logs:
        raise _none_readable(errors)
    joined = joining.printed_last(joining.join(logs))
    for file in run.settings:
        settings, said = settings_files.read(file, run.root.name)
        where = os.path.relpath(file, run.root)
        joined.append(Log("settings", {}, settings, tuple(said), where))
    if notes:
        joined.append(Log(source="files", series={}, notes=tuple(notes)))
    return tuple(joined)


def _is_evaluation(file: Path, root: Path) -> bool:
    *folders, name = file.relative_to(root).parts
    return any(part.lower() in EVALUATIONS for part in (*folders, name.split(".")[0]))


def _prefixed(series: Mapping[str, Series], prefix: str) -> dict[str, Series]:
    return {k if k.startswith(prefix) else f"{prefix}{k}": s for k, s in series.items()}


def _none_readable(errors: Sequence[UnreadableLog]) -> UnreadableLog:
    if len(errors) == 1:
        return errors[0]
    first = errors[0]
    return UnreadableLog(
        f"none of {len(errors)} files can be read; the first: {first.problem}",
        where=first.where,
        hint=first.hint,
    )

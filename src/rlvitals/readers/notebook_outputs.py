"""Read the trainings in the outputs of a Jupyter notebook's cells.

Per cell: the table that transformers shows while it trains, else what was printed, read as console
output, a training each time that its steps start again; an error that ended the cell ended the last
of them. A data frame counts where no cell has either. Literal arguments of the trainer's
configuration in the cells before are settings.
Nothing is executed. Source: transformers' `utils/notebook.py` (NotebookTrainingTracker), Unsloth's
`models/_utils.py` for the columns of metrics.
"""

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from rlvitals.errors import UnreadableLog
from rlvitals.metrics.ending import is_interrupt
from rlvitals.readers import console, multi_run, repeated_lines, trainer_tables
from rlvitals.readers.console_dialects.text import plain
from rlvitals.readers.formats import call_settings, column_guess
from rlvitals.readers.formats.documents import points_after, read_document
from rlvitals.readers.formats.html_tables import HtmlTable, tables
from rlvitals.readers.formats.notebook_cells import Cell, name_numbers, read_cells
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.startup.lazy_pattern import lazy_pattern
from rlvitals.types import STOPPED_BY_HAND, Ending, Log

MIN_PRINTED_ROWS = 3  # of a training that is recognised by printed numbers or a data frame
OUTPUT_MARK = lazy_pattern(rb'"output_type"\s*:')
# `train_dqn(`, `agent.update(`, `loss.backward(`, `ppo_trainer.step(`, `train.py`; not
# `from_pretrained(`.
TRAINING_SOURCE = lazy_pattern(
    r"(?<!pre)(?:train(?!ed)|learn(?!ed)|\bfit|backward|optimi[sz]e|(?<!bar\.)update)\w*\("
    r"|optimi[sz]er|learning_rate|trainer\.step\(|train\w*\.py",
    re.IGNORECASE,
)
TRAINING_CALL = lazy_pattern(r"\.(?:train|learn|fit)\(")


@dataclass(frozen=True, slots=True)
class Training:
    """A training in a notebook: the number of its cell, from 1, and what its outputs say."""

    cell: int
    log: Log


def claims(path: Path, head: bytes) -> bool:
    """Return True if there is a training in the outputs; most notebooks are only searched."""
    if not _is_notebook(path, head):
        return False
    if not path.exists():  # the name of a packed file: reading it says what it holds
        return OUTPUT_MARK.search(head) is not None
    try:
        return _may_hold_training(path) and any(t.log.series for t in _trainings(path))
    except (UnreadableLog, OSError):  # reading it says so
        return False


def claims_single(path: Path, head: bytes) -> bool:
    """Return True for any notebook that a person names: reading it says what it lacks."""
    return _is_notebook(path, head)


def _is_notebook(path: Path, head: bytes) -> bool:
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return path.suffix.lower() == ".ipynb" and start.startswith(b"{")


def _may_hold_training(path: Path) -> bool:
    """Search a file for outputs and for the name of a measure, without parsing it."""
    has_output = has_measure = False
    end = b""
    with path.open("rb") as file:
        while not (has_output and has_measure) and (chunk := file.read(2**20)):
            chunk = end + chunk
            has_output = has_output or OUTPUT_MARK.search(chunk) is not None
            has_measure = has_measure or bool(
                re.search(rb"[Rr]eward|[Ll]oss|[Rr]eturn|[Ss]core|ep_rew", chunk)
            )
            end = chunk[-64:]
    return has_output and has_measure


def split(path: Path, _: bytes) -> Mapping[str, Reader]:
    """Return a reader for each training, by its cell. Raises UnreadableLog."""
    return multi_run.readers(READER, {name: name for name in _by_name(_trainings(path))}, _read_run)


def read(path: Path, previous: Cursor | None = None) -> tuple[Log, Cursor]:
    """Read the points of the only training after a cursor. Raises UnreadableLog."""
    by_name = _by_name(_trainings(path))
    return _new_points(by_name[multi_run.only(path, {name: name for name in by_name})], previous)


def _read_run(path: Path, previous: Cursor | None = None, *, run: str) -> tuple[Log, Cursor]:
    by_name = _by_name(_trainings(path))
    if run not in by_name:
        hint = f"it holds {', '.join(list(by_name)[: multi_run.MAX_HINT_RUNS])}"
        raise UnreadableLog(f"no run called {run!r} any more", where=str(path), hint=hint)
    return _new_points(by_name[run], previous)


def _new_points(training: Training, previous: Cursor | None) -> tuple[Log, Cursor]:
    series, cursor, replaced = points_after(training.log.series, previous)
    log = training.log
    return replace(log, series=series, notes=(*replaced, *log.notes)), cursor


def _by_name(trainings: Sequence[Training]) -> dict[str, Training]:
    """Return each training by its cell, "cell-20"; of one cell the second is "cell-20-2"."""
    by_name: dict[str, Training] = {}
    for training in trainings:
        count = sum(earlier.cell == training.cell for earlier in by_name.values())
        by_name[f"cell-{training.cell}" + (f"-{count + 1}" if count else "")] = training
    return by_name


def _trainings(path: Path) -> tuple[Training, ...]:
    """Return the trainings of a notebook. Raises UnreadableLog where it holds none."""
    return _parse(path, zlib.crc32(read_document(path)))


@lru_cache(maxsize=4)  # claiming, splitting and reading parse a notebook once
def _parse(path: Path, _checksum: int) -> tuple[Training, ...]:
    cells, is_damaged = read_cells(read_document(path))
    trainings = [training for cell in cells for training in _of_cell(path, cell)]
    trainings = _without_evaluations(trainings, {cell.number: cell.source for cell in cells})
    trainings = [t for t in trainings if _has_measure(t.log)] or trainings
    trainings = trainings or _of_repeated_lines(path, cells)
    trainings = trainings or [t for cell in cells for t in _of_frames(path, cell)]
    last = max((training.cell for training in trainings), default=0)
    failures = (t for cell in cells if cell.number > last for t in _failures(path, cell, last))
    trainings = [*trainings, *failures]
    trainings += _never_begun(path, cells, trainings)
    if not trainings:
        raise UnreadableLog(
            _problem(cells, is_damaged=is_damaged),
            where=str(path),
            hint="run its cells and save it with their outputs",
        )
    note = "the notebook is damaged or cut short: what can be read of its cells was read"
    notes = (note,) if is_damaged else ()
    return tuple(_with_settings(training, cells, notes) for training in trainings)


def _without_evaluations(
    trainings: Sequence[Training], sources: Mapping[int, str]
) -> list[Training]:
    """Leave out what a cell that does not train has printed: episodes of a trained policy."""
    # Besides a trainer's table, words that stand in any cell are too little.
    has_table = any(training.log.source == "trainer-state" for training in trainings)
    pattern = TRAINING_CALL if has_table else TRAINING_SOURCE
    trained = [
        training
        for training in trainings
        if training.log.source == "trainer-state"
        or pattern.search(sources[training.cell])
        or _has_learner(training.log)
    ]
    return trained or [t for t in trainings if not _evaluates(sources[t.cell])]


def _has_learner(log: Log) -> bool:
    """Return True if printed rows hold what only a learner knows."""
    pattern = r"(?:.*[^a-z])?(?:loss|kl|learning_rate|n_updates|exploration_rate|entropy|epsilon)"
    return any(re.match(pattern, key, re.IGNORECASE) for key in log.series)


def _evaluates(source: str) -> bool:
    """Return True for source that plays a trained policy, or shows what was saved."""
    words = r"eval|test|predict|baseline|random|demo|play|rollout|load|read_"
    return re.search(words, source, re.IGNORECASE) is not None


def _problem(cells: Sequence[Cell], *, is_damaged: bool) -> str:
    if is_damaged:
        return "a notebook that is damaged or cut short, with no training in what can be read"
    if not any(cell.outputs for cell in cells):
        return "a notebook without outputs"
    return "a notebook with no training in the outputs of its cells"


def _with_settings(training: Training, cells: Sequence[Cell], notes: tuple[str, ...]) -> Training:
    """Add the settings in the source of the cells up to a training's."""
    sources = [cell.source for cell in cells if cell.number <= training.cell]
    log = training.log
    settings = call_settings.of_training(sources) | dict(log.settings)
    return replace(training, log=replace(log, settings=settings, notes=(*notes, *log.notes)))


def _of_cell(path: Path, cell: Cell) -> list[Training]:
    """Return the trainings that a cell shows in tables, or prints."""
    text = _stream_text(cell)
    printed, is_training = console.read_text(text, str(path))
    states = _tables_of_trainers(cell)
    logs = [log for table in states if (log := trainer_tables.read_table(table, path)).series]
    # Without Unsloth the table has the loss alone: printed rows may have the reward.
    means = re.compile(r"(?:mean_|avg_|average_)?reward|rewards/.*/mean")
    is_poor = len(logs) == 1 and "reward" not in logs[0].series
    has_rewards = any(map(means.fullmatch, printed.series))
    if is_poor and has_rewards and 2 * _rows(printed) >= _rows(logs[0]):
        logs = []
    # What failed in its first rows is a training where its source is one's.
    has_failed = _has_measure(printed) and _failure(cell) and TRAINING_SOURCE.search(cell.source)
    is_training = is_training and _rows(printed) >= MIN_PRINTED_ROWS
    if not logs and (is_training or has_failed):
        logs = [replace(log, ending=None) for log in console.read_trainings(text, printed)]
    if logs:
        is_complete = trainer_tables.is_complete(states)
        logs[-1] = _add_ending(logs[-1], cell, printed.ending, is_complete=is_complete)
    return [Training(cell.number, log) for log in logs]


def _of_repeated_lines(path: Path, cells: Sequence[Cell]) -> list[Training]:
    """Return the trainings whose lines no dialect knows, of cells whose source trains."""
    trained = (cell for cell in cells if TRAINING_SOURCE.search(cell.source))
    logs = ((cell, repeated_lines.read_text(_stream_text(cell), str(path))) for cell in trained)
    return [
        Training(cell.number, _add_ending(log, cell, None, is_complete=False))
        for cell, log in logs
        if log and _has_measure(log)
    ]


def _has_measure(log: Log) -> bool:
    """Return True if a log has more than the times of its steps."""
    return any(map(column_guess.is_measure, log.series))


def _rows(log: Log) -> int:
    return max((len(series) for series in log.series.values()), default=0)


def _stream_text(cell: Cell) -> str:
    """Return the streams of a cell as one text; each stream begins on a line of its own."""
    text, last = "", ""
    for output in cell.outputs:
        if output.kind in {"stdout", "stderr"}:
            is_split = output.kind != last and text and not text.endswith(("\n", "\r"))
            text += f"\n{output.text}" if is_split else output.text
        elif output.kind == "shown" and output.text and not _is_table(output.html):
            text += f"\n{_without_index(output.text)}\n"
        last = output.kind
    return name_numbers(text, cell.source)


def _is_table(html: str) -> bool:
    """Return True for HTML that is no text of Rich, which shows what it prints as `<pre>`."""
    return bool(html) and not html.lstrip().startswith("<pre")


def _without_index(text: str) -> str:
    """Return a data frame's text without the index of its rows; other text as it is."""
    first, *rows = text.split("\n")
    is_frame = first.startswith(" ") and all(re.match(r"\d+ ", row) for row in rows[:3])
    cut = [re.sub(r"^\d+ ", "  ", row) for row in rows]
    lines = [re.sub(r" {2,}|(?<=\S) (?=\S)", "   ", line.strip()) for line in (first, *cut)]
    return "\n".join(lines) if is_frame and rows else text


def _tables_of_trainers(cell: Cell) -> list[HtmlTable]:
    return trainer_tables.list_tables(output.html for output in cell.outputs)


def _add_ending(log: Log, cell: Cell, printed: Ending | None, *, is_complete: bool) -> Log:
    """Add what ended the cell: its error, else what was printed of an end."""
    error = _failure(cell)
    if not error and _error(cell):
        ending = Ending(reason=STOPPED_BY_HAND)
        return replace(log, ending=ending, notes=(*log.notes, STOPPED_BY_HAND))
    if not error:
        return replace(log, ending=printed)
    if is_complete:
        last = error.rpartition("\n")[2]
        return replace(log, notes=(*log.notes, f"after training the cell failed: {last}"))
    return replace(log, ending=Ending(traceback=error))


def _error(cell: Cell) -> str:
    """Return the traceback that ended a cell, without colours; "" where none did."""
    errors = (plain(output.text) for output in cell.outputs if output.kind == "error")
    return next(errors, "").rstrip()


def _of_frames(path: Path, cell: Cell) -> list[Training]:
    """Return the trainings in data frames: a column of steps that rises, and a measure."""
    trainings = []
    for output in cell.outputs:
        for table in tables(output.html):
            text = _pipe_table(table)
            log, _ = console.read_text(text, str(path))
            rises = all((np.diff(series.steps) > 0).all() for series in log.series.values())
            if rises and _rows(log) >= MIN_PRINTED_ROWS and not _evaluates(cell.source):
                trainings.append(Training(cell.number, log))
    return trainings


def _pipe_table(table: HtmlTable) -> str:
    """Return a table as text, which the dialect of pasted tables reads."""
    rows = [table.names, *table.rows]
    width = len(table.names) - (1 if table.names[:1] == [""] else 0)
    lines = (" | ".join(cell.replace("|", " ") for cell in row[-width:]) for row in rows)
    return "\n".join(f"| {line} |" for line in lines) if width > 1 else ""


def _failures(path: Path, cell: Cell, last: int) -> list[Training]:
    """Return a training that ended before its first row.

    Below the last one only if it had begun and failed; a person's stop counts where none is above.
    """
    error, has_begun = _failure(cell), bool(_tables_of_trainers(cell))
    is_stopped = bool(_error(cell)) and not error and has_begun and not last
    has_failed = bool(error) and (has_begun or not last)
    # A loop of one's own trains by these calls.
    step = r"\.backward\(|(?:trainer|optimi[sz]er)\w*\.step\("
    trains = TRAINING_CALL.search(cell.source) or re.search(step, cell.source)
    if not (is_stopped or has_failed) or not trains:
        return []
    log = Log("console", {}, {}, where=str(path))
    return [Training(cell.number, _add_ending(log, cell, None, is_complete=False))]


def _never_begun(path: Path, cells: Sequence[Cell], above: Sequence[Training]) -> list[Training]:
    """Return the training whose last configuration raised, below all others.

    Of an algorithm that no other has: a reward model or a supervised stage may stand above it.
    """
    settings = ((cell, call_settings.of_training([cell.source])) for cell in cells)
    configured = [(cell, each["algorithm"]) for cell, each in settings if "algorithm" in each]
    if not configured:
        return []
    cell, algorithm = configured[-1]
    earlier = [name for other, name in configured for t in above if other.number <= t.cell]
    is_below = all(cell.number > training.cell for training in above)
    error = _failure(cell)
    if not error or not is_below or algorithm in {"sft", "reward", "prm", *earlier}:
        return []
    log = Log("console", {}, {}, where=str(path), ending=Ending(traceback=error))
    return [Training(cell.number, log)]


def _failure(cell: Cell) -> str:
    """Return the traceback that ended a cell; "" where none did, or a person's own stop."""
    error = _error(cell)
    return "" if is_interrupt(error) else error


READER = Reader(
    name="notebook",
    title="Jupyter notebook with outputs",
    looks_for="*.ipynb with a training in the outputs of its cells",
    example="train.ipynb",
    files=("*.ipynb",),
    claims=claims,
    read=read,
    sums_up=True,
    claims_single=claims_single,
    split=split,
)

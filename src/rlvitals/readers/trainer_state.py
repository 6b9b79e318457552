"""Read Hugging Face Trainer's (and TRL's) `trainer_state.json`.

One JSON document, rewritten as a whole at each checkpoint: `log_history` holds a row for every
logged step, training and evaluation mixed, and bare NaN. Read from `TrainerState.save_to_json`
of transformers. A copy that was cut short reads as the rows before the cut.
"""

import json
from pathlib import Path

from rlvitals.errors import UnreadableLog, quantity
from rlvitals.readers.formats.columns import Columns, json_number, to_step
from rlvitals.readers.formats.json_lines import Nulls, flatten
from rlvitals.readers.formats.lines import REPLACED_NOTE, open_log
from rlvitals.readers.formats.partial_json import CutShortError, members
from rlvitals.readers.formats.rows import Refusals
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Log, Setting

LOG_HISTORY = "log_history"
MAX_STATE_BYTES = 2**30  # the document is held as a whole


@dataclass(frozen=True, slots=True)
class _Cursor:
    """The rows that earlier readings returned, and what the last of them said."""

    rows: int = 0
    last: str = ""


def claims(path: Path, head: bytes) -> bool:
    """Return True if the file is named as the trainer names it, or starts as its document does."""
    text = head.lstrip()
    return text.startswith(b"{") and (
        path.name == "trainer_state.json" or f'"{LOG_HISTORY}"'.encode() in head
    )


def read(path: Path, previous: Cursor | None = None) -> tuple[Log, Cursor]:
    """Read the rows after a cursor. Raises UnreadableLog."""
    rows, facts, cut = _document(path)
    resume = previous if isinstance(previous, _Cursor) else _Cursor()
    notes = (
        [] if not cut else [f"the file is cut short: {quantity(len(rows), 'row')} before the cut"]
    )
    if resume.rows and (
        len(rows) < resume.rows or json.dumps(rows[resume.rows - 1]) != resume.last
    ):
        notes.append(REPLACED_NOTE)
        resume = _Cursor()
    columns, refused, nulls, settings = (
        Columns(),
        Refusals(position_noun="row"),
        Nulls(),
        _settings(facts),
    )
    for number, row in enumerate(rows[resume.rows :], resume.rows + 1):
        if not isinstance(row, dict):
            refused.add(number, "of log_history is no object")
        elif "train_runtime" in row:
            # The last row of a finished training says this of the whole of it.
            settings |= {
                f"train_{key}": total
                for key in ("runtime", "samples_per_second", "steps_per_second", "loss")
                if (total := json_number(row.get(f"train_{key}"))) is not None
            }
        elif (step := to_step(json_number(row.get("step")))) is None:
            refused.add(number, "of log_history has no step")
        else:
            columns.add_row(step, nulls.numbers(p for p in flatten(row) if p[0] != "step"))
    log = Log(
        source="trainer-state",
        series=columns.series(),
        settings=settings,
        notes=(*notes, *refused.notes(), *nulls.notes()),
        where=str(path),
    )
    return log, _Cursor(len(rows), json.dumps(rows[-1]) if rows else "")


def _document(path: Path) -> tuple[list[object], dict[str, object], bool]:
    """Return the rows of the history, the other members, and whether the file is cut short."""
    with open_log(path) as file:
        too_large = file.seek(0, 2) > MAX_STATE_BYTES
        file.seek(0)
        data = b"" if too_large else file.read(MAX_STATE_BYTES)
    if too_large:
        raise UnreadableLog(
            f"a trainer's state of more than {MAX_STATE_BYTES // 2**20} MiB",
            where=str(path),
            hint="keep its log_history only",
        )
    rows: list[object] = []
    facts: dict[str, object] = {}
    cut, has_history = False, False
    try:
        for name, value in members(data.decode("utf-8-sig", errors="replace"), LOG_HISTORY):
            if name == LOG_HISTORY:
                has_history = True
                rows.append(value)
            else:
                facts[name] = value
    except CutShortError:
        cut = True
    if not rows and (cut or not has_history):
        problem = "is cut short before the first row of" if cut else "has no rows in"
        raise UnreadableLog(
            f"the trainer's state {problem} its {LOG_HISTORY}",
            where=str(path),
            hint="diagnose an older checkpoint of the run",
        )
    return rows, facts, cut


def _settings(facts: dict[str, object]) -> dict[str, Setting]:
    """Return the state's numbers under their names; `max_steps` is the run's `total_steps`."""
    settings: dict[str, Setting] = {}
    names = {
        "max_steps": "total_steps",
        "num_train_epochs": "num_train_epochs",
        "logging_steps": "logging_steps",
        "eval_steps": "eval_steps",
        "save_steps": "save_steps",
        "train_batch_size": "train_batch_size",
        "best_metric": "best_metric",
        "best_global_step": "best_global_step",
        "num_input_tokens_seen": "num_input_tokens_seen",
        "total_flos": "total_flos",
    }
    for key, name in names.items():
        value = facts.get(key)
        if isinstance(value, int | float) and not (name == "total_steps" and value <= 0):
            settings[name] = value
    return settings


READER = Reader(
    name="trainer-state",
    title="Hugging Face Trainer, TRL",
    looks_for="trainer_state.json",
    example="run/checkpoint-500/trainer_state.json",
    files=("*.json",),
    claims=claims,
    read=read,
)

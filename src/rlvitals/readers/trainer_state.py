"""Hugging Face Trainer's (and TRL's) `trainer_state.json`.

One JSON document, rewritten as a whole at each checkpoint: `log_history` holds a row for every
logged step, training and evaluation mixed, and bare NaN. Read from `TrainerState.save_to_json`
of transformers. A copy that was cut short reads as the rows before the cut.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats.columns import Columns, json_number, whole
from rlvitals.readers.formats.json_lines import Nulls, flatten
from rlvitals.readers.formats.lines import REPLACED, opened
from rlvitals.readers.formats.partial_json import CutShortError, members
from rlvitals.readers.formats.rows import Refused
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.types import Log, Setting

HISTORY = "log_history"
MAX_BYTES = 2**30  # the document is held as a whole
# What the last row of a finished training says of the whole of it.
TOTALS = (
    "train_runtime",
    "train_samples_per_second",
    "train_steps_per_second",
    "train_loss",
)
SETTINGS = {
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


@dataclass(frozen=True, slots=True)
class _Seen:
    """The rows that earlier readings returned, and what the last of them said."""

    rows: int = 0
    last: str = ""


def claims(path: Path, head: bytes) -> bool:
    """Tell whether the file is named as the trainer names it, or starts as its document does."""
    text = head.lstrip()
    return text.startswith(b"{") and (
        path.name == "trainer_state.json" or f'"{HISTORY}"'.encode() in head
    )


def read(path: Path, since: Cursor | None = None) -> tuple[Log, Cursor]:
    """Read the rows after a cursor. Raises UnreadableLog."""
    rows, facts, cut = _document(path)
    seen = since if isinstance(since, _Seen) else _Seen()
    notes = [] if not cut else [f"the file is cut short: {len(rows)} rows stand before the cut"]
    if seen.rows and (len(rows) < seen.rows or _text(rows[seen.rows - 1]) != seen.last):
        notes.append(REPLACED)
        seen = _Seen()
    columns, refused, nulls, settings = Columns(), Refused(place="row"), Nulls(), _settings(facts)
    for number, row in enumerate(rows[seen.rows :], seen.rows + 1):
        if not isinstance(row, dict):
            refused.add(number, "of log_history is no object")
        elif "train_runtime" in row:
            settings |= {key: v for key in TOTALS if (v := json_number(row.get(key))) is not None}
        elif (step := whole(json_number(row.get("step")))) is None:
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
    return log, _Seen(len(rows), _text(rows[-1]) if rows else "")


def _text(row: object) -> str:
    return json.dumps(row)


def _document(path: Path) -> tuple[list[object], dict[str, object], bool]:
    """Return the rows of the history, the other members, and whether the file is cut short."""
    with opened(path) as file:
        too_large = file.seek(0, 2) > MAX_BYTES
        file.seek(0)
        data = b"" if too_large else file.read(MAX_BYTES)
    if too_large:
        raise UnreadableLog(
            f"a trainer's state of more than {MAX_BYTES // 2**20} MiB",
            where=str(path),
            hint="keep its log_history only",
        )
    rows: list[object] = []
    facts: dict[str, object] = {}
    cut, found = False, False
    try:
        for name, value in members(data.decode("utf-8-sig", errors="replace"), HISTORY):
            if name == HISTORY:
                found = True
                rows.append(value)
            else:
                facts[name] = value
    except CutShortError:
        cut = True
    if not rows and (cut or not found):
        what = "is cut short before the first row of" if cut else "has no rows in"
        raise UnreadableLog(
            f"the trainer's state {what} its {HISTORY}",
            where=str(path),
            hint="diagnose an older checkpoint of the run",
        )
    return rows, facts, cut


def _settings(facts: dict[str, object]) -> dict[str, Setting]:
    """Return the state's numbers under their names; `max_steps` is the run's `total_steps`."""
    found: dict[str, Setting] = {}
    for key, name in SETTINGS.items():
        value = facts.get(key)
        if isinstance(value, int | float) and not (name == "total_steps" and value <= 0):
            found[name] = value
    return found


READER = Reader(
    name="trainer-state",
    title="Hugging Face Trainer, TRL",
    looks_for="trainer_state.json",
    example="run/checkpoint-500/trainer_state.json",
    files=("*.json",),
    claims=claims,
    read=read,
)

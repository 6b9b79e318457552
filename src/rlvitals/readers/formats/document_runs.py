"""Convert the lists of a JSON document to columns, run by run.

    contents({"dqn/rewards": [...], "ppo/rewards": [...], "gamma": 0.99}, "values", notes)
    # {"dqn": Content, "ppo": Content}, both with gamma among their settings

Lists of one measure under several parents, or under names that differ in the algorithm or the seed,
are several runs; a policy that does not learn ("random", "baseline") is none. Lists of rows are
read by the column that counts their steps, those named for an evaluation under "eval/". Lists of
rows that are named for stages of training ("sft", "dpo", "grpo") are a run each. Numbers under
their steps, {"dev_chrf": {"10": 38.4, "20": 36.0, ...}}, are a list of rows, and so are objects
under theirs, {"1": {"reward": 3.5}, "2": {...}}, and lists of points, {"reward": [{"step": 1,
"value": 3.5}, ...]}.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.formats import column_guess, lists, run_labels
from rlvitals.readers.formats.columns import (
    MAX_SETTING_CHARACTERS,
    NAN,
    Columns,
    json_number,
    to_step,
)
from rlvitals.readers.formats.json_lines import flatten
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Setting

# Parents of lists that are parts of one run.
EVALUATION_LIST_WORDS = frozenset(
    {"eval", "evaluation", "evaluations", "test", "val", "validation", "dev"}
)
Rows = Sequence[Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Content:
    """The columns and settings of one run in a document."""

    columns: Columns
    settings: dict[str, Setting]
    unit: str  # of the steps
    notes: list[str]


@dataclass(slots=True)
class _Lists:
    """Lists of one run by name: of numbers, and of rows."""

    numbers: dict[str, NDArray[np.float64]]
    rows: dict[str, Rows]


def contents(leaves: Mapping[str, object], unnamed: str, notes: list[str]) -> dict[str, Content]:
    """Return the runs of a document by name, one without a name where it holds a single run.

    `leaves` are its values under names joined by "/"; `unnamed` is the measure of lists whose names
    hold none.
    """
    by_step = _rows_by_step(leaves) | _rows_of_points(leaves)
    arrays = {key: array for key, value in leaves.items() if (array := _array(value)) is not None}
    # Beside a history stand results of the trained policy, and of others.
    history = {k: a for k, a in arrays.items() if "history" in _tokens(k.rpartition("/")[0])}
    has_outcome = any(column_guess.is_measure(k) and "loss" not in k.lower() for k in history)
    if len({key.rpartition("/")[0] for key in history}) == 1:
        history = {key.rpartition("/")[2]: array for key, array in history.items()}
    document = _Lists(
        history if has_outcome else arrays,
        {key: rows for key, value in leaves.items() if (rows := _rows(value))} | by_step,
    )
    settings: dict[str, Setting] = {
        key: value[:MAX_SETTING_CHARACTERS] if isinstance(value, str) else value
        for key, value in leaves.items()
        if isinstance(value, str | bool | int | float) and key.rpartition("/")[0] not in by_step
    }
    runs = _by_run(document, unnamed)
    if not runs:
        return {"": _content(document, settings, notes)}
    labels = run_labels.short_labels(label for label in runs)
    left_out = [label for label in runs if run_labels.is_baseline(label)]
    learning = _learning(runs)
    common, by_run = _settings_by_run(settings, runs)
    if left_out:
        notes = [*notes, f"not judged, it does not learn: {', '.join(left_out)}"]
    return {
        labels[label]: _content(runs[label], common | by_run.get(label, {}), notes)
        for label in learning
    }


def _learning(runs: Mapping[str, object]) -> list[str]:
    """Return the labels of the runs that are read: those that learn, the first of them."""
    labels = (label for label in runs if not run_labels.is_baseline(label))
    return list(islice(labels, 200))


def _rows_by_step(leaves: Mapping[str, object]) -> dict[str, Rows]:
    """Return the rows of each object whose keys are steps: "dev_chrf/10", or "10/reward"."""
    rows_by_step: dict[str, dict[int, dict[str, object]]] = defaultdict(dict)
    for key, value in leaves.items():
        cell = re.fullmatch(r"(?:(?P<name>.+?)/)?(?P<step>\d{1,15})(?:/(?P<measure>[^/]+))?", key)
        if cell is None or json_number(value) is None or not (cell["name"] or cell["measure"]):
            continue
        name, measure = cell["name"] or "history", cell["measure"]
        row = rows_by_step[name].setdefault(int(cell["step"]), {"step": int(cell["step"])})
        row[measure or name.rpartition("/")[2]] = value
    return {
        name: list(rows.values())
        for name, rows in rows_by_step.items()
        if name not in leaves
        and len(rows) >= lists.MIN_LIST_POINTS
        and list(rows) == sorted(rows)
        and (_is_evaluation(name) or any(map(column_guess.is_measure, next(iter(rows.values())))))
    }


def _rows_of_points(leaves: Mapping[str, object]) -> dict[str, Rows]:
    """Return the rows of lists of points, by the first part of their names where these repeat."""
    points = {
        tuple(key.split("/")): value
        for key, value in leaves.items()
        if isinstance(value, list)
        and len(value) >= lists.MIN_LIST_POINTS
        and all(isinstance(item, dict) and {"step", "value"} <= item.keys() for item in value)
    }
    if not any(column_guess.is_measure("/".join(path)) for path in points):
        return {}
    width = 0  # of what all names begin with
    while len({path[: width + 1] for path in points}) == 1 and min(map(len, points)) > width + 1:
        width += 1
    repeats = Counter(path[width + 1 :] for path in points if len(path) > width + 1)
    cut = width + (repeats.total() == len(points) and max(repeats.values()) > 1)
    rows_by_name: dict[str, dict[object, dict[str, object]]] = defaultdict(dict)
    for path, items in points.items():
        rows = rows_by_name["/".join(path[width:cut]) or "history"]
        for item in items:
            row = rows.setdefault(item["step"], {"step": item["step"]})
            row["/".join(path[cut:])] = item["value"]
    return {name: list(rows.values()) for name, rows in rows_by_name.items()}


def _array(value: object) -> NDArray[np.float64] | None:
    if not isinstance(value, list) or len(value) < lists.MIN_LIST_POINTS:
        return None
    # One number in a list of its own, as a vector of environments has it.
    items = [item[0] if isinstance(item, list) and len(item) == 1 else item for item in value]
    numbers = [json_number(item) for item in items]
    if all(number is None for number in numbers):
        return None
    return np.array([NAN if number is None else number for number in numbers])


def _rows(value: object) -> Rows:
    """Return a list of objects with a measure among their numbers; empty for anything else."""
    if not isinstance(value, list) or len(value) < lists.MIN_LIST_POINTS:
        return []
    rows = [item for item in value if isinstance(item, dict)]
    return rows if len(rows) == len(value) and _outcomes(rows) | _losses(rows) else []


def _numbers(rows: Rows) -> frozenset[str]:
    return frozenset(k for k, v in flatten(rows[0]) if json_number(v) is not None)


def _losses(rows: Rows) -> frozenset[str]:
    return frozenset(k for k in _numbers(rows) if "loss" in k.lower())


def _outcomes(rows: Rows) -> frozenset[str]:
    return frozenset(filter(column_guess.is_measure, _numbers(rows))) - _losses(rows)


def _is_evaluation(key: str) -> bool:
    return bool(EVALUATION_LIST_WORDS & _tokens(key))


def _tokens(key: str) -> set[str]:
    return set(re.findall(r"[a-z]+", key.lower()))


def _by_run(document: _Lists, unnamed: str) -> dict[str, _Lists]:
    """Return the lists of each run by its label; empty where all are of one run."""
    runs: dict[str, _Lists] = defaultdict(lambda: _Lists({}, {}))
    trained = {key: rows for key, rows in document.rows.items() if not _is_evaluation(key)}
    shared = Counter(name for rows in trained.values() for name in _outcomes(rows))
    for key, rows in trained.items():
        if any(shared[name] > 1 for name in _outcomes(rows)):
            runs[key].rows[""] = rows
    # Different metrics judge several trainings in a row.
    stage = (
        r"(?:.*/)?(?:stage_?\d*_?|phase_?\d*_?)?"
        r"(?:sft|dpo|kto|orpo|ipo|simpo|grpo|ppo|rloo|reinforce|rm|reward_model|rlhf|rlvr)"
        r"(?:_(?:history|log|log_history|curve|metrics|stage|training))?"
    )
    stages = [key for key in trained if re.fullmatch(stage, key.lower())]
    if len(runs) < len(stages) and len(stages) > 1:
        runs.clear()
        for key in stages:
            runs[key].rows[""] = trained[key]
    if len(runs) > 1:
        return runs
    labels = _labels(document.numbers, unnamed)
    for key, (label, name) in labels.items():
        runs[label].numbers[name] = document.numbers[key]
    steps = [key for key in column_guess.step_keys(document.numbers) if key not in labels]
    for label in _learning(runs):
        for key in steps[:20]:  # the most trusted first
            runs[label].numbers[key] = document.numbers[key]
    return runs if len(runs) > 1 else {}


def _labels(arrays: Mapping[str, object], unnamed: str) -> dict[str, tuple[str, str]]:
    """Return (label of the run, name of the list) for each list, where there are several runs."""
    by_parent = {key: (key.rpartition("/")[0], key.rpartition("/")[2]) for key in arrays}
    by_parent = {
        key: pair
        for key, pair in by_parent.items()
        if pair[0] and not (EVALUATION_LIST_WORDS | {"train", "training"}) & _tokens(pair[0])
    }
    by_word = {key: run_labels.split_label(key) for key in arrays}
    by_word = {key: (label, name or unnamed) for key, (label, name) in by_word.items() if label}
    for pairs in (by_parent, by_word):
        measures = Counter(
            name for _, name in pairs.values() if column_guess.is_measure(name) or name == unnamed
        )
        shared = {name for name, count in measures.items() if count > 1 and "loss" not in name}
        shared -= arrays.keys()  # beside a list of the run itself these are parts of it
        labels = {label for label, name in pairs.values() if name in shared}
        if len(labels) > 1:
            return {key: pair for key, pair in pairs.items() if pair[0] in labels}
    return {}


def _settings_by_run(
    settings: Mapping[str, Setting], runs: Mapping[str, object]
) -> tuple[dict[str, Setting], dict[str, dict[str, Setting]]]:
    """Return the settings under no run's name, and those under the name of each run."""
    common: dict[str, Setting] = {}
    by_run: dict[str, dict[str, Setting]] = defaultdict(dict)
    for key, value in settings.items():
        parents = (key[: match.start()] for match in re.finditer("/", key))
        labels = [parent for parent in parents if parent in runs]
        for label in labels:
            by_run[label][key.removeprefix(f"{label}/")] = value
        if not labels:
            common[key] = value
    return common, by_run


def _content(document: _Lists, settings: dict[str, Setting], notes: list[str]) -> Content:
    # Episodes played after training, logged with those of training.
    evaluations = dict.fromkeys(key for key in document.numbers if _is_evaluation(key))
    sizes = {len(array) for key, array in document.numbers.items() if key not in evaluations}
    sizes |= {len(document.numbers[key]) for key in column_guess.step_keys(document.numbers)}
    final = [key for key in evaluations if sizes and len(document.numbers[key]) not in sizes]
    columns, unit = lists.columns({k: a for k, a in document.numbers.items() if k not in final})
    if final:
        notes = [
            *notes,
            f"evaluations without steps are not read: {', '.join(final[:4])}",
        ]
    notes = [*notes, *([lists.NUMBERED_NOTE] if unit == "rows" and len(columns) else [])]
    # Training first: it says what the steps are.
    for key, rows in sorted(document.rows.items(), key=lambda pair: _is_evaluation(pair[0])):
        step_key = _step_key(rows)
        rows_unit = column_guess.step_unit(step_key) if step_key else "rows"
        if not len(columns):
            unit = rows_unit
        elif rows_unit != unit:
            notes.append(f"`{key}` is not read: it counts {rows_unit}, the lists beside it {unit}")
            continue
        prefix = "eval/" if _is_evaluation(key) else ""
        for number, row in enumerate(rows, 1):
            values = {name: json_number(value) for name, value in flatten(row)}
            step = to_step(values.pop(step_key, None)) if step_key else number
            if step is not None:  # `_step_key` chose a key that every row has
                pairs = [
                    (name if name.startswith(("eval", "test", "val_")) else f"{prefix}{name}", n)
                    for name, n in values.items()
                ]
                columns.add_row(step, pairs)
        if rows_unit == "rows":
            notes.append(lists.NUMBERED_NOTE)
    return Content(columns, settings, unit, list(dict.fromkeys(notes)))


def _step_key(rows: Rows) -> str:
    """Return the key that counts the rows' steps; "" where none does."""
    cells = [dict(flatten(row)) for row in rows]
    shared_keys = set(cells[0]).intersection(*cells[1:])
    for key in column_guess.step_keys(_numbers(rows) & shared_keys):
        values = [json_number(row[key]) for row in cells]
        if lists.counts(np.array([NAN if value is None else value for value in values])):
            return key
    return ""

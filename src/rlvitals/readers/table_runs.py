"""Find the runs that one table holds: by a column that names them, by columns, by restarts.

algorithm,seed,episode,reward      a run for each algorithm and seed
episode,dqn_reward,ppo_reward      a run for each algorithm
episode,dqn,ppo                    the same, in a file that is named for rewards
episode,reward                     an attempt each time that the episodes start again
"""

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import islice

from rlvitals.readers.formats import column_guess, run_labels
from rlvitals.readers.formats.table_head import cell_number
from rlvitals.startup.fast_dataclass import dataclass

MIN_RUN_ROWS = 5
MAX_TABLE_RUNS = 100
MAX_SPLIT_BYTES = 2**24  # of a file: a larger one is read as one run


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows and columns of one run in a table."""

    cells: Mapping[str, str] = field(default_factory=dict)  # text of a column in its rows
    attempt: int | None = None  # from 0: restarts of the step column before its rows
    columns: Mapping[str, str] = field(default_factory=dict)  # names, where they hold a label
    left_out: frozenset[str] = frozenset()  # columns of other runs


def selections(
    names: Sequence[str], steps: Sequence[str], text: str, delimiter: str, measure: str = ""
) -> dict[str, Selection]:
    """Return each run's rows and columns by its name; empty where the table is one run.

    `names` are the columns, `steps` those that may count, the most trusted first, and `text` the
    rows. `measure` is what the file's name says that its numbers are.
    """
    if by_column := _by_columns(names) or _by_algorithms(names, steps, measure):
        return by_column
    rows = [row for row in csv.reader(text.splitlines(), delimiter=delimiter)
            if len(row) == len(names)]  # fmt: skip
    if by_cell := _by_cells(names, steps, rows):
        return by_cell
    if not steps:
        return {}
    # An attempt begins where the step column starts again from its first number.
    place = names.index(steps[0])
    sizes = attempt_sizes([n for row in rows if (n := cell_number(row[place])) is not None])
    return {f"attempt {i + 1}": Selection(attempt=i) for i in range(len(sizes))}


def _by_columns(names: Sequence[str]) -> dict[str, Selection]:
    """Return a run for each label in the names of columns of one measure."""
    labelled = {name: run_labels.split_label(name) for name in names}
    runs: dict[str, dict[str, str]] = defaultdict(dict)
    for name, (label, measure) in labelled.items():
        if label and measure:
            runs[label][name] = measure
    shared = [set(columns.values()) for columns in runs.values()]
    common = {
        measure
        for measure in set().union(*shared)
        if column_guess.is_measure(measure) and "loss" not in measure
        and sum(measure in measures for measures in shared) > 1
    }  # fmt: skip
    learning = {
        label: columns
        for label, columns in runs.items()
        if common & set(columns.values()) and not run_labels.is_baseline(label)
    }
    every = frozenset(name for columns in runs.values() for name in columns)
    return {
        label: Selection(columns=columns, left_out=every - columns.keys())
        for label, columns in islice(learning.items(), MAX_TABLE_RUNS)
    }


def _by_algorithms(
    names: Sequence[str], steps: Sequence[str], measure: str
) -> dict[str, Selection]:
    """Return a run for each column where all of them are algorithms, of the file's `measure`."""
    columns = [name for name in names if name not in steps]
    if not measure or "loss" in measure or len(columns) != len(set(columns)):
        return {}
    if len(columns) < 2 or not all(
        run_labels.split_label(name)[0] and not column_guess.is_measure(name) for name in columns
    ):  # to compare
        return {}
    learning = [name for name in columns if not run_labels.is_baseline(name)]
    return {
        name: Selection(columns={name: measure}, left_out=frozenset(columns) - {name})
        for name in learning[:MAX_TABLE_RUNS]
    }


def _by_cells(
    names: Sequence[str], steps: Sequence[str], rows: Sequence[Sequence[str]]
) -> dict[str, Selection]:
    """Return a run for each text, or each pair of texts, in columns that name runs."""
    # Columns that name the run a row is of. Those of the second list only where a run's rows stand
    # together: of several agents or policies in one run each row has another.
    for wanted, in_blocks in (
        (("algorithm", "algo", "seed", "run", "run_id", "run_name", "trial", "experiment"), False),
        (("agent", "method", "policy", "model", "variant", "condition", "strategy", "name"), True),
    ):
        columns = [name for name in names if column_guess.normalise_name(name) in wanted]
        columns = [name for name in columns if name not in steps[:1]]
        places = [names.index(name) for name in columns]
        groups: dict[tuple[str, ...], int] = defaultdict(int)
        blocks, last = 0, None
        for row in rows:
            key = tuple(row[place].strip() for place in places)
            groups[key] += 1
            blocks += key != last
            last = key
        too_short = min(groups.values(), default=0) < MIN_RUN_ROWS
        if not 1 < len(groups) <= MAX_TABLE_RUNS or too_short:
            continue
        if in_blocks and blocks > len(groups):
            continue
        varying = [i for i in range(len(columns)) if len({key[i] for key in groups}) > 1]
        return {
            ", ".join(_run_name(columns[i], key[i]) for i in varying): Selection(
                dict(zip(columns, key, strict=True))
            )
            for key in groups
            if not run_labels.is_baseline("_".join(key))
        }
    return {}


def _run_name(column: str, cell: str) -> str:
    return (
        f"{column} {cell}" if cell_number(cell) is not None or not cell else cell.replace("/", "_")
    )


def attempt_sizes(values: Sequence[float], share: float = 0.0) -> list[int]:
    """Return the rows of each attempt, given the numbers of a step column; none for a single.

    An attempt begins up to the first number, or up to a `share` of the number before it.
    """
    sizes = [0]
    for i, value in enumerate(values):
        if i and restarts(max(values[0], share * values[i - 1]), values[i - 1], value):
            sizes.append(0)
        sizes[-1] += 1
    # More restarts are a counter within something, not attempts.
    return sizes if 1 < len(sizes) <= 20 and min(sizes) >= MIN_RUN_ROWS else []


def restarts(first: float, last: float, step: float) -> bool:
    """Return True if a step column starts again: at or before its first number, after a later."""
    return step <= first < last

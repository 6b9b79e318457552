"""Write the logs of any reader as a native run folder."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from rlvitals.errors import UsageError
from rlvitals.metrics.frameworks import GENERIC, TABLES, lookup
from rlvitals.storage import redact
from rlvitals.storage.blocks import Writer
from rlvitals.storage.run_folder import About, RunFolder, is_run
from rlvitals.types import Log, Series

ROWS_PER_BLOCK = 65536  # of a block


def write(logs: Sequence[Log], path: Path, name: str = "") -> RunFolder:
    """Write the logs of a run into a new run folder.

    Raises UsageError where the folder holds a run, OSError.
    """
    if is_run(path):
        raise UsageError("a run is here already", where=str(path), hint="name another folder")
    main = _fullest(logs)
    # Known where its keys or its reader tell.
    table = lookup.choose(main.source, main.series, TABLES, main.framework)
    framework = "" if table is None or table is GENERIC else table.framework
    info = About(
        name=name,
        settings={key: value for log in reversed(logs) for key, value in log.settings.items()},
        framework=framework,
        notes="\n".join(f"{log.source}: {note}" for log in logs for note in log.notes),
        more={"step_unit": main.step_unit, "imported": [log.source for log in logs]},
    )
    folder, number, block_file = RunFolder.create(path, info).begin()
    writer = Writer(block_file)
    for log in logs:
        _write_media(writer, log, _prefix(log, main))
    # Series with the same steps and times share a key table.
    groups: dict[tuple[bytes, bytes], dict[str, Series]] = defaultdict(dict)
    for key, column in merge_series(logs).items():
        groups[column.steps.tobytes(), column.times.tobytes()][key] = column
    for group in groups.values():
        steps, times = next((column.steps, column.times) for column in group.values())
        for begin in range(0, len(steps), ROWS_PER_BLOCK):
            rows = slice(begin, begin + ROWS_PER_BLOCK)
            values = [column.values[rows] for column in group.values()]
            writer.scalars(tuple(group), steps[rows], times[rows], values)
            writer.flush()
    writer.close()
    for ending in (log.ending for log in logs if log.ending is not None):
        facts = {"exit_code": ending.exit_code, "traceback": ending.traceback}
        facts |= {"signal": ending.signal, "reason": ending.reason}
        folder.events.append("finish", ending.step, attempt=number, **facts)
    return folder


def merge_series(logs: Sequence[Log]) -> dict[str, Series]:
    """Merge the series of a run's logs.

    Logs that count the same steps as the fullest share its keys: of a key that two logs have, the
    fuller column is taken. Keys of a log that counts other steps are prefixed with its source.
    """
    main = _fullest(logs)
    columns: dict[str, Series] = {}
    for log in logs:
        for key, series in log.series.items():
            name = _prefix(log, main) + key
            if name not in columns or len(series) > len(columns[name]):
                columns[name] = series
    return columns


def _fullest(logs: Sequence[Log]) -> Log:
    return max(logs, key=lambda log: sum(map(len, log.series.values())))


def _prefix(log: Log, main: Log) -> str:
    return "" if log.step_unit == main.step_unit else f"{log.source}/"


def _write_media(writer: Writer, log: Log, prefix: str) -> None:
    for key, histograms in log.histograms.items():
        for histogram in histograms:
            writer.histogram(prefix + key, histogram)
    for key, texts in log.texts.items():
        for text in texts:
            clean = str(redact.cell(key, text.text))
            writer.text(prefix + redact.text(key), replace(text, text=clean))
    for key, table in log.tables.items():
        columns = {
            redact.text(name): [redact.cell(name, cell) for cell in cells]
            for name, cells in table.columns.items()
        }
        clean_table = replace(table, steps=np.asarray(table.steps), columns=columns)
        writer.table(prefix + redact.text(key), clean_table)
    writer.flush()

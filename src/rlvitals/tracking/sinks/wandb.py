"""Send a run to Weights & Biases: the run's id is its id there, so it resumes.

Options are `wandb.init`'s own: `sinks={"wandb": {"entity": "lab", "mode": "offline"}}`. Some are
ours: `every` sends a row of so many steps, and the last; `names` and `prefix` rename keys; `label`
ends the run's id, and so the name of its folder.

Where nobody is logged in and nothing says how it is to be, the run is kept offline, and a person is
told: W&B would ask in the middle of a training, or keep nothing.

Rows are logged with their step as a metric, which W&B uses as the x-axis: its own step may
never go back, and would drop the rows of a second kind, or of a resumed run, without a word.
"""

import logging
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from rlvitals.storage import redact
from rlvitals.tracking.sinks import file_layout
from rlvitals.tracking.sinks.lazy import open_lazily
from rlvitals.tracking.sinks.sink import Opening, Rows, Sink
from rlvitals.tracking.sinks.tags import tags
from rlvitals.types import Histogram, Table, Text

WANDB_STEP_METRIC = "step"


class WandbRun:
    """The W&B run of a recording."""

    def __init__(self, opening: Opening) -> None:
        """Begin or resume the run. Raises whatever W&B raises."""
        import wandb  # noqa: PLC0415 - an optional package

        self._wandb: Any = wandb
        label = opening.options.get("label")
        # These options are not W&B's.
        arguments: dict[str, Any] = {
            "project": opening.project or None,
            "name": opening.name or None,
            "group": opening.group or None,
            "id": f"{opening.run_id}-{label}" if label else opening.run_id,
            "dir": str(opening.folder),
            "config": dict(opening.settings),
            "resume": "allow",
            "reinit": "create_new",  # a run that the script has there is its own
            # W&B notes the command line as it is.
            "settings": wandb.Settings(
                console="off", x_disable_meta=redact.command(sys.argv) != tuple(sys.argv)
            ),
            **{
                name: value
                for name, value in opening.options.items()
                if name not in ("every", "label", "names", "prefix")
            },
        }
        if not {"mode", "settings"} & opening.options.keys() and is_logged_out(wandb):
            logging.getLogger(__name__).warning(
                "sink wandb: nobody is logged in, so the run is kept offline: "
                "`wandb sync` sends it, `wandb login` sends the next"
            )
            arguments["mode"] = "offline"
        self._tag = tags(opening.options)
        self._every = file_layout.count_option(opening.options.get("every"), 1)
        self._sent: dict[tuple[str, ...], int] = {}  # the step of the last row of a layout
        self._held: dict[tuple[str, ...], dict[str, float]] = {}  # a later one, not sent
        self._run: Any = wandb.init(**arguments)
        self._run.define_metric(WANDB_STEP_METRIC, hidden=True)
        self._run.define_metric("*", step_metric=WANDB_STEP_METRIC)

    def scalars(self, rows: Rows) -> None:
        """Log the rows that are `every` steps apart; keep the last of the others."""
        cells = zip(rows.steps.tolist(), rows.times.tolist(), rows.values.tolist(), strict=True)
        names = tuple(map(self._tag, rows.keys))
        for step, time, row in cells:
            message = {
                **dict(zip(names, row, strict=True)),
                WANDB_STEP_METRIC: step,
                "_timestamp": time,
            }
            last_step = self._sent.get(names)
            if last_step is not None and last_step < step < last_step + self._every:
                self._held[names] = message
                continue
            self._sent[names] = step
            self._held.pop(names, None)
            self._run.log(message)

    def histogram(self, key: str, histogram: Histogram) -> None:
        """Log a histogram of at most 512 bins: neighbours are put together."""
        edges, counts = merge_bins(histogram, 512)  # the most bins that W&B takes
        media = self._wandb.Histogram(np_histogram=(counts, edges))
        self._run.log({self._tag(key): media, WANDB_STEP_METRIC: histogram.step})

    def text(self, key: str, text: Text) -> None:
        """Log a text as a table of one row."""
        table = self._wandb.Table(
            columns=[WANDB_STEP_METRIC, "text"], data=[[text.step, text.text]]
        )
        self._run.log({key: table, WANDB_STEP_METRIC: text.step})

    def table(self, key: str, table: Table) -> None:
        """Log a table's first 10,000 rows."""
        rows = list(zip(table.steps.tolist(), *table.columns.values(), strict=True))
        media = self._wandb.Table(
            columns=[WANDB_STEP_METRIC, *table.columns],
            data=[list(row) for row in rows[:10_000]],
            allow_mixed_types=True,
        )
        self._run.log({key: media, WANDB_STEP_METRIC: rows[-1][0] if rows else 0})

    def settings(self, step: int, changed: Mapping[str, object]) -> None:
        """Change the run's config."""
        del step
        self._run.config.update(dict(changed), allow_val_change=True)

    def event(self, kind: str, step: int | None, facts: Mapping[str, object]) -> None:
        """Leave events out."""

    def flush(self) -> None:
        """Do nothing: W&B sends from its own process."""

    def close(self, status: str) -> None:
        """Send the last rows, and finish the run."""
        for message in self._held.values():
            self._run.log(message)
        self._run.finish(exit_code=0 if status == "finished" else 1)


def is_logged_out(wandb: Any) -> bool:  # noqa: ANN401 - a module without types
    """Return whether W&B would be online and knows no account; uses no network."""
    if wandb.run is not None or wandb.setup().settings.mode != "online":
        return False
    try:
        return not wandb.login(prompt=False, verify=False)
    except TypeError:  # before 0.31 it could not be asked so
        return False


def merge_bins(histogram: Histogram, max_bins: int) -> tuple[list[float], list[float]]:
    """Return edges and counts of at most so many bins; outer edges become finite."""
    group_size = -(-len(histogram.counts) // max_bins)
    starts = np.arange(0, len(histogram.counts), group_size)
    edges = np.append(histogram.edges[starts], histogram.edges[-1])
    inner = histogram.edges[np.isfinite(histogram.edges)]
    low, high = (inner[0], inner[-1]) if len(inner) else (0.0, 1.0)
    return np.clip(edges, low, high).tolist(), np.add.reduceat(histogram.counts, starts).tolist()


SINK = Sink("wandb", "Weights & Biases", "wandb", open_lazily(WandbRun, "wandb"))

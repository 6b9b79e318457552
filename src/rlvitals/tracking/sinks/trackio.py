"""Send a run to Trackio: the same project and name are the same run there.

Options are `trackio.init`'s own: `sinks={"trackio": {"space_id": "me/runs"}}`.
"""

from collections.abc import Mapping
from typing import Any

from rlvitals.tracking.sinks.lazy import open_lazily
from rlvitals.tracking.sinks.sink import Opening, Rows, Sink
from rlvitals.types import Histogram, Table, Text


class TrackioRun:
    """The Trackio run of a recording."""

    def __init__(self, opening: Opening) -> None:
        """Begin or resume the run. Raises whatever Trackio raises."""
        import trackio  # noqa: PLC0415 - an optional package

        self._trackio: Any = trackio
        arguments: dict[str, Any] = {
            "project": opening.project or "rlvitals",
            "name": opening.name or opening.run_id,
            "group": opening.group or None,
            "config": dict(opening.settings),
            "resume": "allow",
            "embed": False,
            "auto_log_gpu": False,  # the run samples the machine itself
            "auto_log_cpu": False,
            **opening.options,
        }
        self._run: Any = trackio.init(**arguments)

    def scalars(self, rows: Rows) -> None:
        """Log each row."""
        for step, row in zip(rows.steps.tolist(), rows.values.tolist(), strict=True):
            self._run.log(dict(zip(rows.keys, row, strict=True)), step=step)

    def histogram(self, key: str, histogram: Histogram) -> None:
        """Log a histogram."""
        bins = (histogram.counts.tolist(), histogram.edges.tolist())
        media = self._trackio.Histogram(np_histogram=bins)
        self._run.log({key: media}, step=histogram.step)

    def text(self, key: str, text: Text) -> None:
        """Log a text."""
        self._run.log({key: self._trackio.Markdown(text.text)}, step=text.step)

    def table(self, key: str, table: Table) -> None:
        """Log a table."""
        rows = list(zip(table.steps.tolist(), *table.columns.values(), strict=True))
        media = self._trackio.Table(columns=["step", *table.columns], data=[list(r) for r in rows])
        self._run.log({key: media}, step=rows[-1][0] if rows else 0)

    def settings(self, step: int, changed: Mapping[str, object]) -> None:
        """Log changed settings as a text: a config there is that of the start."""
        lines = "\n".join(f"* {key}: {value}" for key, value in changed.items())
        self._run.log({"settings/changed": self._trackio.Markdown(lines)}, step=step)

    def event(self, kind: str, step: int | None, facts: Mapping[str, object]) -> None:
        """Leave events out."""

    def flush(self) -> None:
        """Do nothing: Trackio writes from its own thread."""

    def close(self, status: str) -> None:
        """Finish the run, saying how it ended where it did not finish."""
        if status != "finished":
            self._run.alert(title="run ended", text=status)
        self._run.finish()


SINK = Sink("trackio", "Trackio", "trackio", open_lazily(TrackioRun, "trackio"))

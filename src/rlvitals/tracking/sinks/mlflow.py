"""Send a run to MLflow. A tag with the run's id finds the run again on resume.

Options: `tracking_uri` (else MLflow's own, `MLFLOW_TRACKING_URI`) and `experiment` (else the
run's project). Histograms, texts and tables become artifacts.
"""

import re
import time as clock
from collections.abc import Mapping
from typing import Any

from rlvitals.tracking.sinks.flatten import flatten
from rlvitals.tracking.sinks.lazy import open_lazily
from rlvitals.tracking.sinks.sink import Opening, Rows, Sink
from rlvitals.types import Histogram, Table, Text

ID_TAG = "rlvitals.run_id"
MAX_BATCH_METRICS, MAX_BATCH_PARAMS = 1000, 100  # MLflow's limits of one request


class MlflowRun:
    """The MLflow run of a recording."""

    def __init__(self, opening: Opening) -> None:
        """Begin or resume the run. Raises whatever MLflow raises."""
        from mlflow import entities  # noqa: PLC0415 - an optional package
        from mlflow.tracking import MlflowClient  # noqa: PLC0415

        self._entities: Any = entities
        uri = opening.options.get("tracking_uri")
        self._client: Any = MlflowClient(tracking_uri=str(uri) if uri else None)
        name = str(opening.options.get("experiment") or opening.project or "rlvitals")
        experiment = self._experiment_id(name)
        query = f"tags.`{ID_TAG}` = '{opening.run_id}'"
        runs = self._client.search_runs([experiment], query, max_results=1)
        if runs:
            self._id = runs[0].info.run_id
            self._client.update_run(self._id, "RUNNING")
            return
        tags = {ID_TAG: opening.run_id, "group": opening.group}
        run = self._client.create_run(experiment, tags=tags, run_name=opening.name or None)
        self._id = run.info.run_id
        param = self._entities.Param
        params = [param(plain(key), str(value)) for key, value in flatten(opening.settings).items()]
        for first in range(0, len(params), MAX_BATCH_PARAMS):
            self._client.log_batch(self._id, params=params[first : first + MAX_BATCH_PARAMS])

    def _experiment_id(self, name: str) -> str:
        """Return the id of the experiment; create it where it is absent."""
        experiment = self._client.get_experiment_by_name(name)
        if experiment is None:
            try:
                return str(self._client.create_experiment(name))
            except Exception:
                # Another process, or a request that was sent twice, has created it meanwhile.
                experiment = self._client.get_experiment_by_name(name)
                if experiment is None:
                    raise
        return str(experiment.experiment_id)

    def scalars(self, rows: Rows) -> None:
        """Log rows, a thousand numbers in a request."""
        metric, keys = self._entities.Metric, [plain(key) for key in rows.keys]
        cells = zip(rows.steps.tolist(), rows.times.tolist(), rows.values.tolist(), strict=True)
        points = [
            metric(key, value, round(time * 1000), step)
            for step, time, row in cells
            for key, value in zip(keys, row, strict=True)
        ]
        for first in range(0, len(points), MAX_BATCH_METRICS):
            self._client.log_batch(self._id, metrics=points[first : first + MAX_BATCH_METRICS])

    def histogram(self, key: str, histogram: Histogram) -> None:
        """Log a histogram as a JSON artifact."""
        content = {"edges": histogram.edges.tolist(), "counts": histogram.counts.tolist()}
        path = f"histograms/{plain(key)}/{histogram.step}.json"
        self._client.log_dict(self._id, content, path)

    def text(self, key: str, text: Text) -> None:
        """Log a text as an artifact."""
        self._client.log_text(self._id, text.text, f"texts/{plain(key)}/{text.step}.md")

    def table(self, key: str, table: Table) -> None:
        """Log a table as a JSON artifact, in the form that `mlflow.load_table` reads."""
        rows = [
            list(row) for row in zip(table.steps.tolist(), *table.columns.values(), strict=True)
        ]
        content = {"columns": ["step", *table.columns], "data": rows}
        path = f"tables/{plain(key)}/{rows[-1][0] if rows else 0}.json"
        self._client.log_dict(self._id, content, path)

    def settings(self, step: int, changed: Mapping[str, object]) -> None:
        """Log changed settings as tags: a parameter there never changes."""
        del step
        for key, value in flatten(changed).items():
            self._client.set_tag(self._id, plain(key), str(value))

    def event(self, kind: str, step: int | None, facts: Mapping[str, object]) -> None:
        """Leave events out."""

    def flush(self) -> None:
        """Do nothing: every request has been answered."""

    def close(self, status: str) -> None:
        """End the run."""
        state = {
            "finished": "FINISHED",
            "killed": "KILLED",
            "interrupted": "KILLED",
        }.get(status, "FAILED")
        self._client.set_terminated(self._id, state, int(clock.time() * 1000))


def plain(key: str) -> str:
    """Return a key as MLflow takes it: letters, digits and "_-. :/", and no way out of a folder."""
    names = re.sub(r"[^\w\-. :/]", "_", key).split("/")
    return "/".join(name for name in names if name.strip(". "))[:250] or "_"


SINK = Sink("mlflow", "MLflow", "mlflow", open_lazily(MlflowRun, "mlflow"))

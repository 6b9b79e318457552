"""Fetch the runs of an MLflow server into the layout of MLflow's own file store.

`mlflow:http://host:5000` is every experiment, `.../#/experiments/3` one of them and
`.../#/experiments/3/runs/ID` one run, as pasted from the browser. A metric's history is fetched
where its last point differs from the one at hand; a finished run that is complete is not asked
for again.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from rlvitals.errors import UnreadableLog, UsageError, VitalsError, harmless
from rlvitals.hosted.remote_files import Show
from rlvitals.storage import redact
from rlvitals.storage.safe_files import atomic_write

RUN_ID = re.compile(r"\w{1,64}")
MLFLOW_RETRIES = "2"  # of MLflow's client, which else waits for minutes


def fetch(location: str, folder: Path, since_s: float | None, show: Show) -> None:
    """Bring the copy of a server's runs up to date. Raises UsageError, VitalsError."""
    match = re.fullmatch(
        r"(?P<server>.+?)(?:/?#?/experiments/(?P<experiment>\d+)(?:/runs/(?P<run>\w+))?)?(?:[?].*)?/?",
        location,
    )
    if match is None or not location.strip():
        raise UsageError("no MLflow server is named", hint="mlflow:http://host:5000")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", MLFLOW_RETRIES)
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")  # seconds
    try:
        from mlflow.exceptions import MlflowException  # noqa: PLC0415 - optional
        from mlflow.tracking import MlflowClient  # noqa: PLC0415
    except ImportError:
        hint = "pip install mlflow-skinny"
        raise VitalsError("an MLflow server needs MLflow's client", hint=hint) from None
    server = redact.text(location)
    try:
        client = MlflowClient(tracking_uri=match["server"])
        experiments = (
            [client.get_experiment(match["experiment"])]
            if match["experiment"]
            else list(_pages(client.search_experiments))
        )
        runs = list(_runs(client, experiments, match["run"], since_s))
        for number, (experiment, run) in enumerate(runs):
            show(number, len(runs), run.info.run_name or run.info.run_id)
            _update(client, experiment, run, folder)
        show(len(runs), len(runs), "")
    except MlflowException as error:
        hint = "is the server there? MLFLOW_TRACKING_TOKEN or _USERNAME and _PASSWORD log in"
        if isinstance(error.__context__, OSError):  # that of requests, a page long
            raise VitalsError("no MLflow server answers", where=server, hint=hint) from error
        text = redact.text(harmless(str(error), 300))
        raise VitalsError(f"MLflow says: {text}", where=server, hint=hint) from error
    if not runs:
        raise UnreadableLog("no run is there", where=server, hint="an earlier --since, or none")


def _runs(
    client: Any, experiments: list[Any], run_id: str | None, since_s: float | None
) -> Iterator[tuple[Any, Any]]:
    """Yield (experiment, run), runs that ended before `since_s` left out."""
    for experiment in experiments:
        if run_id:
            yield experiment, client.get_run(run_id)
            continue
        for run in _pages(client.search_runs, [experiment.experiment_id]):
            end_ms = run.info.end_time
            if since_s is None or not end_ms or end_ms >= since_s * 1000:
                yield experiment, run


def _pages(search: Any, *args: Any) -> Iterator[Any]:
    token = None
    while True:
        page = search(*args, max_results=200, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _update(client: Any, experiment: Any, run: Any, folder: Path) -> None:
    """Write one run; its `meta.yaml` is last, so that a run cut short is fetched again."""
    if not RUN_ID.fullmatch(run.info.run_id) or not RUN_ID.fullmatch(experiment.experiment_id):
        return
    home = folder / experiment.experiment_id
    path = home / run.info.run_id
    stamp = f"{run.info.status} {run.info.end_time}"
    complete = path / ".complete"  # holds the end time of a complete run
    if run.info.end_time and complete.is_file() and complete.read_text() == stamp:
        return
    path.mkdir(parents=True, exist_ok=True)
    _write(home / "meta.yaml", {"experiment_id": experiment.experiment_id, "name": experiment.name})
    for kind, texts in (("params", run.data.params), ("tags", run.data.tags)):
        for key, text in texts.items():
            if (file := _file(path / kind, key)) is not None:
                _write_text(file, str(text))
    # The public `data.metrics` has the values alone; these have time and step as well.
    for last in run.data._metric_objs:  # noqa: SLF001
        file = _file(path / "metrics", last.key)
        if file is not None and _last_line(file) != _line(last):
            history = client.get_metric_history(run.info.run_id, last.key)
            _write_text(file, "".join(f"{_line(point)}\n" for point in history))
    info = {
        "run_id": run.info.run_id,
        "run_name": run.info.run_name or run.info.run_id,
        "status": run.info.status,
        "start_time": run.info.start_time,
        "end_time": run.info.end_time,
        "lifecycle_stage": run.info.lifecycle_stage,
    }
    _write(path / "meta.yaml", info)
    if run.info.end_time:
        _write_text(complete, stamp)


def _file(folder: Path, key: str) -> Path | None:
    """Return the file of a key below a folder; None for a key that would leave it."""
    path = PurePosixPath(key)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\x00" in key:
        return None
    return folder / path


def _line(point: Any) -> str:
    return f"{point.timestamp} {point.value!r} {point.step}"


def _last_line(path: Path) -> str:
    if not path.is_file():
        return ""
    lines = path.read_text(encoding="utf-8").splitlines()
    # The newest point is the one of the highest step, as the server has it, not the last written.
    return max(lines, key=lambda line: (int(line.split()[2]), int(line.split()[0])), default="")


def _write(path: Path, members: dict[str, Any]) -> None:
    """Write plain YAML: JSON scalars are YAML."""
    _write_text(path, "".join(f"{key}: {json.dumps(value)}\n" for key, value in members.items()))


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(text.encode())

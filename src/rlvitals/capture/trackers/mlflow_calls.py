"""Follow MLflow's client, which the functions of the `mlflow` module call too."""

from typing import Any

from rlvitals.capture import calls
from rlvitals.capture.run_folders import Share, Source, join
from rlvitals.readers.formats.literals import setting

_shares: dict[str, Share | None] = {}  # by MLflow's run id


def follow(module: Any) -> None:
    """Record what a client logs."""
    for name, record in (
        ("log_metric", _log_metric),
        ("log_param", _log_param),
        ("log_batch", _log_batch),
        ("log_text", _log_text),
        ("set_terminated", _finish),
    ):
        calls.follow(module.MlflowClient, name, record)


def _share(run_id: str) -> Share | None:
    if _shares.get(run_id) is None:
        _shares[run_id] = join(Source("mlflow", run_id))
    return _shares[run_id]


def _log_metric(  # noqa: PLR0913, PLR0917 - as MLflow has them
    _: object,
    client: object,
    run_id: str,
    key: str,
    value: float,
    timestamp: int | None = None,
    step: int | None = None,
    *__: object,
    **___: object,
) -> None:
    del client
    if (share := _share(run_id)) is not None:
        axes = {} if timestamp is None else {"time": timestamp / 1000.0}
        share.log(step or 0, {key: value}, **axes)


def _log_batch(
    _: object,
    client: object,
    run_id: str,
    metrics: Any = (),
    params: Any = (),
    *__: object,
    **___: object,
) -> None:
    del client
    if (share := _share(run_id)) is None:
        return
    rows: dict[tuple[int, int], dict[str, float]] = {}
    for metric in metrics:
        rows.setdefault((metric.step or 0, metric.timestamp), {})[metric.key] = metric.value
    for (step, timestamp), row in rows.items():
        share.log(step, row, time=timestamp / 1000.0)
    if params:
        share.update_settings({param.key: _value(param.value) for param in params})


def _log_param(
    _: object, client: object, run_id: str, key: str, value: Any, *__: object, **___: object
) -> None:
    del client
    if (share := _share(run_id)) is not None:
        share.update_settings({key: _value(value)})


def _value(value: Any) -> Any:
    """Return a parameter as it was before MLflow made it a text."""
    return setting(value) if isinstance(value, str) else value


def _log_text(
    _: object, client: object, run_id: str, text: str, artifact_file: str, *__: object
) -> None:
    del client
    if (share := _share(run_id)) is not None:
        share.log_text(share.step, artifact_file, text)


def _finish(
    _: object, client: object, run_id: str, status: str | None = None, *__: object, **___: object
) -> None:
    del client
    if (share := _shares.pop(run_id, None)) is not None:
        share.finish("finished" if status in {None, "FINISHED"} else "failed")

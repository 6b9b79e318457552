"""The live page beside TensorBoard, Trackio and MLflow: start, CPU, memory, bytes, spike, delay.

Each shows one series of POINTS rows, written by its own client and served from this machine. Start
is the time from the command to the first answer that a chart is drawn from, as the tool's own page
asks for it: of 320 points in MLflow and 3,000 in Trackio. CPU and memory are of the server and its
processes then, bytes are of that answer. The spike is one point among all: kept if the answer has
it. The delay is the time from the client's write of a row to the answer that holds it, the largest
of ROWS.

`pip install trackio mlflow`; names of tools as arguments measure only these.
"""

import json
import os
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import serving
from serving import PEAK, PORT, Server, answer, until

import rlvitals

POINTS, SPIKE = 100_000, 61_803
ROWS = 5
ADDRESS = f"http://127.0.0.1:{PORT}"
Values = dict[str, float]


@dataclass(frozen=True)
class Peer:
    """A tool whose server shows a series that was written to `folder`."""

    name: str
    command: Sequence[str]  # of python -m
    log: Callable[[int, float], None]  # writes a row for the server to see
    chart: Callable[[], bytes]  # what a chart is drawn from; empty until the server answers
    values: Callable[[bytes], Sequence[float]]
    end: Callable[[], object]  # the client ends


def value_of(step: int) -> float:
    return PEAK if step == SPIKE else step % 7


def measure(peer: Peer) -> None:
    with Server(*peer.command) as server:

        def held() -> Sequence[float]:
            data = peer.chart()
            return peer.values(data) if data else ()

        start = until(lambda: len(held()) > 100)
        cpu, memory = server.numbers()
        data = peer.chart()
        spike = "kept" if PEAK in peer.values(data) else "lost"
        time.sleep(2)
        delays = []
        for row in range(ROWS):
            written = 1000.0 + row
            peer.log(POINTS + row, written)
            delays.append(until(lambda: written in held()))  # noqa: B023 - called at once
    peer.end()
    print(f"{peer.name:12} start {start:5.1f} s  CPU {cpu:5.1f} s  {memory:5.0f} MB  "
          f"{len(data) / 1e3:7.1f} kB  spike {spike}  delay {max(delays):.2f} s")  # fmt: skip


def ours(folder: Path) -> Peer:
    run = rlvitals.start(str(folder / "long"), framework="sb3", flush_seconds=0.1)

    def log(step: int, value: float) -> None:
        run.log({"train/loss": value}, step=step)

    for step in range(POINTS):
        log(step, value_of(step))
    run.flush()
    command = ("rlvitals", "serve", str(folder), "--port", str(PORT))
    return Peer(
        "rlvitals", command, log, lambda: answer(serving.OURS), serving.chart_values, run.finish
    )


def tensorboard(folder: Path) -> Peer:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder), flush_secs=1)

    def log(step: int, value: float) -> None:
        writer.add_scalar("train/loss", value, step)
        writer.flush()

    for step in range(POINTS):
        writer.add_scalar("train/loss", value_of(step), step)
    writer.flush()
    url = f"{ADDRESS}/data/plugin/scalars/scalars?run=.&tag=train/loss"
    command = ("tensorboard.main", "--logdir", str(folder), "--port", str(PORT), "--host",
               "127.0.0.1")  # fmt: skip

    def values(data: bytes) -> list[float]:
        return [value for _, _, value in json.loads(data)]

    return Peer("TensorBoard", command, log, lambda: answer(url), values, writer.close)


def trackio(folder: Path) -> Peer:
    os.environ |= {"TRACKIO_DIR": str(folder), "HF_HUB_OFFLINE": "1",
                   "GRADIO_SERVER_PORT": str(PORT), "BROWSER": "true"}  # fmt: skip
    import trackio as theirs

    theirs.init(project="bench", name="long", embed=False)

    def log(step: int, value: float) -> None:
        theirs.log({"loss": value}, step=step)

    for step in range(POINTS):
        log(step, value_of(step))

    def chart() -> bytes:
        content = {"project": "bench", "runs": [{"run": "long"}], "max_points": 3000,
                   "scalar_only": True}  # fmt: skip
        return answer(
            urllib.request.Request(  # noqa: S310 - our own address
                f"{ADDRESS}/api/get_logs_batch",
                json.dumps(content).encode(),
                {"content-type": "application/json"},
            )
        )

    def values(data: bytes) -> list[float]:
        (run,) = json.loads(data)["data"]
        return [row["loss"] for row in run["logs"] if "loss" in row]

    return Peer("Trackio", ("trackio.cli", "show", "--project", "bench"), log, chart, values,
                theirs.finish)  # fmt: skip


def mlflow(folder: Path) -> Peer:
    import mlflow as theirs
    from mlflow.entities import Metric

    folder.mkdir()
    store = f"sqlite:///{folder / 'db'}"
    client = theirs.MlflowClient(tracking_uri=store)
    run = client.create_run(client.create_experiment("bench")).info.run_id
    rows = [Metric("loss", value_of(step), 1_700_000 + step, step) for step in range(POINTS)]
    for first in range(0, POINTS, 1000):
        client.log_batch(run, metrics=rows[first : first + 1000])

    def log(step: int, value: float) -> None:
        client.log_metric(run, "loss", value, step=step)

    url = (f"{ADDRESS}/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval"
           f"?run_ids={run}&metric_key=loss&max_results=320")  # fmt: skip
    command = ("mlflow", "server", "--backend-store-uri", store, "--port", str(PORT),
               "--workers", "1")  # fmt: skip

    def values(data: bytes) -> list[float]:
        return [metric["value"] for metric in json.loads(data)["metrics"]]

    return Peer(
        "MLflow", command, log, lambda: answer(url), values, lambda: client.set_terminated(run)
    )


def main() -> None:
    print(f"Live pages of a series of {POINTS:,} points")
    for make in (ours, tensorboard, trackio, mlflow):
        if sys.argv[1:] and make.__name__ not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
            measure(make(Path(folder, "runs")))


if __name__ == "__main__":
    main()

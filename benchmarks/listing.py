"""Measure the listing of 10,000 runs of 200 metrics, and the same load in MLflow and Trackio.

A bucket's index object is listed by a whole process (cold), and again from its entries in memory.
The page of a run is an answer of `rlvitals serve`. MLflow (SQLite) and Trackio (its own files) get
a smaller load, PEER_RUNS runs, as rlvitals does: points in, runs found by a setting, points out.
CPU seconds, of this process and of those it starts; wall time in brackets. Needs
`pip install 'rlvitals[soak]'`, mlflow and trackio; it is not part of `make bench`.
"""

import contextlib
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import bucket
import numpy as np

import rlvitals
from rlvitals.bucket import run_index
from rlvitals.bucket.object_store import ObjectStore
from rlvitals.storage.index import Index

RUNS, METRICS = 10_000, 200
PEER_RUNS, PEER_ROWS = 20, 50  # of METRICS metrics each: 200,000 points
LISTED = 20  # runs of a first page
LOW_RATE = 1e-3  # of half of the runs
SEARCHES = ("", "tag:sweep lr<1e-3", "ppo status:finished", "net/width=64")


def main() -> None:
    """Measure each part and print its rows."""
    print("| what | CPU s | wall s |", "| --- | --- | --- |", sep="\n")
    parts = {"bucket": measure_bucket, "page": measure_page, "peers": measure_peers}
    for name in sys.argv[1:] or parts:
        with tempfile.TemporaryDirectory() as folder:
            parts[name](Path(folder))


@contextlib.contextmanager
def measured(name: str) -> Iterator[None]:
    """Print the CPU time and wall time of a block, its finished processes included."""
    start, wall = spent(), time.perf_counter()
    yield
    print(f"| {name} | {spent() - start:.2f} | {time.perf_counter() - wall:.2f} |", flush=True)


def spent() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def measure_bucket(folder: Path) -> None:
    """List RUNS runs from the index object of a bucket on loopback."""
    server = subprocess.Popen(
        [sys.executable, "-c", bucket.SERVER], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        os.environ["AWS_ENDPOINT_URL"] = server.stdout.readline().strip()
        os.environ |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
        os.environ["XDG_CACHE_HOME"] = str(folder)
        write_index("s3://listed/runs")
        words = ["--search", "tag:sweep", "lr<1e-3", "--limit", str(LISTED), "--json"]
        command = [sys.executable, "-m", "rlvitals", "runs", "s3://listed/runs", *words]
        with measured(f"index object: {RUNS:,} runs, a whole process"):
            found = json.loads(subprocess.check_output(command))
        assert len(found) == LISTED
        with measured("of these: requests and JSON"):
            entries = run_index.read(ObjectStore("s3://listed/runs"))
        assert len(entries) == RUNS
        for words in SEARCHES:
            with measured(f"entries in memory: `{words}`, newest 100"):
                run_index.search(entries, words, "newest", 100)
    finally:
        server.kill()


def write_index(url: str) -> None:
    """Write the shards as the uploads of RUNS runs leave them."""
    import s3fs

    s3fs.S3FileSystem(endpoint_url=os.environ["AWS_ENDPOINT_URL"]).mkdir("listed")
    draw, shards = np.random.default_rng(0), dict[str, dict[str, object]]()
    for n in range(RUNS):
        values = dict(zip((f"train/metric_{k}" for k in range(METRICS)),
                          draw.normal(size=METRICS).tolist(), strict=True))  # fmt: skip
        entry = {
            "id": f"{n:032x}", "name": f"ppo {n}", "project": "control", "group": "", "seed": n,
            "notes": "", "tags": [("sweep", "base")[n % 3 > 0]], "created": 1.7e9 + n,
            "attempts": 1, "settings": {"lr": 1e-4 * (n % 20), "net": {"width": 2 ** (n % 9)}},
            "status": ("finished", "failed")[n % 2], "step": n, "time": 1.7e9 + n, "more": {},
            "values": dict(list(values.items())[: run_index.MAX_VALUES]),
        }  # fmt: skip
        shards.setdefault(f"{n % 256:02x}", {})[f"run-{n}"] = entry
    store = ObjectStore(url)
    for name, runs in shards.items():
        data = json.dumps({"format": 1, "runs": runs}).encode()
        store.write(f"{run_index.INDEX_FOLDER}{name}.json", data)


def measure_page(folder: Path) -> None:
    """Ask a server for the page of a run of METRICS metrics and 1,000 rows, twice."""
    from starlette.testclient import TestClient

    from rlvitals import settings
    from rlvitals.server.app import build

    record(folder / "runs" / "run-0", 1_000, 1e-3)
    with TestClient(
        build([folder / "runs"], settings.load(folder)), base_url="http://127.0.0.1"
    ) as client:
        for name in ("first", "again"):
            with measured(f"page of a run of {METRICS} metrics, {name}"):
                answers = [client.get("/run/run-0"), client.get("/api/charts?key=run-0")]
            assert all(answer.is_success for answer in answers)


def record(path: Path, rows: int, rate: float) -> None:
    draw = np.random.default_rng(0)
    keys = [f"train/metric_{n}" for n in range(METRICS)]
    with rlvitals.start(path, settings={"lr": rate}) as run:
        for step in range(rows):
            run.log(step, dict(zip(keys, draw.normal(size=METRICS).tolist(), strict=True)))


def measure_peers(folder: Path) -> None:
    """Points in, runs found, points out: of rlvitals, MLflow and Trackio."""
    load = f"{PEER_RUNS} runs of {METRICS} metrics, {PEER_RUNS * PEER_ROWS * METRICS:,} points"
    for name, peer in {"rlvitals": ours, "MLflow": mlflow, "Trackio": trackio}.items():
        steps = peer(folder / name)
        for step, work in steps:
            with measured(f"{name}, {load}: {step}"), contextlib.redirect_stderr(io.StringIO()):
                work()


Steps = tuple[tuple[str, Callable[[], object]], ...]


def rates() -> list[float]:
    return [1e-4 * (n % 20) for n in range(PEER_RUNS)]


def rows() -> Iterator[dict[str, float]]:
    draw = np.random.default_rng(0)
    for _ in range(PEER_ROWS):
        values = draw.normal(size=METRICS).tolist()
        yield {f"train_metric_{n}": value for n, value in enumerate(values)}


def ours(folder: Path) -> Steps:
    def write() -> None:
        for n, rate in enumerate(rates()):
            with rlvitals.start(folder / f"run-{n}", settings={"lr": rate}) as run:
                for step, row in enumerate(rows()):
                    run.log(step, row)

    def find() -> None:
        with Index(folder) as index:
            index.refresh()
            assert len(index.search(f"lr<{LOW_RATE}", "newest", 1000)) == PEER_RUNS // 2

    def read() -> None:
        for n in range(PEER_RUNS):
            (run,) = rlvitals.read(folder / f"run-{n}")
            assert len(run.series["train_metric_0"].steps) == PEER_ROWS

    return ("points in", write), ("runs found, first", find), ("again", find), ("points out", read)


def mlflow(folder: Path) -> Steps:
    import mlflow as theirs
    from mlflow.entities import Metric, Param

    folder.mkdir()
    client = theirs.MlflowClient(tracking_uri=f"sqlite:///{folder / 'db'}")
    experiment = client.create_experiment("bench")
    ids: list[str] = []

    def write() -> None:
        for rate in rates():
            run = client.create_run(experiment).info.run_id
            ids.append(run)
            client.log_batch(run, params=[Param("lr", str(rate))])
            for step, row in enumerate(rows()):
                metrics = [Metric(key, value, 1_700_000, step) for key, value in row.items()]
                client.log_batch(run, metrics=metrics)

    def find() -> None:
        # Its parameters are texts: a number is compared by the caller.
        listed = client.search_runs([experiment], max_results=1000)
        assert sum(float(run.data.params["lr"]) < LOW_RATE for run in listed) == PEER_RUNS // 2

    def read() -> None:
        for run in ids:
            for n in range(METRICS):
                assert len(client.get_metric_history(run, f"train_metric_{n}")) == PEER_ROWS

    return ("points in", write), ("runs found, first", find), ("again", find), ("points out", read)


def trackio(folder: Path) -> Steps:
    os.environ |= {"TRACKIO_DIR": str(folder), "HF_HUB_OFFLINE": "1"}
    import trackio as theirs
    from trackio.sqlite_storage import SQLiteStorage

    def write() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            for n, rate in enumerate(rates()):
                theirs.init(project="bench", name=f"run-{n}", config={"lr": rate}, embed=False)
                for step, row in enumerate(rows()):
                    theirs.log(row, step=step)
                theirs.finish()

    def find() -> None:
        configs = SQLiteStorage.get_all_run_configs("bench")
        assert sum(config["lr"] < LOW_RATE for config in configs.values()) == PEER_RUNS // 2

    def read() -> None:
        for n in range(PEER_RUNS):
            assert len(SQLiteStorage.get_logs("bench", f"run-{n}")) == PEER_ROWS

    return ("points in", write), ("runs found, first", find), ("again", find), ("points out", read)


if __name__ == "__main__":
    main()

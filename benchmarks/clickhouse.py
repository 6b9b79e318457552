"""Measure the run index in ClickHouse, by chdb: the engine in this process, no server's network.

Rows of a run folder go through reader, client and engine (`fill`); larger tables are generated in
the engine, as the table says. `python benchmarks/clickhouse.py --points 1e8 --series 1e7`. Needs
`pip install 'rlvitals[soak]'`; it is not part of `make bench`.
"""

import argparse
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rlvitals.clickhouse import store_tables
from rlvitals.clickhouse.fill import Filler
from rlvitals.clickhouse.run_store import RunStore
from rlvitals.storage.blocks import Writer
from rlvitals.storage.index import Index
from rlvitals.storage.run_folder import About, RunFolder

RUNS, METRICS = 10_000, 200  # of the listed index
FILLED_RUNS, FILLED_ROWS = 10, 1_000  # of METRICS metrics each: 2 million points
WIDTH = 800  # columns of pixels
REPEATS = 5
SEARCHES = ("", "tag:sweep lr<1e-3", "ppo status:finished", "net/width=64 verdict:learning")
GENERATED = """INSERT INTO points
SELECT concat('generated/', toString(intDiv(number, {run}))) AS run,
  concat('train/m', toString(intDiv(number, {series}) % {metrics})) AS key, 1 AS attempt,
  number % {series} AS ordinal, ordinal * 2048 AS step,
  1.7e9 + ordinal * 1.37 + (cityHash64(ordinal) % 1000) / 4e4 AS time,
  toFloat64(toFloat32(exp(-5 * ordinal / {series}) * 100 + (cityHash64(number) % 100000) / 1e4))
FROM numbers({points})"""


def main() -> None:
    """Fill, generate, ask and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=float, default=1e7, help="generated, in all")
    parser.add_argument("--series", type=float, default=1e6, help="generated points of a series")
    args = parser.parse_args()
    print("| what | measured |", "| --- | --- |", sep="\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root = folder / "runs"
        write_runs(root)
        with Index(root) as index, RunStore.create(f"chdb:{folder / 'db'}", str(root)) as store:
            index.refresh()
            measure_fill(index, store)
            measure_generated(store, int(args.points), int(args.series))
            measure_listing(index, store)
    print(f"| peak memory | {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB |")


def write_runs(root: Path) -> None:
    """Write runs as a trainer logs them: rewards, losses, rates, counts, constants."""
    draw = np.random.default_rng(0)
    t = np.arange(FILLED_ROWS)
    kinds: tuple[Callable[[], np.ndarray], ...] = (
        lambda: (400 * (1 - np.exp(-t / 300)) + draw.normal(0, 8, len(t))).astype(np.float32),
        lambda: np.abs(0.01 + draw.normal(0, 0.003, len(t))).astype(np.float32),
        lambda: np.exp(-t / 200) + draw.normal(0, 0.1, len(t)),  # in double precision
        lambda: 3e-4 * (1 - t / len(t)),
        lambda: draw.integers(0, 500, len(t)),
        lambda: np.full(len(t), 0.2),
    )
    keys = tuple(f"train/metric_{n}" for n in range(METRICS))
    for number in range(FILLED_RUNS):
        about = About(name=f"ppo {number}", settings={"lr": 1e-3 / (number + 1)}, tags=("sweep",))
        _, _, file = RunFolder.create(root / f"run_{number}", about).begin()
        writer = Writer(file)
        times = 1.7e9 + np.cumsum(draw.gamma(20, 0.07, len(t)))
        values = [kinds[n % len(kinds)]().astype(np.float64) for n in range(METRICS)]
        writer.scalars(keys, 2048 * t, times, values)
        writer.close()


def measure_fill(index: Index, store: RunStore) -> None:
    """Measure a first fill and one without anything new."""
    start = time.process_time()
    points = Filler(index, store).fill().points
    spent = time.process_time() - start
    row(
        f"fill: {points:,} points of {FILLED_RUNS} run folders",
        f"{points / spent:,.0f} points/CPU s",
    )
    start = time.process_time()
    Filler(index, store).fill()
    row("fill: nothing new", f"{time.process_time() - start:.3f} CPU s")
    store.connection.command("OPTIMIZE TABLE points FINAL")
    for table in ("points", "pixels", "series"):
        query = """SELECT sum(bytes_on_disk) FROM system.parts
            WHERE active AND database = currentDatabase() AND table = {table:String}"""
        ((size,),) = store.connection.query(query, {"table": table})
        row(f"stored in `{table}`", f"{size / points:.2f} bytes a point")
    path = "run_0"
    row("last values of a run", timed(lambda: store.last(path)))
    row(f"pixels, {FILLED_ROWS:,} points", timed(lambda: pixels(store, path, "train/metric_0")))


def measure_generated(store: RunStore, points: int, series: int) -> None:
    """Measure pixel queries over points that the engine makes itself."""
    metrics = max(min(METRICS, points // series), 1)
    start = time.process_time()
    statement = GENERATED.format(
        points=points, series=series, run=series * metrics, metrics=metrics
    )
    store.connection.command(statement)
    spent = time.process_time() - start
    row(f"generated in the engine: {points:,} points", f"{points / spent:,.0f} points/CPU s")
    path, key = "generated/0", "train/m0"
    name = f"pixels, a series of {series:,} among {points:,} points, generated"
    row(name, timed(lambda: pixels(store, path, key)))
    first, last = series * 1024, series * 1024 + series * 20
    row(f"{name}, 1 % of it", timed(lambda: store.points(path, key, WIDTH, first, last)))


def measure_listing(index: Index, store: RunStore) -> None:
    """Measure searches among RUNS runs with METRICS last values each."""
    fill_listing(index, store)
    for words in SEARCHES:
        for name, query in (("ClickHouse", store), ("SQLite", index)):
            count = len(query.search(words))
            spent = timed(lambda: query.search(words))  # noqa: B023 - called at once
            row(f"{name}: `{words}`, {count:,} of {len(query):,} runs", spent)
            spent = timed(lambda: query.search(words, "newest", 100))  # noqa: B023
            row(f"{name}: `{words}`, newest 100", spent)


def fill_listing(index: Index, store: RunStore) -> None:
    """Add rows of runs to both indexes, and their last values to ClickHouse, without folders."""
    run_columns = (
        "path, mark, id, name, project, grp, seed, created, attempts, status, step, time, notes"
    )
    db = index.connection
    for n in range(RUNS):
        path = f"listed/{n}"
        fields = (path, "", str(n), f"ppo {n}", "control", "", n, 1.7e9 + n, 1,
                  ("finished", "failed")[n % 2], n, 1.7e9 + n, "")  # fmt: skip
        db.execute(f"INSERT INTO runs ({run_columns}) VALUES ({', '.join('?' * 13)})", fields)  # noqa: S608
        db.execute("INSERT INTO tags VALUES (?, ?)", (path, ("sweep", "base")[n % 3 > 0]))
        settings = {"lr": 1e-4 * (n % 20), "net/width": 2.0 ** (n % 9)}
        settings |= {f"option_{k}": float(k * n) for k in range(48)}
        rows = [(path, key, json.dumps(value), value) for key, value in settings.items()]
        db.executemany("INSERT INTO settings VALUES (?, ?, ?, ?)", rows)
    db.commit()
    index.note({f"listed/{n}": ("learning", "failed")[n % 2] for n in range(RUNS)}, "bench")
    start = time.process_time()
    Filler(index, store).fill()
    row(f"fill: {RUNS:,} rows of runs", f"{time.process_time() - start:.1f} CPU s")
    store.connection.command(f"""INSERT INTO series SELECT concat('listed/', toString(intDiv(number,
        {METRICS}))), concat('m', toString(number % {METRICS})), 1, 100,
        (1, 99, 99, 1.7e9, rand() / 7) FROM numbers({RUNS * METRICS})""")  # noqa: S608 - our own


def pixels(store: RunStore, path: str, key: str) -> int:
    """Ask for a plot and return its number of points."""
    return len(store.points(path, key, WIDTH).steps)


def timed(call: Callable[[], object]) -> str:
    """Return the median time of a call, after one to warm up."""
    call()
    wall, cpu = [], []
    for _ in range(REPEATS):
        start, start_cpu = time.perf_counter(), time.process_time()
        call()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - start_cpu)
    return f"{1e3 * statistics.median(cpu):.0f} ms CPU, {1e3 * statistics.median(wall):.0f} ms wall"


def row(name: str, result: str) -> None:
    print(f"| {name} | {result} |", flush=True)


if __name__ == "__main__":
    print(f"bucket of {store_tables.BUCKET_POINTS} points\n")
    main()

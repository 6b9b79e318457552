"""Measure drawing ten series of ten million points as a PNG, compared with matplotlib.

Both draw into the same axes at the same size; ours is the whole of what `rlvitals plot` does once
a run is read and judged: what the pixels show is picked (M4), averaged over, laid out and written.

Then a report of a run of five million points, the whole of `rlvitals report` in a process of its
own; beside us, a page that holds every point as JSON, once they are read.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import rlvitals
from rlvitals.metrics import CATALOGUE
from rlvitals.types import Series
from rlvitals.views.drawing import files
from rlvitals.views.figures.figure import Line, Panel, Picture

SERIES, POINTS = 10, 10_000_000
PEER_POINTS = 1_000_000  # matplotlib's time is proportional to them; all of them with --whole
SECONDS = 2.0  # at most
TITLES = (
    "| drawn by | points of each of the 10 | s | times slower |",
    "| --- | --- | --- | --- |",
)


METRICS, ROWS = 50, 100_000  # of the run that is reported
PAGE = (
    "| a page of 5,000,000 points | s | MB |",
    "| --- | --- | --- |",
)


def main() -> list[str]:
    """Measure both and return the tables' rows."""
    return [*_pictures(), *_page()]


def _page() -> list[str]:
    rng = np.random.default_rng(0)
    metrics = [m.name for m in CATALOGUE if m.kind != "setting" and not m.family][:METRICS]
    values = np.abs(rng.normal(1, 0.1, (ROWS, METRICS)) + np.linspace(0, 1, ROWS)[:, None])
    with tempfile.TemporaryDirectory() as work:
        folder, page = Path(work) / "run", Path(work) / "report.html"
        with rlvitals.start(folder) as run:
            for step, row in enumerate(values.tolist()):
                run.log(step, dict(zip(metrics, row, strict=True)))
        command = [sys.executable, "-m", "rlvitals", "report", str(folder), "-o", str(page)]
        times = []
        for _ in range(3):
            start_time = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            times.append(time.perf_counter() - start_time)
        size = page.stat().st_size
    start_time = time.perf_counter()
    steps = list(range(ROWS))
    every = json.dumps(
        {name: [steps, values[:, index].tolist()] for index, name in enumerate(metrics)}
    )
    theirs = time.perf_counter() - start_time
    target_text = f"{min(times):.2f} (wanted: < {SECONDS:g})"
    rows = [
        f"| rlvitals report, reading and judging included | {target_text} | {size / 1e6:.1f} |",
        f"| every point as JSON, once they are read | {theirs:.2f} | {len(every) / 1e6:.1f} |",
    ]
    print("", *PAGE, *rows, sep="\n")
    return rows


def _pictures() -> list[str]:
    steps = np.arange(POINTS)
    times = np.full(POINTS, np.nan)
    rng = np.random.default_rng(0)
    columns = [rng.normal(index, 1.0, POINTS) for index in range(SERIES)]
    columns[3][POINTS // 3] = 60.0  # one spike of one point
    peer = POINTS if "--whole" in sys.argv else PEER_POINTS
    with tempfile.TemporaryDirectory() as folder:
        start_time = time.perf_counter()
        files.write(_picture(steps, times, columns), Path(folder) / "ours.png", "light", 110)
        ours = time.perf_counter() - start_time
        theirs = _matplotlib(steps[:peer], columns, Path(folder) / "theirs.png")
    scaled = theirs * POINTS / peer
    note = "" if peer == POINTS else f" (from {peer:,}, scaled up)"
    rows = [
        f"| rlvitals | {POINTS:,} | {ours:.2f} (wanted: < {SECONDS:g}) | 1 |",
        f"| matplotlib {mpl.__version__} | {POINTS:,}{note} | {scaled:.1f} | {scaled / ours:.0f} |",
    ]
    print(*TITLES, *rows, sep="\n")
    return rows


def _picture(steps: np.ndarray, times: np.ndarray, columns: list[np.ndarray]) -> Picture:
    lines = tuple(
        Line(f"run {index}", "optimiser/loss", Series(steps, times, values), run=index)
        for index, values in enumerate(columns)
    )
    return Picture(
        name="training_loss",
        title="Training loss",
        about=f"{SERIES} runs",
        runs=tuple(line.label for line in lines),
        x_label="steps",
        first=0,
        last=POINTS - 1,
        panels=(Panel("Loss", lines=lines),),
        columns=1,
    )


def _matplotlib(steps: np.ndarray, columns: list[np.ndarray], path: Path) -> float:
    start_time = time.perf_counter()
    figure = Figure(figsize=(9.0, 6.0), dpi=110)
    axes = figure.add_subplot()
    for values in columns:
        axes.plot(steps, values[: len(steps)])
    figure.savefig(path)
    return time.perf_counter() - start_time


if __name__ == "__main__":
    main()

"""What it costs the browser to draw a chart of 4,000 points anew, in Chromium.

The first chart of a report is drawn FRAMES times, each time on another scale; of ROUNDS rounds the
best counts, for other work disturbs. Counted is the CPU time of the page's main thread: script,
style, layout and paint, but not the pixels, which other threads fill. Where several points lie in
one column of pixels, the line has its extremes.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import rlvitals
from rlvitals.cli import main as command

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from browser import Browser, Page

POINTS, FRAMES, ROUNDS = 4_000, 30, 8
WIDTHS = (1400, 700)  # pixels of the window
TITLES = (
    "| window | points | corners of the line | ms a frame | of it script |",
    "| --- | --- | --- | --- | --- |",
    "| wanted | 4,000 | | 20 | |",
)
CHART = "[...document.querySelectorAll('.curves')].find(c => c.querySelector('.line'))"
DRAW = """(async () => {
    const chart = %s;
    chart.scrollIntoView({ behavior: "instant", block: "center" });
    const next = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    for (let frame = 0; frame < %d; frame++) {
      chart.dispatchEvent(new KeyboardEvent("keydown", { key: "l", bubbles: true }));
      await next();
    }
})()"""
CORNERS = f"({CHART}.querySelector('.line').getAttribute('d').match(/[ML]/g) ?? []).length"


def main() -> list[str]:
    """Measure the frames and return the table's rows."""
    lines = []
    with tempfile.TemporaryDirectory() as work, Browser() as browser:
        page = _report(Path(work))
        for width in WIDTHS:
            shown = browser.open(page, width, 900)
            shown.until(f"!!{CHART}")
            corners = shown.run(CORNERS)
            shown.run(DRAW % (CHART, 10))  # the script is compiled
            shown.ask("Performance.setTimeDomain", timeDomain="threadTicks")
            shown.ask("Performance.enable")
            task, script = min(_cost(shown) for _ in range(ROUNDS))
            lines.append(f"| {width} px | {POINTS:,} | {corners:,} | {task:.1f} | {script:.1f} |")
    print(*TITLES, *lines, sep="\n")
    return lines


def _cost(page: Page) -> tuple[float, float]:
    """Return the ms of the main thread a frame, and those of its script."""

    def seconds() -> tuple[float, float]:
        told = page.ask("Performance.getMetrics")["metrics"]
        metrics = {metric["name"]: metric["value"] for metric in told}
        return metrics["TaskDuration"], metrics["ScriptDuration"]

    before = seconds()
    page.run(DRAW % (CHART, FRAMES))
    after = seconds()
    task, script = ((b - a) * 1000 / FRAMES for a, b in zip(before, after, strict=True))
    return task, script


def _report(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    returns = rng.normal(np.linspace(0, 300, POINTS), 40)
    page = folder / "report.html"
    with rlvitals.start(folder / "run", framework="sb3") as run:
        for step, value in enumerate(returns.tolist()):
            run.log(step, {"rollout/ep_rew_mean": value})
    assert command(["report", str(folder / "run"), "-o", str(page)]) == 0
    return page


if __name__ == "__main__":
    main()

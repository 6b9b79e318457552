"""Draw the pictures of the manual: `draw_pictures.py [FOLDER]`, by default docs/pictures.

They are drawn from the recorded runs that the tests draw too, so that anyone can draw them anew;
`make docs` does. The page of a report is looked at with Chromium, where that is installed.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from rlvitals import api
from rlvitals.cli import main as command
from rlvitals.comparison.compare import CompareOptions, compare
from rlvitals.comparison.grouping import Member
from rlvitals.comparison.learning_curves import learning_curves
from rlvitals.trainers.language.data import chart_task
from rlvitals.trainers.language.data.task import EVALUATION_SEED
from rlvitals.views.drawing import files
from rlvitals.views.figures import FIGURES, groups
from rlvitals.views.figures.figure import Picture, Subject
from rlvitals.views.figures.panels import picture

ROOT = Path(__file__).resolve().parent.parent
PICTURED = ROOT / "tests" / "views" / "pictured"
RUNS = ROOT / "tests" / "runs"
# Of the page of all runs: of each lamp one or more.
SERVED = (
    "ppo-cartpole-lr-spike", "grpo-paid-by-length", "rlhf-kl-explodes", "ppo-cartpole-lr-1e-7",
    "sac-pendulum-healthy", "grpo-healthy", "scheduler-healthy", "ppo-lunarlander-healthy",
)  # fmt: skip
DPI = 65
PORT = 18_266  # of the page that is drawn
LR, USUAL = ("learning rate x 100", PICTURED / "cluster-lr-x100"), ("usual", PICTURED / "cluster")
SPIKE = ("learning rate spike", RUNS / "ppo-cartpole-lr-spike" / "run.csv")
COLLAPSED = ("collapsed", RUNS / "scheduler-collapsed" / "run.csv")
# Groups of seeds that are compared: healthy ones, and two faults.
RECORDED = ROOT / "faults" / "tier-1" / "ppo-CartPole-v1"
GROUPS = (
    ("usual", "healthy-s*.csv.zst"),
    ("no value loss", "value-coefficient-zero-s*.csv.zst"),
    ("reset half-way", "weights-reset-mid-s*.csv.zst"),
)
# File, figure, theme, runs.
DRAWN = (
    ("dashboard", "dashboard", "light", (SPIKE,)),
    ("policy", "policy", "light", (LR,)),
    ("temperature", "temperature", "light", (USUAL,)),
    ("actions", "actions", "dark", (COLLAPSED,)),
    ("rewards", "rewards", "light", (USUAL, LR)),
    ("crucial", "crucial", "light", (SPIKE,)),
    # Of a usual run, for the trainer's guides.
    ("cluster-actions", "actions", "light", (USUAL,)),
    ("cluster-dashboard", "dashboard", "light", (USUAL,)),
    ("cluster-policy", "policy", "light", (USUAL,)),
    ("cluster-reward", "reward_breakdown", "light", (USUAL,)),
    ("cluster-value", "value", "light", (USUAL,)),
)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    by_name = {figure.name: figure for figure in FIGURES}
    for name, figure, theme, runs in DRAWN:
        figure_picture = picture(
            by_name[figure], [Subject(label, api.diagnose(path)) for label, path in runs]
        )
        assert figure_picture is not None
        files.write(figure_picture, folder / f"{name}.png", theme, DPI)
        print(f"{name}.png: {(folder / f'{name}.png').stat().st_size:,} bytes")
    for drawn in compared():
        files.write(drawn, folder / f"{drawn.name.replace('_', '-')}.png", "light", DPI)
    tiny_charts(folder / "tiny-charts.png")
    report(folder / "report.png")
    served(folder / "serve.png")


def tiny_charts(file: Path) -> None:
    """Draw the first twelve charts that tiny-vlm is evaluated on, with questions and answers."""
    wide, high, edge = 4 * chart_task.CHART_PIXELS, 4 * chart_task.CHART_PIXELS + 44, 10
    page = Image.new("RGB", (4 * (wide + edge) + edge, 3 * (high + edge) + edge), "white")
    pen = ImageDraw.Draw(page)
    for index in range(12):
        chart = chart_task.chart(EVALUATION_SEED, index, held_out=True)
        row, column = divmod(index, 4)
        left, top = edge + column * (wide + edge), edge + row * (high + edge)
        page.paste(chart.image.resize((wide, wide), Image.Resampling.NEAREST), (left, top))
        pen.text((left, top + wide + 4), chart.query, "black", ImageFont.load_default(13))
        pen.text((left, top + wide + 22), chart.label, "#1f77b4", ImageFont.load_default(13))
    page.save(file, optimize=True)
    print(f"{file.name}: {file.stat().st_size:,} bytes")


def compared() -> tuple[Picture, ...]:
    members = [
        Member(api.trace(path, settings={"seed": seed}), label)
        for label, pattern in GROUPS
        for seed, path in enumerate(sorted(RECORDED.glob(pattern)))
    ]
    options = CompareOptions(by=("path",))
    comparison = compare(members, options)
    return groups.pictures(comparison, learning_curves(members, options, comparison))


def chromium(picture: Path) -> str | None:
    """Return the browser that a picture is drawn with; None, and say so, where there is none."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        print(f"{picture.name} is left as it is: no Chromium")
    return program


def photograph(program: str, address: str, picture: Path, *flags: str) -> None:
    """Draw a page of our own into a picture."""
    always = ("--headless=new", "--no-sandbox", "--hide-scrollbars")
    command_line = [program, *always, *flags, f"--screenshot={picture}", address]
    subprocess.run(command_line, check=True, capture_output=True)  # noqa: S603 - our own page


def report(picture: Path) -> None:
    if (program := chromium(picture)) is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        assert command(["report", str(SPIKE[1]), "-o", str(page), "--labels", SPIKE[0]]) == 0
        photograph(program, page.as_uri(), picture, "--window-size=1000,1000")
    print(f"report.png: {picture.stat().st_size:,} bytes")


def served(picture: Path) -> None:
    """Draw the page of all runs, with the recorded runs of the tests."""
    if (program := chromium(picture)) is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        for name in SERVED:
            log = next(path for path in (RUNS / name).iterdir() if path.stem == "run"
                       and path.suffix in {".csv", ".json"})  # fmt: skip
            (runs / name).mkdir(parents=True)
            shutil.copy(log, runs / name)
        command_line = [sys.executable, "-m", "rlvitals", "serve", str(runs), "--port", str(PORT)]
        environment = {**os.environ, "XDG_CACHE_HOME": folder}
        with subprocess.Popen(command_line, env=environment) as server:  # noqa: S603 - our own
            address = f"http://127.0.0.1:{PORT}"
            while not _are_judged(f"{address}/api/runs", len(SERVED)):
                time.sleep(0.2)
            photograph(program, address, picture, "--timeout=4000", "--window-size=1180,640")
            server.terminate()
    Image.open(picture).quantize(96).save(picture, optimize=True)
    print(f"serve.png: {picture.stat().st_size:,} bytes")


def _are_judged(address: str, count: int) -> bool:
    try:
        with urllib.request.urlopen(address) as reply:  # noqa: S310 - our own server
            content = json.load(reply)
    except OSError:
        return False
    return content["total"] == count and not content["lamps"]["pending"]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures")

"""Pictures as files: what they look like, that nothing is cut off, and what they are written as."""

import subprocess
import sys
import warnings
from itertools import combinations

import browser
import matplotlib as mpl
import numpy as np
import pytest
from drawn import HERE, MADE, RECORDED, RUNS, SPREAD, subject
from effort import cases, sampled
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.image import imread
from matplotlib.text import Annotation, Text

from rlvitals.types import Series
from rlvitals.views.drawing import canvas, files
from rlvitals.views.drawing.axes import Short, short
from rlvitals.views.drawing.text_fit import cut, drawable, middle_cut, width, wrap
from rlvitals.views.drawing.themes import THEMES
from rlvitals.views.figures import FIGURES
from rlvitals.views.figures.figure import Line, Panel, Picture
from rlvitals.views.figures.panels import picture

BY_NAME = {figure.name: figure for figure in FIGURES}
TRAINED = "rlhf.png"  # of a training of minutes, which is not repeated
PAGE = "report.png"  # drawn by Chromium, where there is one
SERVED = "serve.png"  # of the live page, by Chromium too: it says how long ago
LOSS = Series(np.arange(50), np.full(50, np.nan), np.linspace(2, 1, 50))
LOOKS = HERE / "golden" / "pictures"
TOLERANCE = 6.0  # of 255, root mean square: other fonts of another release stay within it
ALIKE = (
    ("dashboard", "cluster-lr-x100", "light"),
    ("actions", "scheduler-collapsed", "dark"),
    ("temperature", "cluster", "light"),
    ("gradient_norm", "hostile", "dark"),
    ("distributions", SPREAD, "light"),
    ("crucial", "rlhf-kl-explodes", "dark"),
    ("actions", "cluster", "light"),
    ("lengths", "grpo-paid-by-length", "light"),
    ("domain", "domain", "dark"),
)
GROUPS = [("hostile",), ("cluster-lr-x100",), ("rlhf-kl-explodes",), ("scheduler-collapsed",)]
GROUPS += [(SPREAD,), (SPREAD, "domain", SPREAD)]
GROUPS += [("nsr-healthy", "grpo-paid-by-length", "hostile")]
GROUPS = GROUPS[:: cases(2, 1)]
MORE = [(name,) for name in (*RECORDED, *RUNS, *MADE)] + [RECORDED, (*RECORDED, *RUNS) * 3]
GROUPS += [pytest.param(names, marks=pytest.mark.soak) for names in MORE]


def subjects(names):
    return [subject(name) for name in names]


@pytest.mark.parametrize(("name", "run", "theme"), ALIKE, ids="-".join)
def test_it_looks_as_it_did(name, run, theme, tmp_path, request):
    path, golden = tmp_path / "new.png", LOOKS / f"{name}-{run}-{theme}.png"
    if request.config.getoption("--update-golden"):
        path = golden
    files.write(picture(BY_NAME[name], [subject(run)]), path, theme, 40)
    pixels, then = imread(path), imread(golden)
    assert pixels.shape == then.shape
    assert 255 * np.sqrt(np.mean((pixels - then) ** 2)) < TOLERANCE


def test_the_comparison_sees_a_curve_that_is_gone(tmp_path):
    files.write(picture(BY_NAME["temperature"], [subject("cluster-lr-x100")]), tmp_path / "a.png",
                "light", 40)  # fmt: skip
    then = imread(LOOKS / "temperature-cluster-light.png")
    pixels = imread(tmp_path / "a.png")
    assert pixels.shape != then.shape or 255 * np.sqrt(np.mean((pixels - then) ** 2)) > TOLERANCE


def boxes(drawn):
    """Every text of a picture that is seen, with its place in pixels."""
    renderer = FigureCanvasAgg(drawn).get_renderer()
    drawn.draw(renderer)
    axes = drawn.get_axes()
    ticked = {text for box in axes for text in _ticks(box.xaxis) | _ticks(box.yaxis)}
    labels = {
        tick.label1
        for box in axes if box.axison
        for axis in (box.xaxis, box.yaxis)
        for tick in axis._update_ticks()
    }  # fmt: skip
    for text in drawn.findobj(Text):
        is_visible = text not in ticked or text in labels
        if text.get_text().strip() and text.get_visible() and is_visible:
            yield text, text.get_window_extent(renderer)


def _ticks(axis):
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    return {text for tick in ticks for text in (tick.label1, tick.label2)}


@pytest.mark.soak
@pytest.mark.parametrize("names", sampled(GROUPS, 3), ids=lambda names: "+".join(names)[:60])
def test_no_text_is_cut_off_or_lies_over_another(names):
    for figure in FIGURES:
        drawing = picture(figure, subjects(names))
        if drawing is None:
            continue
        with mpl.rc_context(canvas.RC_PARAMS), warnings.catch_warnings():
            warnings.simplefilter("error")
            drawn = canvas.draw(drawing, THEMES["light"], 60)
            text_boxes = list(boxes(drawn))
        page_box = drawn.bbox
        for text, box in text_boxes:
            out = min(box.x0, box.y0, page_box.x1 - box.x1, page_box.y1 - box.y1)
            assert out >= -1, (figure.name, text.get_text())
        for (first, a), (two, b) in combinations(text_boxes, 2):
            may_overlap = _limit(first) or _limit(two)
            shared = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
            assert may_overlap or min(shared) <= 1.5, (
                figure.name,
                first.get_text(),
                two.get_text(),
            )


def test_powers_of_units_are_raised():
    panel = Panel("Value loss", "return^2", (Line("a", "value/loss", LOSS),))
    drawing = Picture("value", "Value", "", ("a",), "steps", 0, 50, (panel,), columns=1)
    drawn = canvas.draw(drawing, THEMES["light"], 60)
    texts = [text.get_text().strip() for text in drawn.findobj(Text)]
    assert "return²" in texts
    assert not any("^" in text for text in texts)


def _limit(text):
    """A limit's label lies on the curves, with paper behind it."""
    return isinstance(text, Annotation) and text.get_bbox_patch() is not None


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
@pytest.mark.parametrize("theme", sampled(["light", "dark"], 2))
def test_every_format_is_written_and_always_the_same(kind, theme, tmp_path):
    drawing = picture(BY_NAME["policy"], [subject("cluster")])
    for name in ("one", "two"):
        files.write(drawing, tmp_path / f"{name}.{kind}", theme, 50)
    data = (tmp_path / f"one.{kind}").read_bytes()
    assert data.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[kind])
    assert data == (tmp_path / f"two.{kind}").read_bytes()


def test_a_dark_picture_is_dark_and_a_light_one_light(tmp_path):
    drawing = picture(BY_NAME["policy"], [subject("cluster")])
    means = {}
    for theme in THEMES:
        files.write(drawing, tmp_path / f"{theme}.png", theme, 30)
        means[theme] = float(imread(tmp_path / f"{theme}.png")[..., :3].mean())
    assert means["light"] > 0.9
    assert means["dark"] < 0.2


def _luminance(colour):
    channels = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in channels]
    return float(np.dot((0.2126, 0.7152, 0.0722), linear))


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_colours_stand_out_from_the_paper(theme):
    def contrast(colour):
        high, low = sorted((_luminance(colour), _luminance(theme.paper)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    # WCAG 2.1: 4.5 for text; 3 for parts of a chart, less for the lightest two of eight.
    assert min(map(contrast, [theme.ink, theme.dim, *theme.named.values()])) >= 4.5
    ratios = sorted(map(contrast, theme.curves))
    assert ratios[0] >= 2.0
    assert ratios[3] >= 3.0


def test_matplotlib_s_own_settings_are_left_as_they_were(tmp_path):
    settings = dict(mpl.rcParams)
    files.write(picture(BY_NAME["policy"], [subject("cluster")]), tmp_path / "a.png", "dark", 30)
    assert dict(mpl.rcParams) == settings


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (0.5, "0.5"), (12.0, "12"), (1500.0, "1500"), (12_000.0, "12k"),
        (2.5e6, "2.5M"), (3e-5, "3e-5"), (-2e-4, "-2e-4"), (1e300, "1e300"),
    ],
)  # fmt: skip
def test_a_number_is_written_short(value, text):
    assert short(value, 3) == text


@pytest.mark.parametrize(
    ("ticks", "texts"),
    [
        ([0.9, 1.05, 1.2], ["0.9", "1.05", "1.2"]),
        ([1.0, 1.0001, 1.0002], ["1", "1.0001", "1.0002"]),
        ([0, 50_000, 100_000], ["0", "50k", "100k"]),
        ([0, 2_500, 5_000], ["0", "2500", "5000"]),
        ([1e-5, 1e-2, 10.0], ["1e-5", "0.01", "10"]),
        ([0, 12_500, 25_000], ["0", "12.5k", "25k"]),
    ],
)
def test_ticks_say_where_they_stand(ticks, texts):
    assert Short().format_ticks(ticks) == texts


def test_texts_are_made_fit_to_draw():
    assert drawable("a\x1b[0m\n训") == "a\\x1b[0m\\n\u25a1"
    assert cut("short", 2.0, 11) == "short"
    shortened = cut("wide " * 40, 2.0, 11)
    assert shortened.endswith("…")
    assert 1.8 < width(shortened, 11) <= 2.0
    lines = wrap("one two three " * 10 + "x" * 200, 2.0, 11, bold=True)
    assert all(width(line, 11, bold=True) <= 2.0 for line in lines)
    assert " ".join(lines).count("three") == 10
    assert middle_cut("ppo-seed-12", 7) == "ppo…-12"


@pytest.mark.soak
def test_the_manual_s_pictures_are_what_is_drawn(tmp_path):
    root = HERE.parent.parent
    command = [sys.executable, root / "scripts" / "draw_pictures.py", tmp_path]
    subprocess.run(command, check=True, cwd=root, stdout=subprocess.DEVNULL)
    names = {path.name for path in (root / "docs" / "pictures").glob("*.png")}
    names -= {TRAINED} | ({PAGE, SERVED} if browser.program() is None else set())
    assert names == {path.name for path in tmp_path.iterdir()}
    for name in names:
        pixels, then = imread(tmp_path / name), imread(root / "docs" / "pictures" / name)
        assert pixels.shape == then.shape, f"{name}: run make docs"
        if name in {PAGE, SERVED}:
            continue  # a page is set in the fonts of the machine
        assert 255 * np.sqrt(np.mean((pixels - then) ** 2)) < TOLERANCE, f"{name}: run make docs"

"""Several runs in one chart: colours by group, a band over seeds, the comparison before all."""

import time
from dataclasses import replace

import numpy as np
import pytest
from browser import Browser, needs_browser
from loading import MEASURED
from reported import NOW, Elements, judged, pages, unpacked
from waiting import HANG_SECONDS

import rlvitals
from rlvitals.cli import main
from rlvitals.diagnosis.engine import diagnose
from rlvitals.errors import UsageError
from rlvitals.types import Series, Trace
from rlvitals.views.charts import overlay as overlays
from rlvitals.views.charts.chart import Chart, Packer
from rlvitals.views.figures.figure import Line, Panel
from rlvitals.views.report import html, overlay_section, tables
from rlvitals.views.report.markup import breakable
from rlvitals.views.report.overlay_charts import ComparedRun

STEPS = np.arange(0, 101)
TALL = "document.querySelector('.answer .chart')"


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


def series(values):
    return Series(STEPS, np.full(len(STEPS), np.nan), np.asarray(values, dtype=float))


def trace(level, seed=0, rate=1e-3, **more):
    """A run that learns up to a level; the seed moves it."""
    logged = {
        "outcome/return": series(level * STEPS / 100 + seed),
        "policy/approx_kl": series(np.full(len(STEPS), 0.01 + 0.001 * seed)),
        **more,
    }
    settings = {"seed": seed, "learning_rate": rate}
    return Trace(logged, {}, settings=settings, name=f"run{level}-{seed}")


def compared(*traces, path=""):
    return [
        ComparedRun(one.name, diagnose(one, rates=MEASURED), path or one.name) for one in traces
    ]


def seeds_of_two_rates():
    return compared(
        *(trace(level, seed, rate) for level, rate in ((50, 1e-3), (90, 1e-2)) for seed in range(3))
    )


def page_of(runs, axis="steps"):
    subjects = [judged(run.name, run.diagnosis) for run in runs]
    return html.document(pages(*subjects), NOW, overlay_section.overlay(runs, axis))


def test_a_band_is_the_t_interval_of_the_seeds():
    lines = [
        Line(str(seed), "optimiser/loss", series(np.full(101, float(seed)))) for seed in (1, 2, 3)
    ]
    (band,) = overlays.seed_bands(lines)
    half = 4.302653 / np.sqrt(3)  # Student's t of 2 degrees of freedom, 97.5 %
    assert (band["steps"][0], band["steps"][-1]) == (0, 100)
    assert band["middle"] == pytest.approx([2.0] * 61)
    assert band["low"] == pytest.approx([2 - half] * 61)
    assert band["high"] == pytest.approx([2 + half] * 61)


def test_a_band_covers_the_steps_that_all_seeds_log_and_one_seed_has_none():
    short = Series(STEPS[20:51], np.full(31, np.nan), np.ones(31))
    lines = [Line("a", "x", series(STEPS)), Line("b", "x", short), Line("c", "x", short, part=1)]
    (band,) = overlays.seed_bands(lines)
    assert (band["part"], band["steps"][0], band["steps"][-1]) == (0, 20, 50)
    apart = Series(STEPS[60:] + 100, np.full(41, np.nan), np.ones(41))
    assert overlays.seed_bands([Line("a", "x", short), Line("b", "x", apart)]) == []
    nothing = series(np.full(101, np.nan))
    assert overlays.seed_bands([Line("a", "x", nothing), Line("b", "x", short)]) == []


def test_the_legend_names_only_what_is_drawn():
    rng = np.random.default_rng(0)
    noisy, even = series(rng.normal(0, 1, 101)), series(STEPS)

    def legend(column, *, smooth, bands=()):
        panel = Panel("x", "", (Line("a", "x", column, smooth=smooth),))
        return overlays.legend(
            [overlays.pack(Packer(), Chart("c", panel, 0, 100), ["g"], list(bands))]
        )

    assert legend(even, smooth=True) == "Each line is a run."
    assert "thick" not in legend(noisy, smooth=True)
    assert "moving average" in legend(noisy, smooth=True)
    banded = legend(noisy, smooth=False, bands=overlays.seed_bands([
        Line("a", "x", noisy), Line("b", "x", even),
    ]))  # fmt: skip
    assert "thick line the mean" in banded
    assert "moving average" not in banded


def test_a_run_of_a_group_has_no_average_although_its_own_chart_has():
    noisy = series(np.random.default_rng(0).normal(0, 1, 101))
    packer = Packer()
    own = packer.chart(Chart("own", Panel("x", "", (Line("a", "x", noisy),)), 0, 100))
    shared = Chart("all", Panel("x", "", (Line("a", "x", noisy, smooth=False),)), 0, 100)
    packed = overlays.pack(packer, shared, ["g"], [])
    assert own["curves"][0]["average"] is not None
    assert packed["curves"][0]["average"] is None
    assert packed["curves"][0]["column"] == own["curves"][0]["column"]  # stored once


def test_the_answer_comes_first_and_metrics_of_one_run_are_left_out():
    runs = seeds_of_two_rates()
    extra = trace(90, 2, 1e-2, **{"exploration/entropy": series(STEPS)})
    runs[-1:] = compared(extra)
    page = page_of(runs)
    elements = Elements(page)
    shared = elements.data["overlay"]
    assert [chart["name"] for chart in shared["charts"]] == [
        "all-outcome-outcome/return", "all-metric-policy/approx_kl",
    ]  # fmt: skip
    for chart in shared["charts"]:
        assert [curve["part"] for curve in chart["curves"]] == [0, 0, 0, 1, 1, 1]
        assert chart["groups"] == ["learning_rate=0.001", "learning_rate=0.01"]
        assert [band["part"] for band in chart["bands"]] == [0, 1]
    text = elements.text
    head = text.index("learning_rate=0.01 is better than learning_rate=0.001")
    assert text[head + 1].startswith(
        "return 86.95 against 48.75, a difference of +38.2 (95 % interval"
    )
    assert head < text.index("verdict") < text.index("Settings that differ")
    settings = text[text.index("Settings that differ") :]
    assert settings.index("learning_rate") < settings.index("Metrics 1")


def test_runs_without_a_common_outcome_are_drawn_and_not_compared():
    runs = compared(*(
        Trace({"policy/approx_kl": series(STEPS + n)}, {}, name=f"run{n}") for n in range(2)
    ))  # fmt: skip
    elements = Elements(page_of(runs))
    assert "The outcomes of these runs are not compared: no run logs an outcome" in elements.text
    (chart,) = elements.data["overlay"]["charts"]
    assert len(chart["curves"]) == 2


def test_a_report_of_one_run_has_no_overlay():
    run = trace(50)
    page = html.document(pages(judged("run", diagnose(run, rates=MEASURED))), NOW)
    assert Elements(page).data["overlay"] is None


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("learning_rate", ["learning_rate"]),
        ("optimiser/weight_decay_start", ["optimiser/", "weight_", "decay_", "start"]),
        ("entropy_coefficient=1.5e-05", ["entropy_", "coefficient=1.5e-05"]),
        ("short words of a long text", ["short words of a long text"]),
        ("a&b_<script>.alert_long_name", ["a&amp;b_&lt;script&gt;.", "alert_", "long_", "name"]),
    ],
)
def test_long_names_may_break_between_words_and_never_in_numbers(text, pieces):
    assert breakable(text).split("<wbr>") == pieces


@needs_browser
def test_a_long_name_of_a_setting_breaks_between_its_words_on_a_phone(browser, tmp_path):
    names = ("optimiser/weight_decay_of_all_parameters", "exploration.entropy_coefficient_final")
    runs = [trace(50, seed) for seed in range(2)]
    for number, run in enumerate(runs):
        run.settings.update(dict.fromkeys(names, 10.0**-number))
    path = tmp_path / "report.html"
    path.write_text(page_of(compared(*runs)), encoding="utf-8")
    page = browser.open(path, width=380, height=3000)
    page.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.settle()
    # Of each piece between two places to break, the lines that it takes.
    lines = page.run(
        "[...document.querySelectorAll('td:first-child')].filter(c => c.querySelector('wbr'))"
        ".flatMap(c => [...c.childNodes].filter(n => n.nodeType === 3)).map(n => {"
        "const r = document.createRange(); r.selectNodeContents(n);"
        "return new Set([...r.getClientRects()].map(b => b.top)).size; })"
    )
    assert len(lines) > 2 * len(names)
    assert set(lines) == {1}
    assert page.run("document.documentElement.scrollWidth") == 380


@needs_browser
def test_a_band_that_reaches_below_zero_is_drawn_on_a_log_scale(browser, tmp_path):
    losses = [series(100.0 ** (1 + seed * STEPS / 100)) for seed in range(3)]
    runs = compared(*(
        trace(50, seed, **{"optimiser/loss": loss}) for seed, loss in enumerate(losses)
    ), path="runs")  # fmt: skip
    drawn = overlay_section.overlay(runs)
    assert min(drawn.bands["all-metric-optimiser/loss"][0]["low"]) < 0
    path = tmp_path / "report.html"
    path.write_text(page_of(runs), encoding="utf-8")
    page = browser.open(path, height=3000)
    page.settle()
    chart = "document.querySelector('[data-chart=\"all-metric-optimiser/loss\"]')"
    if not page.run(f"{chart}.querySelector('.chart-notes').textContent.includes('log')"):
        page.run(f"{chart}.querySelector('.scale').click()")
    assert "log scale" in page.run(f"{chart}.querySelector('.chart-notes').textContent")
    assert "NaN" not in page.run(f"{chart}.querySelector('.band').getAttribute('d')")
    assert page.complaints() == []


@needs_browser
@pytest.mark.parametrize(("width", "dark"), [(380, True), (1600, False)])
def test_curves_bands_and_names_are_drawn_in_a_browser(browser, tmp_path, width, dark):
    path = tmp_path / "report.html"
    path.write_text(page_of(seeds_of_two_rates()), encoding="utf-8")
    page = browser.open(path, width=width, height=4000, dark=dark)
    page.settle()
    charts = ".all-runs .chart, .answer .overlaid"
    drawn = page.run(
        f"[...document.querySelectorAll('{charts}')].map("
        "c => ['.lines .line', '.band', '.middle'].map("
        "s => [...c.querySelectorAll(s)].filter(e => e.getAttribute('d')).length))"
    )
    assert drawn == [[6, 2, 2], [6, 2, 2]]
    keys = "[...document.querySelector('.overlaid').querySelectorAll('.key')]"
    assert page.run(f"{keys}.map(k => k.textContent)") == [
        "learning_rate=0.001", "learning_rate=0.01",
    ]  # fmt: skip
    colours = page.run(
        "['.band.curve0', '.lines .line.curve0'].map((s, at) => getComputedStyle("
        "document.querySelector('.overlaid ' + s))[at ? 'stroke' : 'fill'])"
    )
    assert colours[0] == colours[1]
    assert page.run("document.documentElement.scrollWidth") == width
    page.run("document.querySelector('.all-runs .search').focus()")
    page.ask("Input.insertText", text="entropy")
    assert page.run("document.querySelector('.all-runs .hits').textContent") == "0 of 1 metric"
    assert page.complaints() == []


def test_the_command_compares_folders_of_seeds(tmp_path, capsys):
    for group, level in (("small", 50), ("large", 90)):
        for seed in range(3):
            with rlvitals.start(tmp_path / group / str(seed), settings={"seed": seed}) as run:
                for step in range(40):
                    run.log(step, {"reward": level * step / 40 + seed})
    path = tmp_path / "both.html"
    folders = [str(tmp_path / name) for name in ("small", "large")]
    assert main(["report", *folders, "-o", str(path)]) == 0
    capsys.readouterr()
    elements = Elements(path.read_text())
    chart = elements.data["overlay"]["charts"][0]
    assert chart["groups"] == ["small", "large"]
    assert [band["part"] for band in chart["bands"]] == [0, 1]
    names = {curve["label"] for curve in chart["curves"]}
    assert names == {f"{group}/{seed}" for group in ("small", "large") for seed in range(3)}
    assert "large is better than small" in elements.text


def timed(level, seed, seconds_per_step, collapse=None):
    """A run that takes so long for a step, and four samples."""
    values = level * STEPS / 100.0 + seed
    if collapse is not None:
        values[collapse:] = 0.0
    run = trace(
        level, seed,
        **{
            "outcome/return": series(values),
            "throughput/elapsed": series(seconds_per_step * STEPS),
            "progress/steps": series(4 * STEPS),
        },
    )  # fmt: skip
    return replace(run, step_unit="updates", name=f"run{seed}")


@pytest.mark.parametrize(
    ("axis", "unit", "scale", "ends"),
    [
        ("steps", "updates", 1, [100, 100]),
        ("samples", "samples", 1, [400, 400]),
        ("time", "minutes of training", 1 / 60_000, [200_000, 1_000_000]),
    ],
)
def test_runs_lie_over_each_other_by_an_axis(axis, unit, scale, ends):
    fast, slow = timed(90, 0, 2.0), timed(90, 1, 10.0, collapse=70)
    data = Elements(page_of(compared(fast, slow, path="seeds"), axis)).data
    shared = data["overlay"]
    assert (shared["unit"], shared["scale"], shared["last"]) == (unit, scale, max(ends))
    (outcome,) = [chart for chart in shared["charts"] if chart["name"].startswith("all-outcome")]
    columns = [data["columns"][curve["column"]] for curve in outcome["curves"]]
    assert [int(unpacked(column)[0][-1]) for column in columns] == ends
    ((began, curve, rule, severity),) = outcome["onsets"]
    assert (curve, rule, severity) == (1, "return-collapse", "error")
    assert began == pytest.approx(0.7 * ends[1], rel=0.05)
    assert outcome["marks"] == []  # stretches of several runs would cover each other
    (kl,) = [chart for chart in shared["charts"] if chart["name"].endswith("approx_kl")]
    assert kl["bands"][0]["steps"][-1] == min(ends)  # as far as both runs log


def test_an_axis_that_a_log_lacks_is_refused():
    with pytest.raises(UsageError, match="logs no tokens"):
        overlay_section.overlay(compared(trace(50), trace(60)), "tokens")


def many_groups(count):
    return compared(*(trace(3 * number, 0, 1e-4 * (number + 1)) for number in range(count)))


@needs_browser
def test_no_two_groups_look_alike_and_who_points_at_a_line_reads_its_name(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page_of(many_groups(26)), encoding="utf-8")
    page = browser.open(path, height=3000)
    page.settle()
    looks = page.run(
        f"[...{TALL}.querySelectorAll('.lines > svg')].map(s => [s.dataset.part,"
        "(c => c.stroke + c.strokeDasharray)(getComputedStyle(s.querySelector('.line')))])"
    )
    drawn = {int(part): look for part, look in looks}
    assert len(drawn) == 26
    assert len({drawn[part] for part in range(24)}) == 24
    assert drawn[24] == drawn[25]  # the rest is grey
    keys = f"[...{TALL}.querySelectorAll('.key')].map(k => k.textContent)"
    assert page.run(keys)[-1] == "2 more"
    # Point at the end of the highest curve, which is among the grey ones.
    left, right, top = page.run(
        f"(b => [b.left, b.right, b.top])({TALL}.querySelector('.curves').getBoundingClientRect())"
    )
    height = page.run(
        f"+[...{TALL}.querySelectorAll('[data-part=\"25\"] .line')].at(-1)"
        ".getAttribute('d').split(' ').at(-1)"
    )
    page.mouse("mouseMoved", right - 20, top + height + 2)
    page.settle()
    assert page.run(f"{TALL}.querySelector('.near-name').textContent") == "run75-0"
    near = f"[...{TALL}.querySelectorAll('.near')].map(s => s.dataset.part)"
    assert page.run(near) == ["25"]
    # The other charts read out the same run at the same step.
    readouts = page.run(
        "[...document.querySelectorAll('.all-runs .readout')].map(r => r.textContent)"
    )
    assert readouts == ["99: 0.01"]
    page.run(f"{TALL}.querySelector('.curves').focus()")
    page.key("ArrowUp")
    assert page.run(near) == ["24"]
    page.mouse("mouseMoved", left, 1)
    page.settle()
    assert page.run(near) == []
    assert page.complaints() == []


@needs_browser
def test_of_many_bands_the_one_pointed_at_is_drawn(browser, tmp_path):
    runs = compared(*(trace(9 * n, seed, 1e-4 * (n + 1)) for n in range(9) for seed in range(2)))
    path = tmp_path / "report.html"
    path.write_text(page_of(runs), encoding="utf-8")
    page = browser.open(path, height=1200)
    page.settle()
    shown = f"[...{TALL}.querySelectorAll('.band')].filter(b => b.checkVisibility()).length"
    assert page.run(f"{TALL}.querySelectorAll('.band').length") == 9
    assert page.run(shown) == 0
    assert "Point at a line or a name" in page.run("document.body.textContent")
    x, y = page.run(
        f"(b => [b.left + 9, b.top + 9])({TALL}.querySelector('.key').getBoundingClientRect())"
    )
    page.mouse("mouseMoved", x, y)
    page.settle()
    assert page.run(shown) == 1
    assert page.complaints() == []


@pytest.mark.soak
@needs_browser
def test_an_overlay_is_saved_with_the_names_of_its_curves(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page_of(compared(timed(50, 0, 2.0), timed(90, 1, 10.0)), "time"), "utf-8")
    page = browser.open(path, height=1200)
    page.settle()
    page.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    files = {}
    for kind in ("PNG", "SVG", "CSV"):
        page.run(
            f"[...{TALL}.querySelectorAll('.export button')]"
            f".find(b => b.textContent === '{kind}').click()"
        )
        file = tmp_path / f"Episode_return.{kind.lower()}"
        deadline = time.monotonic() + HANG_SECONDS
        while not (file.exists() and file.stat().st_size):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        files[kind] = file.read_bytes()
    assert files["PNG"].startswith(b"\x89PNG")
    svg = files["SVG"].decode()
    assert "run0" in svg
    assert "minutes of training" in svg
    head, first, *rest = files["CSV"].decode().split("\n")
    assert head == "curve,minutes_of_training,value"
    assert first == '"run0",0,0'
    assert rest[-1].startswith('"run1",16.6')
    assert len(rest) == 201
    assert page.complaints() == []


@pytest.mark.soak
def test_runs_without_settings_are_not_said_to_have_the_same():
    blank, same = (Trace({}, {}, settings) for settings in ({}, {"lr": 0.1}))
    for trace, words in ((blank, "log no settings"), (same, "log the same settings")):
        assert words in tables.differing_settings([("a", trace), ("b", trace)]).note

"""A report, opened in a real browser: it draws, zooms, searches, prints, complains of nothing."""

from dataclasses import replace

import numpy as np
import pytest
from browser import Browser, needs_browser
from drawn import subject
from loading import MEASURED
from reported import EVIL, EVIL_EVENTS, EVIL_FACTS, evil, judged, long_run, told, written
from test_ranks_figure import ranks

from rlvitals.cli import main
from rlvitals.diagnosis.engine import diagnose
from rlvitals.types import Series, Trace

pytestmark = needs_browser

VISIBLE = "[...document.querySelectorAll('.chart')].filter(c => c.checkVisibility())"
LINES = f"{VISIBLE}.map(c => [...c.querySelectorAll('.line')].some(l => l.getAttribute('d')))"
FIRST = "document.querySelector('.chart')"
TICKS = f"[...{FIRST}.querySelectorAll('.grid text')].map(t => t.textContent)"
D = f"{FIRST}.querySelector('.line').getAttribute('d')"
PAPER = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def browser():
    with Browser() as one:
        yield one


@pytest.fixture
def shown(browser, tmp_path):
    """Open a report in a window; whatever the browser complains of fails the test."""
    opened = []

    def show(*subjects, **window):
        path = tmp_path / "report.html"
        path.write_text(written(*subjects), encoding="utf-8")
        page = browser.open(path, **window)
        page.settle()
        opened.append(page)
        return page

    yield show
    for page in opened:
        assert page.complaints() == []


def middle(page):
    """Where the first chart's curves are on the screen: left, right, height."""
    box = page.run(f"(b => [b.left, b.right, b.top + b.height / 2])({FIRST}"
                   ".querySelector('svg').getBoundingClientRect())")  # fmt: skip
    return box[0] + 60, box[1] - 20, box[2]


def test_every_chart_that_is_seen_is_drawn(shown):
    page = shown(told("ppo-cartpole-lr-spike"), height=6000)
    drawn = page.run(LINES)
    assert len(drawn) >= 17
    assert all(drawn)
    assert page.run(f"{FIRST}.querySelectorAll('.found.error, .onset.error').length") == 2
    assert page.run(f"{FIRST}.querySelector('.onset-name').textContent") == "▼ since 31,744"
    assert {"0", "50", "100", "150", "200", "10k", "60k"} <= set(page.run(TICKS))


def test_charts_are_drawn_as_they_come_into_sight(shown):
    page = shown(told("cluster"), height=700)
    below = f"{VISIBLE}.at(-1).querySelectorAll('.line').length"
    assert page.run(below) == 0
    page.run(f"{VISIBLE}.at(-1).scrollIntoView({{behavior: 'instant'}})")
    page.until(f"{below} > 0")


def test_dragging_zooms_and_a_double_click_shows_all_again(shown):
    page = shown(told("ppo-cartpole-lr-spike"))
    curve_path, ticks = page.run(D), page.run(TICKS)
    left_px, right, y = middle(page)
    page.drag(left_px + 0.2 * (right - left_px), y, left_px + 0.4 * (right - left_px))
    assert page.run(D) != curve_path
    assert page.run(TICKS) != ticks
    assert page.run(f"{FIRST}.querySelector('.reset').hidden") is False
    other_label = page.run(f"{VISIBLE}[1].querySelector('.grid text:last-of-type').textContent")
    assert other_label  # the charts of a run are zoomed together
    page.run(f"{FIRST}.querySelector('.curves').dispatchEvent(new MouseEvent('dblclick'))")
    page.settle()
    assert (page.run(D), page.run(TICKS)) == (curve_path, ticks)


def test_all_charts_of_a_run_show_the_same_steps_and_other_runs_do_not(shown):
    page = shown(told("ppo-cartpole-lr-spike"), told("scheduler-collapsed"), height=9000)
    steps = "c => [...c.querySelectorAll('.grid text')].map(t => t.textContent).join()"
    old_steps = page.run(f"{VISIBLE}.map({steps})")
    runs = page.run(f"{VISIBLE}.map(c => c.closest('.run').id)")
    left_px, right, y = middle(page)
    page.drag(left_px + 0.2 * (right - left_px), y, left_px + 0.5 * (right - left_px))
    after = page.run(f"{VISIBLE}.map({steps})")
    changed = [old != new for old, new in zip(old_steps, after, strict=True)]
    assert changed == [run == runs[0] for run in runs]


def test_the_wheel_zooms_where_a_chart_was_clicked_and_scrolls_elsewhere(shown):
    page = shown(told("ppo-cartpole-lr-spike"))
    curve_path = page.run(D)
    left_px, right, y = middle(page)
    page.mouse("mouseWheel", (left_px + right) / 2, y, deltaX=0, deltaY=-200)
    page.settle()
    assert page.run(D) == curve_path
    page.run(f"{FIRST}.querySelector('.curves').focus()")
    page.mouse("mouseWheel", (left_px + right) / 2, y, deltaX=0, deltaY=-200)
    page.settle()
    page.until(f"{D} !== {curve_path!r}")


def test_the_nearest_value_is_read_out_by_mouse_and_by_keys(shown):
    page = shown(told("ppo-cartpole-lr-spike"))
    readout = f"{FIRST}.querySelector('.readout').textContent"
    left_px, right, y = middle(page)
    page.mouse("mouseMoved", (left_px + right) / 2, y)
    page.settle()
    step, value = page.run(readout).split(": ")
    assert 20_000 < int(step.replace(",", "")) < 40_000
    assert 9 < float(value) < 300
    page.run(f"{FIRST}.querySelector('.curves').focus()")
    page.key("Home")
    assert page.run(readout) == "1,024: 22.65"
    page.key("ArrowRight")
    step = page.run(readout).split(":")[0]
    assert int(step.replace(",", "")) > 1024
    page.key("End")
    assert page.run(readout) == "61,440: 9.47"


def test_the_step_that_is_pointed_at_is_read_out_by_every_chart_of_the_run(shown):
    names = ("outcome/return", "optimiser/loss", "exploration/entropy")
    series = {
        name: Series(np.arange(0, 101, every), np.full(100 // every + 1, np.nan), values)
        for name, every, values in zip(
            names, (1, 1, 10), (np.arange(101.0), np.ones(101), np.arange(11.0)), strict=True
        )
    }
    page = shown(judged("run", diagnose(Trace(series, {}), rates=MEASURED)), height=8000)
    charts = f"{VISIBLE}.map(c => [c.dataset.chart, c.querySelector('.readout').textContent])"
    readouts = f"Object.fromEntries({charts})"
    page.run(f"{FIRST}.querySelector('.curves').focus()")
    page.key("End")
    assert sorted(set(page.run(readouts).values())) == ["100: 1", "100: 10", "100: 100"]
    page.key("ArrowLeft")  # the step of the chart with the keys; others show their nearest one
    assert sorted(set(page.run(readouts).values())) == ["100: 10", "99: 1", "99: 99"]
    width = "c.querySelector('svg').viewBox.baseVal.width"
    ends = f"{VISIBLE}.map(c => c.querySelector('.pointer line').getAttribute('x1') / {width})"
    assert all(0.9 < end < 1 for end in page.run(ends))
    left_px, _, y = middle(page)
    page.mouse("mouseMoved", left_px, y)
    page.mouse("mouseMoved", left_px, 1)  # off the chart
    page.settle()
    assert set(page.run(readouts).values()) == {""}


def test_a_compressed_scale_has_both_signs_and_zero_and_keeps_their_order(shown):
    """Values of either sign over seven decades: zero in the middle, decades on both sides."""
    values = np.sort(np.concatenate([sign * np.logspace(-1, 6, 40) for sign in (-1, 1)]))
    series = Series(np.arange(80), np.full(80, np.nan), values)
    trace = Trace({"outcome/return": series}, {}, name="wide")
    page = shown(judged("wide", diagnose(trace, rates=MEASURED)))
    notes = f"{FIRST}.querySelector('.chart-notes').textContent"
    if not page.run(notes).startswith("compressed"):
        page.run(f"{FIRST}.querySelector('.scale').click()")
    assert page.run(notes).startswith("compressed scale")
    ticks = page.run(
        f"[...{FIRST}.querySelectorAll('.grid text')].filter(t => t.getAttribute('text-anchor')"
        " === 'end').map(t => [t.textContent, +t.getAttribute('y')])"
    )
    heights = dict(ticks)
    assert "0" in heights
    above = [text for text, y in ticks if y < heights["0"]]
    below = [text for text, y in ticks if y > heights["0"]]
    assert above
    assert below
    assert not any(text.startswith(("-", "\u2212")) for text in above)
    assert all(text.startswith(("-", "\u2212")) for text in below)
    ys = [float(y) for y in page.run(f"{D}.match(/ [0-9.]+/g)")]
    assert ys == sorted(ys, reverse=True)  # values that rise are drawn rising


def test_keys_zoom_and_change_the_scale(shown):
    page = shown(told("ppo-cartpole-lr-spike"))
    curve_path = page.run(D)
    page.run(f"{FIRST}.querySelector('.curves').focus()")
    page.key("+", "+")
    zoomed = page.run(D)
    assert zoomed != curve_path
    page.key("Escape")
    assert page.run(D) == curve_path
    page.key("l", "l")
    assert page.run(f"{FIRST}.querySelector('.chart-notes').textContent").startswith("log scale")
    assert "10" in page.run(TICKS)
    page.run(f"{FIRST}.querySelector('.scale').click()")
    assert page.run(D) == curve_path


def test_the_search_leaves_the_metrics_that_hold_every_word(shown):
    page = shown(told("cluster"))
    every = page.run("document.querySelectorAll('.metric').length")
    page.run("document.querySelector('.search').focus()")
    page.ask("Input.insertText", text="entropy explor")
    script = (
        "[...document.querySelectorAll('.metric')].filter(m => !m.hidden).map(m => m.dataset.words)"
    )
    matches = page.run(script)
    assert 0 < len(matches) < every
    assert all("entropy" in match and "explor" in match for match in matches)
    readout = page.run("document.querySelector('.hits').textContent")
    assert readout == f"{len(matches)} of {every} metrics"
    page.run("const b = document.querySelector('.search'); b.value = '';"
             "b.dispatchEvent(new Event('input'))")  # fmt: skip
    assert len(page.run(script)) == every


def test_spikes_nan_infinities_and_lone_points_are_all_seen(shown):
    diagnosis = subject("hostile").found
    page = shown(judged("hostile", diagnosis), height=9000)
    marks = {kind: page.run(f"document.querySelectorAll('.bad.{kind}').length")
             for kind in ("nan", "above", "below")}  # fmt: skip
    assert all(marks.values()), marks
    readout = page.run(
        "[...document.querySelectorAll('.chart-notes')].map(n => n.textContent).join()"
    )
    assert "15 × NaN" in readout
    assert "1 × +∞" in readout
    assert "no number here" in page.run("document.body.textContent")
    assert page.run("document.querySelectorAll('.dot').length") > 100  # the lone points of one
    assert page.run("[...document.querySelectorAll('[d]')].every(p => !/NaN|Infinity/.test("
                    "p.getAttribute('d')))")  # fmt: skip


def test_a_spike_of_one_point_in_a_million_is_drawn_however_small_the_chart(shown):
    page = shown(judged("long", diagnose(long_run(), rates=MEASURED)), height=3000)
    tops = page.run(f"{VISIBLE}.map(c => Math.min(...c.querySelector('.line').getAttribute('d')"
                    ".match(/[ML][^ML]+/g).map(p => Number(p.split(' ')[1]))))")  # fmt: skip
    assert tops
    assert all(top < 40 for top in tops)
    line = f"{VISIBLE}.at(-1).querySelector('.line').getAttribute('d')"
    assert page.run(f"{line}.split('L').length") < 4 * 320  # of the four thousand that are told


def test_what_a_log_wrote_does_nothing(shown):
    diagnosis = subject("hostile").found
    bad = replace(diagnosis, trace=replace(diagnosis.trace, name=EVIL, **evil(diagnosis.trace)))
    page = shown(judged(EVIL, bad, EVIL_FACTS, EVIL_EVENTS), height=9000)
    assert page.run("document.title") != "owned"
    assert page.run("document.images.length") == 0
    assert any(page.run(LINES))


@pytest.mark.parametrize("dark", [False, True])
def test_it_follows_whether_its_reader_likes_it_dark(shown, dark):
    page = shown(told("nsr-healthy"), dark=dark)
    assert page.run(PAPER) == ("rgb(21, 24, 29)" if dark else "rgb(255, 255, 255)")
    ink = page.run(f"getComputedStyle({FIRST}.querySelector('.line')).stroke")
    assert ink == ("rgb(86, 180, 233)" if dark else "rgb(0, 114, 178)")


@pytest.mark.parametrize("width", [320, 390, 800])
def test_nothing_lies_beyond_the_edge_of_a_phone(shown, width):
    page = shown(told("scheduler-collapsed"), told("cluster"), width=width, touch=width < 500)
    page.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.settle()
    assert page.run("document.documentElement.scrollWidth") == width


def test_on_paper_everything_is_unfolded_drawn_and_light(shown, tmp_path):
    page = shown(told("ppo-cartpole-lr-spike"), dark=True, height=500)
    page.run("addEventListener('beforeprint', () => window.seen = {"
             "folded: document.querySelectorAll('details:not([open])').length,"
             f"drawn: {LINES}}})")  # fmt: skip
    page.paper(tmp_path / "report.pdf")
    counts = page.run("window.seen")
    assert counts["folded"] == 0
    assert len(counts["drawn"]) > 17
    assert all(counts["drawn"])
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    assert page.run("document.querySelectorAll('details:not([open])').length") > 5
    page.ask("Emulation.setEmulatedMedia", media="print",
             features=[{"name": "prefers-color-scheme", "value": "dark"}])  # fmt: skip
    assert page.run(PAPER) == "rgb(255, 255, 255)"


def test_a_link_unfolds_what_it_leads_to(shown):
    page = shown(told("nsr-healthy"), told("scheduler-collapsed"))
    page.run("document.querySelector('#run1 .nav a:nth-child(2)').click()")
    page.until("document.querySelector('#run1 .more').open")


@pytest.mark.soak
@pytest.mark.real_logs
def test_every_chart_of_other_people_s_logs_is_drawn(browser, real_logs, tmp_path, capsys):
    path = tmp_path / "all.html"
    folders = sorted(str(one) for one in real_logs.iterdir() if one.is_dir())
    assert main(["report", *folders, "-o", str(path)]) == 0
    assert "kB" in capsys.readouterr().out
    page = browser.open(path)
    page.run("dispatchEvent(new Event('beforeprint'))")
    drawn = page.run(LINES)
    assert len(drawn) > 300
    lines = (
        "[...c.querySelectorAll('.line, .none')].some(l => l.getAttribute('d') || l.textContent)"
    )
    assert all(page.run(f"{VISIBLE}.map(c => {lines})"))
    assert page.complaints() == []


@pytest.mark.soak
def test_the_browser_tells_of_errors(browser, tmp_path):
    path = tmp_path / "bad.html"
    path.write_text("<script>console.error('one'); missing()</script><img src='http://x.invalid/'>")
    page = browser.open(path)
    page.settle()
    readout = str(page.complaints())
    assert "one" in readout
    assert "missing is not defined" in readout
    assert "x.invalid" in readout


@pytest.mark.soak
def test_ranks_are_drawn_as_bands_with_the_outlier_named(shown):
    page = shown(judged("made", diagnose(ranks(64, slow=[7]))), height=6000)
    title = "c.textContent.includes('Seconds per step on')"
    chart = f"{VISIBLE}.find(c => {title})"
    bands = f"[...{chart}.querySelectorAll('.quantile')].map(b => b.getAttribute('d').length > 99)"
    assert page.run(bands) == [True] * 3
    lines = f"[...{chart}.querySelectorAll('.line')].map(l => l.getAttribute('class'))"
    assert page.run(lines) == ["line curve0", "line curve1"]
    keys = f"[...{chart}.querySelectorAll('.chart-notes .key')].map(k => k.textContent)"
    assert page.run(keys) == ["rank 7"]

"""The served pages in a real browser: find a failing run, zoom, watch rows come, a phone."""

import shutil
import time

import pytest
from browser import needs_browser
from effort import sampled
from served import build, record, serving, write

import rlvitals
from rlvitals.server import fleet_page

pytestmark = needs_browser

READY = "document.documentElement?.dataset.ready === 'yes'"
SPIKE_ROW, LONG_ROWS = 17_001, 30_000
LOSS = "[...document.querySelectorAll('.chart')].find(c => /loss/i.test(c.textContent))"
CURVE = f"{LOSS}.querySelector('.line').getAttribute('d')"
TOP = f"Math.min(...{CURVE}.match(/ [0-9.]+/g).map(Number))"  # pixels below the chart's top
WIDE = "document.documentElement.scrollWidth <= innerWidth"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "runs"
    record(folder / "healthy")
    record(folder / "sweep" / "broken", collapse=40)
    record(folder / "other", rate=1e-3)
    for name in ("low", "high"):
        for seed in range(2):
            record(folder / "seeds" / name / str(seed), points=20, seed=seed)
    run = rlvitals.start(str(folder / "long"), framework="sb3")
    for row in range(LONG_ROWS):
        run.log({"train/loss": 500.0 if row == SPIKE_ROW else row % 7}, step=row)
    run.finish()
    return folder


@pytest.fixture(scope="module")
def address(root, module_cache):  # noqa: ARG001 - the server's environment
    with serving(build(root)) as url:
        yield url


@pytest.fixture
def show(browser, address):
    """Open a page; whatever the browser complains of, or loads from elsewhere, fails the test."""
    pages = []

    def open_page(path="/", **window):
        page = browser.open(address + path, **window)
        page.until(READY)
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        assert page.complaints(address) == []
        page.ask("Page.close")  # with its stream


def test_a_failing_run_is_found_and_its_cause_is_read(show):
    page = show()
    page.until("document.querySelectorAll('.lamps b')[3].textContent === '0'")
    page.until("document.querySelector('.line .name').textContent === 'sweep/broken'")
    page.key("/", "/")
    assert page.run("document.activeElement.id") == "search"
    page.ask("Input.insertText", text="verdict:collapsed")
    page.until("document.querySelectorAll('.line').length === 1")
    page.until("location.search.includes('verdict')")  # a link to what is shown
    page.run("document.activeElement.blur()")
    page.key("j", "j")
    page.key("Enter", "\r")
    page.until(f"location.pathname === '/run/sweep/broken' && {READY}")
    assert page.run("document.querySelector('.word').textContent") == "collapsed"
    rule = page.run("document.querySelector('.cause .rule').textContent")
    page.run("document.querySelector('.cause .rule').click()")
    assert page.run("document.activeElement.querySelector('code').textContent") == rule


def test_a_spike_of_one_point_is_seen_and_zoomed_into(show):
    page = show("/run/long", height=2000)
    page.until(f"{LOSS}?.querySelector('.line')?.getAttribute('d')")
    top = page.run(TOP)
    assert top < 30
    box = page.run(f"(b => [b.left, b.right, b.top, b.height])({LOSS}"
                   ".querySelector('svg.curves').getBoundingClientRect())")  # fmt: skip
    left, right, middle = box[0] + 50, box[1] - 12, box[2] + box[3] / 2
    place = left + (right - left) * SPIKE_ROW / LONG_ROWS
    page.drag(place - 15, middle, place + 15)
    page.until("new URLSearchParams(location.search).has('first')")
    first, last = page.run(
        "['first', 'last'].map(n => +new URLSearchParams(location.search).get(n))"
    )
    assert first < SPIKE_ROW < last
    assert last - first < LONG_ROWS / 5
    assert page.run(TOP) < 30
    # The server was asked for every point of the stretch: 0 to 6 again and again, and the spike.
    page.until(f"({LOSS}.querySelector('.line').getAttribute('d').match(/[ML]/g) ?? []).length"
               f" >= {min(last - first, 1000)}")  # fmt: skip
    # What is pointed at is read out whole, also next to the button that ends the zoom.
    page.mouse("mouseMoved", left + (right - left) * (SPIKE_ROW - first) / (last - first), middle)
    page.until(f"{LOSS}.querySelector('.readout').textContent === '17,001: 500'")
    readouts = "[...document.querySelectorAll('.readout')].filter(one => one.textContent)"
    assert page.run(f"{readouts}.length") > 2
    assert page.run(f"{readouts}.filter(one => one.scrollWidth > one.clientWidth).length") == 0
    again = show(f"/run/long?first={first}&last={last}", height=2000)  # the link shows the same
    again.until(f"{LOSS}?.querySelector('.line')?.getAttribute('d')")
    assert again.run(TOP) == top


def test_rows_come_while_the_page_is_open_and_a_deleted_run_is_said(show, root):
    run = record(root / "growing", points=30, finish=False)
    page = show(height=1400)
    page.until("!!document.querySelector('a[href=\"/run/growing\"]')")
    page.run("document.querySelector('a[href=\"/run/growing\"]').click()")
    page.until(f"location.pathname === '/run/growing' && {READY}")
    page.until("document.getElementById('connection').dataset.state === 'live'")
    page.until("!!document.querySelector('.chart:not([inert]) .line')")
    write(run, range(30, 34))
    page.until(f"document.getElementById('step').textContent === '{34 * 1024:,}'")
    last = "[...document.querySelectorAll('.chart')[0].querySelectorAll('.line')].length"
    assert page.run(last) >= 1
    write(run, range(34, 35), value=777.0)
    page.until(
        "[...document.querySelectorAll('.chart')[0].querySelectorAll('.grid text')]"
        ".some(t => t.textContent === '500')"
    )
    hide(page, hidden=True)  # as a tab behind others
    assert page.run("document.getElementById('connection').textContent") == "paused"
    write(run, range(35, 40))
    hide(page, hidden=False)
    page.until(f"document.getElementById('step').textContent === '{40 * 1024:,}'")
    run.finish()
    shutil.rmtree(root / "growing")
    page.until("document.getElementById('news').textContent.includes('deleted')")


def hide(page, *, hidden):
    value = str(hidden).lower()
    page.run(f"Object.defineProperty(document, 'hidden', {{ value: {value}, configurable: true }})")
    page.run("void document.dispatchEvent(new Event('visibilitychange'))")


def test_every_run_is_reached_though_an_answer_holds_few(show, monkeypatch):
    monkeypatch.setattr(fleet_page, "PAGE_ROWS", 1)
    monkeypatch.setattr(fleet_page, "MAX_PAGE_ROWS", 3)
    page = show("/?sort=name")
    names = "[...document.querySelectorAll('.name')].map(name => name.title)"
    page.until(f"{names}[0] === 'healthy'")
    page.key("j", "j")
    page.key("x", "x")
    assert page.run("document.getElementById('compare').textContent") == "Compare 1"
    seen, more = [], "document.getElementById('more')"
    for text in ("Show more", "Show more", "Next 3 of 8", "Next 2 of 8"):
        seen += page.run(names)
        assert page.run(f"{more}.textContent").startswith(text)
        page.run(f"{more}.click()")
        page.until(f"{names}.join() !== {seen[-len(page.run(names)) :]!r}.join()")
    assert len({*seen, *page.run(names)}) == 8
    page.run(f"{more}.click()")  # back to the first runs
    page.until(f"{names}[0] === 'healthy'")
    monkeypatch.setattr(fleet_page, "MAX_PAGE_ROWS", 2)
    page.run("document.getElementById('group').click()")
    page.until("document.querySelector('.empty')?.textContent.startsWith('2 of 3 groups')")
    page.key("j", "j")
    page.key("x", "x")  # groups are not selected


OUTCOME = "document.querySelector('.chart')"


def test_runs_are_selected_and_compared(show):
    page = show(height=3000)
    page.until("document.querySelectorAll('.line').length >= 3")
    for key in ("healthy", "other"):
        page.run(f"document.querySelector('input[value={key}]').click()")
    page.run("document.getElementById('compare').click()")
    page.until(f"location.pathname === '/compare' && {READY}")
    page.until(f"{OUTCOME}.querySelectorAll('.line').length >= 2")
    assert page.run(f"{OUTCOME}.querySelectorAll('.key').length") == 2
    # Every metric of both runs comes as it comes into sight.
    page.until("[...document.querySelectorAll('.chart')].every(c => c.querySelector('.line'))")
    assert page.run("document.querySelectorAll('#metrics .chart').length") >= 3
    # An average leaves the raw curves.
    raw = f"{OUTCOME}.querySelectorAll('.line.raw').length"
    assert page.run(raw) == 0
    page.run(
        "(s => { s.value = '0.05'; s.dispatchEvent(new Event('change')); })"
        "(document.getElementById('smoothing'))"
    )
    page.until(f"{OUTCOME}.querySelectorAll('.line.mean').length === 2 && {raw} === 2")
    assert "average=0.05" in page.run("location.search")
    # The scale is switched, and the step that is pointed at is read out in each chart.
    page.run(f"{OUTCOME}.querySelector('.scale').click()")
    assert "log scale" in page.run(f"{OUTCOME}.querySelector('.chart-notes').textContent")
    page.run(f"{OUTCOME}.querySelector('.curves').focus()")
    page.key("End")
    readouts = page.run("[...document.querySelectorAll('.readout')].map(r => r.textContent)")
    assert len(readouts) >= 4
    assert all(text.startswith("61,440: ") for text in readouts)
    page.run(
        "[...document.querySelectorAll('.axes a')].find(a => a.textContent === 'by time').click()"
    )
    page.until(f"location.search.includes('axis=time') && {READY}")
    page.until(f"!!{OUTCOME}.querySelector('.line')")
    unit = f"{OUTCOME}.querySelector('.steps').textContent"
    assert page.run(unit) == "seconds of training"


def test_runs_are_selected_on_a_phone(show):
    page = show(width=380, height=1500, touch=True)
    page.until("document.querySelectorAll('.line').length >= 3")
    for key in ("healthy", "other"):
        box = page.run(
            "(b => [b.x + b.width / 2, b.y + b.height / 2])"
            f"(document.querySelector('input[value={key}]').getBoundingClientRect())"
        )
        page.mouse("mousePressed", *box, button="left", buttons=1, clickCount=1)
        page.mouse("mouseReleased", *box, button="left", clickCount=1)
    page.until("document.getElementById('compare').checkVisibility()")
    assert page.run("document.getElementById('compare').textContent") == "Compare 2"
    tops = "['sort', 'compare'].map(id => document.getElementById(id).getBoundingClientRect().top)"
    assert page.run(f"new Set({tops}).size") == 1  # in one row
    assert page.run(WIDE)


def test_the_groups_of_a_comparison_fit_on_a_phone(show):
    keys = "&".join(f"key=seeds/{name}/{seed}" for name in ("low", "high") for seed in range(2))
    page = show(f"/compare?{keys}", width=380, height=1500, touch=True)
    table = "document.querySelector('.stacked')"
    assert page.run(f"{table}.querySelectorAll('tbody tr').length") == 2
    assert page.run(f"{table}.parentElement.scrollWidth <= {table}.parentElement.clientWidth")
    assert page.run(WIDE)
    cells = page.run(
        f"[...{table}.querySelectorAll('td')].filter(c => c.textContent)"
        ".map(c => [c.dataset.head, c.getBoundingClientRect().right <= innerWidth])"
    )
    assert {head for head, _ in cells} >= {"group", "seeds", "95 % interval", "answer"}
    assert all(fits for _, fits in cells)


def test_the_theme_is_switched_and_kept(show):
    paper = "getComputedStyle(document.body).backgroundColor"
    page = show()
    light = page.run(paper)
    page.run("document.getElementById('theme').click()")
    dark = page.run(paper)
    assert light != dark
    again = show("/run/healthy")
    assert again.run(paper) == dark
    again.run("document.getElementById('theme').click()")
    assert again.run(paper) == light
    again.run("localStorage.clear()")


@pytest.mark.parametrize(
    "path",
    [
        "/run/sweep/broken",
        pytest.param("/", marks=pytest.mark.soak),
        pytest.param("/compare?key=healthy&key=other", marks=pytest.mark.soak),
        pytest.param("/run/none", marks=pytest.mark.soak),
    ],
)
def test_a_phone_shows_everything_without_sideways_scrolling(browser, address, path):
    page = browser.open(address + path, width=380, height=800, touch=True)
    page.until(f"{READY} || document.body.dataset.page === 'problem'")
    page.until(WIDE)
    unnamed = page.run(
        "[...document.querySelectorAll('a, button, input, select, summary, [role=img]')]"
        ".filter(e => !e.closest('[inert]') && !e.textContent.trim()"
        " && !e.getAttribute('aria-label') && !e.title)"
        ".map(e => e.outerHTML)"
    )
    assert unnamed == []  # a screen reader has a name for each
    covered = page.run(
        "[...document.querySelectorAll('.fleet > .line')].filter(line => {"
        "  const [steps, value] = ['.far', '.outcome b'].map(name => line.querySelector(name));"
        "  return steps.getBoundingClientRect().top < value.getBoundingClientRect().bottom;"
        "}).length"
    )
    assert covered == 0  # the steps stand below the outcome, not on it
    page.ask("Page.close")


def test_an_address_leads_to_a_finding(show):
    page = show("/run/sweep/broken?finding=entropy-collapse")
    page.until("document.activeElement.textContent.includes('entropy-collapse')")
    page = show("/run/sweep/broken")
    rule = page.run("document.querySelector('[data-rule]').dataset.rule")
    page.run(
        "document.querySelector('[data-rule]')"
        ".dispatchEvent(new Event('click', {bubbles: true, cancelable: true}))"
    )
    assert page.run("location.search") == f"?finding={rule}"


def test_a_click_where_a_finding_began_leads_to_its_evidence(show):
    page = show("/run/sweep/broken", height=3000)
    onset = "document.querySelector('.dashboard .chart:not([inert]) .onset')"
    page.until(f"!!{onset}")
    box = page.run(
        f"(b => [b.x + b.width / 2, b.y + b.height / 2])({onset}.getBoundingClientRect())"
    )
    page.mouse("mousePressed", *box, button="left", buttons=1, clickCount=1)
    page.mouse("mouseReleased", *box, button="left", clickCount=1)
    page.until("document.activeElement.matches('.finding')")
    rule = page.run("document.activeElement.querySelector('code').textContent")
    page.until(f"location.search === '?finding={rule}'")
    assert "return" in page.run("document.activeElement.textContent")


def test_seeds_are_grouped_with_a_band(show):
    page = show("/?group=seeds")
    page.until("document.querySelectorAll('.line.group').length > 0")
    assert page.run("document.querySelector('.heads :nth-child(3)').textContent") == "group"
    assert page.run("document.getElementById('sort').disabled")
    page.run("document.getElementById('group').click()")
    page.until("!document.querySelector('.line.group')")
    assert page.run("document.querySelector('.heads :nth-child(3)').textContent") == "run"


@pytest.mark.soak
@pytest.mark.parametrize("name", ["png", "svg", "csv"])
@pytest.mark.parametrize("path", ["/run/healthy", "/compare?key=healthy&key=other"])
def test_a_chart_is_saved(show, tmp_path, name, path):
    page = show(path, height=1400)
    page.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.until("!!document.querySelector('.chart:not([inert]) .line')")
    page.run(
        "[...document.querySelectorAll('.export button')]"
        f".find(b => b.textContent === '{name.upper()}').click()"
    )
    while not (files := [file for file in tmp_path.iterdir() if file.suffix == f".{name}"]):
        page.settle()
        time.sleep(0.05)
    data = files[0].read_bytes()
    table = b"curve," if path.startswith("/compare") else b"step,"
    assert {"png": b"\x89PNG", "svg": b"<svg", "csv": table}[name] in data[:20]


@pytest.mark.parametrize(
    "path", sampled(["/run/sweep/broken", "/compare?key=healthy&key=sweep/broken"], 2)
)
def test_on_paper_every_chart_is_drawn(browser, address, tmp_path, path):
    page = browser.open(address + path, height=400)  # most charts are out of sight
    page.until(READY)
    page.run(
        "addEventListener('beforeprint', () => window.empty ="
        " [...document.querySelectorAll('[data-chart]')].filter(c => !c.querySelector('.line'))"
        ".map(c => c.dataset.chart))"
    )
    assert page.run("document.querySelectorAll('[data-chart]:not(:has(.line))').length") > 2
    page.paper(tmp_path / "page.pdf")
    assert page.run("window.empty") == []
    page.ask("Page.close")

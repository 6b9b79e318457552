"""At each width no text of a page stands on another one, none is cut, none leaves the window."""

import pytest
from browser import needs_browser
from layout_checks import CUTS, OVERLAPS
from served import build, record, serving
from test_run_sections import record_language

pytestmark = needs_browser

READY = (
    "document.documentElement?.dataset.ready === 'yes' || document.body.dataset.page === 'problem'"
)
JUDGED = (
    "document.body.dataset.page !== 'fleet' || document.querySelectorAll('.line').length > 1"
    " && document.querySelectorAll('.lamps b')[3].textContent === '0'"
)
GROUPED = "!location.search.includes('group') || !!document.querySelector('.line.group')"
PATHS = (
    "/", "/?group=seeds", "/run/language", "/run/sweep/broken", "/run/none",
    "/compare?key=sweep/healthy&key=sweep/broken",
)  # fmt: skip


@pytest.fixture(scope="module")
def address(tmp_path_factory, module_cache):  # noqa: ARG001 - the server's environment
    root = tmp_path_factory.mktemp("served") / "runs"
    record(root / "sweep" / "healthy")
    record(root / "sweep" / "broken", collapse=40)
    record_language(root / "language")
    with serving(build(root, control=True)) as url:
        yield url


@pytest.fixture(autouse=True)
def cache():
    """Use the cache folder of the module's server."""


FAST = {(900, "/"), (900, "/?group=seeds")}


@pytest.mark.parametrize(
    ("width", "path"),
    [
        pytest.param(width, path, marks=() if (width, path) in FAST else pytest.mark.soak)
        for width in (380, 900, 1440)
        for path in PATHS
    ],
)
def test_no_text_stands_on_another_or_is_cut(browser, address, width, path):
    page = browser.open(address + path, width=width, height=5000, touch=width < 500)
    page.until(READY)
    page.until(JUDGED)
    page.until(GROUPED)
    page.settle()
    assert page.run(OVERLAPS) == []
    assert page.run(CUTS) == []
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    page.ask("Page.close")

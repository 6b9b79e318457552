"""axe-core finds nothing wrong with the pages, in either theme, and keys alone reach all of it.

axe-core 4.4.3 is in `axe/` with its licence, the MPL 2.0.
"""

from pathlib import Path

import pytest
from browser import needs_browser
from served import build, record, serving
from test_run_sections import record_language

from rlvitals.cli import main

pytestmark = needs_browser

AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")
READY = (
    "document.documentElement?.dataset.ready === 'yes' || document.body.dataset.page === 'problem'"
)
VIOLATIONS = (
    "axe.run(document, {resultTypes: ['violations']}).then(result => result.violations"
    ".map(v => [v.id, v.nodes.map(n => n.html.slice(0, 200))]))"
)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "runs"
    record(folder / "healthy")
    record(folder / "broken", collapse=40)
    record_language(folder / "language")
    (folder / "language" / "train.log").write_text("a line\n")
    return folder


@pytest.fixture(scope="module")
def address(root, module_cache):  # noqa: ARG001 - the server's environment
    with serving(build(root, control=True)) as url:
        yield url


@pytest.fixture(autouse=True)
def cache():
    """Use the cache folder of the module's server."""


@pytest.mark.parametrize(
    ("path", "dark"),
    [
        ("/run/language", False),
        *(
            pytest.param(path, dark, marks=pytest.mark.soak)
            for path in ("/", "/run/language", "/run/broken", "/run/healthy", "/run/none",
                         "/compare?key=healthy&key=broken", "/?group=seeds")
            for dark in (False, True)
            if (path, dark) != ("/run/language", False)
        ),
    ],
)  # fmt: skip
def test_axe_finds_nothing(browser, address, path, dark):
    page = browser.open(address + path, width=1000, height=1600, dark=dark)
    page.until(READY)
    page.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.settle()
    page.run(f"{{{AXE}}}")
    assert page.run(VIOLATIONS) == []
    page.ask("Page.close")


@pytest.mark.soak
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("names", [["broken"], ["language"], ["healthy", "broken"]])
def test_axe_finds_nothing_in_a_report(browser, root, tmp_path, names, dark):
    path = tmp_path / "report.html"
    assert main(["report", *(str(root / name) for name in names), "-o", str(path)]) == 0
    page = browser.open(path, width=1000, height=1600, dark=dark)
    page.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.settle()
    page.run(f"{{{AXE}}}")
    assert page.run(VIOLATIONS) == []
    page.ask("Page.close")


def test_a_finding_is_marked_wrong_by_keys_alone(browser, address, root):
    page = browser.open(address + "/run/broken", width=1000, height=1600)
    page.until(READY)
    page.until("!!document.querySelector('.finding .actions .button')")
    for _ in range(80):
        page.ask("Input.dispatchKeyEvent", type="keyDown", key="Tab", windowsVirtualKeyCode=9)
        page.ask("Input.dispatchKeyEvent", type="keyUp", key="Tab", windowsVirtualKeyCode=9)
        if page.run("document.activeElement.textContent") == "Wrong alarm":
            break
    page.key("Enter", "\r")
    page.until("document.querySelector('.mark-text')?.textContent.includes('wrong alarm')")
    assert '"label":"wrong"' in (root / "broken" / "marks.jsonl").read_text()
    page.ask("Page.close")

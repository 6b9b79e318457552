"""The served folder may itself be a run: its key is ".", which a browser drops from an address."""

import pytest
from browser import needs_browser
from served import build, record, serving, until
from starlette.testclient import TestClient

import rlvitals

READY = "document.documentElement?.dataset.ready === 'yes'"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "maze"
    record(folder)
    return folder


def test_its_page_and_its_group_have_the_name_of_the_run(root):
    with TestClient(build(root), base_url="http://127.0.0.1") as client:
        until(lambda: client.get("/api/runs").json()["lamps"]["good"])
        assert client.get("/run/").status_code == 200
        (group,) = client.get("/api/groups").json()["groups"]
        assert (group["label"], group["keys"]) == ("maze", ["."])


@needs_browser
def test_its_line_leads_to_its_page_and_python_opens_it(browser, root):
    with serving(build(root)) as address:
        page = browser.open(address)
        page.until(f"{READY} && document.querySelector('.name')?.textContent === 'maze'")
        page.run("document.querySelector('.name').click()")
        page.until(f"location.pathname === '/run/' && {READY} && !!document.querySelector('.word')")
        assert page.run("document.querySelector('.crumb').textContent") == "/maze"
        page.until("!!document.querySelector('.chart:not([inert]) .line')")
        assert page.complaints(address) == []
        page.ask("Page.close")
        trace = rlvitals.open(f"{address}/run/")
        assert len(trace["outcome/return"]) == 60

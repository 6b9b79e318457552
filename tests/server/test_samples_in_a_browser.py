"""The samples of a run in a real browser: pairs, groups, and those that show a finding."""

import pytest
from browser import needs_browser
from served import build, serving
from test_run_sections import rollout

import rlvitals

pytestmark = needs_browser

READY = "document.documentElement?.dataset.ready === 'yes'"
PLACE = "document.getElementById('rollouts')"
LENGTH_ROWS = 60


@pytest.fixture(scope="module")
def address(tmp_path_factory, module_cache):  # noqa: ARG001 - the server's environment
    root = tmp_path_factory.mktemp("served") / "runs"
    run = rlvitals.start(str(root / "cut"), framework="trl")
    for step in range(LENGTH_ROWS):
        run.log({"reward": 0.5, "kl": 0.01, "completions/clipped_ratio": 1.0}, step=step)
        if step % 10 == 0:
            cut = [{**rollout(step, good), "stop_reason": "length"} for good in (0, 1)]
            other = [{**each, "prompt": "What is 2 x 3?", "group": "h"} for each in cut]
            run.log_rollouts(step, [*cut, *other])
    run.finish()
    with serving(build(root)) as url:
        yield url


@pytest.fixture(autouse=True)
def cache():
    """Use the cache folder of the module's server."""


def choose(page, name, value):
    page.run(
        f"(one => {{ one.value = '{value}'; one.dispatchEvent(new Event('change')); }})"
        f"(document.getElementById('{name}'))"
    )


def test_samples_are_read_by_pair_by_group_and_by_finding(browser, address):
    page = browser.open(f"{address}/run/cut", width=1100, height=6000)
    page.until(f"{READY} && {PLACE}.querySelectorAll('article.rollout').length === 2")
    choose(page, "rollout-against", 50)
    page.until(f"{PLACE}.querySelector('ins')?.textContent.includes('50')")
    choose(page, "rollout-view", "group")
    page.until(f"{PLACE}.querySelectorAll('.several .rollout-sample').length === 2")
    assert page.run(f"{PLACE}.querySelector('.prompt').textContent.includes('6 x 7')")
    assert page.run(f"{PLACE}.querySelectorAll('.tool-call').length") == 2
    assert page.run(f"{PLACE}.querySelectorAll('.strip').length") == 2
    page.run(f"{PLACE}.querySelector('[data-group=\"1\"]').click()")
    page.until(f"{PLACE}.querySelector('.prompt')?.textContent.includes('2 x 3')")
    assert "view=group" in page.run("location.search")
    buttons = "[...document.querySelectorAll('.actions button')]"
    proof = f"{buttons}.find(button => /samples/.test(button.textContent))"
    rule = page.run(f"{proof}.closest('.finding').querySelector('code').textContent")
    page.run(f"{proof}.click()")
    page.until(f"{PLACE}.querySelector('.about')?.textContent.includes('show {rule}')")
    assert page.run(f"{PLACE}.querySelectorAll('.rollout-sample').length") == 8
    assert page.run(f"{PLACE}.textContent.includes('ended by length')")
    assert page.complaints(address) == []
    page.ask("Page.close")

"""The report's page: what it says and draws, that nothing gets out of its place, how big it is."""

import base64
import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from drawn import RECORDED, RUNS, subject
from hypothesis import given, settings
from hypothesis import strategies as st
from loading import MEASURED, load
from made import diagnosis as made
from reported import (
    EVIL,
    EVIL_EVENTS,
    EVIL_FACTS,
    Elements,
    chart,
    evil,
    judged,
    long_run,
    pages,
    told,
    unpacked,
    written,
)

from rlvitals.diagnosis.engine import diagnose
from rlvitals.errors import UnreadableLog
from rlvitals.types import Series, Trace
from rlvitals.views.charts.chart import CHART_WIDTH_PIXELS, MAX_FULL_POINTS, pack_steps, pack_values
from rlvitals.views.report import html, markdown, markup
from rlvitals.views.report.markup import Html, el
from rlvitals.views.report.page import Unread

LIMIT = 400_000  # bytes of a page without its data
GOLDEN = ("ppo-cartpole-lr-spike", "rlhf-kl-explodes", "scheduler-collapsed")


def unread(name):
    return Unread(name, UnreadableLog("no training log in this folder", where=name, hint="look"))


@pytest.mark.parametrize("name", [*GOLDEN, "made"])
def test_a_page_says_and_draws_what_it_did(name, golden, goldens):
    rendered = judged("made", made()) if name == "made" else told(name)
    page = Elements(written(rendered))
    drawn = [chart(page.data, each) for run in page.data["runs"] for each in run["charts"]]
    contents = {"text": page.text[:-1], "charts": drawn}  # the last line has the version
    golden(goldens / f"page-{name}.json", json.dumps(contents, indent=1, ensure_ascii=False))


def test_the_answer_comes_first_then_causes_before_what_they_explain():
    lines = Elements(written(told("ppo-cartpole-lr-spike"))).text
    headings = (
        "collapsed return reached 212.6", "warning the learning rate jumps", "What to try",
        "It explains", "warning KL jumps", "error return reached 212.6",
        "About learning-rate-jump", "What to log",
    )  # fmt: skip
    positions = [
        next(index for index, line in enumerate(lines) if line.startswith(heading))
        for heading in headings
    ]
    assert positions == sorted(positions)


def test_nothing_that_a_log_wrote_gets_out_of_its_place():
    diagnosis = subject("hostile").found
    bad = replace(diagnosis, trace=replace(diagnosis.trace, name=EVIL, **evil(diagnosis.trace)))
    unmapped = {EVIL: diagnosis.trace["optimiser/loss"]}
    text = written(replace(judged(EVIL, bad, EVIL_FACTS, EVIL_EVENTS), others=unmapped))
    page = Elements(text)
    kinds = [tag for tag, _ in page.elements]
    assert kinds.count("script") == 2  # the data, and the program
    assert kinds.count("style") == 1
    assert "img" not in kinds
    assert not any(key.startswith("on") for _, attrs in page.elements for key in attrs)
    assert text.count("</script>") == 2
    assert "\u202e" not in text
    assert "\x1b" not in text
    page_text = "\n".join(page.text)
    assert page_text.count("document.title='owned'") > 15  # all of it is there, as text
    assert page.data["runs"][0]["charts"][-1]["title"] == EVIL


def test_only_the_page_s_own_script_may_run():
    page = Elements(written(told("nsr-healthy")))
    policy = next(a["content"] for tag, a in page.elements if "http-equiv" in a)
    for kind in ("script", "style"):
        digest = hashlib.sha256(page.raw[kind][-1].encode()).digest()
        assert f"{kind}-src 'sha256-{base64.b64encode(digest).decode()}'" in policy
    assert "default-src 'none'" in policy
    links = [a[key] for _, a in page.elements for key in ("src", "href") if key in a]
    assert all(link.startswith("#") for link in links)


def test_a_text_is_escaped_in_an_element_and_in_an_attribute():
    expected = '<p class="&quot;&gt;&lt;i&gt;">&lt;b&gt;&amp;&quot;</p>'
    assert el("p", '<b>&"', class_='"><i>') == expected
    assert el("p", Html("<b>")) == "<p><b></p>"
    assert el("input", type="search", hidden=True, value=None) == '<input type="search" hidden>'
    assert markup.json_in_html({"</script>": "<!--&"}) == (
        '{"\\u003c/script\\u003e":"\\u003c!--\\u0026"}'
    )


@pytest.mark.parametrize("name", [*RECORDED, *RUNS, "hostile"])
def test_a_page_is_small(name):
    page = written(told(name))
    data = Elements(page).raw["script"][0]
    assert len(page.encode()) - len(data) < LIMIT
    assert len(data) < LIMIT  # of a short run


def test_a_spike_of_one_point_in_a_million_is_on_the_page():
    data = html.data(pages(judged("long", diagnose(long_run(), rates=MEASURED))))
    drawn = [curve for run in data["runs"] for each in run["charts"] for curve in each["curves"]]
    assert drawn
    for curve in drawn:
        steps, values = unpacked(data["columns"][curve["column"]])
        assert 500.0 in values
        assert curve["points"] == 1_000_000
        assert CHART_WIDTH_PIXELS < len(steps) <= MAX_FULL_POINTS + 3
        assert list(curve["bad"]) == [10, 1, 1]
        assert np.isnan(values).sum() == 1  # ten in one column of pixels: a mark
        assert ((values == np.inf).sum(), (values == -np.inf).sum()) == (1, 1)
        means, _ = unpacked(data["columns"][curve["average"]])
        assert len(means) <= 400


def test_a_short_series_is_there_in_full_and_in_order_and_once():
    steps = np.array([5, 3, 3, 9, 7])
    values = np.array([1.0, np.nan, 2.0, -np.inf, 1e-40])
    series = Series(steps, np.full(5, np.nan), values)
    trace = Trace({"outcome/return": series, "optimiser/loss": series}, {}, name="short")
    data = html.data(pages(judged("short", diagnose(trace, rates=MEASURED))))
    drawn = [curve for each in data["runs"][0]["charts"] for curve in each["curves"]]
    assert len(drawn) >= 2
    assert len(data["columns"]) == 1
    unpacked_steps, numbers = unpacked(data["columns"][0])
    assert unpacked_steps.tolist() == [3, 3, 5, 7, 9]
    np.testing.assert_array_equal(numbers, [np.nan, 2.0, 1.0, 1e-40, -np.inf])


WIDE = st.floats(width=64, allow_nan=True, allow_infinity=True)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(WIDE, min_size=1, max_size=40),
    st.integers(-(2**40), 2**40),
    st.lists(st.one_of(st.just(8), st.integers(0, 2**40)), max_size=40),
)
def test_what_is_packed_is_what_is_drawn(values, first, apart):
    steps = np.cumsum([first, *apart])
    column = {"steps": pack_steps(steps), "values": pack_values(np.array(values))}
    unpacked_steps, numbers = unpacked(json.loads(json.dumps(column)))
    assert unpacked_steps.tolist() == steps.tolist()
    given_ = np.array(values)
    finite = np.isfinite(given_)
    np.testing.assert_array_equal(finite, np.isfinite(numbers))
    np.testing.assert_allclose(numbers[finite], given_[finite], rtol=1e-7)
    # Values that differ by little are told apart all the same: off by a thousandth of the range.
    if finite.any():
        span = np.ptp(given_[finite] / 2)
        assert np.all(np.abs(numbers[finite] / 2 - given_[finite] / 2) <= 2e-3 * span)


def test_several_runs_begin_with_a_table_and_one_that_cannot_be_read_stops_none():
    subjects = [told("nsr-healthy"), told("scheduler-collapsed")]
    runs = [unread("lost"), *pages(*subjects)]
    page = Elements(html.document(runs, 0.0))
    lines = page.text
    table = lines[lines.index("verdict") - 1 :]
    assert any(line.startswith("More of nsr-healthy: metrics, first and last, ") for line in table)
    assert table[1:7] == ["verdict", "run", "findings", "top finding", "outcome at best", "at last"]
    assert table[7:10] == ["unreadable", "lost", "no training log in this folder; look"]
    links = [attrs["href"] for tag, attrs in page.elements if tag == "a"]
    ids = {attrs["id"] for _, attrs in page.elements if "id" in attrs}
    assert {link[1:] for link in links} <= ids
    drawn = [element["name"] for run in page.data["runs"] for element in run["charts"]]
    places = [a["data-chart"] for _, a in page.elements if "data-chart" in a]
    assert len(drawn) == len(set(drawn))
    assert sorted(drawn) == sorted(places)


def test_what_was_recorded_beside_the_numbers_is_told():
    facts = {"git": {"commit": "abc123"}, "packages": {"torch": "2.13.0"}, "command": ("train.py",)}
    run = told("cluster", facts)
    text = Elements(written(run)).text
    for phrase in ("abc123", "torch", "2.13.0", "train.py"):
        assert phrase in text


def test_a_limit_on_something_else_is_not_drawn_on_the_curve():
    """NaN is counted: a line at zero on the loss would mean nothing."""
    run = judged("hostile", subject("hostile").found)
    page = Elements(written(run))
    drawn = page.data["runs"][0]["charts"]
    nan = [chart for chart in drawn if any(mark[2] == "not-a-number" for mark in chart["marks"])]
    assert nan
    assert all(chart["limits"] == [] for chart in nan if chart["tall"])


@pytest.mark.parametrize("rule", ["component-dominates", "plateau", "loss-oscillating"])
def test_a_share_a_count_or_a_change_is_no_level_of_the_curve(rule):
    page = Elements(written(judged(rule, diagnose(load(rule, "fires"), rates=MEASURED))))
    charts = page.data["runs"][0]["charts"]
    of_rule = [c for c in charts if c["tall"] and any(mark[2] == rule for mark in c["marks"])]
    assert of_rule
    assert all(chart["limits"] == [] for chart in of_rule)


def test_markdown_has_the_answer_the_findings_and_what_changed():
    text = markdown.document([told("ppo-cartpole-lr-spike")])
    lines = text.splitlines()
    assert lines[0].startswith("## COLLAPSED: return reached 212.6")
    rows = [line for line in lines if line.startswith("| ") and "`return-collapse`" in line]
    assert len(rows) == 1
    assert rows[0].startswith("| ↳ 🔴 error |")
    assert "| `outcome/return` | 22.65 | 9.47 | -58.2 % |" in lines
    assert text.count("<details>") == text.count("</details>") == 2


def test_markdown_of_many_runs_is_cut_to_what_a_comment_holds():
    run = told("ppo-cartpole-lr-spike")
    text = markdown.document([unread("lost"), *[run] * 8])
    assert len(text) <= markdown.MAX_COMMENT_CHARS
    assert text.startswith("# 9 runs\n")
    assert text.count("## COLLAPSED") == 8
    assert text.count("<details>") == text.count("</details>")
    full_text = markdown.document([run])
    many = markdown.document([run] * 700)
    assert len(full_text) < len(many) <= markdown.MAX_COMMENT_CHARS
    assert "Left out, as a comment holds no more" in many
    assert "| and " in many


def test_markdown_of_hostile_names_stays_a_table():
    diagnosis = subject("hostile").found
    bad = replace(diagnosis, trace=replace(diagnosis.trace, name=EVIL, **evil(diagnosis.trace)))
    text = markdown.document([judged(f"a|b`{EVIL}", bad)] * 2)
    assert "<img" not in re.sub(r"`[^`]*`", "", text).replace("\\<img", "")
    for line in text.splitlines():
        if line.startswith("| **"):
            assert line.replace("\\|", "").count("|") == 5

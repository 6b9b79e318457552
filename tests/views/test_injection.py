"""What a log calls its metrics, settings and texts does nothing to a terminal, a page or a picture.

A hostile run holds every payload in every name and text that a run has. Each output is parsed as
its reader would parse it, and compared with the output of a run with plain names where needed.
"""

import json
import logging
import math
import re
import unicodedata
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from effort import sampled

import rlvitals
from rlvitals import cli
from rlvitals.errors import UNSAFE_CATEGORIES
from rlvitals.views import notebook

PAYLOADS = (
    "</script><script>document.title='PWN1'</script>",
    "<img src=x onerror=\"document.title='PWN2'\">",
    "<svg onload=\"document.title='PWN3'\">",
    "</style></title></textarea><iframe src=//127.0.0.1:9>",
    "--><!--]]>",
    "'-alert(1)-'\" onmouseover=alert(1) x=\"",
    "&lt;script&gt;&#60;b&#62;",
    "javascript:alert(1)",
    "](javascript:alert(1))![x](http://127.0.0.1:9/x.png)",
    "<http://127.0.0.1:9/>",
    "`code` | pipe | <b>bold</b>",
    "{{7*7}}${7*7}$(id)",
    "$\\href{javascript:alert(1)}{x}$",
    "\x1b]0;OWNED\x07\x1b[2J\x1b[31m",
    "\x1b]52;c;cm0gLXJmIH4=\x07",
    "\x1b]8;;http://127.0.0.1:9/\x1b\\click\x1b]8;;\x1b\\",
    "\x1bP1$r0m\x1b\\\x1b_G\x1b\\\x1bc",
    "\x9b31m\x90q\x85\x9d52;c;eA==\x9c",
    "\u202eevil\u2066x\u2069\u200b\u061c",
    "a\nb\r\nFAKE: all fine\x08\x08",
    "\u2028\u2029\ufeff\U000e0041",
)
EVERY = " ".join(PAYLOADS)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
VOID = {"meta", "link", "br", "img", "input", "hr", "col", "wbr"}


def record(folder, payloads):
    """A run whose names and texts are payloads, and that something is found in."""
    every = " ".join(payloads)
    run = rlvitals.start(
        folder,
        name=f"n {every[:300]}",
        settings={f"k{i} {text}": text for i, text in enumerate(payloads)} | {"algo": payloads[0]},
        tags=payloads,
        notes=every,
        project=f"p {payloads[0]}",
        group=payloads[1],
        strict=False,
    )
    for step in range(200):
        row = {
            "rollout/ep_rew_mean": 100 - step * 0.3,
            "train/approx_kl": 0.02 if step < 100 else 5.0,
            "train/entropy_loss": -0.5 + 0.0016 * step,
            "train/loss": math.nan if step > 150 else 1.0,
        }
        run.log(step * 100, row | {f"x{i}/{text}": float(step) for i, text in enumerate(payloads)})
    for i, text in enumerate(payloads):
        run.log_text(1, f"text {i} {text}", every)
        run.log_histogram(1, f"h {text}", [1, 2, 3])
        run.event(f"event {text}", 5, a=text)
        run.note(text)
    run.log_table(1, f"table {payloads[0]}", {payloads[0]: [payloads[1]], "completion": [every]})
    run.finish(f"failed: {every}", traceback=f"Traceback\n{every}")
    return folder


def log(folder, payloads):
    """A JSONL log of another program, with hostile names of keys, files and folders."""
    folder.mkdir()
    rows = [
        {"step": step, "rollout/ep_rew_mean": step, **dict.fromkeys(payloads, step), "note": EVERY}
        for step in range(100)
    ]
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    base = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLVITALS_RECORDING_FACTS", "false")
        plain = tuple(f"plain{i}" for i in range(len(PAYLOADS)))
        return {
            "native": record(base / "native", PAYLOADS),
            "plain": record(base / "plain", plain),
            "log": log(base / "dir \x1b[31m <script>alert(1)<\u202e", PAYLOADS),
        }


def assert_harmless_in_a_terminal(text):
    bare = COLOUR.sub("", text)
    assert {c for c in bare if unicodedata.category(c) in UNSAFE_CATEGORIES} <= {"\n"}
    assert "Traceback (most recent call last)" not in text


TOLD = [
    ("diagnose",),
    ("diagnose", "--notes"),
    ("diagnose", "--markdown"),
    ("metrics",),
    ("metrics", "--unmapped"),
    ("rules", "--coverage"),
    ("follow", "--once", "--notes"),
    ("doctor",),
    ("status",),
    ("runs",),
    ("verify",),
    ("checkpoints",),
    ("diff", "plain"),
    ("compare", "plain"),
]


@pytest.mark.parametrize("words", sampled(TOLD, 2), ids=" ".join)
@pytest.mark.parametrize("which", ["native", "log"])
def test_a_terminal_is_not_moved(runs, words, which, capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1" if words == ("diagnose",) else "")
    command, *arguments = words
    arguments = [str(runs[argument]) if argument in runs else argument for argument in arguments]
    flags = [argument for argument in arguments if argument.startswith("-") and command == "rules"]
    arguments = [argument for argument in arguments if argument not in flags]
    cli.main([command, *flags, str(runs[which]), *arguments])
    captured = capfd.readouterr()
    assert captured.out + captured.err
    assert_harmless_in_a_terminal(captured.out + captured.err)


@pytest.mark.parametrize(
    "words",
    [
        ["diagnose", "none{}"],
        ["explain", "x{}"],
        ["diagnose", "native", "--set", "a{}=1"],
        ["diagnose", "native", "--map", "x{}=outcome/return"],
        ["diagnose", "native", "--only", "{}"],
        ["diagnose", "native", "--config", "{}"],
        ["{}"],
    ],
    ids=str,
)
def test_an_error_repeats_nothing_raw(runs, words, capfd):
    odd = PAYLOADS[13] + PAYLOADS[15] + PAYLOADS[18] + "\x9b31m"
    cli.main([str(runs["native"]) if word == "native" else word.format(odd) for word in words])
    captured = capfd.readouterr()
    assert_harmless_in_a_terminal(captured.out + captured.err)


class Page(HTMLParser):
    """Collects what a browser would make of a page."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.addresses = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        names = {"href", "src", "action", "xlink:href", "data", "formaction"}
        self.addresses += [value or "" for name, value in attrs if name in names]


def parsed(text):
    page = Page()
    page.feed(text)
    page.close()
    return page


def assert_as_plain(hostile, plain):
    assert set(hostile.tags) == set(plain.tags)
    for tag in ("script", "style", "title", "iframe", "meta", "link", "object", "form"):
        assert hostile.tags.count(tag) == plain.tags.count(tag), tag
    assert hostile.attributes <= plain.attributes
    assert not [name for name in hostile.attributes if name.startswith("on")]
    assert not [
        element
        for element in hostile.addresses
        if not element.startswith(("#", "data:", "https://"))
    ]


def test_a_report_has_the_elements_of_a_plain_one(runs, tmp_path, capfd):
    pages = {}
    for which in ("native", "plain"):
        path = tmp_path / f"{which}.html"
        cli.main(["report", str(runs[which]), "-o", str(path)])
        pages[which] = path.read_text()
    assert_harmless_in_a_terminal("".join(capfd.readouterr()))
    assert_as_plain(parsed(pages["native"]), parsed(pages["plain"]))
    assert "Content-Security-Policy" in pages["native"]
    assert "\x1b" not in pages["native"]
    assert "\u202e" not in pages["native"]
    assert "PWN1" in pages["native"]  # it is there, as a text


def test_a_notebook_s_block_has_the_elements_of_a_plain_one(runs):
    blocks = {which: notebook.text(rlvitals.diagnose(runs[which])) for which in ("native", "plain")}
    hostile = parsed(blocks["native"])
    assert set(hostile.tags) <= set(parsed(blocks["plain"]).tags)
    assert not [name for name in hostile.attributes if name.startswith("on")]
    assert hostile.addresses == []
    assert_harmless_in_a_terminal(blocks["native"])


def test_pictures_hold_no_script(runs, tmp_path, capfd):
    paths_by_run = {}
    for run_name in ("native", "plain"):
        folder = tmp_path / run_name
        cli.main(["plot", str(runs[run_name]), "-o", str(folder), "--format", "svg,json"])
        paths_by_run[run_name] = sorted(folder.rglob("*.svg"))
        for path in folder.rglob("*.json"):
            json.loads(path.read_text())
        assert paths_by_run[run_name]
    assert_harmless_in_a_terminal("".join(capfd.readouterr()))
    names = {run_name: set() for run_name in paths_by_run}
    for run_name, paths in paths_by_run.items():
        for path in paths:
            text = path.read_text()
            assert "<!ENTITY" not in text
            for element in ET.fromstring(text).iter():  # noqa: S314 - our own picture
                names[run_name].add(str(element.tag).rpartition("}")[2])
                for key, value in element.attrib.items():
                    assert not key.startswith("on"), (path, key)
                    assert "javascript:" not in value, (path, key)
    assert not names["native"] & {"script", "foreignObject", "a", "image", "iframe"}
    assert names["native"] <= names["plain"] | {"use", "path", "g", "defs"}


def test_markdown_holds_no_element_link_or_picture(runs, capfd):
    outside = {}
    for which in ("native", "plain"):
        cli.main(["diagnose", str(runs[which]), "--markdown"])
        text = capfd.readouterr().out
        assert "PWN" in text or which == "plain"
        text = re.sub(r"`[^`\n]*`", "", text)  # code is shown as it is
        outside[which] = re.sub(r"\\[<>\[\]]", "", text)
    assert set(parsed(outside["native"]).tags) <= set(parsed(outside["plain"]).tags)
    assert parsed(outside["native"]).attributes <= parsed(outside["plain"]).attributes
    assert not re.search(r"\]\((?!https://|#)", outside["native"])
    assert "![" not in outside["native"]


@pytest.mark.parametrize(
    "words", [("diagnose", "--json"), ("runs", "--json"), ("status", "--json")]
)
def test_json_is_json(runs, words, capfd):
    command, *flags = words
    cli.main([command, str(runs["native"]), *flags])
    text = capfd.readouterr().out
    json.loads(text)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", text)


def test_the_recorder_s_own_lines(tmp_path, capfd, caplog, monkeypatch):
    """The console sink shows metric names; the log shows what a sink's error says."""
    monkeypatch.setenv("RLVITALS_RECORDING_FACTS", "false")
    sinks = {"console": {"always": True, "every": 0.0}, "tensorboard": {"port": 6006}}
    folder = tmp_path / "run\x1b]0;x\x07"
    with caplog.at_level(logging.WARNING):
        for i, line in enumerate(PAYLOADS):
            run = rlvitals.start(folder / str(i), sinks=sinks, strict=False)
            run.log(1, {line.replace("/", " "): 1.0})
            run.finish(f"failed {line}")
    captured = capfd.readouterr()
    assert captured.err.count("step 1") >= len(PAYLOADS)
    assert_harmless_in_a_terminal(captured.out + captured.err + caplog.text)

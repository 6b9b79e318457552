"""Counts of one: no view writes "1 rows"."""

import re

import pytest
from served import build, until
from starlette.testclient import TestClient

import rlvitals
from rlvitals import cli

PLURAL = re.compile(
    r"(?<![\d.,e-])(?<!of )1 (?:[a-z]+ )?(?:rows|numbers|metrics|runs|errors|warnings|notes|points"
    r"|rollouts|tokens|samples|prompts|events|files|rules|keys|lines|steps|attempts|blocks|findings"
    r"|records|checkpoints|bytes|values|updates)\b"
)
COMMANDS = (
    ("diagnose",), ("diagnose", "-v"), ("diagnose", "--brief"),
    ("diagnose", "--json"), ("diagnose", "--markdown"),
    ("status",), ("triage",), ("runs",), ("verify",), ("samples",), ("metrics",), ("doctor",),
    ("checkpoints",), ("follow", "--until-end"), ("rules", "--coverage"), ("diff",),
)  # fmt: skip


@pytest.fixture(params=[0, 1, 2], ids="{} of each".format)
def folder(request, tmp_path, monkeypatch):
    """Record as many rows, metrics, rollouts, tokens and events as the parameter says."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    count = request.param
    run = rlvitals.start(str(tmp_path / "runs" / "few"), framework="trl")
    rollouts = [
        {"prompt": "2 + 2", "completion": "4", "reward": 1.0, "group": "g",
         "sampler_log_probs": [-0.5] * count}
        for _ in range(count)
    ]  # fmt: skip
    for step in range(count):
        run.log({**dict.fromkeys(("reward", "kl")[:count], 0.5), "odd": 1.0}, step=step)
        run.log_rollouts(step, rollouts)
        run.event("checkpoint", step=step)
    run.finish()
    return tmp_path / "runs"


def contexts(text):
    return [text[max(0, m.start() - 40) : m.end() + 20] for m in PLURAL.finditer(text)]


def test_no_command_writes_a_plural_of_one(folder, capsys):
    for command, *flags in COMMANDS:
        paths = [str(folder / "few")] * (2 if command == "diff" else 1)
        try:
            cli.main([command, *paths, *flags])
        except SystemExit as error:
            assert error.code in {0, 1}, (command, flags)  # noqa: PT017
        printed = capsys.readouterr()
        assert contexts(printed.out + printed.err) == [], (command, flags)


def test_no_page_writes_a_plural_of_one(folder, tmp_path):
    page = tmp_path / "report.html"
    cli.main(["report", str(folder / "few"), "-o", str(page)])
    assert contexts(re.sub(r"<[^>]*>", " ", page.read_text())) == []
    with TestClient(build(folder), base_url="http://127.0.0.1") as client:
        until(lambda: not client.get("/api/runs").json()["lamps"]["pending"])
        texts = [client.get(path).text for path in ("/api/runs", "/run/few", "/api/run?key=few")]
        texts += [
            client.get(f"/api/rollouts?key=few&step=0&against=1&view={view}").text
            for view in ("pairs", "group")
        ]
        assert [contexts(re.sub(r"<[^>]*>", " ", text)) for text in texts] == [[]] * len(texts)

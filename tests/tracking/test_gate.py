"""Nothing that reaches a disk, a log or a terminal holds a secret, whichever call brought it."""

import itertools
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from secret_shapes import AROUND, AROUND_A_LOT, GROUPS, SECRET, TOKENS
from waiting import HANG_SECONDS

import rlvitals
from rlvitals import cli
from rlvitals.storage.redact import REDACTED
from rlvitals.storage.write_buffer import Budget
from rlvitals.tracking import redaction, sink_worker
from rlvitals.tracking.sinks.sink import OpenSink, Rows
from rlvitals.tracking.warnings_log import Notes

SINKS = ("csv", "jsonl", "tensorboard", "console")
SCRIPT = Path(__file__).parent / "secrets_script.py"


class Planted:
    """Texts with a secret each; no two secrets are alike, so that a leak names its entry point."""

    def __init__(self):
        self.secrets = {}

    def texts(self, entry):
        for line in (*AROUND, *AROUND_A_LOT):
            yield line.format(self.secret(f"{entry}: {line}"))

    def secret(self, where):
        secret = f"q7Xb{len(self.secrets):05d}Kd9wTzR4"
        self.secrets[secret] = where
        return secret

    def found_in(self, data):
        own = [where for secret, where in self.secrets.items() if secret.encode() in data]
        tokens = [title for title, token in TOKENS.items() if _middle(token).encode() in data]
        return own + tokens + (["a group"] if SECRET.encode() in data else [])


def _middle(token):
    """A part that no prefix shows: of a private key a line of its body."""
    return token.split("\n")[1] if "\n" in token else token


def files(folder):
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def log_everything(run, planted):
    """Plant every shape in every call of a run."""

    class Odd:
        def __init__(self, text):
            self.text = text

        def __str__(self):
            return self.text

        def __float__(self):
            raise ValueError(self.text)

    def calls(i, text):
        yield "log", lambda t=text: run.log(i, {f"canary-log {t}": 1.0, "canary-row": 1.0})
        yield "nested", lambda t=text: run.log(i, {"canary-nested": {t: 1.0}})
        yield "value", lambda t=text: run.log(i, {"canary-value": Odd(t)})
        yield "argument", lambda t=text: run.log(i, {"canary-argument": 1.0}, **{t: 1})
        yield "text name", lambda t=text: run.log_text(i, f"canary-name {t}", "x")
        yield "text", lambda t=text: run.log_text(i, "canary-text", t)
        yield "column", lambda t=text: run.log_table(i, f"canary-table {t}", {t: ["x"]})
        yield "cell", lambda t=text: run.log_table(i, "canary-cell", {"prompt": [t]})
        yield "histogram", lambda t=text: run.log_histogram(i, f"canary-histogram {t}", [1.0, 2.0])
        yield "setting", lambda t=text: run.update_settings({f"canary{i}": t, "deep": {"a": [t]}})
        yield "setting name", lambda t=text: run.update_settings({t: i})
        yield "kind", lambda t=text: run.event(f"canary-kind {t}")
        yield "fact", lambda t=text: run.event("canary-fact", i, a=t, b={"c": [t]}, d=Odd(t))
        yield "note", lambda t=text: run.note(f"canary-note {t}")

    for i, (line, token) in enumerate(
        itertools.zip_longest((*AROUND, *AROUND_A_LOT), TOKENS.values(), fillvalue="")
    ):
        for place, (entry, _) in enumerate(calls(i, "")):
            text = line.format(planted.secret(f"{entry}: {line}"))
            list(calls(i, text))[place][1]()
            list(calls(i, f"see {token}, it is"))[place][1]()
    for i, group in enumerate(GROUPS.values()):
        run.update_settings(group, step=i)
        run.event("canary-group", i, facts=group)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A run with every secret in every place, and what its sinks said meanwhile."""
    folder = tmp_path_factory.mktemp("gate") / "run"
    planted = Planted()
    os.environ["RLVITALS_RECORDING_FACTS"] = "false"
    try:
        run = rlvitals.start(
            folder,
            name="canary-run " + "\n".join(planted.texts("name")),
            project="\n".join(planted.texts("project")),
            group="\n".join(planted.texts("group")),
            tags=("canary-tag", *planted.texts("tag"), *TOKENS.values()),
            notes="canary-notes\n" + "\n".join((*planted.texts("notes"), *TOKENS.values())),
            settings={
                **{f"text{i}": text for i, text in enumerate(planted.texts("setting of start"))},
                **{f"token{i}": token for i, token in enumerate(TOKENS.values())},
                **{f"group {title}": group for title, group in GROUPS.items()},
            },
            sinks=SINKS,
            strict=False,
        )
    finally:
        del os.environ["RLVITALS_RECORDING_FACTS"]
    log_everything(run, planted)
    assert run.flush(600.0)
    for text in planted.texts("at_finish"):
        run.at_finish(lambda _, text=text: _fail(f"canary-at-finish {text}"))
    status = "failed: canary-status\n" + "\n".join(planted.texts("status"))
    run.finish(status, traceback="canary-traceback\n" + "\n".join(planted.texts("traceback")))
    return folder, planted


def _fail(text):
    raise RuntimeError(text)


def test_no_file_of_a_run_holds_a_secret(recorded):
    folder, planted = recorded
    for path in files(folder):
        assert planted.found_in(path.read_bytes()) == [], path
    data = b"".join(path.read_bytes() for path in files(folder))
    for word in ("log", "nested", "row", "argument", "name", "text", "table", "cell", "histogram"):
        assert f"canary-{word}".encode() in data, word
    for word in ("kind", "fact", "note", "run", "tag", "notes", "at-finish", "status", "group"):
        assert f"canary-{word}".encode() in data, word
    assert data.count(REDACTED.encode()) > 1000


@pytest.mark.parametrize(
    "words",
    [
        ("report", "{run}", "-o", "{out}/report.html"),
        ("diagnose", "{run}", "--json"),
        ("diagnose", "{run}", "--markdown"),
        ("metrics", "{run}", "--unmapped"),
        ("status", "{run}"),
        ("doctor", "{run}"),
        ("follow", "{run}", "--once", "--json"),
        ("bundle", "{run}", "-o", "{out}/run.tar"),
        ("backup", "{run}", "{out}/backup"),
        ("export", "{run}", "{out}/run.csv"),
        ("diff", "{run}", "{run}"),
    ],
    ids=" ".join,
)
def test_no_product_of_a_run_holds_a_secret(recorded, words, tmp_path, capfd):
    folder, planted = recorded
    cli.main([word.format(run=folder, out=tmp_path) for word in words])
    said = capfd.readouterr()
    shown = [said.out.encode(), said.err.encode(), *(p.read_bytes() for p in files(tmp_path))]
    assert len(b"".join(shown)) > 200
    assert "Traceback (most recent call last)" not in said.err
    for data in shown:
        assert planted.found_in(data) == []


def test_names_that_differ_in_their_secret_alone_stay_apart(tmp_path):
    names = [f"loss?token=a1B2c3D4e5F6g7H8{i}" for i in range(3)]
    with rlvitals.start(tmp_path / "run", sinks=["csv"]) as run:
        for step in range(20):
            run.log(step, dict(zip(names, (1.0, 2.0, 3.0), strict=True)))
    (log,) = rlvitals.read(tmp_path / "run")
    assert {key: set(one.values) for key, one in log.series.items() if "loss" in key} == {
        f"loss?token={REDACTED}": {1.0},
        f"loss?token={REDACTED} (2)": {2.0},
        f"loss?token={REDACTED} (3)": {3.0},
    }


@pytest.mark.parametrize("durable", [False, True])
def test_rows_of_clean_names_pass_untouched(tmp_path, durable):
    with rlvitals.start(tmp_path / "run", durable=durable, strict=False) as run:
        for step in range(50):
            row = {"train/loss": step / 7, "max_tokens": 512.0, f"token={SECRET}": 1.0}
            run.log(step, row)
    (log,) = rlvitals.read(tmp_path / "run")
    assert list(log.series["train/loss"].values) == [step / 7 for step in range(50)]
    assert {"max_tokens", f"token={REDACTED}"} <= set(log.series)


def test_a_name_is_looked_at_once(monkeypatch):
    looked = []
    monkeypatch.setattr(redaction.redact, "text", lambda raw: looked.append(raw) or raw)
    names = redaction.Names()
    for _ in range(100):
        keys = tuple(f"m{i}" for i in range(20))  # an equal tuple, not the same one
        assert names.layout(keys) == keys
    assert len(looked) == 20


def test_the_gate_has_every_call_of_a_sink():
    calls = {name for name in vars(OpenSink) if not name.startswith("_")}
    assert calls == {name for name in vars(redaction.Gate) if not name.startswith("_")}


def test_a_sink_s_error_is_told_without_its_secrets(caplog):
    class Failing:
        def scalars(self, _):
            raise ConnectionError(f"https://me:{SECRET}@host refused: password={SECRET}")

        def flush(self):
            raise OSError(f"{'x' * 150} token={SECRET}")  # the cut goes through the secret

        def close(self, _):
            raise RuntimeError(f"Authorization: Bearer {SECRET}")

    notes = Notes()
    one = sink_worker.SinkWorker("odd", Failing(), notes, Budget())
    one.start()
    rows = Rows(("a",), np.zeros(1, np.int64), np.zeros(1), np.zeros((1, 1)))
    with caplog.at_level(logging.WARNING):
        one.put(lambda writing: writing.scalars(rows))
        one.flush()
        one.close("finished")
        one.join()
    told = caplog.text + json.dumps(notes.counts)
    assert "refused" in told
    assert SECRET[:6] not in told


def test_what_a_program_is_started_with_and_ends_with(tmp_path):
    """Its command, environment, repository and uncaught exception, in its own process."""
    planted = Planted()
    code, folder = tmp_path / "code", tmp_path / "run"
    code.mkdir()
    _repository(code, planted)
    (code / "train.py").write_text(SCRIPT.read_text())
    flags = [f"--api-key={planted.secret('flag')}", "--password", planted.secret("flag, value")]
    flags += ["--db", f"postgres://u:{planted.secret('URL')}@h/d", f"-p{planted.secret('-p')}"]
    flags += ["-p", planted.secret("-p, value"), f"+logger.api_key={planted.secret('Hydra')}"]
    flags += ["--header", f"Authorization: Bearer {planted.secret('header')}"]
    flags += [f"bob:{planted.secret('login')}@host", "--auth", f"bob:{planted.secret('auth')}"]
    environ = {
        "RAY_REDIS_PASSWORD": planted.secret("a password in the environment"),
        "RLVITALS_X_TOKEN": planted.secret("a token in the environment"),
        "TORCH_HUB_URL": f"https://x?access_token={planted.secret('a URL in the environment')}",
        "SLURM_JOB_COMMENT": f"pw={planted.secret('a comment in the environment')}",
        "RAY_JOB_CONFIG_JSON": json.dumps({"env": {"API_KEY": planted.secret("JSON")}}),
        "RLVITALS_RECORDING_FACTS": "true",
        "NCCL_SECRET": planted.secret("a secret in the environment"),
    }
    lines = (*AROUND, *AROUND_A_LOT)
    messages = [line.format(planted.secret(f"exception: {line}")) for line in lines]
    done = subprocess.run(
        [sys.executable, "train.py", *flags],
        cwd=code,
        env={**os.environ, **environ, "RUN": str(folder), "MESSAGES": json.dumps(messages)},
        capture_output=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert b"canary-exception" in done.stderr  # Python's own traceback is the terminal's affair
    data = {path: path.read_bytes() for path in files(folder)}
    for path, content in data.items():
        assert planted.found_in(content) == [], path
    whole = b"".join(data.values())
    for word in (b"canary-exception", b"canary-diff", b"--api-key=", b"SLURM_JOB_COMMENT"):
        assert word in whole, word


def test_what_a_program_under_the_verb_prints(tmp_path):
    planted = Planted()
    lines = [*planted.texts("print"), *TOKENS.values()]
    lines += [f"step={step} reward=3.0 tokens=512" for step in range(20)]
    (tmp_path / "train.py").write_text(f"for line in {lines!r}:\n    print(line)\n")
    words = ("run", "-o", "rec", "--", sys.executable, "train.py")
    done = subprocess.run(
        [sys.executable, "-m", "rlvitals", *words],
        cwd=tmp_path, capture_output=True, timeout=HANG_SECONDS, check=False,
    )  # fmt: skip
    assert planted.found_in(done.stdout)  # the terminal's affair
    recorded = (tmp_path / "rec" / "console.log").read_bytes()
    assert planted.found_in(recorded) == []
    assert b"\nstep=19 reward=3.0 tokens=512\n" in recorded


def _repository(code, planted):
    def git(*words):
        who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
        subprocess.run(["git", "-C", code, *who, *words], check=True, capture_output=True)

    git("init")
    git("remote", "add", "origin", f"https://user:{planted.secret('remote')}@github.com/o/r.git")
    (code / ".env").write_text("A=1\n")
    (code / "conf.py").write_text("x = 1\n")
    git("add", "-A")
    git("commit", "-m", "first")
    (code / ".env").write_text(
        f"MY_LICENCE={planted.secret('env')}\nPLAIN={planted.secret('env')}\n"
    )
    lines = ["canary_diff = 'canary-diff'", f'c = Client("{planted.secret("positional")}")']
    lines += [f'AUTH = ("bob", "{planted.secret("tuple")}")', *planted.texts("diff")]
    (code / "conf.py").write_text("\n".join(lines) + "\n")

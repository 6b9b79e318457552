"""The program as a process: light, quiet when interrupted, coloured for people alone."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from waiting import HANG_SECONDS

import rlvitals
from rlvitals.cli import COMMAND_GROUPS, COMMANDS, main
from rlvitals.cli.program import VERB_ALIASES, VERB_HINTS, parser
from rlvitals.errors import VitalsError

SOURCE = Path(rlvitals.__file__).parent


def program(*argv, **more):
    env = {**os.environ, **more.pop("env", {})}
    command = [sys.executable, "-m", "rlvitals", *map(str, argv)]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False, **more)


LIGHT_HELP = """
import json, sys
from rlvitals.cli import main
for argv in json.loads(sys.argv[1]):
    code = main(argv)
    if code or {"numpy", "rich"} & set(sys.modules):
        sys.exit(f"{argv}: code {code}, or numpy or rich is loaded")
"""


def test_help_loads_neither_numpy_nor_rich():
    lines = [["--help"], ["--version"], *([command.name, "--help"] for command in COMMANDS)]
    done = subprocess.run(
        [sys.executable, "-c", LIGHT_HELP, json.dumps(lines)],
        check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_without_a_command_it_lists_them():
    bare = program()
    assert (bare.returncode, bare.stderr) == (2, "")
    assert all(
        re.search(rf"^  {command.name}\b", bare.stdout, re.MULTILINE) for command in COMMANDS
    )


def test_version():
    assert program("--version").stdout == f"rlvitals {rlvitals.__version__}\n"


@pytest.mark.parametrize(
    ("env", "coloured"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_colour_is_for_terminals_unless_forced(failing, call, monkeypatch, env, coloured):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in call("diagnose", failing)[1]) is coloured


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
@pytest.mark.parametrize(("env", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_colour_and_its_width(failing, env, coloured):
    import pty

    leader, follower = pty.openpty()
    env = {**os.environ, "COLUMNS": "70", "TERM": "xterm", **env}
    command = [sys.executable, "-m", "rlvitals", "diagnose", str(failing)]
    with subprocess.Popen(command, stdout=follower, env=env):
        os.close(follower)
        output = b""
        while chunk := _read(leader):
            output += chunk
    os.close(leader)
    text = output.decode()
    assert ("\x1b[" in text) is coloured
    bare = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert max(len(line) for line in bare.splitlines()) <= 70


def _read(leader):
    try:
        return os.read(leader, 65536)
    except OSError:  # Linux: the other end is closed
        return b""


def test_a_closed_pipe_is_quiet():
    command = [sys.executable, "-m", "rlvitals", "metrics"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        error = process.stderr.read()
        assert process.wait() == 141
    assert error == b""


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGINT to send")
def test_ctrl_c_is_quiet():
    code = (
        "import signal, sys, time; from rlvitals.cli import main;"
        "from rlvitals.diagnosis import load;"
        # A job in the background of a shell inherits an ignored SIGINT.
        "signal.signal(signal.SIGINT, signal.default_int_handler);"
        "load.runs = lambda path: (print('ready', flush=True), time.sleep(60));"
        "sys.exit(main(['diagnose', 'x']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=HANG_SECONDS) == 130
        assert process.stderr.read() == b""


def test_a_terminal_without_blocks_gets_escapes_not_a_traceback(failing):
    env = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    process = program("diagnose", failing, "--set", "target_kl=0.02", env=env)
    assert "Traceback" not in process.stderr
    assert r"\u25" in process.stdout


def test_a_name_in_an_error_is_harmless(capsys):
    from rlvitals.cli import main

    assert main(["explain", "\x1b[2J\u202e"]) == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("diagnos RUN", "diagnose"), ("--verison", "--version"),
        ("report --oput page.html", "--output"), ("report RUN --oput=page.html", "--output"),
        ("evaluate --sampels 3", "--samples"), ("diagnose RUN --trheshold x=1", "--threshold"),
        ("train gpro", "grpo"), ("train nsr --lamda-psr .1", "--lambda-psr"),
        ("train nsr --lambda_psr=.1", "--lambda-psr"),
        ("train nsr --signal.lambda_psr .1", "--lambda-psr"),
        ("train nsr --scale-rewards bach", "batch"), ("train nsr --report-to wandbb", "wandb"),
        ("train psr --vlm-name tiny-vml", "tiny-vlm or tiny-lm"),
        ("train ppo --ppo_config.learning_rate 1", "--learning-rate"),
        ("train ppo --environment CartPole-v1", "--env"),
        ("train rlhf --lerning-rate 1", "--learning-rate"),
        ("python -m", ""), ("report RUN --seed 3", ""), ("train ppo --qqqqq 3", ""),
    ],
)  # fmt: skip
def test_what_is_spelt_almost_right_is_named(said, meant, capsys, tmp_path, monkeypatch):
    from rlvitals.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(said.split()) == 2
    errors = capsys.readouterr().err
    assert f"try: did you mean {meant}?" in errors if meant else "did you mean" not in errors


def test_a_key_of_a_settings_file_is_named_too(capsys, tmp_path, failing, monkeypatch):
    from rlvitals.cli import main

    monkeypatch.chdir(tmp_path)
    for text, meant in (
        ("[diagnos]\n", "diagnose"), ("[diagnose]\nfail-on = 'note'\n", "fail_on"),
    ):  # fmt: skip
        (tmp_path / "rlvitals.toml").write_text(text)
        assert main(["diagnose", str(failing)]) == 2
        assert f"try: did you mean {meant}?" in capsys.readouterr().err


def test_each_command_stands_in_one_of_five_groups_of_the_help(capsys):
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.split("\n")
    titles = [line.removesuffix(":") for line in lines if line.endswith(":") and line[0] != " "]
    assert titles == list(COMMAND_GROUPS)
    assert len(COMMAND_GROUPS) == 5
    named = [line.split()[0] for line in lines if re.match(r"  \S", line)]
    assert named == [command.name for command in COMMANDS]
    assert max(map(len, lines)) < 80


TYPED = (
    "watch", "ui", "dashboard", "serve", "web", "ls", "list", "show", "view", "open", "tail",
    "monitor", "check", "info", "version", "help", "init", "login", "sync", "alert", "mcp",
)  # fmt: skip


@pytest.mark.parametrize("verb", TYPED)
def test_a_verb_that_people_type_is_a_command_or_names_one(verb, capsys):
    code = main([verb, "--help"])
    printed = capsys.readouterr()
    assert code == (2 if verb in VERB_HINTS else 0)
    assert "rlvitals" in printed.out + printed.err
    assert len(printed.err.splitlines()) <= 3


@pytest.mark.parametrize("word", ["xyzzy", "charts", "sweep", "cmp"])
def test_a_word_near_no_command_gets_no_guess(word, capsys):
    assert main([word, "x"]) == 2
    error = capsys.readouterr().err
    assert error.splitlines() == [
        f"error: no command is called '{word}'", "  at:  rlvitals", "  try: rlvitals --help",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("completion", "rlvitals completion bash or rlvitals completion zsh or "),
        ("skills", "rlvitals skills add\n"),
        ("alerts", "rlvitals alerts test\n"),
        ("sql", "rlvitals sql --help\n"),
    ],
)
def test_a_word_that_is_missing_is_named(command, hint, capsys):
    assert main([command]) == 2
    assert f"  try: {hint}" in capsys.readouterr().err


def test_the_page_for_agents_is_written_and_none_is_replaced(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = Path(".claude/skills/rlvitals/SKILL.md")
    for _ in range(2):  # again: nothing to do
        assert main(["skills", "add"]) == 0
        assert capsys.readouterr().out == f"{page}\n"
    text = page.read_text()
    assert text.startswith("---\nname: rlvitals\ndescription: ")
    assert text == (Path(__file__).parents[2] / "SKILL.md").read_text()
    page.write_text("mine")
    assert main(["skills", "add"]) == 2
    assert "another page is there" in capsys.readouterr().err
    assert main(["skills", "add", "--force", "-o", str(page.parents[1])]) == 0
    assert page.read_text() == text
    page.parents[1].rename("skills")
    Path("file").touch()
    assert main(["skills", "add", "-o", "file"]) == 2
    assert "cannot be written there" in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx", "jsonl"])
def test_a_run_is_exported_as_a_table_by_the_ending(ending, failing, tmp_path, capsys):
    table = tmp_path / f"out.{ending}"
    assert main(["export", str(failing), str(table)]) == 0
    assert f"out.{ending}: " in capsys.readouterr().out
    assert table.stat().st_size


@pytest.mark.parametrize("name", ["out.xls", "out.json", "out.tsv"])
def test_a_table_of_an_unknown_kind_is_no_run_folder(name, failing, tmp_path, capsys):
    assert main(["export", str(failing), str(tmp_path / name)]) == 2
    assert "try: out.csv, out.jsonl, out.parquet, out.xlsx" in capsys.readouterr().err
    assert not (tmp_path / name).exists()
    assert main(["export", str(failing), str(tmp_path / "lr-0.001")]) == 0
    assert (tmp_path / "lr-0.001").is_dir()


@pytest.mark.parametrize("verb", sorted(VERB_ALIASES))
def test_a_verb_of_another_tool_runs_the_command_that_is_meant(verb, capsys):
    assert main([verb, "--help"]) == 0
    printed = capsys.readouterr().out
    meant = VERB_ALIASES[verb]
    version = f"rlvitals {rlvitals.__version__}"
    assert printed.startswith(version if verb == "version" else f"usage: rlvitals {meant}")


@pytest.mark.parametrize("verb", sorted(VERB_HINTS))
def test_a_verb_that_is_no_command_here_names_the_one_to_type(verb, capsys):
    assert main([verb, "x"]) == 2
    error = capsys.readouterr().err
    assert f"no command is called '{verb}'" in error
    assert f"try: {VERB_HINTS[verb]}" in error


@pytest.mark.parametrize("verb", [command.name for command in COMMANDS])
def test_help_fits_a_terminal_of_80_columns(verb, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([verb, "--help"]) == 0
    text = capsys.readouterr().out
    description = text.partition("\n\n")[2].partition("\nexamples:")[0]
    lines = [line for line in description.splitlines() if '{"' not in line]  # JSON to copy
    options = text.partition("\noptions:")[2].splitlines()
    assert [line for line in (*lines, *options) if len(line) > 80] == []


def test_help_names_a_command_or_lists_all(capsys):
    assert main(["help", "status"]) == 0
    assert capsys.readouterr().out.startswith("usage: rlvitals status")
    assert main(["help"]) == 0
    assert "look at runs:" in capsys.readouterr().out


ANY = "|".join(command.name for command in COMMANDS)
COMMAND = re.compile(rf"rlvitals ((?:{ANY})\b(?:[^`\"'\\\n();:]|:(?=\d))*)")


def hinted():
    for path in sorted(SOURCE.rglob("*.py")):
        for match in COMMAND.finditer(path.read_text()):
            yield match[1].split(", or")[0].split(" shows")[0].strip().rstrip(".,?")


def test_every_command_the_product_hints_at_parses():
    hints = sorted(set(hinted()))
    assert len(hints) > 5
    commands = parser(COMMAND_GROUPS)
    for command in hints:
        argv = [re.sub(r"\{.*?\}|\[|\]", "x", argument) for argument in command.split()]
        try:
            commands.parse_args(argv)
        except VitalsError as error:
            pytest.fail(f"rlvitals {command}: {error}")


@pytest.mark.usefixtures("healthy", "failing")
def test_commands_that_read_many_runs_take_the_working_folder(call):
    for command in (["diagnose"], ["follow", "--once"], ["watch", "--once"], ["triage"]):
        code, out, _ = call(*command)
        assert code in (0, 1), command
        assert "healthy" in out, command
        assert "failing" in out, command
    rlvitals.start("runs/recorded").finish()
    assert "runs/recorded" in call("runs", "--quick")[1]


@pytest.mark.parametrize(("words", "loaded"), [("--version", set()), ("runs --help", {"runs"})])
def test_a_line_loads_the_command_that_it_names_and_no_other(words, loaded):
    code = """
import sys
from rlvitals.cli import COMMAND_FILES, main
main(sys.argv[1:])
files = {file for group in COMMAND_FILES.values() for file in group}
print(*(file for file in files if f"rlvitals.cli.{file}" in sys.modules))"""
    command = [sys.executable, "-c", code, *words.split()]
    last = subprocess.check_output(command, text=True).splitlines()[-1]
    assert loaded <= set(last.split()) <= loaded | {"diagnose"}  # whose parts `judging` uses

"""Every command and code block of the README and the guides is executed, as it is pasted.

A page's blocks are executed in their order, in one folder. What cannot be is marked in the page's
source, before the block: `<!-- not run: why -->`, or for the lines with a text alone
`<!-- not run: why: "text" -->`. Its flags, modules and arguments are looked up. What takes long is
executed in `make soak`: commands that wait or train, and blocks under `<!-- soak: why -->`.
"""

import ast
import contextlib
import doctest
import importlib
import inspect
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import how_to_runs
import pytest
import yaml

import rlvitals
from rlvitals.cli import COMMAND_GROUPS, main, train
from rlvitals.cli.program import parser

ROOT = Path(__file__).resolve().parent.parent
GUIDES = sorted((ROOT / "docs" / "how-to").glob("*.md"))
PAGES = {
    page.name: page.read_text()
    for page in (ROOT / "README.md", ROOT / "docs" / "getting-started.md", *GUIDES)
}
# A page whose blocks of a language have a test of their own, which also checks what they leave.
ELSEWHERE = {
    ("back-up-and-move.md", "python"): "checkpoints/test_moving_page.py",
    ("back-up-and-move.md", "sh"): "checkpoints/test_moving_page.py",
    ("compare-runs.md", "console"): "cli/test_compare.py",
    ("compare-runs.md", "python"): "cli/test_compare.py",
    ("fail-a-ci-run.md", "yaml"): "cli/test_gate_files.py",
    ("record-a-run.md", "python"): "tracking/test_page.py",
    ("record-a-training.md", "python"): "integrations/test_how_to.py",
    ("record-anything.md", "python"): "integrations/test_how_to.py",
    ("record-trl.md", "python"): "integrations/test_how_to_language.py",
    ("save-and-resume.md", "python"): "checkpoints/test_resume_page.py",
    ("see-where-a-run-stands.md", "python"): "checkpoints/test_standing_page.py",
    ("send-a-run-elsewhere.md", "python"): "tracking/test_choosing_sinks.py",
    ("track-resume-and-monitor.md", "console"): "cli/test_track_page.py",
}
# Commands, and whole blocks of Python, of each page: a new one is a decision.
NOT_RUN = {
    "README.md": 5,
    "getting-started.md": 1,
    "back-up-and-move.md": 3,
    "follow-a-run.md": 1,
    "get-alerts.md": 3,
    "keep-an-index-in-clickhouse.md": 7,
    "look-at-rollouts.md": 1,
    "measure-the-diagnosis.md": 6,
    "read-hosted-runs.md": 8,
    "read-your-logs.md": 3,
    "record-to-a-bucket.md": 16,
    "run-on-a-cluster.md": 3,
    "see-where-a-run-stands.md": 1,
    "train-a-language-model.md": 2,
    "watch-runs-in-a-browser.md": 2,
}
SHELLS = {"console", "bash", "sh"}
SOAKED_COMMANDS = ("serve", "watch", "mcp", "train", "evaluate", "run", "plot")
SHORTER = {
    "--env": " --total-steps 4096",
    "ppo": " --total-requests 20000",
    "tiny-lm": " --subset-size 32",
}


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    mark: str  # "not run", "soak" or nothing
    parts: tuple[str, ...]  # of the lines that the mark is for, where it is not for all

    def lines(self):
        """Return the commands of a block of a shell, none of another's."""
        lines = self.text.splitlines() if self.language in SHELLS else []
        if self.language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return [re.sub(r"\s+# .*", "", line) for line in lines if line.strip()]

    def when(self, line=""):
        """Return "not run", "soak" or "" for a line, or for the whole block."""
        if self.mark and (not self.parts or any(part in line for part in self.parts)):
            return self.mark
        return "soak" if line and is_soaked(line) else ""


FENCED = re.compile(
    r"(?:^ *<!-- (not run|soak): ([^\n]*?) -->\n)?^( *)```(\w+)\n(.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)


def blocks(page):
    return [
        Block(
            language,
            re.sub(f"^{indent}", "", text, flags=re.MULTILINE),
            mark,
            tuple(re.findall(r'"(.+?)"', reason)),
        )
        for mark, reason, indent, language, text in FENCED.findall(PAGES[page])
    ]


def is_ours(page, block):
    return (page, block.language) not in ELSEWHERE


def is_soaked(line):
    """Return whether a command waits, trains, draws for seconds, or starts programs."""
    words = shlex.split(line, posix=False)
    return words[0] != "rlvitals" or words[1] in SOAKED_COMMANDS


SOAKED = [
    page
    for page in PAGES
    if any(
        line_or_block == "soak"
        for block in blocks(page)
        if is_ours(page, block)
        for line_or_block in (block.when(), *map(block.when, block.lines()))
    )
]


def check_command(line):
    """Look up the flags of a command, the extras that are installed, the verbs of make."""
    words = shlex.split(re.sub(r" (2>&1 )?\|\|? [^']*$", "", line))
    while words and re.match(r"\w+=", words[0]):
        words.pop(0)
    if words[0] == "uvx":
        words = words[words.index("rlvitals") :]
    if words[0] == "rlvitals":
        options = parser(COMMAND_GROUPS).parse_args(words[1:])
        if words[1] == "train" and "--config" not in words:
            trainer, flags = train.read(options.algorithm, options.options)
            trainer.configure(options.algorithm, flags)
    elif words[0] == "make":
        makefile = (ROOT / "Makefile").read_text()
        assert all(f"\n{verb}:" in makefile for verb in words[1:])
    elif words[0] == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        for name in re.findall(r"\[(.+?)\]", line):
            assert set(name.split(",")) <= set(extras["optional-dependencies"]), line


def check_names(code):
    """Look up what a block of Python imports of the package, and the arguments that it passes."""
    tree = ast.parse(code)
    names = {"rlvitals": rlvitals}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                module = importlib.import_module(alias.name)
                names[alias.asname or alias.name] = module
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module)
            for alias in node.names:
                names[alias.asname or alias.name] = getattr(module, alias.name)
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        root, *parts = ast.unparse(call.func).split(".")
        if root in names:
            function = names[root]
            for part in parts:
                function = getattr(function, part)
            keywords = {keyword.arg: None for keyword in call.keywords}
            inspect.signature(function).bind(*call.args, **keywords)


def execute(line, folder):
    """Execute a command; what goes on until it is stopped looks once."""
    if line.startswith("jq ") and shutil.which("jq") is None:
        return
    line = re.sub(r" --every \S+", "", line).replace("--until-end", "--once")
    line = line.replace(" /mnt/", f" {folder}/mnt/")
    if re.match(r"rlvitals follow (?!.*--once)", line):
        line += " --once"
    if (
        re.search(r"(?<!import )rlvitals(\.trainers|\.language| train)", line)
        and "--quick-test" not in line
    ):
        line += next(flags for part, flags in SHORTER.items() if part in line)
    if re.match(r"rlvitals (serve|watch|mcp)", line):
        code = interrupt(line, folder)
    elif re.match(r"rlvitals [^|&]*$", line):
        code = main(shlex.split(line.replace("~", str(folder)))[1:])
    else:
        code = subprocess.run(["bash", "-c", line], cwd=folder, check=False).returncode
    judges = re.match(r"rlvitals (diagnose|triage|follow|compare|doctor|checkpoints)\b", line)
    assert code in ({0, 1, 4} if judges else {0}), line


def drain(terminal):
    with contextlib.suppress(OSError):  # it is closed
        while os.read(terminal, 4096):
            pass


def interrupt(line, folder):
    """Execute a command in a terminal, and press `q` or Ctrl-C once it has drawn something."""
    import pty

    ours, theirs = pty.openpty()
    if line.startswith("rlvitals serve"):
        line += " --port 0"
    program = subprocess.Popen(
        shlex.split(line), cwd=folder, stdin=subprocess.DEVNULL if " mcp" in line else theirs,
        stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    if " mcp" not in line:
        assert os.read(ours, 1)
        Thread(target=drain, args=(ours,), daemon=True).start()
        time.sleep(2)  # keys and signals are handled a little after the first line
        os.write(ours, b"q") if " watch" in line else program.send_signal(signal.SIGINT)
    code = program.wait(60)
    return 0 if code == 130 else code


def execute_block(block, names, folder, executed):
    """Execute the parts of a block that are marked by one of `executed`; look up the others."""
    if block.language == "python":
        if block.when() not in executed:
            return check_names(block.text)
        if block.text.startswith("WEIGHTS"):
            (folder / "rewards.py").write_text(block.text)
        exec(compile(block.text, "page", "exec"), names)  # noqa: S102 - our own page
    elif block.language == "pycon":
        for example in doctest.DocTestParser().get_examples(block.text):
            exec(example.source, names)  # noqa: S102 - our own page
    elif block.language in SHELLS:
        for line in block.lines():
            if block.when(line) in executed:
                execute(line, folder)
            else:
                check_command(line)
    else:
        parse(block)
    return None


def parse(block):
    if block.language == "json":
        try:
            json.loads(block.text)
        except json.JSONDecodeError:  # an object on each line
            assert [json.loads(line) for line in block.text.splitlines()]
    elif block.language == "toml":
        tomllib.loads(block.text)
    elif block.language == "yaml":
        yaml.safe_load(block.text)
    else:
        assert block.language == "text", block.language


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    how_to_runs.make(folder)
    return folder


@pytest.fixture
def workspace(made, tmp_path, monkeypatch, page):
    folder = tmp_path / "workspace"
    shutil.copytree(made, folder)
    if page == "look-at-rollouts.md":
        how_to_runs.record(folder / "outputs")
    else:
        how_to_runs.trainer_state(folder / "outputs" / "nsr-run")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    programs = Path(sys.executable).parent  # where the package is installed
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    return folder


@pytest.fixture
def served(workspace, monkeypatch):
    """Serve the runs at a free port, to which the page's addresses are changed."""
    shutil.copytree("runs/first", "runs/sweep/seed-3")
    command = ["rlvitals", "serve", "runs", "--port", "0"]
    page = "watch-runs-in-a-browser.md"
    with subprocess.Popen(command, cwd=workspace, stdout=subprocess.PIPE, text=True) as program:
        port = re.search(r":(\d+)", program.stdout.readline())[1]
        monkeypatch.setitem(PAGES, page, PAGES[page].replace("8265", port))
        yield
        program.send_signal(signal.SIGINT)


def run_page(page, folder, executed):
    names = {"__name__": "page"}
    handler = signal.getsignal(signal.SIGTERM)
    try:
        for block in blocks(page):
            if is_ours(page, block):
                execute_block(block, names, folder, executed)
    finally:
        signal.signal(signal.SIGTERM, handler)


@pytest.mark.parametrize("page", PAGES)
def test_the_page_runs(page, workspace):
    run_page(page, workspace, {""})


@pytest.mark.soak
@pytest.mark.filterwarnings("default")  # the language trainers' libraries warn
@pytest.mark.parametrize("page", SOAKED)
def test_what_waits_or_trains_runs(page, workspace, request):
    if page == "train-a-language-model.md":
        shutil.rmtree("runs/sums")  # it is trained there
    if page == "watch-runs-in-a-browser.md":
        request.getfixturevalue("served")
    run_page(page, workspace, {"", "soak"})


def test_every_other_page_has_its_test():
    for (page, language), test in ELSEWHERE.items():
        assert page in (ROOT / "tests" / test).read_text(), test
        assert any(block.language == language for block in blocks(page)), page


def test_no_more_lines_are_not_run():
    count = dict.fromkeys(PAGES, 0)
    for page in PAGES:
        for block in blocks(page):
            lines = [""] if block.language == "python" else block.lines()
            count[page] += sum(block.when(line) == "not run" for line in lines)
    assert {page: number for page, number in count.items() if number} == NOT_RUN

"""The manual keeps up with the code, its links lead somewhere, its commands parse."""

import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from rlvitals import metrics, rules
from rlvitals.cli import COMMAND_GROUPS, COMMANDS
from rlvitals.cli.program import parser
from rlvitals.errors import VitalsError
from rlvitals.metrics import environments, glossary
from rlvitals.readers import READERS

ROOT = Path(__file__).resolve().parent.parent
WRITER = ROOT / "scripts" / "write_docs.py"
DOCS = ROOT / "docs"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SKILL.md", "docs/llms.txt")),
    *sorted(DOCS.rglob("*.md")),
]
BY_HAND = [p for p in PAGES if not p.read_text().startswith("<!-- Written by")]


def check(root):
    command = [sys.executable, root / "scripts" / "write_docs.py", "--check"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_generated_pages_are_up_to_date():
    done = check(ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_stale_a_missing_and_a_left_over_page_are_named(tmp_path):
    for name in ("docs", "scripts", "src/rlvitals/trainers/ppo/configs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "tests" / "traces", tmp_path / "tests" / "traces")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    rule = tmp_path / "docs" / "rules" / "kl-above-target.md"
    rule.write_text(rule.read_text().replace("trust region", "comfort zone"))
    (tmp_path / "docs" / "rules" / "no-such-rule.md").write_text(
        (tmp_path / "docs" / "rules" / "index.md").read_text()
    )
    (tmp_path / "docs" / "glossary.md").unlink()
    done = check(tmp_path)
    assert done.returncode == 1
    assert {line.split()[0] for line in done.stdout.splitlines()} == {
        "docs/rules/kl-above-target.md",
        "docs/rules/no-such-rule.md",
        "docs/glossary.md",
    }


def test_the_picture_is_what_the_terminal_shows(tmp_path):
    drawn = re.search(r"scripts/capture.py (\S+) (\S+) (\d+)", (ROOT / "Makefile").read_text())
    run, picture, parts = drawn.groups()
    command = [sys.executable, ROOT / "scripts" / "capture.py", run, tmp_path / "new.svg", parts]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    assert (tmp_path / "new.svg").read_text() == (ROOT / picture).read_text(), "run make docs"


def test_nothing_is_left_out():
    read = {path.relative_to(DOCS).as_posix(): path.read_text() for path in DOCS.rglob("*.md")}
    for rule in rules.CATALOGUE:
        assert f"# {rule.name}\n" in read[f"rules/{rule.name}.md"]
        assert f"({rule.name}.md)" in read["rules/index.md"]
    listed = "\n".join(text for name, text in read.items() if name.startswith("metrics/"))
    assert [m.name for m in metrics.CATALOGUE if f"## {m.name}" not in listed] == []
    assert [r.name for r in READERS if f"| {r.name} |" not in read["readers.md"]] == []
    assert [c.name for c in COMMANDS if f"## rlvitals {c.name}\n" not in read["commands.md"]] == []
    assert [t.name for t in glossary.TERMS if f"## {t.name}\n" not in read["glossary.md"]] == []
    known = environments.ENVIRONMENTS
    assert [e.name for e in known if f"| {e.name} |" not in read["environments.md"]] == []


def test_links_lead_somewhere():
    links = [(page, target) for page in PAGES for target in _link_targets(page)]
    assert [link for link in links if not _leads_somewhere(*link)] == []


def _link_targets(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    return [target for target in targets if not target.startswith("http")]


def _leads_somewhere(page, target):
    path, _, anchor = target.partition("#")
    file = page if not path else (page.parent / path).resolve()
    # A page of the site links to pages of the site alone.
    is_served = not page.is_relative_to(DOCS) or file.is_relative_to(DOCS)
    return is_served and file.exists() and (not anchor or anchor in _anchors(file))


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    decisions = {page for page in pages if re.match(r"decisions/0", page)}
    assert sorted(pages - decisions - listed) == []


@cache
def _anchors(file):
    headings = re.findall(r"^#+ (.*)$", file.read_text(), flags=re.MULTILINE)
    return {_anchor(heading) for heading in headings}


def _anchor(heading):
    own = re.search(r"\{ #(\S+) \}$", heading)
    return own[1] if own else re.sub(r"[^\w]+", "-", heading.lower()).strip("-")


COMMAND = re.compile(r"^\$ rlvitals (.*?)(?:\s+#.*|\s*\|.*)?$|^  rlvitals (.*)$", re.MULTILINE)
SHOWN = sorted({a or b for page in PAGES for a, b in COMMAND.findall(page.read_text())})


def test_every_command_shown_parses():
    commands = parser(COMMAND_GROUPS)
    for command in SHOWN:
        try:
            commands.parse_args(shlex.split(command))
        except VitalsError as error:
            pytest.fail(f"rlvitals {command}: {error}")


def test_files_and_verbs_named_by_hand_exist():
    text = "\n".join(page.read_text() for page in BY_HAND)
    makefile = (ROOT / "Makefile").read_text()
    for verb in re.findall(r"`make (\w+)`", text):
        assert f"\n{verb}:" in makefile, verb
    fast = re.search(r"FAST := \$\(addprefix tests/,(.*?)\)", makefile, flags=re.DOTALL)
    for name in fast[1].replace("\\\n", " ").split():
        assert (ROOT / "tests" / name).exists(), name
    for name in re.findall(r"`((?:src|tests|scripts|docs|examples)/[\w./-]+)`", text):
        assert (ROOT / name).exists(), name

"""What a shell proposes, asked of the shells themselves where they are installed."""

import shutil
import subprocess
import sys

import pytest

from rlvitals.cli import COMMANDS

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def script(shell):
    command = [sys.executable, "-m", "rlvitals", "completion", shell]
    return subprocess.check_output(command, text=True)


def proposed(typed):
    """The words that bash proposes for the last word of a line."""
    words = typed.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    ask = f'COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _rlvitals; echo "${{COMPREPLY[@]}}"'
    run = ["bash", "--norc", "-c", f"{script('bash')}\n{ask}"]
    return set(subprocess.check_output(run, text=True).split())


@needs_bash
@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("rlvitals tri", {"triage"}),
        ("rlvitals diagnose --br", {"--brief"}),
        ("rlvitals diagnose --fail-on ", {"note", "warning", "error", "never"}),
        ("rlvitals completion ", {"bash", "zsh", "fish", "--help"}),
        ("rlvitals train gr", {"grpo"}),
        ("rlvitals diagnose runs", set()),
    ],
)
def test_bash_proposes(typed, words):
    assert proposed(typed) == words


@needs_bash
def test_bash_proposes_every_command():
    assert proposed("rlvitals ") == {command.name for command in COMMANDS}


def test_the_other_shells_know_every_command_and_flag():
    fish = script("fish")
    assert all(f" -a {command.name} -d " in fish for command in COMMANDS)
    assert "-n '__fish_seen_subcommand_from diagnose' -l brief" in fish
    assert script("zsh").startswith("#compdef rlvitals\n")
    assert script("bash") in script("zsh")

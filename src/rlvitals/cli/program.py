"""Parse, run one command, turn what happens into an exit code."""

import os
import re
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from textwrap import fill
from types import MappingProxyType
from typing import Any, NoReturn

import rlvitals
from rlvitals.cli.command import Command
from rlvitals.errors import UsageError, VitalsError, nearest

PROGRAM = "rlvitals"
Groups = Mapping[str, Sequence[Command]]  # commands by the title of their group
HELP_WIDTH = 84  # characters of a command's line in the help
USAGE, UNREADABLE = 2, 3
CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)")  # as argparse says it
# Verbs of other tools: what is run in their place, or what to type here.
ALIASES = {
    "ls": "runs", "list": "runs", "show": "diagnose", "view": "diagnose", "info": "status",
    "watch": "follow", "tail": "follow", "monitor": "follow", "version": "--version",
}  # fmt: skip
PAGE = "`rlvitals follow PATH` prints changes as they happen, `rlvitals report PATH` writes a page"
ELSEWHERE = {
    "ui": PAGE,
    "web": PAGE,
    "serve": PAGE,
    "dashboard": PAGE,
    "open": "`rlvitals report PATH -o page.html`",
    "check": "`rlvitals diagnose PATH` for the training, `rlvitals verify PATH` for the files",
    "init": "nothing is set up first: `rlvitals.start(folder)` in the training script",
    "login": "no account is needed",
    "sync": "`rlvitals backup RUN TARGET`",
    "alert": "`rlvitals follow PATH --json`, one object a line for a program that alerts",
    "mcp": "`rlvitals diagnose PATH --json`",
}
INTERRUPTED, CLOSED_PIPE = 130, 141  # 128 + the signal, as shells count


class Parser(ArgumentParser):
    """An argument parser whose errors say what, where, try."""

    _said: Sequence[str] = ()  # what it parses

    def parse_known_args(  # type: ignore[override]  # all that is passed on may be anything
        self,
        args: Sequence[str] | None = None,
        namespace: Any = None,  # noqa: ANN401
    ) -> tuple[Any, list[str]]:
        """Parse, and stop at what is not known: here, where a command knows its own flags."""
        self._said = tuple(sys.argv[1:] if args is None else args)
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest

    def error(self, message: str) -> NoReturn:
        """Raise a UsageError; a flag or a value that is almost a known one is named."""
        hint = ""
        if (found := CHOICE.search(message)) and self.prog == PROGRAM and found[1] in ELSEWHERE:
            raise UsageError(
                f"no command is called {found[1]!r}", where=self.prog, hint=ELSEWHERE[found[1]]
            )
        if found:
            hint = nearest(found[1], found[2].replace("'", "").split(", "))
            message = message.partition(" (choose from")[0] if hint else message
        elif message.startswith(("unrecognized arguments", "the following arguments are required")):
            hint = self._meant()
        raise UsageError(message, where=self.prog, hint=hint or f"{self.prog} --help")

    def _meant(self) -> str:
        """Ask what the first of the flags that are not known was to be."""
        flags = [flag for flag in self._option_string_actions if flag.startswith("--")]
        said = (word.partition("=")[0] for word in self._said if word.startswith("--"))
        strange = (word for word in said if not self._takes(word, flags))
        return next((nearest(word, flags) for word in strange), "")

    def _takes(self, word: str, flags: Sequence[str]) -> bool:
        return word in flags or (self.allow_abbrev and any(f.startswith(word) for f in flags))


class ProgramParser(Parser):
    """The parser of all commands; its help lists them by group."""

    groups: Groups = MappingProxyType({})

    def format_help(self) -> str:
        """Return the usage, and one line for each command."""
        width = max(len(command.name) for group in self.groups.values() for command in group)
        lines = [f"usage: {self.prog} COMMAND ...", "", str(self.description)]
        for title, group in self.groups.items():
            lines += ["", f"{title}:"]
            for command in group:
                text = fill(
                    command.doc.splitlines()[0], HELP_WIDTH, subsequent_indent=" " * (width + 4)
                )
                lines.append(f"  {command.name:{width}}  {text}")
        hint = f"{self.prog} COMMAND --help explains one; {self.prog} --version prints the version."
        return "\n".join([*lines, "", hint, ""])


def parser(groups: Groups) -> ArgumentParser:
    """Build the parser of every command."""
    top = ProgramParser(prog=PROGRAM, description=rlvitals.__doc__.splitlines()[0])
    top.groups = groups
    top.add_argument("--version", action="version", version=f"rlvitals {rlvitals.__version__}")
    subs = top.add_subparsers(required=True, metavar="command", dest="command", parser_class=Parser)
    for command in chain.from_iterable(groups.values()):
        sub = subs.add_parser(
            command.name,
            help=command.doc.splitlines()[0],
            description=command.doc,
            formatter_class=RawDescriptionHelpFormatter,
        )
        command.add_arguments(sub)
        sub.set_defaults(run_command=command.run)
    return top


def translate(argv: Sequence[str]) -> list[str]:
    """Replace the verb of another tool; `help [COMMAND]` asks for the help of a command."""
    if not argv:
        return []
    verb, *rest = argv
    if verb == "help":
        return [*rest[:1], "--help"]
    return [ALIASES.get(verb, verb), *rest]


def start(groups: Groups, argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` names; print what a person can mend without a traceback."""
    if sys.stdout is None:  # closed by who started it
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for good
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that has no blocks
    try:
        top = parser(groups)
        words = translate(sys.argv[1:] if argv is None else argv)
        if not words:
            top.print_help()
            return USAGE
        args = top.parse_args(words)
        code: int = args.run_command(args)
        sys.stdout.flush()
    except SystemExit as finished:  # --help and --version
        return int(finished.code or 0)
    except VitalsError as error:
        tell(error)
        return USAGE if isinstance(error, UsageError) else UNREADABLE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes stdout once more when it ends: let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    return code


def tell(error: VitalsError) -> None:
    """Print what a person can mend: it may hold what others wrote, a model's words among them."""
    from rlvitals.errors import harmless

    said = "\n".join(harmless(line) for line in str(error).split("\n"))
    print(f"error: {said}", file=sys.stderr)

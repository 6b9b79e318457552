"""Parse the command line, run one command and map errors to exit codes."""

import os
import re
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from io import TextIOWrapper
from itertools import chain, groupby
from pathlib import Path
from textwrap import fill, wrap
from types import MappingProxyType
from typing import Any, NoReturn

import rlvitals
from rlvitals.cli.command import EXIT_UNREADABLE, EXIT_USAGE, Command
from rlvitals.errors import UsageError, VitalsError, nearest
from rlvitals.hosted.address import to_path

Groups = Mapping[str, Sequence[Command]]  # commands by the title of their group
Files = Mapping[str, Sequence[str]]  # their modules' names, by the same
HELP_WIDTH = 79  # characters of a line of the help: no terminal is narrower by default
# Verbs of other tools: what is run in their place, or what to type here.
VERB_ALIASES = {
    "ls": "runs", "list": "runs", "show": "diagnose", "view": "diagnose", "info": "status",
    "tail": "follow", "monitor": "follow", "version": "--version",
    "ui": "serve", "web": "serve", "dashboard": "serve", "gate": "diagnose",
}  # fmt: skip
VERB_HINTS = {
    "open": "`rlvitals report PATH --open`, or `rlvitals serve PATH`",
    "check": "`rlvitals diagnose PATH` for the training, `rlvitals verify PATH` for the files",
    "init": "nothing is set up first: `rlvitals.start(folder)` in the training script",
    "login": "no account is needed",
    "sync": "`rlvitals backup RUN TARGET`",
    "alert": "`rlvitals follow PATH --alert desktop`, and `rlvitals alerts test`",
    "stop": "`rlvitals ask RUN stop`",
    "kill": "`rlvitals ask RUN kill`",
    "resume": "the training's own command; `rlvitals checkpoints RUN` shows from where",
    "start": "`rlvitals run -- python train.py`",
}


class Parser(ArgumentParser):
    """An argument parser whose errors state the problem, the place and a hint."""

    _argv: Sequence[str] = ()  # the arguments being parsed

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - the base class's
        """Take a `file://` URL wherever a path is expected."""
        super().__init__(*args, **options)
        self.register("type", Path, to_path)

    def parse_known_args(  # type: ignore[override]  # as in the base class
        self,
        args: Sequence[str] | None = None,
        namespace: Any = None,  # noqa: ANN401
    ) -> tuple[Any, list[str]]:
        """Parse, and refuse unknown arguments here, where the command's own flags are known."""
        self._argv = tuple(sys.argv[1:] if args is None else args)
        namespace_read, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return namespace_read, unknown

    def error(self, message: str) -> NoReturn:
        """Raise a UsageError whose hint names the nearest known flag or value."""
        hint = ""
        # This is argparse's message.
        if match := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message):
            is_command = message.startswith("argument command:")
            cutoff = 0.75 if is_command else 0.6  # "charts" is no misspelt "alerts"
            hint = nearest(match[1], match[2].replace("'", "").split(", "), cutoff)
            if is_command:  # the help groups them
                message = f"no command is called {match[1]!r}"
            message = message.partition(" (choose from")[0] if hint else message
        elif message.startswith(("unrecognized arguments", "the following arguments are required")):
            hint = self._suggest_flag() or self._suggest_choice(message.rpartition(": ")[2])
        raise UsageError(message, where=self.prog, hint=hint or f"{self.prog} --help")

    def _suggest_flag(self) -> str:
        """Return the known flag nearest to the first unknown one, or an empty string."""
        flags = [flag for flag in self._option_string_actions if flag.startswith("--")]
        flag_names = (name.partition("=")[0] for name in self._argv if name.startswith("--"))
        strange = (name for name in flag_names if not self._accepts(name, flags))
        return next((nearest(name, flags) for name in strange), "")

    def _suggest_choice(self, name: str) -> str:
        """Return the command with each choice of a missing argument, or an empty string."""
        for action in self._actions:
            if action.dest == name and action.choices and not action.option_strings:
                return " or ".join(f"{self.prog} {choice}" for choice in action.choices)
        return ""

    def _accepts(self, name: str, flags: Sequence[str]) -> bool:
        return name in flags or (self.allow_abbrev and any(f.startswith(name) for f in flags))


class DescriptionFormatter(RawDescriptionHelpFormatter):
    """Fits a description's sentences and exit codes to the terminal; examples keep their lines."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines: list[str] = []
        for is_plain, group in groupby(text.splitlines(), _is_sentence):
            for line in [" ".join(group)] if is_plain else group:
                code = re.match(r"(?:exit code:|[ ]{11})[ ]*(?:\d+[ ]{2})?", line)
                if not is_plain and code is None:
                    lines.append(line)
                    continue
                hanging = " " * code.end() if code else ""
                lines += wrap(line, width, subsequent_indent=hanging, break_on_hyphens=False)
        return "\n".join(f"{indent}{line}" for line in lines)


def _is_sentence(line: str) -> bool:
    return re.match(r"[ ]|exit code:|$", line) is None


class ProgramParser(Parser):
    """The parser of all commands; its help lists them by group."""

    groups: Groups = MappingProxyType({})

    def format_help(self) -> str:
        """Return the usage, and one line for each command."""
        width = max(len(command.name) for group in self.groups.values() for command in group)
        lines = [f"usage: {self.prog} COMMAND ...", "", fill(str(self.description), HELP_WIDTH)]
        for title, group in self.groups.items():
            lines += ["", f"{title}:"]
            for command in group:
                head, indent = f"  {command.name:{width}}  ", " " * (width + 4)
                lines.append(
                    fill(
                        command.doc.splitlines()[0],
                        HELP_WIDTH,
                        initial_indent=head,
                        subsequent_indent=indent,
                    )
                )
        hints = [f"{self.prog} COMMAND --help explains a command.", f"{self.prog} --version"]
        return "\n".join([*lines, "", *hints, ""])


def parser(groups: Groups) -> ArgumentParser:
    """Build the parser of every command."""
    top = ProgramParser(prog="rlvitals", description=rlvitals.__doc__.splitlines()[0])
    top.groups = groups
    top.add_argument("--version", action="version", version=f"rlvitals {rlvitals.__version__}")
    subs = top.add_subparsers(required=True, metavar="command", dest="command", parser_class=Parser)
    for command in chain.from_iterable(groups.values()):
        sub = subs.add_parser(
            command.name,
            help=command.doc.splitlines()[0],
            description=command.doc,
            formatter_class=DescriptionFormatter,
        )
        command.add_arguments(sub)
        sub.set_defaults(run_command=command.run)
    return top


def translate(argv: Sequence[str]) -> list[str]:
    """Replace the verb of another tool. Raises UsageError that names the command to type."""
    if not argv:
        return []
    verb, *rest = argv
    if verb == "help":
        return [*rest[:1], "--help"]
    if verb in VERB_HINTS:
        raise UsageError(f"no command is called {verb!r}", where="rlvitals", hint=VERB_HINTS[verb])
    return [VERB_ALIASES.get(verb, verb), *rest]


def load_commands(files: Files) -> Groups:
    """Import the modules of commands."""
    return {
        title: tuple(import_module(f"rlvitals.cli.{file}").COMMAND for file in group)
        for title, group in files.items()
    }


def load_commands_on_use(files: Files) -> Callable[[str], object]:
    """Return the `__getattr__` of the package whose `COMMAND_GROUPS` and `COMMANDS` these are."""

    def load(name: str) -> object:
        if name not in {"COMMAND_GROUPS", "COMMANDS"}:
            raise AttributeError(f"module 'rlvitals.cli' has no attribute {name!r}")
        groups = load_commands(files)
        return groups if name == "COMMAND_GROUPS" else tuple(chain.from_iterable(groups.values()))

    return load


def _select_files(files: Files, arguments: Sequence[str]) -> Files:
    """Return what a line needs: the file of the command that it names, else all of them."""
    if list(arguments) == ["--version"]:
        return {}
    matches = [file for file in chain(*files.values()) if [file.partition("_")[0]] == arguments[:1]]
    return {"": matches} if matches else files


def start(files: Files, argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` names; print user errors without a traceback."""
    if sys.stdout is None:  # closed by the parent process
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal without Unicode
    try:
        words = translate(sys.argv[1:] if argv is None else argv)
        top = parser(load_commands(_select_files(files, words)))
        if not words:
            top.print_help()
            return EXIT_USAGE
        args = top.parse_args(words)
        code: int = args.run_command(args)
        sys.stdout.flush()
    except SystemExit as finished:  # --help and --version
        return int(finished.code or 0)
    except VitalsError as error:
        print_error(error)
        return EXIT_USAGE if isinstance(error, UsageError) else EXIT_UNREADABLE
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT, as in shells
    except BrokenPipeError:
        # Python flushes stdout once more at exit: redirect that to the null device.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # 128 + SIGPIPE
    return code


def print_error(error: VitalsError) -> None:
    """Print an error on stderr, with control characters from logs or models removed."""
    from rlvitals.errors import harmless

    text = "\n".join(harmless(line) for line in str(error).split("\n"))
    print(f"error: {text}", file=sys.stderr)

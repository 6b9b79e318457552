"""Print a script that completes commands, flags and values in a shell.

Repeat this after an update. For bash, add this to ~/.bashrc: eval "$(rlvitals completion bash)".
For zsh, save the script as _rlvitals in a folder of fpath. For fish, save it as
~/.config/fish/completions/rlvitals.fish.

examples:
  rlvitals completion bash
  rlvitals completion zsh
  rlvitals completion fish
"""

import shlex
from argparse import ArgumentParser, Namespace, _SubParsersAction

from rlvitals.cli.command import EXIT_OK, Command

BASH_SCRIPT = """_rlvitals() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words="" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  if [ "$COMP_CWORD" -eq 1 ]; then words="{commands}"; else
    case "${{COMP_WORDS[1]}} $previous" in
{values}      *) case "${{COMP_WORDS[1]}}" in
{flags}      esac ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _rlvitals rlvitals
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the shell."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell to complete in")


def run(args: Namespace) -> int:
    """Print the script."""
    from rlvitals.cli import COMMAND_GROUPS
    from rlvitals.cli.program import parser

    actions = parser(COMMAND_GROUPS)._actions  # noqa: SLF001 - argparse lists them nowhere else
    subparsers = next(action for action in actions if isinstance(action, _SubParsersAction))
    commands = dict(subparsers.choices)
    if args.shell == "fish":
        print("\n".join(_fish(commands)))
        return EXIT_OK
    if args.shell == "zsh":
        print("#compdef rlvitals\nautoload -U +X bashcompinit && bashcompinit")
    values, flags = "", ""
    for name, command in commands.items():
        options = _options(command)
        for flag, choices in options.items():
            if flag and choices:
                values += f'      "{name} {flag}") words="{" ".join(choices)}" ;;\n'
        proposals = [*options.get("", ()), *filter(None, options)]
        flags += f'        {name}) words="{" ".join(proposals)}" ;;\n'
    print(BASH_SCRIPT.format(commands=" ".join(commands), values=values, flags=flags), end="")
    return EXIT_OK


def _options(parser: ArgumentParser) -> dict[str, tuple[str, ...]]:
    """Return the values of each long flag and of the arguments (""); () where any is right."""
    options: dict[str, tuple[str, ...]] = {}
    for action in parser._actions:  # noqa: SLF001 - argparse has no other list
        if isinstance(action, _SubParsersAction):
            options[""] = tuple(action.choices)
            continue
        values = tuple(str(value) for value in action.choices or ())
        flags = [flag for flag in action.option_strings if flag.startswith("--")]
        options |= dict.fromkeys(flags, values)
        if not action.option_strings:
            options[""] = (*options.get("", ()), *values)
    return options


def _fish(commands: dict[str, ArgumentParser]) -> list[str]:
    lines = []
    for name, parser in commands.items():
        doc = shlex.quote((parser.description or "").splitlines()[0])
        lines.append(f"complete -c rlvitals -n __fish_use_subcommand -a {name} -d {doc}")
        condition = f"-n '__fish_seen_subcommand_from {name}'"
        for flag, choices in _options(parser).items():
            proposed = f" -x -a {shlex.quote(' '.join(choices))}" if choices else ""
            head = f" -l {flag.removeprefix('--')}" if flag else ""
            if head or proposed:
                lines.append(
                    f"complete -c rlvitals {condition}{head}{proposed if head else proposed[3:]}"
                )
    return lines


COMMAND = Command("completion", __doc__, add_arguments, run)

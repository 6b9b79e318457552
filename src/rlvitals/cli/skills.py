"""Add a skill page for agents: which commands to use, and what their answers mean.

The page is written to FOLDER/rlvitals/SKILL.md. The default FOLDER is .claude/skills of the
project; other agents use other folders.

exit code: 0  the page is written
           2  it cannot be written, or another page of that name exists

examples:
  rlvitals skills add
  rlvitals skills add --output-dir ~/.claude/skills
"""

from argparse import ArgumentParser, Namespace
from importlib import resources
from pathlib import Path

from rlvitals.cli.command import EXIT_OK, Command
from rlvitals.errors import UsageError


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the action and the folder."""
    parser.add_argument("action", choices=("add",), help="write the page")
    parser.add_argument(
        "-o", "--output-dir", type=Path, default=Path(".claude", "skills"), metavar="FOLDER",
        help="the agent's folder of skills (default: .claude/skills)",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace an existing page")


def run(args: Namespace) -> int:
    """Write the page. Raises UsageError where it cannot be written."""
    page = resources.files("rlvitals.agents").joinpath("SKILL.md")
    data, path = page.read_bytes(), args.output_dir.expanduser() / "rlvitals" / page.name
    try:
        if path.exists() and path.read_bytes() != data and not args.force:
            raise UsageError("another page is there", where=str(path), hint="--force")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        problem = f"the page cannot be written there: {error.strerror}"
        raise UsageError(problem, where=str(path), hint="--output-dir FOLDER") from error
    print(path)
    return EXIT_OK


COMMAND = Command("skills", __doc__, add_arguments, run)

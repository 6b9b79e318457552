"""List the known metrics, or the meaning of the keys of a run.

examples:
  rlvitals metrics
  rlvitals metrics --framework sb3
  rlvitals metrics runs/my_run --unmapped
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rlvitals.cli import flags
from rlvitals.cli.command import Command
from rlvitals.errors import UsageError, nearest


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run and the output."""
    parser.add_argument(
        "path", nargs="?", type=Path, metavar="PATH", help="a log or a run's folder"
    )
    parser.add_argument("--framework", metavar="NAME", help="the keys of one framework")
    parser.add_argument("--unmapped", action="store_true", help="only unknown keys")
    parser.add_argument(
        "--json", action="store_true", help="print the run's trace as JSON, with its columns"
    )
    flags.add_free(parser)


def run(args: Namespace) -> int:
    """Print the catalogue, a framework's keys, or a run's."""
    if args.path is None and (args.unmapped or args.json):
        raise UsageError("which run?", where="rlvitals metrics", hint="rlvitals metrics PATH")
    if args.path is None:
        return _list_catalogue(args.framework)
    from rlvitals.diagnosis import load
    from rlvitals.views import json_view, lists
    from rlvitals.views.console import emit

    options = load.run_overrides(flags.settings_for(args.path, args))
    runs = load.runs(args.path)
    for run in runs:
        trace = load.load(run, options)
        if args.json:
            print(json_view.trace(trace))
        else:
            if len(runs) > 1:
                emit(lists.heading(run.name))
            emit(lists.run(trace, unmapped_only=args.unmapped))
    return 0


def _list_catalogue(framework: str | None) -> int:
    from rlvitals.metrics import CATALOGUE
    from rlvitals.metrics.frameworks import TABLES
    from rlvitals.views import lists
    from rlvitals.views.console import emit

    if framework is None:
        rows = [(m.name, m.title, m.unit, m.kind) for m in CATALOGUE]
        emit(lists.columns(("metric", "title", "unit", "kind"), rows))
        return 0
    table = next((table for table in TABLES if table.framework == framework), None)
    if table is None:
        frameworks = [table.framework for table in TABLES]
        hint = nearest(framework, frameworks) or f"one of {', '.join(frameworks)}"
        raise UsageError(f"no framework is called {framework!r}", where="--framework", hint=hint)
    emit(lists.framework(table))
    return 0


COMMAND = Command("metrics", __doc__, add_arguments, run)

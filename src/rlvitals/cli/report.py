"""Write a page about runs that needs nothing else: the verdict, what was found, and why.

The file holds its charts, its script and its style: it opens without a network, anywhere, and
prints. Of several runs it begins with a table of them. --markdown writes a text for a pull
request instead, on the standard output unless --output names a file.

exit code: 0  written
           2  wrong usage
           3  nothing readable; of several runs: one cannot be read, the others are written

examples:
  rlvitals report runs/my_run
  rlvitals report runs/first runs/second -o both.html
  rlvitals report runs/my_run --markdown -o comment.md
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli import flags, judging
from rlvitals.cli.command import Command
from rlvitals.errors import UsageError
from rlvitals.tracking import clock

if TYPE_CHECKING:  # they load numpy
    from rlvitals.diagnosis.engine import Diagnosis
    from rlvitals.readers.discovery.sources import Run
    from rlvitals.settings import Settings
    from rlvitals.views.report.page import Subject, Unread

DONE, NOTHING = 0, 3
FILE = "report.html"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the runs, and what is written where."""
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a log or a run's folder")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help=f"where to (default: {FILE})"
    )
    parser.add_argument(
        "--markdown", action="store_true", help="write Markdown, for a pull request"
    )
    parser.add_argument(
        "--labels", nargs="+", default=[], metavar="LABEL", help="what the runs are called"
    )
    flags.add_option(parser, "diagnose", "profile")
    flags.add_free(parser)


def run(args: Namespace) -> int:
    """Judge the runs and write what is to be said of them."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in `diagnose`: no work for threads
    from rlvitals.views.report import markdown
    from rlvitals.views.report.page import Unread

    found, unreadable = judging.judged(args.runs, args)
    if not found:
        raise unreadable[0]
    names = judging.labels(found, args.labels, len(args.runs))
    now = clock.now(flags.settings_for(args.runs[0], args).diagnose.now)
    told: list[Subject | Unread] = [
        _subject(name, one, answer, flags.settings_for(args.runs[at], args), now)
        for name, (at, one, answer) in zip(names, found, strict=True)
    ]
    told = [*(Unread(error.where, error) for error in unreadable), *_worst_first(told)]
    text = markdown.document(told) + "\n" if args.markdown else _html(told, now)
    _write(text, args)
    sys.stderr.writelines(f"error: {error}\n" for error in unreadable)
    return NOTHING if unreadable else DONE


def _subject(name: str, one: "Run", found: "Diagnosis", said: "Settings", now: float) -> "Subject":
    """Add what lies in a run's folder to what its log says."""
    from rlvitals.checkpoints import inspect_run, progress
    from rlvitals.diagnosis import load
    from rlvitals.diagnosis.status import standing
    from rlvitals.diagnosis.training_summary import summary
    from rlvitals.views.report.page import Subject

    kept = progress.read(one.root)
    return Subject(
        summary=summary(name, found, None if kept is None else kept.trained),
        standing=standing(name, found, kept, inspect_run.try_inspect(one.root), now),
        facts=load.facts(one),
        events=load.happened(one),
        others=load.others(one, load.given(said), found.trace),
    )


def _worst_first(told: "Sequence[Subject | Unread]") -> "list[Subject | Unread]":
    """Order runs as `diagnose` does."""
    from rlvitals.views import runs_table
    from rlvitals.views.report.page import Subject

    read = [one for one in told if isinstance(one, Subject)]
    by_found = {id(one.summary.found): one for one in read}  # two runs may have one label
    judged = [(one.summary.name, one.summary.found) for one in read]
    return [by_found[id(found)] for _, found in runs_table.worst_first(judged)]


def _html(told: "Sequence[Subject | Unread]", now: float) -> str:
    from rlvitals.views.report import contents, html
    from rlvitals.views.report.page import Unread

    pages = [
        one if isinstance(one, Unread) else contents.page(one, number)
        for number, one in enumerate(told)
    ]
    return html.document(pages, now)


def _write(text: str, args: Namespace) -> None:
    """Write the text, and say where. Raises UsageError where nothing can be written."""
    path = args.output or (None if args.markdown else Path(FILE))
    if path is None:
        print(text, end="")
        return
    data = text.encode("utf-8", "backslashreplace")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise UsageError(
            f"no report can be written there: {error.strerror}",
            where=str(path),
            hint="--output FILE",
        ) from error
    print(f"{path}: {len(data) / 1000:,.0f} kB")


COMMAND = Command("report", __doc__, add_arguments, run)

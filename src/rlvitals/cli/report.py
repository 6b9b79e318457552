"""Write a self-contained page about runs: verdict, findings and evidence.

The file contains its charts, script and style: it opens without a network connection and can be
printed. A page about several runs starts with their comparison and has a chart of each metric with
the curves of all of them. --markdown writes a text for a pull request instead, to the standard
output or the file of --output.

exit code: 0  written
           2  wrong usage
           3  a run cannot be read; the others are written

examples:
  rlvitals report runs/my_run
  rlvitals report runs/first runs/second -o both.html
  rlvitals report runs/first runs/second --axis time
  rlvitals report runs/my_run --open
  rlvitals report runs/my_run --markdown -o comment.md
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli import flags, judging
from rlvitals.cli.command import EXIT_OK, EXIT_UNREADABLE, Command, write_page
from rlvitals.tracking import clock

if TYPE_CHECKING:  # they load numpy
    from rlvitals.comparison.scores import Axis
    from rlvitals.views.report.page import Overlay, Subject, Unread

REPORT_FILE = "report.html"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the runs and the output."""
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a log or a run's folder")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help=f"where to (default: {REPORT_FILE})"
    )
    output_format = parser.add_mutually_exclusive_group()
    output_format.add_argument(
        "--markdown", action="store_true", help="write Markdown, for a pull request"
    )
    output_format.add_argument("--open", action="store_true", help="open the page in a browser")
    parser.add_argument(
        "--labels", nargs="+", default=[], metavar="LABEL", help="names of the runs"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="more rollouts per finding")
    parser.add_argument(
        "--axis", default="steps", metavar="AXIS",
        help="x-axis of the charts of all runs: steps, samples, episodes, tokens, time "
        "(default: steps)",
    )  # fmt: skip
    flags.add_option(parser, "diagnose", "profile")
    flags.add_free(parser)


def run(args: Namespace) -> int:
    """Judge the runs and write the report."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in `diagnose`: no work for threads
    from rlvitals.comparison.scores import parse_axis
    from rlvitals.views.report import markdown
    from rlvitals.views.report.page import Unread
    from rlvitals.views.report.run_subject import subject

    axis = parse_axis(args.axis)
    results, unreadable = judging.judge_runs(args.runs, args)
    if not results:
        raise unreadable[0]
    names = judging.labels(results, args.labels, len(args.runs))
    now_s = clock.now(flags.settings_for(args.runs[0], args).diagnose.now)
    limit = 8 if args.verbose else 2
    subjects: list[Subject | Unread] = [
        subject(name, run, answer, flags.settings_for(args.runs[index], args), now_s, limit)
        for name, (index, run, answer) in zip(names, results, strict=True)
    ]
    paths = [args.runs[index] for index, _, _ in results]
    overlay = None if args.markdown else _overlay(subjects, paths, axis)
    subjects = [*(Unread(error.where, error) for error in unreadable), *_worst_first(subjects)]
    if args.markdown:
        text = markdown.document(subjects) + "\n"
    else:
        from rlvitals.views.report import contents, html
        from rlvitals.views.report.page import Unread

        pages = [
            subject if isinstance(subject, Unread) else contents.page(subject, number)
            for number, subject in enumerate(subjects)
        ]
        text = html.document(pages, now_s, overlay)
    _write(text, args)
    sys.stderr.writelines(f"error: {error}\n" for error in unreadable)
    return EXIT_UNREADABLE if unreadable else EXIT_OK


def _overlay(
    subjects: "Sequence[Subject | Unread]", paths: Sequence[Path], axis: "Axis"
) -> "Overlay | None":
    """Compare the runs in their order; None for a single run. `paths`: the path of each."""
    from rlvitals.views.report import overlay_section
    from rlvitals.views.report.overlay_charts import ComparedRun
    from rlvitals.views.report.page import Subject

    read = [subject for subject in subjects if isinstance(subject, Subject)]
    if len(read) < 2:  # a comparison
        return None
    common = os.path.commonpath([path.absolute().parent for path in paths])
    names = Counter(subject.summary.name for subject in read)
    counts = Counter(paths)
    runs = [
        ComparedRun(
            subject.summary.name,
            subject.summary.found,
            # The path of several runs is their group's label, a single run has its own name.
            os.path.relpath(path, common)
            if counts[path] > 1 or names[subject.summary.name] > 1
            else subject.summary.name,
        )
        for subject, path in zip(read, paths, strict=True)
    ]
    return overlay_section.overlay(runs, axis)


def _worst_first(subjects: "Sequence[Subject | Unread]") -> "list[Subject | Unread]":
    """Sort runs in the order of `diagnose`."""
    from rlvitals.views import runs_table
    from rlvitals.views.report.page import Subject

    read = [subject for subject in subjects if isinstance(subject, Subject)]
    by_found = {
        id(subject.summary.found): subject for subject in read
    }  # two runs may have one label
    judged = [(subject.summary.name, subject.summary.found) for subject in read]
    return [by_found[id(diagnosis)] for _, diagnosis in runs_table.worst_first(judged)]


def _write(text: str, args: Namespace) -> None:
    """Write the text and print the path. Raises UsageError where the file cannot be written."""
    path = args.output or (None if args.markdown else Path(REPORT_FILE))
    if path is None:
        print(text, end="")
        return
    size = write_page(path, text, noun="report", hint="--output FILE")
    print(f"{path}: {size / 1000:,.0f} kB")
    if args.open:
        import webbrowser

        if not webbrowser.open(path.resolve().as_uri()):
            sys.stderr.write(f"no browser could be started: open {path} in one\n")


COMMAND = Command("report", __doc__, add_arguments, run)

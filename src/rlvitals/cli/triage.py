"""List the runs of a folder, a project or a server, worst first, with the hours they took.

SOURCE is a folder, wandb:entity/project, mlflow:http://host:5000, hf:user/repo, s3://bucket/runs,
ssh://host/path, or a page of W&B or the hub as pasted from the browser. Hosted runs are
downloaded by the tool's own client into a cache; the next call downloads only new data.

Runs of one group, such as the trials of Ray Tune, stand together under a line with their count.
A run is broken if `diagnose` would exit with 1. The hours are the training time without pauses,
and the time since the onset of the worst fault; GPU-hours count each GPU that a recorded run or a
run of W&B held. With `--alert` the alarms of all listed runs are sent in one message. An alert that
cannot be delivered is reported on stderr and does not change the exit code.
With `--index` the last judgements of `rlvitals index ROOT --to URL` are listed; no run is read.

exit code: 0  no run is broken
           1  a run is broken
           2  wrong usage
           3  nothing readable
           4  no run is broken, but some cannot be judged

examples:
  rlvitals triage runs
  rlvitals triage runs --since 1d --markdown
  rlvitals triage runs --page triage.html
  rlvitals triage wandb:entity/project --since 12h
  rlvitals triage mlflow:http://localhost:5000 --json
  rlvitals triage --index clickhouse://host/runs --since 12h
  rlvitals triage wandb:entity/project --since 1d --alert slack='$SLACK_WEBHOOK'
"""

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli import diagnose, flags, judging
from rlvitals.cli.command import EXIT_PROBLEM, EXIT_UNDECIDED, Command, diagnose_command, write_page
from rlvitals.errors import UsageError
from rlvitals.tracking import clock

if TYPE_CHECKING:  # they load numpy
    from rlvitals.alerts.routes import Route
    from rlvitals.diagnosis.engine import Diagnosis
    from rlvitals.errors import VitalsError
    from rlvitals.views.triage_table import TriageRow


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the sources, the age and the output."""
    parser.add_argument(
        "paths", nargs="*", type=Path, metavar="SOURCE",
        help="location of the runs (default: the working folder)",
    )  # fmt: skip
    flags.add_index(parser)
    parser.add_argument(
        "--since",
        type=flags.seconds,
        metavar="AGE",
        help="only runs with rows in this time: 12h, 1d",
    )
    for key in ("fail_on", "profile"):
        flags.add_option(parser, "diagnose", key)
    flags.add_free(parser)
    flags.add_ray(parser)
    flags.add_alerts(parser)
    text = "also write the list to FILE as one HTML page that opens anywhere"
    parser.add_argument("--page", type=Path, metavar="FILE", help=text)
    output_format = parser.add_mutually_exclusive_group()
    output_format.add_argument("--json", action="store_true", help="print JSON")
    output_format.add_argument("--markdown", action="store_true", help="print Markdown")


def run(args: Namespace) -> int:
    """Judge every run, print the table and return the worst exit code."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in `diagnose`: no work for threads
    from rlvitals.views import runs_table, triage_table

    if args.paths and args.index:
        hint = "rlvitals triage runs, or rlvitals triage --index clickhouse://host/db"
        raise UsageError("name either sources or --index", where="triage", hint=hint)
    if args.index:
        return _triage_index(args)
    args.paths = args.paths or [Path()]
    settings = flags.settings_for(args.paths[0], args)
    routes = flags.alert_routes(args)
    since_s = None if args.since is None else clock.now(settings.diagnose.now) - args.since
    paths = [_fetch(path, since_s) for path in args.paths]
    results, unreadable = judging.judge_runs(paths, args)
    if not results:
        raise unreadable[0]
    names = judging.labels(results, [], len(paths))
    judged: list[tuple[str, Diagnosis | VitalsError]] = [
        (name, result)
        for name, (_, files, result) in zip(names, results, strict=True)
        if since_s is None or triage_table.last_moment(result, files) >= since_s
    ]
    judged += [(error.where, error) for error in unreadable]
    fail_on = settings.diagnose.fail_on
    codes = {id(result): diagnose.code(result, fail_on) for _, result in judged}
    rows = [
        triage_table.row(name, result, broken=codes[id(result)] == EXIT_PROBLEM)
        for name, result in runs_table.worst_first(judged)
    ]
    rows.sort(key=lambda entry: not entry.broken)  # stable: worst first among equals
    rows = triage_table.by_group(rows)
    if routes:
        roots = {name: files.root for name, (_, files, _) in zip(names, results, strict=True)}
        _send_alerts(routes, judged, roots, clock.now(settings.diagnose.now))
    _print_rows(rows, args)
    return diagnose.worst(list(codes.values()))


def _triage_index(args: Namespace) -> int:
    """List the runs of an index as they were judged last. Runs that were not judged are unknown."""
    from rlvitals.clickhouse.run_store import RunStore
    from rlvitals.views import triage_table
    from rlvitals.views.triage_table import TriageRow

    if args.alert or args.alerts:
        raise UsageError("--index sends no alerts", where="--alert", hint="rlvitals triage ROOT")
    since_s = 0.0 if args.since is None else clock.now() - args.since
    with RunStore(args.index) as store:
        entries, summaries = store.search(sort="name"), store.summaries()
    judged: list[tuple[TriageRow, tuple[int, int], int]] = []  # with rank and exit code
    for entry in entries:
        if (entry.time or entry.created or 0.0) < since_s:
            continue
        if entry.path in summaries:
            summary = json.loads(summaries[entry.path])
            rank, code = tuple(summary["rank"]), summary["code"]
            judged.append((TriageRow(**summary["row"]), rank, code))
        else:
            blank = TriageRow(entry.path, "unknown", False, None, None, "", "not judged")
            judged.append((blank, (0, 0), EXIT_UNDECIDED))
    judged.sort(key=lambda item: (not item[0].broken, item[1]))
    _print_rows(triage_table.by_group([row for row, _, _ in judged]), args)
    return diagnose.worst([code for _, _, code in judged])


def _print_rows(rows: "list[TriageRow]", args: Namespace) -> None:
    from rlvitals.views import json_view, triage_table
    from rlvitals.views.console import emit

    if args.page:
        from rlvitals.views import triage_page

        text = triage_page.document(rows, clock.now())
        write_page(args.page, text, noun="page", hint="--page FILE")
    if args.json:
        print(json_view.document({"runs": rows, "total": triage_table.total(rows)}))
    elif args.markdown:
        print(triage_table.markdown_table(rows))
    else:
        emit(triage_table.table(rows))


def _send_alerts(
    routes: "tuple[Route, ...]",
    judged: "list[tuple[str, Diagnosis | VitalsError]]",
    roots: dict[str, Path],
    time_s: float,
) -> None:
    from rlvitals.alerts.sender import send_alarms
    from rlvitals.diagnosis.engine import Diagnosis

    diagnoses = {name: result for name, result in judged if isinstance(result, Diagnosis)}
    failures = send_alarms(routes, diagnoses, lambda name: diagnose_command(roots[name]), time_s)
    sys.stderr.writelines(f"{failure}\n" for failure in failures)


def _fetch(path: Path, since_s: float | None) -> Path:
    """Return the local folder of a hosted source, any other path as it is. Raises VitalsError."""
    from rlvitals.hosted import address, fetch

    source = address.parse(path)
    return path if source is None else fetch.fetch(source, since_s)


COMMAND = Command("triage", __doc__, add_arguments, run)

"""Count how often each rule fires on your own marked runs, and fit the thresholds that cry wolf.

Runs count by their labels (`rlvitals mark RUN --healthy`), never by their diagnosis. `diagnose
--rates` prints the rates next to the built-in ones. For a rule that fires on a healthy run, the
threshold at which it would not is printed for `rlvitals.toml`; nothing changes by itself.

examples:
  rlvitals calibrate runs
  rlvitals calibrate runs --write rates.json
  rlvitals diagnose runs/my_run --rates rates.json
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rlvitals.cli import flags
from rlvitals.cli.command import EXIT_OK, EXIT_UNDECIDED, Command
from rlvitals.errors import UnreadableLog


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the folder and the file."""
    parser.add_argument("root", type=Path, metavar="ROOT", help="a folder with marked runs")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the rates to FILE")
    flags.add_free(parser)


def run(args: Namespace) -> int:
    """Judge the marked runs below the root, count, print and write."""
    from rlvitals.diagnosis import batch, calibration, load, marks, own_rates, own_thresholds
    from rlvitals.views import rate_text

    settings = flags.settings_for(args.root, args)
    marked = [(each, mark) for each in load.runs(args.root) if (mark := marks.read(each))]
    runs, traces = [], []
    for each, mark in marked:
        answer = batch.judge((each, settings))
        if isinstance(answer, UnreadableLog):
            raise answer
        runs.append(marks.count_run(mark, answer))
        traces.append((mark, answer.trace))
    rates = calibration.tally(runs)
    print("\n".join(rate_text.table([mark for _, mark in marked], rates)))
    if not marked:
        return EXIT_UNDECIDED
    print("\n".join(rate_text.thresholds(own_thresholds.fit(traces))), end="")
    if args.write is not None:
        own_rates.write(args.write, rates)
        print(f"Written to {args.write}, for --rates or [diagnose] rates in rlvitals.toml.")
    return EXIT_OK


COMMAND = Command("calibrate", __doc__, add_arguments, run)

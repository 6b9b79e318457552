"""Draw a run's curves into files, with what was found marked on them, and sum it up.

Each picture whose metrics are logged becomes a file: training_loss, rewards, learning_rate,
gradient_norm, nsr_metrics, policy, value, actions, temperature, reward_breakdown, throughput,
distributions, lengths, domain, crucial, and dashboard. Of several runs each gets a folder of its
own; with --compare they share their pictures.
What the run comes to is printed, and written as summary.txt.

exit code: 0  drawn
           2  wrong usage
           3  nothing readable, or nothing logged of what was asked for; other runs are drawn

examples:
  rlvitals plot runs/my_run
  rlvitals plot runs/my_run --only policy,value --theme dark --format svg
  rlvitals plot runs/my_run --view crucial
  rlvitals plot --compare runs/grpo runs/nsr --labels GRPO NSR --output-dir comparison_plots
  rlvitals plot --checkpoint-dir outputs/my_run --output-dir nsr_plots
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.cli import flags, judging, pictures
from rlvitals.cli.command import Command
from rlvitals.errors import UsageError, nearest
from rlvitals.options import Plot

if TYPE_CHECKING:  # they load numpy
    from rlvitals.diagnosis.engine import Diagnosis
    from rlvitals.readers.discovery.sources import Run
    from rlvitals.views.figures.figure import Figure, Subject

DONE, NOTHING = 0, 3
SUMMARY, CRUCIAL = "summary.txt", "crucial"
VIEWS = ("all", CRUCIAL)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the runs, what to draw, and where to."""
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="a log or a run's folder")
    parser.add_argument(
        "--checkpoint-dir", type=Path, metavar="FOLDER", help="the same as RUN: a trainer's folder"
    )
    parser.add_argument(
        "--checkpoints", nargs="+", type=Path, default=[], metavar="RUN", help="the runs to compare"
    )
    parser.add_argument("--compare", action="store_true", help="draw all runs into each picture")
    parser.add_argument(
        "--labels", nargs="+", default=[], metavar="LABEL", help="what the runs are called"
    )
    parser.add_argument(
        "-o", "--output-dir", type=Path, default=Path("training_plots"), metavar="FOLDER",
        help="where the files go (default: training_plots)",
    )  # fmt: skip
    parser.add_argument(
        "--only", action="append", dest="pictures", metavar="PICTURE,...", help="draw these alone"
    )
    parser.add_argument(
        "--view",
        choices=VIEWS,
        default=VIEWS[0],
        help="all, or the crucial values alone, as crucial.png and crucial.txt",
    )
    flags.add(parser, "plot")
    flags.add_option(parser, "diagnose", "profile")
    flags.add_free(parser)


def run(args: Namespace) -> int:
    """Judge the runs, draw them, and say what they come to."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in `diagnose`: no work for threads
    paths = [*args.runs, *([args.checkpoint_dir] if args.checkpoint_dir else []), *args.checkpoints]
    if args.view == CRUCIAL and args.pictures:
        raise UsageError("a view has its own pictures", where="--only", hint="--only, or --view")
    if not paths:
        raise UsageError("which run?", where="rlvitals plot", hint="rlvitals plot RUN")
    chosen = flags.settings_for(paths[0], args).plot
    figures = _figures([CRUCIAL] if args.view == CRUCIAL else args.pictures)
    pictures.check(chosen)
    found, unreadable = judging.judged(paths, args)
    if not found:
        raise unreadable[0]
    subjects = _labelled(found, judging.labels(found, args.labels, len(paths)))
    together = args.compare or args.checkpoints or len(subjects) == 1
    groups = [tuple(subjects)] if together else [(one,) for one in subjects]
    missed = False
    for group in groups:
        folder = args.output_dir if together else args.output_dir / _file_name(group[0].label)
        made, lacking = _draw(figures, group, folder, chosen)
        missed |= not made or bool(args.pictures and lacking)
        _tell(folder, made, lacking, group, asked=bool(args.pictures))
    if args.view == CRUCIAL:
        _sum_up_crucial(subjects, args.output_dir)
    else:
        _sum_up(found, subjects, args.output_dir)
    sys.stderr.writelines(f"error: {error}\n" for error in unreadable)
    return NOTHING if missed or unreadable else DONE


def _figures(only: Sequence[str] | None) -> "tuple[Figure, ...]":
    """Pick the pictures. Raises UsageError for a name that none has."""
    from rlvitals.settings import split
    from rlvitals.views.figures import FIGURES

    names = [name for text in only or () for name in split(text)]
    known = {figure.name: figure for figure in FIGURES}
    for name in names:
        if name not in known:
            hint = nearest(name, known) or f"one of {', '.join(known)}"
            raise UsageError(f"no picture is called {name!r}", where="--only", hint=hint)
    return tuple(known[name] for name in names) or FIGURES


def _labelled(
    found: "Sequence[tuple[int, Run, Diagnosis]]", names: Sequence[str]
) -> "list[Subject]":
    from rlvitals.views.figures.figure import Subject

    return [Subject(name, answer) for name, (_, _, answer) in zip(names, found, strict=True)]


def _draw(
    figures: "Sequence[Figure]", subjects: "Sequence[Subject]", folder: Path, chosen: Plot
) -> tuple[list[str], "list[Figure]"]:
    """Draw what is logged; return the files' names, and the pictures for which nothing is."""
    from rlvitals.views.figures.panels import picture

    drawn = [(figure, picture(figure, subjects)) for figure in figures]
    made = pictures.write((one for _, one in drawn if one is not None), folder, chosen)
    return made, [figure for figure, one in drawn if one is None]


def _tell(
    folder: Path,
    made: Sequence[str],
    lacking: "Sequence[Figure]",
    group: "Sequence[Subject]",
    *,
    asked: bool,
) -> None:
    """Say what was drawn, and what was looked for where nothing was."""
    from rlvitals.views.figures.panels import missing

    print(f"{folder}: {', '.join(made) if made else 'nothing was drawn'}")
    if made and not asked and lacking:
        names = ", ".join(figure.name for figure in lacking)
        print(f"left out, as the log holds nothing for them: {names}")
    else:
        for figure in lacking:
            print(f"no {figure.name}: it shows {missing(figure, group)}; none of it is logged")
    print()


def _sum_up(
    found: "Sequence[tuple[int, Run, Diagnosis]]", subjects: "Sequence[Subject]", folder: Path
) -> None:
    """Print what the runs come to, and write it beside their pictures."""
    from rlvitals.checkpoints import progress
    from rlvitals.diagnosis.training_summary import summary
    from rlvitals.views.summary import page

    sums = []
    for (_, one, _), subject in zip(found, subjects, strict=True):
        kept = progress.read(one.root)
        sums.append(summary(subject.label, subject.found, None if kept is None else kept.trained))
    said = page(sums)
    print(said)
    _write(folder / SUMMARY, said)


def _sum_up_crucial(subjects: "Sequence[Subject]", folder: Path) -> None:
    """Print what each run is watched by, and write it beside the pictures."""
    from rlvitals.diagnosis.key_metrics import crucial
    from rlvitals.views import key_metrics as shown
    from rlvitals.views.console import emit, plain

    pages = [shown.crucial(one.found, crucial(one.found), one.label) for one in subjects]
    for at, page in enumerate(pages):
        print(end="\n" if at else "")
        emit(page)
    said = "\n\n".join(plain(page) for page in pages)
    _write(folder / f"{CRUCIAL}.txt", said)


def _write(path: Path, text: str) -> None:
    from rlvitals.storage.safe_files import atomic_write

    with atomic_write(path) as file:
        file.write(f"{text}\n".encode())


def _file_name(label: str) -> str:
    """Make a folder's name of a run's: nothing that leads elsewhere."""
    return "".join(c if c.isalnum() or c in "-_.=+ " else "_" for c in label).strip(". ") or "run"


COMMAND = Command("plot", __doc__, add_arguments, run)

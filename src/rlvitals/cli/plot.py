"""Plot a run's metrics into files, with the findings marked, and summarise it.

Each picture whose metrics are logged becomes a file: training_loss, rewards, learning_rate,
gradient_norm, nsr_metrics, policy, value, actions, temperature, reward_breakdown, throughput,
distributions, lengths, domain, ranks, crucial, and dashboard. Several runs get one folder each;
with --compare each picture contains all runs.
A summary of the run is printed and written to summary.txt.

exit code: 0  drawn
           2  wrong usage
           3  a run cannot be read, or no metric of --only is logged; the others are drawn

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

from rlvitals.cli import flags, judging
from rlvitals.cli.command import EXIT_OK, EXIT_UNREADABLE, Command
from rlvitals.errors import UsageError
from rlvitals.options import Plot

if TYPE_CHECKING:  # they load numpy
    from rlvitals.diagnosis.engine import Diagnosis
    from rlvitals.readers.discovery.sources import Run
    from rlvitals.views.figures.figure import Figure, Subject

CRUCIAL_VIEW = "crucial"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the runs, the pictures and the output folder."""
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="a log or a run's folder")
    parser.add_argument(
        "--checkpoint-dir", type=Path, metavar="FOLDER", help="same as RUN: a trainer's folder"
    )
    parser.add_argument(
        "--checkpoints", nargs="+", type=Path, default=[], metavar="RUN", help="the runs to compare"
    )
    parser.add_argument("--compare", action="store_true", help="draw all runs into each picture")
    parser.add_argument(
        "--labels", nargs="+", default=[], metavar="LABEL", help="names of the runs"
    )
    parser.add_argument(
        "-o", "--output-dir", type=Path, default=Path("training_plots"), metavar="FOLDER",
        help="where the files go (default: training_plots)",
    )  # fmt: skip
    parser.add_argument(
        "--only", action="append", dest="pictures", metavar="PICTURE,...", help="draw only these"
    )
    parser.add_argument(
        "--view",
        choices=("all", CRUCIAL_VIEW),
        default="all",
        help="all, or only the key metrics, as crucial.png and crucial.txt",
    )
    flags.add(parser, "plot")
    flags.add_option(parser, "diagnose", "profile")
    flags.add_free(parser)


def run(args: Namespace) -> int:
    """Judge and draw the runs, and print their summaries."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in `diagnose`: no work for threads
    from rlvitals.settings import split
    from rlvitals.views.drawing import picture_folder
    from rlvitals.views.figures import choose

    paths = [*args.runs, *([args.checkpoint_dir] if args.checkpoint_dir else []), *args.checkpoints]
    if args.view == CRUCIAL_VIEW and args.pictures:
        raise UsageError("a view has its own pictures", where="--only", hint="--only, or --view")
    if not paths:
        raise UsageError("which run?", where="rlvitals plot", hint="rlvitals plot RUN")
    plot_settings = flags.settings_for(paths[0], args).plot
    names = [CRUCIAL_VIEW] if args.view == CRUCIAL_VIEW else args.pictures or ()
    figures = choose([name for text in names for name in split(text)], "--only")
    picture_folder.check(plot_settings)
    results, unreadable = judging.judge_runs(paths, args)
    if not results:
        raise unreadable[0]
    subjects = _make_subjects(results, judging.labels(results, args.labels, len(paths)))
    together = args.compare or args.checkpoints or len(subjects) == 1
    groups = [tuple(subjects)] if together else [(subject,) for subject in subjects]
    missed = False
    for group in groups:
        folder = args.output_dir
        if not together:  # the run's label is a safe folder name then
            label = group[0].label
            name = "".join(c if c.isalnum() or c in "-_.=+ " else "_" for c in label)
            folder /= name.strip(". ") or "run"
        file_names, lacking = _draw(figures, group, folder, plot_settings)
        missed |= not file_names or bool(args.pictures and lacking)
        _print_files(folder, file_names, lacking, group, is_selection=bool(args.pictures))
    if args.view == CRUCIAL_VIEW:
        _sum_up_crucial(subjects, args.output_dir)
    else:
        _sum_up(results, subjects, args.output_dir)
    sys.stderr.writelines(f"error: {error}\n" for error in unreadable)
    return EXIT_UNREADABLE if missed or unreadable else EXIT_OK


def _make_subjects(
    results: "Sequence[tuple[int, Run, Diagnosis]]", names: Sequence[str]
) -> "list[Subject]":
    from rlvitals.views.figures.figure import Subject

    return [Subject(name, answer) for name, (_, _, answer) in zip(names, results, strict=True)]


def _draw(
    figures: "Sequence[Figure]", subjects: "Sequence[Subject]", folder: Path, plot_settings: Plot
) -> tuple[list[str], "list[Figure]"]:
    """Draw the figures; return the file names and the figures without logged metrics."""
    from rlvitals.views.drawing import picture_folder
    from rlvitals.views.figures.panels import picture

    drawings = [(figure, picture(figure, subjects)) for figure in figures]
    file_names = picture_folder.write(
        (drawing for _, drawing in drawings if drawing is not None), folder, plot_settings
    )
    return file_names, [figure for figure, drawing in drawings if drawing is None]


def _print_files(
    folder: Path,
    file_names: Sequence[str],
    lacking: "Sequence[Figure]",
    group: "Sequence[Subject]",
    *,
    is_selection: bool,
) -> None:
    """Print the files that were drawn and the figures without logged metrics."""
    from rlvitals.views.figures.panels import missing

    print(f"{folder}: {', '.join(file_names) if file_names else 'nothing was drawn'}")
    if file_names and not is_selection and lacking:
        names = ", ".join(figure.name for figure in lacking)
        print(f"left out, as the log holds nothing for them: {names}")
    else:
        for figure in lacking:
            print(f"no {figure.name}: it shows {missing(figure, group)}; none of it is logged")
    print()


def _sum_up(
    results: "Sequence[tuple[int, Run, Diagnosis]]", subjects: "Sequence[Subject]", folder: Path
) -> None:
    """Print the summary of the runs and write it next to their pictures."""
    from rlvitals.checkpoints import progress
    from rlvitals.diagnosis.training_summary import summary
    from rlvitals.views.summary import page

    sums = []
    for (_, run, _), subject in zip(results, subjects, strict=True):
        progress_file = progress.read(run.root)
        sums.append(
            summary(
                subject.label,
                subject.found,
                None if progress_file is None else progress_file.trained,
            )
        )
    text = page(sums)
    print(text)
    _write(folder / "summary.txt", text)


def _sum_up_crucial(subjects: "Sequence[Subject]", folder: Path) -> None:
    """Print the crucial values of each run and write them next to the pictures."""
    from rlvitals.diagnosis.key_metrics import crucial
    from rlvitals.views import key_metrics as view
    from rlvitals.views.console import emit, plain

    pages = [
        view.crucial(subject.found, crucial(subject.found), subject.label) for subject in subjects
    ]
    for index, page in enumerate(pages):
        print(end="\n" if index else "")
        emit(page)
    text = "\n\n".join(plain(page) for page in pages)
    _write(folder / f"{CRUCIAL_VIEW}.txt", text)


def _write(path: Path, text: str) -> None:
    from rlvitals.storage.safe_files import atomic_write

    with atomic_write(path) as file:
        file.write(f"{text}\n".encode())


COMMAND = Command("plot", __doc__, add_arguments, run)

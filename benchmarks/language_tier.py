"""Score the diagnosis on language runs, a task or a trainer left out: `faults/language`.

    python benchmarks/language_tier.py [--jobs N] [--write] [--lives] [--misses]

Scripts record the runs (`scripts/keep_language.py` names them). A rule that could judge fewer than
ten healthy runs is a note; for a fold, the healthy runs of its own task, or of its own trainer, are
taken out of that count. `--write` writes `faults/language/section.md` and the section of
`docs/how-good-is-it.md`. `--lives` judges the healthy runs at each tenth of their lives as well.
"""

import argparse
from collections.abc import Sequence

from language_page import section, write_section
from language_runs import Column, Fold, Judged, broken, is_decidable, judge_all, names_cause, read


def main() -> None:
    """Judge the runs, and print or write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--lives", action="store_true")
    parser.add_argument("--misses", action="store_true", help="list broken runs without the cause")
    args = parser.parse_args()
    judged = judge_all(read(), args.jobs, lives=args.lives or args.write)
    text = section(judged)
    print(text)
    if args.misses:
        print("\n".join(misses(judged)))
    if args.write:
        write_section(text)


def misses(judged: Sequence[Judged]) -> list[str]:
    """Return a line for each broken run whose cause its log and rollouts did not name first."""
    lines = []
    for each in broken(judged):
        if is_decidable(each.run, Column.SETTINGS) and not names_cause(
            each, Column.ROLLOUTS, Fold.NONE, 1
        ):
            log, told = (each.answers[c, Fold.NONE] for c in (Column.ROLLOUTS, Column.SETTINGS))
            alarms, settings = ",".join(log.alarms), ",".join(told.alarms)
            name = f"{each.run.file} {each.run.fault}: {log.verdict}"
            lines.append(f"{name} {alarms} | settings {settings} | notes {','.join(log.notes)}")
    return lines


if __name__ == "__main__":
    main()

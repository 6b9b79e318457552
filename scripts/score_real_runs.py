"""Score the diagnosis on published real training logs.

`faults/real/*.csv` lists the logs with labels that were written from plots before the diagnosis
saw them. The repositories are read in place: MIRRORS holds bare clones named `owner+name`, as

    git clone --bare https://github.com/OWNER/NAME MIRRORS/OWNER+NAME

A log is judged from its own bytes at the listed commit, with nothing else of the repository beside
it. A log that no reader reads counts as wrong. `cannot-tell`, `too-short` and
`not-a-training-curve` are not scored as verdicts.

A hash of its name puts each repository in one of two halves. Those of `classic.csv` and
`language.csv` are `dev` and `test`. `classic-2.csv` and `language-2.csv` are a later set, `new`, of
other repositories, `classic-3.csv` a third one with the halves `dev3` and `new3`, and
`classic-4.csv` a fourth with `dev4` and `new4`, and so on to the lists whose names end in -12. The
language lists 2, 8, 9 and 11 are open as a whole.
Rules and readers that are written with a half in view are scored by a half that nobody has seen, so
`new` and `new3` to `new12` give counts alone: what would show single runs is refused without
`--reveal`, and a half that was revealed scores no longer.

    scripts/score_real_runs.py MIRRORS --half new3           # the table, by kind of framework
    scripts/score_real_runs.py MIRRORS --half dev3 --wrong   # and each run that is judged wrong

Runs of one repository are alike, so the intervals are drawn over repositories.
"""

import argparse
import csv
import hashlib
import io
import json
import multiprocessing
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import rlvitals
from rlvitals.rules.kinds import trains_pairs
from rlvitals.rules.rate import Interval, wilson
from rlvitals.types import Profile

ROOT = Path(__file__).resolve().parent.parent
LISTS = ROOT / "faults" / "real"
# What each label accepts. A gain that has stopped may be called a plateau; a run that falls again
# and again, or lost what it had, has collapsed or is unstable.
GOOD = {"learning", "converged", "plateau"}
BAD = {"failed", "hung", "collapsed", "unstable", "stalled"}
ACCEPTED: Mapping[str, set[str]] = {
    "learning": {"learning", "converged", "plateau"},
    "converged": {"learning", "converged", "plateau"},
    "flat-solved": {"converged", "plateau"},
    "flat-poor": {"stalled", "failed"},
    "lost-from-best": {"collapsed", "unstable"},
    "below-start": {"collapsed", "stalled", "unstable", "failed"},
    "unstable": {"unstable", "collapsed"},
    "crashed": {"failed"},
    "form-only": {"stalled"},
}
PAIR_ALGORITHMS = {"dpo", "kto", "orpo", "cpo", "bco"}
HEALTHY = {"learning", "converged", "flat-solved"}
CURVES = set(ACCEPTED)
# The lists of each set, and the halves of its repositories whose hash is even and odd. Of four
# language lists both halves are open: see "Opened later" in the lists' README.
SETS: Mapping[str, tuple[str, str]] = {
    "*[a-z].csv": ("dev", "test"),
    "classic-2.csv": ("new", "new"),
    "language-2.csv": ("dev2", "dev2"),
    "*-3.csv": ("dev3", "new3"),
    "*-4.csv": ("dev4", "new4"),
    "*-5.csv": ("dev5", "new5"),
    "*-6.csv": ("dev6", "new6"),
    "*-7.csv": ("dev7", "new7"),
    "classic-8.csv": ("dev8", "new8"),
    "language-8.csv": ("dev8", "dev8"),
    "classic-9.csv": ("dev9", "new9"),
    "language-9.csv": ("dev9", "dev9"),
    "*-10.csv": ("dev10", "new10"),
    "classic-11.csv": ("dev11", "new11"),
    "language-11.csv": ("dev11", "dev11"),
    "*-12.csv": ("dev12", "new12"),
}
UNSEEN = {name for halves in SETS.values() for name in halves if name.startswith("new")}
HALVES = tuple(dict.fromkeys(name for halves in SETS.values() for name in halves))
# Kinds of framework with enough logs in a list for a table of their own.
KINDS = ("Stable-Baselines", "PyMARL", "ML-Agents", "TRL", "own loop")
BOOTSTRAP_DRAWS = 2000


@dataclass(frozen=True, slots=True)
class Score:
    """What the diagnosis says of one log."""

    row: Mapping[str, str]
    verdict: str  # empty: unreadable
    alarms: tuple[str, ...]  # rules with a finding at warning or above
    notes: tuple[str, ...]
    problem: str = ""

    @property
    def right(self) -> bool:
        """Whether the label accepts the verdict."""
        return self.verdict in ACCEPTED.get(self.row["outcome"], set())


def half(repository: str, halves: tuple[str, str]) -> str:
    """Return the half that a repository belongs to, whatever its capital letters."""
    return halves[hashlib.sha256(repository.lower().encode()).digest()[0] % 2]


def contents(mirrors: Path, row: Mapping[str, str], folder: Path) -> Path:
    """Write a log out of its repository; return where. Raises FileNotFoundError, ValueError."""
    mirror = mirrors / row["repository"].replace("/", "+")
    heads = [mirror / "HEAD", *mirror.glob("*/HEAD"), *mirror.glob("*/.git/HEAD")]
    repository = next((head.parent for head in heads if head.is_file()), None)
    if repository is None:
        raise FileNotFoundError(f"no mirror of {row['repository']}")
    name = f"{row['commit']}:{row['path']}"
    if git(repository, "cat-file", "-t", name) == b"tree\n":
        with tarfile.open(fileobj=io.BytesIO(git(repository, "archive", name))) as archive:
            files = [member for member in archive if member.isfile()]  # links may lead out
            archive.extractall(folder / "run", files, filter="data")
        return folder / "run"
    data = git(repository, "cat-file", "blob", name)
    if hashlib.sha256(data).hexdigest() != row["sha256"]:
        raise ValueError(f"{row['path']} is not the file that was labelled")
    target = folder / Path(row["path"]).name
    target.write_bytes(data)
    return target


def git(repository: Path, *arguments: str) -> bytes:
    """Return what git prints. Raises FileNotFoundError where the repository has no such file."""
    command = ["git", "-C", str(repository), *arguments]
    result = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - no shell
    if result.returncode:
        raise FileNotFoundError(f"{repository.parent.name} has no {arguments[-1]}")
    return result.stdout


def main_run(path: Path) -> rlvitals.Trace:
    """Return the run of a log that its label describes.

    The label of a notebook is that of its main table: a supervised stage often stands before it,
    before one on pairs too. Any other log of several runs is labelled by its first one.
    """
    traces = rlvitals.runs(path)
    if path.suffix != ".ipynb":
        return traces[0]
    return max(traces, key=lambda t: (not is_supervised_stage(t), rows(t)))


def is_supervised_stage(trace: rlvitals.Trace) -> bool:
    """Say whether a run trains neither by rewards nor on pairs."""
    on_pairs = trains_pairs(trace) or trace.settings.get("algorithm") in PAIR_ALGORITHMS
    return trace.profile is Profile.SUPERVISED and not on_pairs


def rows(trace: rlvitals.Trace) -> int:
    """Return how many rows a run has."""
    return max((len(series) for series in trace.series.values()), default=0)


def judge(job: tuple[Path, Mapping[str, str]]) -> Score:
    """Diagnose one log as a finished run."""
    mirrors, row = job
    with tempfile.TemporaryDirectory() as scratch:
        try:
            path = contents(mirrors, row, Path(scratch))
            diagnosis = rlvitals.diagnose(main_run(path), live=False)
        except (rlvitals.VitalsError, FileNotFoundError, ValueError) as error:
            return Score(row, "", (), (), str(error).splitlines()[0].replace(scratch, ""))
    severe = rlvitals.Severity.WARNING
    alarms = tuple(rule.name for rule, finding in diagnosis.findings if finding.severity >= severe)
    notes = tuple(rule.name for rule, finding in diagnosis.findings if finding.severity < severe)
    return Score(row, diagnosis.verdict.word.value, alarms, notes)


def share(scores: Sequence[Score], test: Callable[[Score], bool]) -> str:
    """Write the share of scores that pass a test, with its count and its interval."""
    groups = defaultdict(list)
    for score in scores:
        groups[score.row["repository"]].append(test(score))
    if not groups:
        return "-"
    count, total = sum(map(sum, groups.values())), len(scores)
    bounds = interval(list(groups.values()))
    return f"{count} of {total} ({count / total:.2f}) [{bounds.low:.2f}, {bounds.high:.2f}]"


def interval(groups: Sequence[Sequence[bool]]) -> Interval:
    """Return the 95 % interval of a share whose runs come in groups.

    A bootstrap draws whole groups. It has no width where all runs agree: there the interval is
    Wilson's, with one count a group.
    """
    hits, totals = np.array([(sum(group), len(group)) for group in groups]).T
    if hits.sum() in {0, totals.sum()}:
        return wilson(len(groups) if hits.sum() else 0, len(groups))
    if len(groups) == 1:
        return Interval(0.0, 1.0)  # it says nothing of other groups
    draws = np.random.default_rng(0).integers(len(groups), size=(BOOTSTRAP_DRAWS, len(groups)))
    shares = hits[draws].sum(1) / totals[draws].sum(1)
    return Interval(*map(float, np.quantile(shares, (0.025, 0.975))))


def kind(row: Mapping[str, str]) -> str:
    """Return the kind of framework that wrote a log."""
    return next((name for name in KINDS if name in row["framework"]), "other framework")


def rows_of(chosen: str | None) -> Iterable[tuple[str, list[dict[str, str]]]]:
    """Give the name of each list that has rows of a half, and these; None: of all seen halves."""
    wanted = {chosen} if chosen else set(HALVES) - UNSEEN
    for pattern, halves in SETS.items():
        for file in sorted(LISTS.glob(pattern)):
            with file.open(newline="") as lines:
                rows = [r for r in csv.DictReader(lines) if half(r["repository"], halves) in wanted]
            if rows:
                yield file.stem, rows


def table(scores: list[Score]) -> Iterable[tuple[str, str]]:
    """Give the lines of the table: what is counted, and its share."""
    curves = [s for s in scores if s.row["outcome"] in CURVES]
    bad = [s for s in curves if s.row["outcome"] not in HEALTHY]
    healthy = [s for s in curves if s.row["outcome"] in HEALTHY and s.row["process"] != "faulty"]
    answered = [s for s in curves if s.verdict not in {"", "unknown"}]
    yield "read", share(curves, lambda s: bool(s.verdict))
    yield "answered", share(curves, lambda s: s in answered)
    yield "verdict right", share(curves, lambda s: s.right)
    yield "verdict right, of answered", share(answered, lambda s: s.right)
    yield "verdict right, bad runs", share(bad, lambda s: s.right)
    yield "bad runs called good", share(bad, lambda s: s.verdict in GOOD)
    yield "healthy runs called bad", share(healthy, lambda s: s.verdict in BAD)
    yield "any alarm, bad runs", share(bad, lambda s: bool(s.alarms))
    yield "any alarm, healthy runs", share(healthy, lambda s: bool(s.alarms))


def main() -> int:
    """Print the table of each list."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("mirrors", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--half", choices=HALVES, help="of the repositories (default: all that may be seen)"
    )
    parser.add_argument("--sure", action="store_true", help="leave out labels that are unsure")
    parser.add_argument("--wrong", action="store_true", help="list the runs that are judged wrong")
    parser.add_argument("--json", type=Path, help="write each run's verdict and findings here")
    parser.add_argument(
        "--reveal",
        action="store_true",
        help="allow --wrong and --json on an unseen half, and end it",
    )
    args = parser.parse_args()
    hidden = args.half in UNSEEN and not args.reveal
    if hidden and (args.wrong or args.json):
        parser.error(f"--wrong and --json show single runs of {args.half}: add --reveal to end it")
    answers = {}
    for name, listed in rows_of(args.half):
        rows = [row for row in listed if not args.sure or row["confidence"] != "unsure"]
        with multiprocessing.Pool(args.jobs, maxtasksperchild=50) as pool:
            scores = pool.map(judge, [(args.mirrors, row) for row in rows], chunksize=4)
        print_table(name, scores)
        for part in sorted({kind(row) for row in rows}) if args.half in UNSEEN else ():
            print_table(f"{name}, {part}", [s for s in scores if kind(s.row) == part])
        alarms = Counter(a for s in scores if s.row["outcome"] in HEALTHY for a in s.alarms)
        if not hidden:
            print(f"  alarms on healthy runs       {dict(alarms)}")
        for s in scores if args.wrong else ():
            if s.row["outcome"] in CURVES and not s.right:
                print(
                    f"    {s.row['id']:24} {s.row['outcome']:15} {s.verdict or s.problem[:60]:12} "
                    f"{','.join(s.alarms) or '-'} | {s.row['evidence'][:90]}"
                )
        answers |= {s.row["id"]: [s.verdict, s.alarms, s.notes, s.problem] for s in scores}
    if args.json:
        args.json.write_text(json.dumps(answers, indent=1))
    return 0


def print_table(heading: str, scores: list[Score]) -> None:
    """Print the table of some scores under its heading."""
    repositories = {score.row["repository"] for score in scores}
    print(f"{heading}: {len(scores)} logs of {len(repositories)} repositories")
    for name, text in table(scores):
        print(f"  {name:28} {text}")


if __name__ == "__main__":
    sys.exit(main())

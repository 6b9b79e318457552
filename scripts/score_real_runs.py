"""Score the diagnosis on published real training logs.

`faults/real/*.csv` lists the logs with labels that were written from plots before the diagnosis
saw them. The repositories are read in place: MIRRORS holds bare clones named `owner+name`, as

    git clone --bare https://github.com/OWNER/NAME MIRRORS/OWNER+NAME

A log is judged from its own bytes at the listed commit, with nothing else of the repository beside
it. A log that no reader reads counts as wrong. `cannot-tell`, `too-short` and
`not-a-training-curve` are not scored as verdicts.

The repositories are split in two halves by a hash of their names: rules and readers are written by
the `dev` half alone, and the `test` half scores them.

    scripts/score_real_runs.py MIRRORS --half test          # the table
    scripts/score_real_runs.py MIRRORS --half dev --wrong   # and each run that is judged wrong
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
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import rlvitals
from rlvitals.rules.rate import wilson

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
HEALTHY = {"learning", "converged", "flat-solved"}
CURVES = set(ACCEPTED)
HALVES = ("dev", "test")


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


def half(repository: str) -> str:
    """Return the half that a repository belongs to, whatever its capital letters."""
    return HALVES[hashlib.sha256(repository.lower().encode()).digest()[0] % 2]


def contents(mirrors: Path, row: Mapping[str, str], folder: Path) -> Path:
    """Write a log out of its repository; return where. Raises FileNotFoundError, ValueError."""
    mirror = mirrors / row["repository"].replace("/", "+")
    repository = next(
        (p.parent for p in [mirror / "HEAD", *mirror.glob("*/HEAD")] if p.is_file()), None
    )
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


def judge(job: tuple[Path, Mapping[str, str]]) -> Score:
    """Diagnose one log as a finished run."""
    mirrors, row = job
    with tempfile.TemporaryDirectory() as scratch:
        try:
            path = contents(mirrors, row, Path(scratch))
            diagnosis = rlvitals.diagnose(rlvitals.runs(path)[0], live=False)
        except (rlvitals.VitalsError, FileNotFoundError, ValueError) as error:
            return Score(row, "", (), (), str(error).splitlines()[0].replace(scratch, ""))
    severe = rlvitals.Severity.WARNING
    alarms = tuple(rule.name for rule, finding in diagnosis.findings if finding.severity >= severe)
    notes = tuple(rule.name for rule, finding in diagnosis.findings if finding.severity < severe)
    return Score(row, diagnosis.verdict.word.value, alarms, notes)


def share(scores: Iterable[bool]) -> str:
    """Write a share with its count and Wilson's interval."""
    values = list(scores)
    if not values:
        return "-"
    count, total = sum(values), len(values)
    interval = wilson(count, total)
    return f"{count} of {total} ({count / total:.2f}) [{interval.low:.2f}, {interval.high:.2f}]"


def table(scores: list[Score]) -> Iterable[tuple[str, str]]:
    """Give the lines of the table: what is counted, and its share."""
    curves = [s for s in scores if s.row["outcome"] in CURVES]
    bad = [s for s in curves if s.row["outcome"] not in HEALTHY]
    healthy = [s for s in curves if s.row["outcome"] in HEALTHY and s.row["process"] != "faulty"]
    answered = [s for s in curves if s.verdict not in {"", "unknown"}]
    yield "read", share(bool(s.verdict) for s in curves)
    yield "answered", share(s in answered for s in curves)
    yield "verdict right", share(s.right for s in curves)
    yield "verdict right, of answered", share(s.right for s in answered)
    yield "verdict right, bad runs", share(s.right for s in bad)
    yield "bad runs called good", share(s.verdict in GOOD for s in bad)
    yield "healthy runs called bad", share(s.verdict in BAD for s in healthy)
    yield "any alarm, bad runs", share(bool(s.alarms) for s in bad)
    yield "any alarm, healthy runs", share(bool(s.alarms) for s in healthy)


def main() -> int:
    """Print the table of each list."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("mirrors", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--half", choices=HALVES, help="of the repositories (default: both)")
    parser.add_argument("--sure", action="store_true", help="leave out labels that are unsure")
    parser.add_argument("--wrong", action="store_true", help="list the runs that are judged wrong")
    parser.add_argument("--json", type=Path, help="write each run's verdict and findings here")
    args = parser.parse_args()
    answers = {}
    for file in sorted(LISTS.glob("*.csv")):
        with file.open(newline="") as lines:
            rows = [
                row for row in csv.DictReader(lines)
                if (not args.sure or row["confidence"] != "unsure")
                and args.half in {None, half(row["repository"])}
            ]  # fmt: skip
        with multiprocessing.Pool(args.jobs, maxtasksperchild=50) as pool:
            scores = pool.map(judge, [(args.mirrors, row) for row in rows], chunksize=4)
        print(
            f"{file.stem}: {len(rows)} logs of {len({r['repository'] for r in rows})} repositories"
        )
        for name, text in table(scores):
            print(f"  {name:28} {text}")
        alarms = Counter(a for s in scores if s.row["outcome"] in HEALTHY for a in s.alarms)
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


if __name__ == "__main__":
    sys.exit(main())

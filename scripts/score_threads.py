"""Score the diagnosis on what people pasted into issue threads about runs that go wrong.

`faults/real/threads/threads.csv` lists the threads with the cause that each names, written before
the diagnosis saw them. The pasted blocks are not in the repository: EXCERPTS holds one as `ID.txt`
for each thread, and each is judged as the console log of a finished run. A block that no reader
reads counts as silent.

The threads of repositories whose name has a SHA-256 with an even first byte are `dev` and may be
looked at with `--show`; the others, `test`, give counts alone, and so does `threads-4.csv`, a later
list, `new4`, which `--show` takes with `--reveal` alone: that ends it. `threads-6.csv` is
too short for halves and may be looked at, as `dev6`.

    scripts/score_threads.py EXCERPTS          # the counts of each half of each list
    scripts/score_threads.py EXCERPTS --show   # and each thread of the dev halves
"""

import argparse
import csv
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import rlvitals

LIST = Path(__file__).resolve().parent.parent / "faults" / "real" / "threads" / "threads.csv"
LATER_LIST = LIST.with_name("threads-4.csv")
LATER = "new4"
SIXTH_LIST = LIST.with_name("threads-6.csv")
HALVES = ("dev", "test")
UNKNOWN = "none that I know"
HEALTHY = "healthy"
# The rules that name each mechanism of the list, by the table of `docs/language-failures.md`.
RULES: Mapping[str, tuple[str, ...]] = {
    "adapter or weights do not reach the sampler (stale rollouts)": ("sampler-mismatch",),
    "top-p / top-k / temperature biases the ratio": (
        "ratio-off-one",
        "sampler-mismatch",
        "first-update-off",
    ),
    "NaN by settings": ("not-a-number", "setting-out-of-range"),
    "Ray out of memory; silent hang": ("memory-grows", "no-new-rows"),
    "reward parser or format never matches": ("constant-reward",),
    "all completions of a group alike": ("zero-variance-groups",),
    "k3 spikes from one token": ("reference-kl-out-of-range", "gradient-explosion"),
}
# That a run ended by the kill or the exception that the text shows names this one as well.
ENDED = "Ray out of memory; silent hang"


@dataclass(frozen=True, slots=True)
class Score:
    """What the diagnosis says of one block."""

    row: Mapping[str, str]
    verdict: str  # empty: unreadable
    rules: tuple[str, ...]  # of the root causes, the likeliest first
    warned: bool
    problem: str = ""

    def named(self, ranks: int) -> bool:
        """Whether a rule of the thread's mechanism is among the first ones."""
        mechanism = self.row["mechanism"]
        if mechanism == ENDED and self.verdict == "failed":
            return True
        return any(rule in RULES[mechanism] for rule in self.rules[:ranks])


def half(repository: str) -> str:
    """Return the half that a repository belongs to, whatever its capital letters."""
    return HALVES[hashlib.sha256(repository.lower().encode()).digest()[0] % 2]


def judge(excerpts: Path, row: Mapping[str, str]) -> Score:
    """Diagnose one block. Raises ValueError for one that is not the block that was labelled."""
    path = excerpts / f"{row['id']}.txt"
    if hashlib.sha256(path.read_bytes()).hexdigest() != row["excerpt_sha256"]:
        raise ValueError(f"{path.name} is not the block that was labelled")
    try:
        diagnosis = rlvitals.diagnose(rlvitals.runs(path)[0], live=False)
    except rlvitals.VitalsError as error:
        return Score(row, "", (), warned=False, problem=str(error).splitlines()[0])
    warned = any(f.severity >= rlvitals.Severity.WARNING for _, f in diagnosis.findings)
    rules = tuple(case.rule.name for case in diagnosis.cases)
    return Score(row, diagnosis.verdict.word.value, rules, warned)


def print_counts(heading: str, scores: Sequence[Score]) -> None:
    """Print how many blocks are read, warned of and named."""
    ill = [score for score in scores if score.row["mechanism"] != HEALTHY]
    known = [score for score in ill if score.row["mechanism"] != UNKNOWN]
    well = [score for score in scores if score.row["mechanism"] == HEALTHY]
    print(f"{heading}: {len(scores)} threads")
    for what, group, hits in (
        ("read", scores, [bool(s.verdict) for s in scores]),
        ("a warning, faulty", ill, [s.warned for s in ill]),
        ("a warning, healthy", well, [s.warned for s in well]),
        ("cause named first", known, [s.named(1) for s in known]),
        ("cause among the first three", known, [s.named(3) for s in known]),
    ):
        print(f"  {what:28} {sum(hits)} of {len(group)}")


def read_list(path: Path) -> list[dict[str, str]]:
    """Return the rows of a list of threads."""
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def main() -> int:
    """Print the counts of each half."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("excerpts", type=Path)
    parser.add_argument("--show", action="store_true", help="list the threads of the dev half")
    parser.add_argument("--list", type=Path, default=LIST, help=argparse.SUPPRESS)
    parser.add_argument("--reveal", action="store_true", help=f"with --show: {LATER} too; ends it")
    args = parser.parse_args()
    if args.show and not args.reveal and args.list.name == LATER_LIST.name:
        parser.error(f"--show would show single threads of {LATER}: add --reveal to end it")
    rows = read_list(args.list)
    parts = {part: [row for row in rows if half(row["repository"]) == part] for part in HALVES}
    if args.list.name == SIXTH_LIST.name:
        parts = {"dev6": rows}
    elif args.list == LIST:
        parts |= {LATER: read_list(LATER_LIST), "dev6": read_list(SIXTH_LIST)}
    shown = {"dev", "dev6", LATER} if args.reveal else {"dev", "dev6"}
    for part, listed in parts.items():
        scores = [judge(args.excerpts, row) for row in listed]
        print_counts(part, scores)
        for s in scores if args.show and part in shown else ():
            said = ", ".join(s.rules[:3]) or s.problem[:60]
            print(f"    {s.row['id']} {s.row['mechanism'][:30]:30} {s.verdict or '-':10} {said}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

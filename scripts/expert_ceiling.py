"""Compare the diagnosis with readers who labelled 80 runs of the worlds benchmark from the log.

`--packets FOLDER` writes each run as a text file without its name: the columns of the log as means
of 20 blocks, with their scatter, and the end of its console text. A reader answers in a table with
the columns `number`, `bad` (yes, no), `verdict` (a word of a verdict, `unknown` for cannot tell),
and `cause1` to `cause3` (names of rules, the likeliest first), without the answers of the other
reader or of rlvitals. The tables are kept as `faults/tier-2/reader-*.csv`. Without arguments the
script scores them beside rlvitals, as the worlds are scored: `faults/tier-2/readers.md`.

    scripts/expert_ceiling.py --packets /tmp/packets
    scripts/expert_ceiling.py
"""

import argparse
import csv
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import rlvitals
from rlvitals.faults.score import Share
from rlvitals.faults.world_runs import LabelledRun, label_runs, read, unpack
from rlvitals.faults.world_score import Answer, Column, ScoredRun, diagnose_runs, score

TIER = Path(__file__).resolve().parent.parent / "faults" / "tier-2"
PAGE = TIER / "readers.md"
RUNS, SEED = 80, 20261123
RECORDED = 150  # lines of runs.jsonl that the sample is drawn from: later worlds leave it as it is
BLOCKS = 20
CONSOLE_LINES = 12  # of the end of a console text
HEADER = """### Readers of the same logs

Two readers, language models, labelled 80 runs of the dev and test worlds from block means of the
same columns, each without the answers of the other or of rlvitals; the environment and the settings
were withheld. Both compared runs that looked like the same task, which rlvitals does not. Rules
were written by half of these worlds and the other half was looked at later: the column of rlvitals
is no blind score here, those of the readers are. `scripts/expert_ceiling.py` prints the table.
"""
ROWS = {
    "alarm": "any alarm on a broken run",
    "warned": "alarm on a healthy run",
    "first": "cause named first, of decidable",
    "third": "cause among the first three, of decidable",
    "answered": "answered",
    "right": "verdict right",
    "right_bad": "verdict right, bad runs",
    "good_of_broken": "broken runs called learning or converged",
}


def main() -> None:
    """Write the packets, or the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packets", type=Path, help="write the packets into this folder")
    packets = parser.parse_args().packets
    if packets is not None:
        packets.mkdir(parents=True, exist_ok=True)
        for number, labelled in enumerate(sample()):
            (packets / f"{number:02}.txt").write_text(packet(labelled))
        return
    PAGE.write_text(page())


def sample() -> list[LabelledRun]:
    """Draw the runs, in the order of their numbers."""
    lines = (TIER / "runs.jsonl").read_text().splitlines()[:RECORDED]
    names = {json.loads(line)["name"] for line in lines}
    runs = [labelled for labelled in label_runs(read(TIER)) if labelled.run.name in names]
    return random.Random(SEED).sample(runs, RUNS)


def packet(labelled: LabelledRun) -> str:
    """Write what the log of a run holds, without what tells its name or its settings."""
    with TemporaryDirectory() as scratch:
        unpack(TIER, labelled.run, Path(scratch))
        trace = rlvitals.runs(scratch)[0]
        texts = [
            path.read_text(errors="replace").splitlines()[-CONSOLE_LINES:]
            for path in sorted(Path(scratch).rglob("*"))
            if path.suffix in {".txt", ".log", ".out"}
        ]
    lines = [f"steps {trace.first_step:,} to {trace.last_step:,} ({trace.step_unit})"]
    lines += list(_columns(trace))
    for text in texts:
        lines += ["", "end of the console text:", *text]
    return "\n".join(lines) + "\n"


def _columns(trace: rlvitals.Trace) -> Iterator[str]:
    for name, series in sorted(trace.series.items()):
        values = np.asarray(series.values, float)
        finite = values[np.isfinite(values)]
        head = f"\n{name}: {len(values)} values"
        if len(finite) < len(values):
            head += f", {len(values) - len(finite)} of them not finite"
        if not len(finite):
            yield head
            continue
        blocks = np.array_split(finite, min(BLOCKS, len(finite)))
        scatter = np.std(np.diff(finite)) / 2**0.5 if len(finite) > 1 else 0.0
        head += f"; range {finite.min():.4g} to {finite.max():.4g}"
        yield f"{head}; one value scatters by {scatter:.2g}"
        yield "  " + " ".join(f"{block.mean():.4g}" for block in blocks)


def answers(path: Path, runs: Sequence[LabelledRun]) -> list[ScoredRun]:
    """Read a reader's table as answers on the sample."""
    with path.open() as file:
        rows = {int(row["number"]): row for row in csv.DictReader(file)}
    return [
        ScoredRun(run, Column.LOG, _answer(rows[number], run.run.steps))
        for number, run in enumerate(runs)
    ]


def _answer(row: Mapping[str, str], steps: int) -> Answer:
    causes = tuple(row[key] for key in ("cause1", "cause2", "cause3") if row[key])
    alarms = (causes or ("none that I know",)) if row["bad"] == "yes" else ()
    return Answer(row["verdict"], alarms, (steps,) * len(alarms))


def page() -> str:
    """Score the readers and rlvitals on the same runs."""
    runs = sample()
    tables = {
        f"reader {path.stem.removeprefix('reader-').upper()}": answers(path, runs)
        for path in sorted(TIER.glob("reader-*.csv"))
    }
    tables["rlvitals"] = diagnose_runs(TIER, runs, 2)[Column.LOG]
    scores = {name: score(table) for name, table in tables.items()}
    lines = [HEADER, f"| | {' | '.join(scores)} | runs |", f"| --- |{' --: |' * (len(scores) + 1)}"]
    for key, title in ROWS.items():
        shares: list[Share] = [getattr(each, key) for each in scores.values()]
        cells = [f"{s.value:.2f} [{s.low:.2f}, {s.high:.2f}]" for s in shares]
        lines.append(f"| {title} | {' | '.join(cells)} | {shares[0].count} |")
    pairs = [(a, b) for i, a in enumerate(tables) for b in list(tables)[i + 1 :]]
    lines += ["", "| agreement of | alarm | verdict | first cause, where both name one |",
              "| --- | --: | --: | --: |"]  # fmt: skip
    lines += [_agreement(a, b, tables) for a, b in pairs]
    return "\n".join(lines) + "\n"


def _agreement(first: str, second: str, tables: Mapping[str, Sequence[ScoredRun]]) -> str:
    pairs = list(zip(tables[first], tables[second], strict=True))
    alarm = np.mean([a.has_alarm == b.has_alarm for a, b in pairs])
    verdict = np.mean([a.answer.verdict == b.answer.verdict for a, b in pairs])
    named = [(a.answer.alarms[0], b.answer.alarms[0]) for a, b in pairs
             if a.answer.alarms and b.answer.alarms]  # fmt: skip
    same = sum(a == b for a, b in named)
    return f"| {first}, {second} | {alarm:.2f} | {verdict:.2f} | {same} of {len(named)} |"


if __name__ == "__main__":
    main()

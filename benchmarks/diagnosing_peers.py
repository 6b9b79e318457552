"""Score every tool on the same recorded runs of Stable-Baselines3, healthy and faulty.

Run as `python benchmarks/diagnosing_peers.py [FOLDER] [--split all] [--only TOOL ...]
[--out FILE]`.

Each peer is installed into `.venv-peers/` once, at the version below, and asked in a process of its
own; one that cannot be installed is left out, and said so. Ports of published formulas run beside
them. The folder is the fault benchmark's, `faults/tier-1`, or one of recordings. Of the benchmark
the test split is asked about, by which no number of ours was chosen.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from peers import meanings
from peers import runs as recorded
from peers.exchange import Alarm
from peers.runs import Run
from peers.scoring import Score, score

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
TRACES = ROOT / "faults" / "tier-1"
VENVS = ROOT / ".venv-peers"
OUR_NAME = "rlvitals"


@dataclass(frozen=True)
class Peer:
    """A tool, the module that asks it, and what to install for it."""

    name: str
    module: str
    pins: tuple[str, ...] = ()  # none: runs in this environment
    alone: bool = False  # installed without what it depends on


PEERS = (
    Peer("rldoctor", "peers.ask_rldoctor", ("rldoctor==0.2.0",)),
    Peer("rlwatch", "peers.ask_rlwatch", ("rlwatch==0.5.1",)),
    # Its reader of event files wants pandas and tensorboard; its rules want nothing.
    Peer("zen-rl", "peers.ask_zen_rl", ("zen-rl==0.1.0",), alone=True),
    Peer("rlprobe", "peers.ask_rlprobe", ("rlprobe==0.1.0",)),
    Peer("rlexplorer", "peers.port_rlexplorer"),
    Peer("sagemaker-debugger", "peers.port_sagemaker_debugger"),
    Peer(OUR_NAME, "peers.ask_rlvitals"),
)
TITLES = (
    "tool",
    "version",
    "healthy runs that it alarms",
    "warnings a healthy run",
    "errors a healthy run",
    "any alarm",
    "named right",
    "informative",
    "named right, of all",
    "delay",
)


def main(argv: Sequence[str] = ()) -> list[str]:
    """Ask every tool, print the tables and return the first one's rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=TRACES)
    parser.add_argument("--split", choices=("test", "seen", "tuning", "all"), default="test")
    parser.add_argument("--only", nargs="+", choices=[peer.name for peer in PEERS])
    parser.add_argument("--out", type=Path, help="write every alarm and score as JSON")
    args = parser.parse_args(argv)
    if not args.folder.exists():
        print(f"{args.folder}: no recorded runs; `rlvitals faults run --tier 1` records them")
        return []
    splits = {"", "test", "seen", "tuning"} if args.split == "all" else {"", args.split}
    runs = [run for run in recorded.read(args.folder) if run.split in splits]
    peers = [peer for peer in PEERS if not args.only or peer.name in args.only]
    answers = ask_all(runs, peers)
    ppo = [run for run in runs if run.algorithm == "ppo"]
    rows = [table(answers, runs, "All runs")]
    if 0 < len(ppo) < len(runs):
        rows.append(table(answers, ppo, "PPO alone, which most of the peers are made for"))
    for lines in (*rows, notes(answers)):
        print(*lines, "", sep="\n")
    if args.out:
        args.out.write_text(json.dumps(report(answers, runs), indent=1))
    return rows[0]


def ask_all(runs: Sequence[Run], peers: Sequence[Peer]) -> dict[str, dict[str, object]]:
    """Return each tool's answer with its alarms by the runs' names, in the order of the peers."""
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        inputs = recorded.give(runs, Path(folder) / "runs")
        for peer in peers:
            if (python := environment(peer)) is None:
                continue
            answer = _ask(peer, python, Path(folder))
            alarms = {
                run.name: [Alarm(*each) for each in answer["alarms"][number]]
                for number, run in inputs.items()
            }
            answers[peer.name] = {**answer, "alarms": alarms}
    return answers


def environment(peer: Peer) -> str | None:
    """Return the interpreter to ask a tool with, installing it where it is not; None without it."""
    if not peer.pins:
        return sys.executable
    venv = VENVS / peer.name
    python, marker = venv / "bin" / "python", venv / "installed.txt"
    if marker.exists() and marker.read_text() == " ".join(peer.pins):
        return str(python)
    shutil.rmtree(venv, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    flags = ("--no-deps",) if peer.alone else ()
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *flags]
    if subprocess.run([*pip, *peer.pins], check=False).returncode:
        print(f"{peer.name}: left out, {' '.join(peer.pins)} cannot be installed here")
        return None
    marker.write_text(" ".join(peer.pins))
    return str(python)


def _ask(peer: Peer, python: str, folder: Path) -> dict[str, object]:
    """Run the tool's module where it can leave files about; it sees this folder's modules."""
    out = folder / f"{peer.name}.json"
    work = folder / f"{peer.name}.work"
    work.mkdir()
    paths = [str(HERE)] if peer.pins else [str(HERE), str(ROOT / "src")]
    process = subprocess.run(
        [python, "-m", peer.module, folder / "runs", out],
        check=False,
        cwd=work,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
        capture_output=True,  # some print every alert
        text=True,
    )
    if process.returncode:
        raise SystemExit(f"{peer.name} failed:\n{process.stderr[-2000:]}")
    return json.loads(out.read_text())


def right(tool: str, *, strict: bool = True) -> Callable[[Run, str], bool | None]:
    """Return how a tool's alarms are compared with a run's fault: ours strictly, or as theirs."""

    def ours(run: Run, alarm: str) -> bool | None:
        return alarm in run.expects if run.expects else None

    def theirs(run: Run, alarm: str) -> bool | None:
        fault = meanings.of_fault(run.fault)
        return bool(alarm) and bool(fault & meanings.of_alarm(tool, alarm))

    return ours if tool == OUR_NAME and strict else theirs


def scores(
    answers: Mapping[str, Mapping[str, object]], runs: Sequence[Run]
) -> list[tuple[Mapping[str, object], Score]]:
    """Score every tool over some runs; ourselves twice, lastly by the peers' measure."""
    each = answers.values()
    rows = [(answer, score(runs, answer["alarms"], right(answer["name"]))) for answer in each]
    if (our_answer := answers.get(OUR_NAME)) is not None:
        by_meaning = score(runs, our_answer["alarms"], right(OUR_NAME, strict=False))
        rows.append(({**our_answer, "name": f"{OUR_NAME}, measured like a peer"}, by_meaning))
    return rows


def table(
    answers: Mapping[str, Mapping[str, object]], runs: Sequence[Run], title: str
) -> list[str]:
    """Draw the table of some runs."""
    healthy = sum(run.healthy for run in runs)
    broken = [run for run in runs if run.broken]
    neither = len(runs) - healthy - len(broken)
    phrases = [f"{healthy} healthy", f"{len(broken)} broken by a fault"]
    phrases[1] += f", of which the log can show {sum(run.visible for run in broken)}"
    phrases += (
        [f"{neither} left out, harmed without a fault or not harmed by it"] if neither else []
    )
    rows = [
        f"{title}: {'; '.join(phrases)}.",
        "",
        f"| {' | '.join(TITLES)} |",
        f"|{' --- |' * len(TITLES)}",
    ]
    for answer, result in scores(answers, runs):
        delay = "-" if result.delay is None else f"{result.delay:.0%}"
        cells = (
            answer["name"],
            answer["version"],
            result.healthy,
            result.warnings,
            result.errors,
            result.any,
            result.named,
            result.informative,
            result.named_of_all,
            delay,
        )
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return rows


def notes(answers: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Say of each tool what it is and what these logs cannot feed."""
    lines = []
    for answer in answers.values():
        lines.append(f"{answer['name']}: {answer['source']}, {answer['licence']}")
        lines += [f"  not fed: {item}" for item in answer["not_mapped"]]
    return lines


def report(
    answers: Mapping[str, Mapping[str, object]], runs: Sequence[Run]
) -> dict[str, dict[str, object]]:
    """Gather every tool's alarms and scores, for a file."""
    tools = {}
    for answer, result in scores(answers, runs):
        tools[answer["name"]] = {**answer, "score": asdict(result)}
    return tools


if __name__ == "__main__":
    main(sys.argv[1:])

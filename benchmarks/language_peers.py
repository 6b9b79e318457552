"""Ask other tools about the runs of the language tier, and count them as rlvitals is counted.

    python benchmarks/language_peers.py [--toolkit CLONE] [--wandb-mcp CLONE] [--only TOOL ...]

The clones are of github.com/microsoft/post-training-toolkit and github.com/wandb/wandb-mcp-server;
without one its tool is left out, and said so. A tool gets what a trainer logs by itself under
its own names, and the settings; rlvitals is asked the same, and with saved rollouts where the
run has some. An alarm is a warning or worse. *Named* is an alarm that means the fault, of the
broken runs that the log can show; *informative* is the same by alarms that ring on at most a tenth
of the healthy runs. For rlvitals any root cause counts here, not only the first.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from diagnosing_peers import HERE, VENVS
from language_faults import FAULTS
from language_runs import (
    Column,
    Fold,
    Judged,
    LanguageRun,
    broken,
    is_decidable,
    judge_all,
    read,
    trace,
)
from peers import language_meanings
from peers.language import FIELDS
from peers.scoring import RARE, Share

import rlvitals

# Tool, and what to install where it is on an index.
PEERS = {
    "rldoctor": "rldoctor==0.2.0", "rlprobe": "rlprobe==0.1.0", "rlwatch": "rlwatch==0.5.1",
    "post-training-toolkit": "pandas==2.3.3 scipy==1.16.3 pyyaml==6.0.3", "W&B MCP": "",
    "miles (port)": "",
}  # fmt: skip
TITLES = ("tool", "version", "healthy runs that it alarms", "any alarm", "named", "informative",
          "named, of all broken")  # fmt: skip
OURS = {"rlvitals": Column.SETTINGS, "rlvitals, without rollouts and settings": Column.SCALARS}


def main() -> None:
    """Ask every tool, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--toolkit", type=Path)
    parser.add_argument("--wandb-mcp", type=Path)
    parser.add_argument("--only", nargs="+", choices=PEERS)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    clones = {"post-training-toolkit": args.toolkit, "W&B MCP": args.wandb_mcp}
    judged = judge_all(read(), args.jobs, lives=False)
    answers = {}
    with tempfile.TemporaryDirectory() as scratch:
        runs = Path(scratch) / "runs.json"
        runs.write_text(json.dumps([given(n, each.run) for n, each in enumerate(judged)]))
        for name in args.only or PEERS:
            if name in clones and clones[name] is None:
                print(f"{name}: left out, no clone is given")
                continue
            answers[name] = ask(name, runs, Path(scratch), clones.get(name))
    print("\n".join(table(judged, answers)))


def given(number: int, run: LanguageRun) -> dict[str, object]:
    """Return a run as the tools get it."""
    scalars = trace(run, Column.SCALARS)
    rows: dict[int, dict[str, float]] = {}
    for field, names in FIELDS.items():
        series = next((scalars.series[name] for name in names if name in scalars.series), None)
        if series is not None:
            for step, value in zip(series.steps.tolist(), series.values.tolist(), strict=True):
                rows.setdefault(step, {})[field] = value
    settings = {k: v for k, v in run.settings.items() if isinstance(v, int | float | str)}
    return {
        "name": str(number), "algorithm": str(run.settings.get("mode", "grpo")),
        "rows": [rows[step] for step in sorted(rows)], "settings": settings,
    }  # fmt: skip


def ask(name: str, runs: Path, scratch: Path, clone: Path | None) -> dict[str, object]:
    """Run a tool in its environment."""
    python = VENVS / name / "bin" / "python" if PEERS[name] else Path(sys.executable)
    out = scratch / "out.json"
    command = [python, "-m", "peers.ask_language", name, runs, out, *([clone] if clone else [])]
    environment = {**os.environ, "PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1"}
    process = subprocess.run(
        command, check=False, cwd=scratch, env=environment, capture_output=True, text=True
    )
    if process.returncode:
        raise SystemExit(f"{name} failed:\n{process.stderr[-2000:]}")
    return json.loads(out.read_text())


def table(judged: Sequence[Judged], answers: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Return the rows: every tool, and rlvitals in two columns."""
    lines = [f"| {' | '.join(TITLES)} |", "|" + " --- |" * len(TITLES)]
    for name, answer in answers.items():
        alarms = [{each[0] for each in answer["alarms"][str(n)]} for n in range(len(judged))]
        meanings = [
            {alarm for alarm in each if language_meanings.FAULTS[judged[n].run.fault]
             & language_meanings.of_alarm(name, alarm)} if judged[n].run.fault else set()
            for n, each in enumerate(alarms)
        ]  # fmt: skip
        lines.append(row(name, str(answer["version"]), judged, alarms, meanings))
    for name, column in OURS.items():
        alarms = [set(each.answers[column, Fold.NONE].alarms) for each in judged]
        named = [
            each & set(FAULTS[judged[n].run.fault].expects) if judged[n].run.fault else set()
            for n, each in enumerate(alarms)
        ]
        lines.append(row(name, rlvitals.__version__, judged, alarms, named))
    return lines


def row(
    name: str,
    version: str,
    judged: Sequence[Judged],
    alarms: Sequence[set[str]],
    named: Sequence[set[str]],
) -> str:
    """Return one line of the table."""
    numbers = {id(each): n for n, each in enumerate(judged)}
    healthy = [n for n, each in enumerate(judged) if not each.run.fault]
    faulty = [numbers[id(each)] for each in broken(judged)]
    visible = [n for n in faulty if is_decidable(judged[n].run, Column.SCALARS)]
    rings = Counter(alarm for n in healthy for alarm in alarms[n])
    rare = {alarm for each in alarms for alarm in each if rings[alarm] <= RARE * len(healthy)}
    cells = (
        name, version, Share(sum(bool(alarms[n]) for n in healthy), len(healthy)),
        Share(sum(bool(alarms[n]) for n in faulty), len(faulty)),
        Share(sum(bool(named[n]) for n in visible), len(visible)),
        Share(sum(bool(named[n] & rare) for n in visible), len(visible)),
        Share(sum(bool(named[n]) for n in faulty), len(faulty)),
    )  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()

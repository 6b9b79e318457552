"""Ask about the same 40 recorded runs through what an agent is offered, and count what it reads.

Run as `python benchmarks/agents.py [--wandb-mcp CHECKOUT] [--seed 0] [--each]`. CHECKOUT is a
clone of github.com/wandb/wandb-mcp-server, whose `diagnose_run.py` is loaded as it is; without it
that row is left out, and so is Trackio's where it is not installed.

Half of the runs are healthy, half are broken by a fault that the log or its settings can show. A
seed draws them from the fault benchmark's test split, from the worlds' dev half and takes both
examples; no result has a part in that. Each tool gets the log and the settings that a tracker
records, under a number for a name.

*Cause in the answer*: of ours a rule that the fault expects; of W&B's a meaning that it shares with
the fault or with one of these rules, by `benchmarks/peers/meanings.py`. *False alarms*: healthy
runs of which the answer says that something is wrong. *Bytes*: what the agent reads for one run.
"""

import argparse
import importlib.util
import io
import json
import logging
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

from peers import meanings, runs
from peers.meanings import BROKEN, COLLAPSED, CRITIC, GRADIENT, LARGE, REWARD

import rlvitals
from rlvitals.faults import world_runs
from rlvitals.faults.ground_truth import Label
from rlvitals.faults.run_diagnosis import tracked_settings

ROOT = Path(__file__).resolve().parent.parent
TIER_1, WORLDS, EXAMPLES = ROOT / "faults/tier-1", ROOT / "faults/tier-2", ROOT / "examples"
TIER_1_RUNS, WORLD_RUNS = 12, 7  # healthy, and as many broken; each example is one more
WANTED_BYTES, WANTED_CAUSES, RAW_BYTES = 2_000, 0.85, 50_000
# What the words of W&B's recommendations mean, generously: a loss that rises may be any of these.
WANDB_MEANINGS = {
    "diverging": frozenset({LARGE, CRITIC, REWARD, COLLAPSED, GRADIENT}),
    "nan": frozenset({BROKEN, GRADIENT}),
    "overfitting": frozenset({CRITIC}),
}
PROJECT = "agents"
Row = dict[str, float]


@dataclass(frozen=True)
class Question:
    """A run to ask about, in a folder named by a number."""

    folder: Path
    source: str  # the name in the benchmark
    fault: str  # empty: healthy
    expects: tuple[str, ...]  # our rules that name the fault

    @property
    def meaning(self) -> frozenset[str]:
        """What the fault and the rules that it expects mean."""
        by_rule = (meanings.ALARMS["rlvitals"].get(rule, frozenset()) for rule in self.expects)
        return meanings.FAULTS.get(self.fault, frozenset()).union(*by_rule)


@dataclass(frozen=True)
class Answer:
    """What a tool says of a run."""

    named: bool  # its cause
    alarm: bool
    size: int  # bytes
    words: str = ""


def main(argv: Sequence[str] = ()) -> list[str]:
    """Ask every tool about every run, print the table and return its rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wandb-mcp", type=Path, help="a checkout of wandb-mcp-server")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", action="store_true", help="print every answer")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        questions = write_runs(Path(name) / "runs", args.seed)
        answers = {
            "`rlvitals mcp`, `diagnose`": ask_mcp(questions),
            "`rlvitals diagnose --brief`": ask_brief(questions),
        }
        if args.wandb_mcp:
            answers["W&B MCP, `diagnose_run`"] = ask_wandb(questions, args.wandb_mcp)
        else:
            print("W&B MCP: left out, --wandb-mcp names no checkout")
        if importlib.util.find_spec("trackio"):
            answers |= ask_trackio(questions, Path(name) / "trackio")
        else:
            print("Trackio: left out, it is not installed")
        answers["the log as it lies"] = {
            each.folder.name: Answer(named=False, alarm=False, size=raw_size(each.folder))
            for each in questions
        }
    rows = table(questions, answers)
    print(*rows, sep="\n")
    if args.each:
        for each in questions:
            print(f"\n{each.folder.name} {each.source} {each.fault or 'healthy'}")
            for tool, by_run in answers.items():
                print(f"  {tool}: {by_run[each.folder.name]}")
    return rows


def write_runs(root: Path, seed: int) -> list[Question]:
    """Draw the runs and write each into a numbered folder, in an order that says nothing."""
    draw = random.Random(seed)  # noqa: S311 - it draws runs
    tier_1 = [run for run in runs.read(TIER_1) if run.split == "test"]
    worlds = [
        each for each in world_runs.label_runs(world_runs.read(WORLDS)) if each.run.split == "dev"
    ]
    chosen = [
        *draw.sample([run for run in tier_1 if run.healthy], TIER_1_RUNS),
        *draw.sample([run for run in tier_1 if run.broken and run.visible], TIER_1_RUNS),
        *draw.sample([each for each in worlds if each.label is Label.HEALTHY], WORLD_RUNS),
        *draw.sample([each for each in worlds if _is_visible(each)], WORLD_RUNS),
        EXAMPLES / "failing",
        EXAMPLES / "healthy",
    ]
    draw.shuffle(chosen)
    return [_write(root / f"run-{i:02}", source) for i, source in enumerate(chosen)]


def _is_visible(labelled: world_runs.LabelledRun) -> bool:
    return labelled.label is Label.BROKEN and labelled.run.decidable in {"log", "settings"}


def _write(folder: Path, source: runs.Run | world_runs.LabelledRun | Path) -> Question:
    folder.mkdir(parents=True)
    if isinstance(source, runs.Run):
        (folder / "progress.csv").write_text(source.csv)
        question = Question(folder, source.name, source.fault, source.expects)
        settings = source.settings
    elif isinstance(source, Path):
        for file in source.glob("*.csv"):
            shutil.copy(file, folder)
        settings = json.loads((source / "settings.json").read_text())
        fault = settings.get("fault") or ""
        # The rate is raised 300 times in mid-run, as by that fault of the benchmark.
        expects = runs.find_fault("learning-rate-x300").expects if fault else ()
        question = Question(folder, f"examples/{source.name}", fault, expects)
    else:
        run, settings = source.run, source.run.settings
        world_runs.unpack(WORLDS, run, folder)
        question = Question(folder, run.name, run.fault, run.expects)
    tracked = tracked_settings(settings)
    (folder / "config.json").write_text(json.dumps(tracked))
    for file in folder.rglob("*"):  # the run is over
        os.utime(file, (0, 0))
    return question


def raw_size(folder: Path) -> int:
    """Return the bytes of a run's files."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def ask_mcp(questions: Sequence[Question]) -> dict[str, Answer]:
    """Ask a server of ours over stdin and stdout; of each answer its first page counts."""
    requests = [_request(0, "initialize", {"protocolVersion": "2025-11-25"})]
    for number, each in enumerate(questions, 1):
        params = {"name": "diagnose", "arguments": {"run": each.folder.name}}
        requests.append(_request(number, "tools/call", params))
    root = questions[0].folder.parent
    command = [sys.executable, "-m", "rlvitals", "mcp", str(root)]
    process = subprocess.run(
        command, input="".join(requests), text=True, capture_output=True, check=True
    )
    replies = [json.loads(line)["result"] for line in process.stdout.splitlines()[1:]]
    texts = [reply["content"][0]["text"] for reply in replies]
    return {
        each.folder.name: replace(judge_ours(each, text), size=len(text.encode()))
        for each, text in zip(questions, texts, strict=True)
    }


def _request(number: int, method: str, params: Mapping[str, object]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


def ask_brief(questions: Sequence[Question]) -> dict[str, Answer]:
    """Ask the command once about the folder of all runs."""
    root = questions[0].folder.parent
    command = [sys.executable, "-m", "rlvitals", "diagnose", str(root), "--brief", "--json"]
    process = subprocess.run(command, text=True, capture_output=True, check=False)
    texts = {run["run"]: json.dumps(run, indent=2) for run in json.loads(process.stdout)["runs"]}
    return {each.folder.name: judge_ours(each, texts[each.folder.name]) for each in questions}


def judge_ours(question: Question, text: str) -> Answer:
    """Read what one of our answers says, complete or cut after a page."""
    said = [rule for rule in question.expects if f'"{rule}"' in text]
    alarm = any(f'"severity": "{word}"' in text for word in ("warning", "error"))
    alarm = alarm or '"verdict": "failed"' in text
    return Answer(bool(said), alarm, len(text.encode()), " ".join(said))


def ask_wandb(questions: Sequence[Question], checkout: Path) -> dict[str, Answer]:
    """Call W&B's function with each run's rows in the place of its server."""
    module = load_diagnose_run(checkout)
    answers = {}
    for each in questions:
        history = list_rows(each.folder)
        keys = sorted({key for row in history for key in row})
        complete = [{key: row.get(key) for key in keys} for row in history]  # as its server does
        run = SimpleNamespace(
            name=each.folder.name, state="finished", scan_history=lambda rows=complete, **_: rows
        )
        api = SimpleNamespace(viewer="", run=lambda _, run=run: run)
        module.WandBApiManager.get_api = staticmethod(lambda api=api: api)
        text = module.diagnose_run("entity", "project", each.folder.name)
        document = json.loads(text)
        words = {
            "diverging": document["diagnosis"] == "diverging",
            "nan": bool(document.get("nan_warnings")),
            "overfitting": bool(document.get("overfit_signal", {}).get("detected")),
        }
        said = [word for word, is_said in words.items() if is_said]
        meaning = frozenset().union(*(WANDB_MEANINGS[word] for word in said))
        is_named = bool(meaning & each.meaning)
        size = len(text.encode())
        answers[each.folder.name] = Answer(is_named, bool(said), size, document["diagnosis"])
    return answers


def load_diagnose_run(checkout: Path) -> ModuleType:
    """Load its file alone: its neighbours want the server's packages and a login."""

    def track_tool_execution(*_args: object) -> nullcontext[SimpleNamespace]:
        return nullcontext(SimpleNamespace(mark_error=lambda _: None))

    folder = "src/wandb_mcp_server/mcp_tools"
    stand_ins = {
        "wandb_mcp_server": {},
        "wandb_mcp_server.mcp_tools": {},
        "wandb_mcp_server.api_client": {"WandBApiManager": type("WandBApiManager", (), {})},
        "wandb_mcp_server.utils": {"get_rich_logger": logging.getLogger},
        "wandb_mcp_server.mcp_tools.tools_utils": {"track_tool_execution": track_tool_execution},
    }
    for name, members in stand_ins.items():
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(members)
    spec = importlib.util.spec_from_file_location(
        "diagnose_run", checkout / folder / "diagnose_run.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def list_rows(folder: Path) -> list[Row]:
    """Return a run's numbers as rows by their step, under the names of its log."""
    rows: dict[int, Row] = defaultdict(dict)
    for log in rlvitals.read(folder):
        for key, series in log.series.items():
            for step, value in zip(series.steps.tolist(), series.values.tolist(), strict=True):
                rows[int(step)][key] = value
    return [{"_step": step, **rows[step]} for step in sorted(rows)]


def ask_trackio(questions: Sequence[Question], folder: Path) -> dict[str, dict[str, Answer]]:
    """Log each run to Trackio and read it by its command: the summary and alerts, then all values.

    It judges nothing; alerts are those that a script raised, and these raised none.
    """
    os.environ |= {"TRACKIO_DIR": str(folder), "HF_HUB_OFFLINE": "1"}
    import trackio

    summaries, values = {}, {}
    for each in questions:
        name = each.folder.name
        with redirect_stdout(io.StringIO()):
            config = json.loads((each.folder / "config.json").read_text())
            trackio.init(project=PROJECT, name=name, config=config, embed=False)
            keys = set()
            for row in list_rows(each.folder):
                keys |= row.keys()
                trackio.log({k: v for k, v in row.items() if k != "_step"}, step=row["_step"])
            trackio.finish()
        which = ("--project", PROJECT, "--run", name, "--json")
        text = _trackio("get", "run", *which) + _trackio("list", "alerts", *which)
        alarm = bool(json.loads(_trackio("list", "alerts", *which))["alerts"])
        summaries[name] = Answer(named=False, alarm=alarm, size=len(text.encode()))
        metrics = [
            _trackio("get", "metric", *which, "--metric", key) for key in sorted(keys - {"_step"})
        ]
        values[name] = replace(summaries[name], size=sum(len(each.encode()) for each in metrics))
    return {
        "Trackio CLI, `get run` and `list alerts`": summaries,
        "Trackio CLI, `get metric` of each": values,
    }


def _trackio(*words: str) -> str:
    """Run Trackio's command in this process: an import of it takes longer than its answer."""
    from trackio import cli

    argv, sys.argv = sys.argv, ["trackio", *words]
    try:
        with redirect_stdout(io.StringIO()) as output:
            cli.main()
    finally:
        sys.argv = argv
    return output.getvalue()


def table(questions: Sequence[Question], answers: Mapping[str, Mapping[str, Answer]]) -> list[str]:
    """Draw the table."""
    broken = [each.folder.name for each in questions if each.fault]
    healthy = [each.folder.name for each in questions if not each.fault]
    titles = (
        "asked through",
        "cause in the answer",
        "any alarm on a broken run",
        "false alarms",
        "bytes a run, median",
        "at most",
        f"runs of more than {RAW_BYTES:,}",
    )
    rows = [
        f"| {' | '.join(titles)} |",
        "| --- " * len(titles) + "|",
        f"| wanted of ours | {WANTED_CAUSES:.0%} | | 0 | | {WANTED_BYTES:,} | |",
    ]
    for tool, by_run in answers.items():
        sizes = [answer.size for answer in by_run.values()]
        named, alarms = (
            sum(getattr(by_run[name], key) for name in broken) for key in ("named", "alarm")
        )
        false = sum(by_run[name].alarm for name in healthy)
        cells = (
            tool,
            f"{named} of {len(broken)}",
            f"{alarms} of {len(broken)}",
            f"{false} of {len(healthy)}",
            f"{statistics.median(sizes):,.0f}",
            f"{max(sizes):,}",
            f"{sum(size > RAW_BYTES for size in sizes)} of {len(sizes)}",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return rows


if __name__ == "__main__":
    main(sys.argv[1:])

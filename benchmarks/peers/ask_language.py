"""Ask one tool about language runs: `python -m peers.ask_language TOOL RUNS OUT [CHECKOUT]`.

Each tool runs in its own environment, with its defaults, and gets the fields of `language.FIELDS`
under its own names. CHECKOUT is a clone of the repository of a tool that no package index has:
github.com/microsoft/post-training-toolkit (its name on the index holds an empty package) and
github.com/wandb/wandb-mcp-server. The alarms of miles are written anew from the thresholds of
`miles/dashboard/advisory.py` in github.com/radixark/miles (Apache-2.0), commit 31f1ca9: half of the
groups or a quarter of the responses, in the newest rollout. Its alarms of stalled phases and
aborted requests want the streams of its engines.
"""

import importlib.util
import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace

from peers.exchange import ERROR, WARNING, Alarm, Tool, installed, worst
from peers.language import Given, answer, renamed

PREFERENCE, SUPERVISED = {"dpo"}, {"sft"}
RL_NAMES = {
    "reward": "reward", "reward_std": "reward_std", "group_std_zero": "frac_reward_zero_std",
    "entropy": "entropy", "kl": "kl", "clip_fraction": "clip_ratio/region_mean",
    "grad_norm": "grad_norm", "learning_rate": "learning_rate", "loss": "loss",
    "length": "completions/mean_length", "truncated": "completions/clipped_ratio",
}  # fmt: skip
PROBE_NAMES = {
    "reward": "reward_mean", "reward_std": "reward_std", "entropy": "entropy_mean",
    "group_std_zero": "zero_variance_group_frac", "kl": "kl_mean", "ratio": "ratio_mean",
    "clip_fraction": "clip_fraction", "grad_norm": "grad_norm", "learning_rate": "lr",
    "loss": "loss", "value_loss": "value_loss", "length": "completion_len_mean",
    "truncated": "truncation_rate", "repetition": "repetition_rate",
}  # fmt: skip
WATCH_NAMES = {
    "reward": "reward_mean", "reward_std": "reward_std", "entropy": "entropy",
    "kl": "kl_divergence", "clip_fraction": "clip_fraction", "grad_norm": "grad_norm",
    "learning_rate": "learning_rate", "loss": "loss",
}  # fmt: skip
TOOLKIT_NAMES = {
    "reward": "reward_mean", "reward_std": "reward_std", "kl": "kl", "entropy": "entropy",
    "length": "output_length_mean", "grad_norm": "grad_norm", "clip_fraction": "clip_fraction",
    "update_kl": "approx_kl", "value_loss": "value_loss", "truncated": "truncation_rate",
    "repetition": "repetition_rate", "ratio": "importance_sampling_ratio",
    "margin": "reward_margin", "accuracy": "win_rate",
}  # fmt: skip
ZERO_STD_SHARE, TRUNCATED_SHARE = 0.5, 0.25  # miles


def rldoctor() -> tuple[Tool, Callable[[Given], Sequence[Alarm]]]:
    """Records under TRL's names, which it knows, and `diagnose`."""
    from rl_doctor import diagnose
    from rl_doctor.detectors.base import Severity
    from rl_doctor.ingest.base import run_from_records

    def ask(run: Given) -> list[Alarm]:
        records = [{"step": n, **renamed(row, RL_NAMES)} for n, row in enumerate(run.rows)]
        problems = diagnose(run_from_records(records, config=dict(run.settings))).problems
        return [
            Alarm(each.detector, ERROR if each.severity is Severity.CRITICAL else WARNING)
            for each in problems
            if each.severity >= Severity.WARNING
        ]

    source = "https://github.com/junglezke/rl-doctor"
    return installed("rldoctor", "Apache-2.0", source, ()), ask


def rlprobe() -> tuple[Tool, Callable[[Given], Sequence[Alarm]]]:
    """Step records, and its catalogue."""
    from rlprobe.doctor.engine import diagnose_view
    from rlprobe.doctor.runview import RunView
    from rlprobe.schemas import RunManifest, StepRecord

    severities = {"warn": WARNING, "critical": ERROR}

    def ask(run: Given) -> list[Alarm]:
        manifest = RunManifest(
            run_id=run.name, created_at="1970-01-01T00:00:00", algorithm=run.algorithm
        )
        records = []
        for n, row in enumerate(run.rows):
            broken = any(value != value for value in row.values())  # noqa: PLR0124 - NaN
            records.append(StepRecord(step=n, nan_count=int(broken), **renamed(row, PROBE_NAMES)))
        return [
            Alarm(each.signature_id, severities[each.severity])
            for each in diagnose_view(RunView(manifest, records))
            if each.severity in severities
        ]

    source = "https://github.com/Nick-2908/rlprobe"
    return installed("rlprobe", "Apache-2.0", source, ()), ask


def rlwatch() -> tuple[Tool, Callable[[Given], Sequence[Alarm]]]:
    """`log_step` for every row."""
    import rlwatch as watch

    def ask(run: Given) -> list[Alarm]:
        monitor = watch.attach(framework="manual", run_id=run.name)
        alarms = [
            Alarm(each.detector, ERROR if each.severity == "critical" else WARNING)
            for n, row in enumerate(run.rows)
            for each in monitor.log_step(n, **renamed(row, WATCH_NAMES))
        ]
        monitor.stop()
        return alarms

    return installed("rlwatch", "MIT", "https://github.com/varun1724/rlwatch", ()), ask


def toolkit() -> tuple[Tool, Callable[[Given], Sequence[Alarm]]]:
    """Its heuristics in Python and in YAML, at the end of a run; `low` is no alarm."""
    checkout = Path(sys.argv[4])
    for name in ("post_training_toolkit", "post_training_toolkit.models"):
        package = ModuleType(name)  # theirs imports the trainers
        package.__path__ = [str(checkout / name.replace(".", "/"))]
        sys.modules[name] = package
    import pandas as pd
    from post_training_toolkit.models.heuristics import run_heuristics

    kinds = {"dpo": "dpo", "sft": "sft", "rlhf-ppo": "ppo"}

    def ask(run: Given) -> list[Alarm]:
        kind = kinds.get(run.algorithm, "grpo")
        rows = []
        for n, row in enumerate(run.rows):
            loss = {f"{kind}_loss": row["loss"]} if "loss" in row else {}
            gap = {}
            if "chosen_logp" in row and "rejected_logp" in row:
                gap = {"logps_gap": row["chosen_logp"] - row["rejected_logp"]}
            rows.append({"step": n, **renamed(row, TOOLKIT_NAMES), **loss, **gap})
        found = run_heuristics(pd.DataFrame(rows), trainer_type=kind)
        return [
            Alarm(each.type, ERROR if each.severity == "high" else WARNING)
            for each in found
            if each.severity in {"high", "medium"}
        ]

    source = "https://github.com/microsoft/post-training-toolkit"
    return Tool("post-training-toolkit", "7ab9855", "MIT", source, ()), ask


def wandb() -> tuple[Tool, Callable[[Given], Sequence[Alarm]]]:
    """`diagnose_run` of W&B's MCP server, with a run's rows in the place of its server."""
    module = load_diagnose_run(Path(sys.argv[4]))
    names = {"loss": "train/loss", "evaluation_loss": "eval/loss"}

    def ask(run: Given) -> list[Alarm]:
        rows = [{"_step": n, **row, **renamed(row, names)} for n, row in enumerate(run.rows)]
        keys = sorted({key for row in rows for key in row})
        rows = [{key: row.get(key) for key in keys} for row in rows]
        recorded = SimpleNamespace(name=run.name, state="finished", scan_history=lambda **_: rows)
        api = SimpleNamespace(viewer="", run=lambda _: recorded)
        module.WandBApiManager.get_api = staticmethod(lambda: api)
        document = json.loads(module.diagnose_run("entity", "project", run.name))
        told = {
            "diverging": document["diagnosis"] == "diverging",
            "nan": bool(document.get("nan_warnings")),
            "overfitting": bool((document.get("overfit_signal") or {}).get("detected")),
        }
        return [Alarm(word, WARNING) for word, is_told in told.items() if is_told]

    source = "https://github.com/wandb/wandb-mcp-server"
    return Tool("W&B MCP", "ab9d4b2", "MIT", source, ()), ask


def load_diagnose_run(checkout: Path) -> ModuleType:
    """Load its file alone: its neighbours want the server's packages and a login."""
    folder = "wandb_mcp_server"
    tracked = nullcontext(SimpleNamespace(mark_error=lambda _: None))
    stand_ins = {
        folder: {}, f"{folder}.mcp_tools": {},
        f"{folder}.api_client": {"WandBApiManager": type("WandBApiManager", (), {})},
        f"{folder}.utils": {"get_rich_logger": logging.getLogger},
        f"{folder}.mcp_tools.tools_utils": {"track_tool_execution": lambda *_: tracked},
    }  # fmt: skip
    for name, members in stand_ins.items():
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(members)
    path = checkout / "src" / folder / "mcp_tools" / "diagnose_run.py"
    spec = importlib.util.spec_from_file_location("diagnose_run", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def miles() -> tuple[Tool, Callable[[Given], Sequence[Alarm]]]:
    """The newest rollout's groups without contrast, and its cut responses."""

    def ask(run: Given) -> list[Alarm]:
        return worst(
            Alarm(name, WARNING, n)
            for n, row in enumerate(run.rows)
            for name, field, limit in (
                ("zero-std", "group_std_zero", ZERO_STD_SHARE),
                ("truncated", "truncated", TRUNCATED_SHARE),
            )
            if row.get(field, 0.0) >= limit
        )

    source = "https://github.com/radixark/miles, thresholds written anew"
    missing = ("stalled phases, aborted requests: streams of its engines",)
    return Tool("miles (port)", "31f1ca9", "thresholds", source, missing), ask


TOOLS: Mapping[str, Callable[[], tuple[Tool, Callable[[Given], Sequence[Alarm]]]]] = {
    "rldoctor": rldoctor, "rlprobe": rlprobe, "rlwatch": rlwatch,
    "post-training-toolkit": toolkit, "W&B MCP": wandb, "miles (port)": miles,
}  # fmt: skip

if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    answer(*TOOLS[sys.argv[1]]())

"""List the metric keys that a framework's source writes.

    git clone https://github.com/OWNER/NAME SOURCE
    scripts/harvest_keys.py FRAMEWORK SOURCE > tests/metrics/harvested/FRAMEWORK.txt

The keys are the strings that stand as keys of dictionaries, in subscripts that are assigned, and as
the first argument of calls that log. Fields of f-strings become `*`. The list holds names only: no
line of the framework's source is kept. Timings and settings are left out.
"""

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SLASHED = r"[A-Za-z_*][\w*@.+-]*(?:/[\w*@.+=:-]+)+"
PLAIN = r"[A-Za-z_*][\w*@.+/-]*"
# Seconds and settings: no measure of the training.
TIMING = re.compile(
    r"(?:^|/)(?:time|timing|timings|timer|timers|timing_\w+|timeperf|time_per_epoch|idle)(?:/|_|$)"
    r"|(?:_|/)(?:time|times|secs?|seconds|duration|latency|ms|timestamp|_s)(?:/[\w*]+|_\w+|)?$"
    r"|(?:^|/)(?:timestamp|_timestamp|hparams?|config)(?:/|$)|_s/[\w*]+$",
    re.IGNORECASE,
)
LOG_CALLS = frozenset({"log", "log_metric", "record", "add_scalar", "stat", "scalar", "scalars"})


@dataclass(frozen=True)
class Source:
    """Files that log, and what tells their keys from other strings."""

    files: tuple[str, ...]  # globs
    key: str = SLASHED  # regular expression, matched against the whole key
    holders: str = ".*"  # regular expression: the variables that hold metrics, for plain keys
    prefix: str = ""  # put before each key where the caller does so
    suffix: str = ""  # put after it
    leave: str = r"(?!)"  # regular expression: strings that look like keys and are none


FRAMEWORKS: dict[str, tuple[Source, ...]] = {
    "tinker": (
        Source(
            ("tinker_cookbook/rl/*.py", "tinker_cookbook/distillation/*.py"),
            leave=r"^(?:by_group|reward|train|test)/",
        ),
        Source(
            ("tinker_cookbook/rl/metric_util.py",),
            key=r"(?:by_group/)?\w+(?:/total)?",
            holders=r"^metrics$|^$",
            prefix="env/all/",
            leave=r"^(?:test|train|total|scores?)$|_\*$",
        ),
    ),
    "skyrl": (
        Source(
            ("skyrl/train/**/*.py", "skyrl/backends/skyrl_train/**/*.py"),
            leave=r"skyrl\.ai|^error/|^\*|:(?:mean|max|min)$|^(?:policy|critic)/\*$"
            r"|^cispo/|^loss_metrics/\*$"  # logged below policy/loss_metrics/
            r"|^eval/(?:all/)?\*$",  # keys of the rollout and of a set's loss, once more
        ),
        Source(
            ("skyrl/backends/skyrl_train/workers/worker.py",),
            key=PLAIN,
            holders=r"^status$",
            prefix="policy/",
            leave=r"critic|values|response_length|loss_fn|^(?:policy|critic)/",
        ),
    ),
    "nemo-rl": (
        Source(("nemo_rl/**/*.py",), leave=r"^\*|_s/|histogram|^reward/\*$"),
        Source(
            ("nemo_rl/algorithms/loss/loss_functions.py", "nemo_rl/algorithms/grpo.py"),
            key=r"[a-z]\w+",
            holders=r"^metrics$|^penalty_metrics$|^(?:_is_filter_metrics)$",
            prefix="train/",
            leave="generation_logger|^draft",
        ),
    ),
    "rllm": (
        Source(
            ("rllm/**/*.py",),
            leave=r"^\*|^(?:test|train|batch|episode|val|env/all)/\*$|generations|^val/\*/\*$",
        ),
    ),
    "roll": (
        Source(
            ("roll/**/*.py",),
            leave=r"^\*|nginx|^val/\*$|/\*/\*/|^(?:env|scheduler)/\*/\*|^(?:expand|shrink)/\*$",
        ),
    ),
    "open-instruct": (
        Source(
            ("open_instruct/**/*.py",),
            leave=r"^(?:Qwen|allenai|avg_tok)|_hist$|^(?:eval|batch)/\*$|^env/",
        ),
    ),
    "pipeline-rl": (
        Source(("pipelinerl/**/*.py",), leave=r"^\*|^(?:actor|rl|preprocessor)/\*$"),
        Source(
            ("pipelinerl/finetune/rl/__init__.py",),
            key=r"[a-z]\w+",
            holders=r"^stats$|^final_stats$",
            prefix="rl/",
        ),
    ),
    "agent-lightning": (
        Source(("agentlightning/verl/*.py",), leave=r"^\*|agentlightning/|kubernetes"),
    ),
    "miles": (
        Source(
            ("miles/**/*.py",),
            leave=r"^\*|miles\.io|^(?:eval|train|rank\*)/\*$|^train/\*grad",
        ),
        Source(
            ("miles/backends/training_utils/*.py", "miles/backends/megatron_utils/*.py"),
            key=r"[a-z]\w+",
            holders=r"^reported_loss$",
            prefix="train/",
        ),
    ),
    "verl": (
        Source(
            ("verl/**/*.py",),
            leave=r"^\*|^(?:best|maj|worst)@|^test_score/\*|generations|^(?:train|fully_async)/\*$",
        ),
    ),
    "prime-rl": (
        Source(
            ("src/prime_rl/**/*.py",),
            leave=r"^\*|^agent/|^env/|^(?:batch|entropy|pool|sampler|mismatch_kl)/\*$",
        ),
    ),
    "slime": (
        Source(("slime/**/*.py",), leave=r"^\*|^(?:eval|train)/\*|slime\."),
        Source(
            ("slime/backends/megatron_utils/*.py",),
            key=r"[a-z]\w+",
            holders=r"^reported_loss$",
            prefix="train/",
        ),
    ),
    "trl-grpo": (
        Source(
            ("trl/trainer/grpo_trainer.py", "trl/trainer/rloo_trainer.py"),
            key=PLAIN,
            holders=r"_metrics\[",
        ),
    ),
    "trl-dpo": (
        Source(
            (
                "trl/trainer/dpo_trainer.py",
                "trl/trainer/kto_trainer.py",
                "trl/trainer/reward_trainer.py",
            ),
            key=PLAIN,
            holders=r"_metrics\[",
        ),
    ),
    "areal": (
        Source(
            ("areal/trainer/ppo/actor.py",),
            key=r"[a-z]\w+",
            holders=r"stats_tracker|\.stat$|\.scalar$",
            prefix="ppo_actor/update/",
            suffix="/avg",
            leave="^denominator$|^reduce_type$|^n_|_n_",
        ),
        Source(
            ("areal/trainer/ppo/critic.py",),
            key=r"[a-z]\w+",
            holders=r"stats_tracker|\.stat$|\.scalar$",
            prefix="ppo_critic/",
            suffix="/avg",
            leave="^denominator$|^reduce_type$|^n_|_n_",
        ),
    ),
    "openrlhf": (
        Source(
            ("openrlhf/trainer/**/*.py",),
            key=PLAIN,
            holders=r"^status$|^logs_dict$|^logs$",
            leave=r"^_|^count$|^metrics$",
        ),
    ),
    "ms-swift": (
        Source(
            ("swift/rlhf_trainers/grpo_trainer.py",),
            key=PLAIN,
            holders=r"^self\._metrics|^metrics\[",
            leave=r"^\*|^(?:train|eval)$",
        ),
    ),
}


def commit(folder: Path) -> str:
    """Return the short commit of a clone; "unknown" where the folder is none."""
    command = ["git", "-C", str(folder), "log", "-1", "--format=%h %cs"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return result.stdout.strip() or "unknown"


def text(node: ast.expr | None) -> str | None:
    """Return a string literal, with `*` for the fields of an f-string; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = [v.value if isinstance(v, ast.Constant) else "*" for v in node.values]
        return re.sub(r"\*+", "*", "".join(map(str, parts)))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = text(node.left), text(node.right)
        return None if left is None and right is None else f"{left or '*'}{right or '*'}"
    return None


def keys(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (the variable that holds it, key) for the strings that may be metric keys."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Subscript) and (key := text(target.slice)):
                    yield ast.unparse(target.value), key
                if isinstance(node.value, ast.Dict):
                    yield from _of_dict(node.value, ast.unparse(target))
        elif isinstance(node, ast.Call):
            yield from _of_call(node)
        elif isinstance(node, ast.Subscript) and (key := text(node.slice)):
            yield ast.unparse(node.value), key
        elif isinstance(node, ast.Dict):
            yield from _of_dict(node, "")
        elif isinstance(node, ast.DictComp) and (key := text(node.key)):
            yield "", key


def _of_dict(node: ast.Dict, holder: str) -> Iterator[tuple[str, str]]:
    yield from ((holder, key) for one in node.keys if (key := text(one)))


def _of_call(node: ast.Call) -> Iterator[tuple[str, str]]:
    name = ast.unparse(node.func)
    if name.rpartition(".")[2] in LOG_CALLS:
        if node.args and (key := text(node.args[0])):
            yield name, key
        yield from ((name, word.arg) for word in node.keywords if word.arg)
    for argument in node.args:
        if isinstance(argument, ast.Dict):
            yield from _of_dict(argument, name)


def harvest(folder: Path, sources: tuple[Source, ...]) -> list[str]:
    """Return the keys of a source tree, sorted."""
    found = set()
    for source in sources:
        pattern, leave = re.compile(source.key), re.compile(source.leave)
        holders = re.compile(source.holders)
        for file in sorted({file for glob in source.files for file in folder.glob(glob)}):
            if re.search(r"(?:^|/)tests?(?:/|_)|_test\.py", str(file.relative_to(folder))):
                continue
            try:
                tree = ast.parse(file.read_text())
            except (SyntaxError, UnicodeDecodeError):
                continue
            found |= {
                f"{source.prefix}{key}{source.suffix}"
                for holder, key in keys(tree)
                if pattern.fullmatch(key) and holders.search(holder) and not leave.search(key)
            }
    return sorted(key for key in found if not TIMING.search(key) and key.strip("*/_"))


def main() -> int:
    """Print the keys."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("source", type=Path, help="a clone of the framework's repository")
    args = parser.parse_args()
    print(f"# {args.framework} {commit(args.source)}")
    print("\n".join(harvest(args.source, FRAMEWORKS[args.framework])))
    return 0


if __name__ == "__main__":
    sys.exit(main())

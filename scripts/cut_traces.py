"""Cut the tests' logs from recorded runs: `cut_traces.py CORPUS [NAME ...]`.

CORPUS holds what `record_control_runs.py`, `record_scheduler_runs.py`, `record_rank_runs.py`,
`record_language_runs.py` and `record_rlhf_runs.py` left, one folder each. Every
`tests/traces/<rule>/trace.toml` says which run its two logs come from:

    [fires]                                # and the same for [quiet]
    run = "control/ppo-cartpole-lr-x300-s0/progress.csv"
    rows = [0, 60]                         # optional: which rows, by default all
    keep = ["rollout/ep_rew_mean", ...]    # optional: which columns, by default all
    settings = { target_kl = 0.02 }        # what the run's own settings say
    [fires.injected]                       # optional: one series, changed by hand
    "train/grad_norm" = { from = 30, factor = 50.0 }

`injected` takes `factor` (multiply), `value` (set), `add`, or `ramp` (multiply by a factor that
grows to this at the end), `from` a row on, up to row `to`; `rows = [7, 31]` picks single ones.
A column the run has not is made. The cut keeps the run's format: CSV stays CSV, JSON lines
stay those, a trainer_state.json stays one. Every `tests/runs/<name>/run.toml` says in the same
words, under [run], which whole run it is.
"""

import csv
import io
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent / "tests"
RECIPES = ("traces/*/trace.toml", "runs/*/run.toml", "traps/*/run.toml")
STEPS = ("time/total_timesteps", "step", "data_type", "timestamp", "datetime", "epoch")

RANK = re.compile(r"^rank/\d+/")

Row = dict[str, Any]


def main(corpus: Path, names: list[str]) -> None:
    recipes = [path for kind in RECIPES for path in TESTS.glob(kind)]
    for recipe in sorted(recipes):
        if names and recipe.parent.name not in names:
            continue
        for target, made in tomllib.loads(recipe.read_text()).items():
            written = cut(corpus / made["run"], made, recipe.parent / target)
            print(f"{recipe.parent.name}/{written.name}: {written.stat().st_size:,} bytes")


def cut(source: Path, recipe: dict[str, Any], target: Path) -> Path:
    """Write one trace beside its recipe, in the format of its run; returns its path."""
    for old in target.parent.glob(f"{target.name}.*"):
        if old.suffix not in {".txt", ".toml"}:
            old.unlink()
    path = target.with_suffix(source.suffix)
    if source.suffix == ".json":
        state = json.loads(source.read_text())
        state["log_history"] = edit(state["log_history"], recipe)
        path.write_text(json.dumps(state, indent=0) + "\n")
        return path
    if source.suffix == ".jsonl":
        rows = edit([json.loads(line) for line in source.read_text().splitlines()], recipe)
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return path
    head, _, text = source.read_text().partition("\n")
    comment = f"{head}\n" if head.startswith("#") else ""
    rows = list(csv.DictReader(io.StringIO(text if comment else f"{head}\n{text}")))
    rows = edit(rows, recipe)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(comment + out.getvalue())
    return path


def edit(rows: list[Row], recipe: dict[str, Any]) -> list[Row]:
    """Pick rows and columns, then change the injected series."""
    rows = rows[slice(*recipe.get("rows", []))] if "rows" in recipe else rows
    injected = recipe.get("injected", {})
    assert len(injected) <= 1, "one injected series is the limit"
    if "keep" in recipe:
        keep = {*recipe["keep"], *STEPS}
        rows = [{k: v for k, v in row.items() if RANK.sub("", k) in keep} for row in rows]
    for key, change in injected.items():
        last = change.get("to", len(rows))
        picked = change.get("rows", range(change.get("from", 0), last))
        for i in picked:
            progress = (i - picked[0] + 1) / len(picked)
            rows[i][key] = changed(rows[i].get(key), change, progress)
        if key not in rows[0]:
            rows[0] = {**rows[0], key: None}  # the first row names a CSV's columns
    return rows


def changed(old: Any, change: dict[str, Any], progress: float) -> Any:
    if "value" in change:
        return change["value"]
    if old in ("", None):
        return old
    number = float(old)
    if "ramp" in change:
        return number * (1 + (change["ramp"] - 1) * progress)
    return number * change.get("factor", 1.0) + change.get("add", 0.0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

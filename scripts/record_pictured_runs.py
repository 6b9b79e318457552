"""Record the runs that the pictures' tests draw: `record_pictured_runs.py [NAME ...]`.

Each run of `RUNS` is trained by `rlvitals train ppo` for half a minute of one core; of what it
leaves, the table of its metrics and its settings are kept under tests/views/pictured/<name>/, with
six digits and without the columns that no picture shows. Nothing is changed by hand.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PLACE = Path(__file__).resolve().parent.parent / "tests" / "views" / "pictured"
DROPPED = ("obs_norm", "reward_norm_count", "curriculum", "memory", "machine", "handles", "disk")
SETTINGS = (
    "env",
    "num_envs",
    "total_steps",
    "seed",
    "learning_rate",
    "gamma",
    "gae_lambda",
    "clip_ratio",
    "epochs",
    "rollout_length",
    "minibatch_size",
    "max_grad_norm",
    "entropy_coef",
    "target_kl",
    "cluster.replicas",
    "cluster.speeds",
    "temperature_control.base_temperature",
    "temperature_control.min_temperature",
    "temperature_control.max_temperature",
)
COMMON: dict[str, Any] = {
    "training": {"num_envs": 16, "total_steps": 163_840, "seed": 3, "diagnose_seconds": 0},
    "ppo_config": {
        "rollout_length": 128, "minibatch_size": 512, "learning_rate": 1e-3, "gamma": 0.98,
        "target_kl": 0.03,
    },
    # Of a weak scheduler, so that there is something to learn.
    "warm_start": {"demo_steps": 100, "bc_epochs": 3, "demo_policies": ["round_robin"]},
    "temperature_control": {"enabled": True, "periodic_pulses": True, "pulse_interval": 3000,
                            "pulse_duration": 400},
    "monitoring": {"tensorboard_enabled": False},
    "checkpointing": {"enable": False},
}  # fmt: skip
RUNS: dict[str, dict[str, dict[str, Any]]] = {
    "cluster": {},
    "cluster-lr-x100": {"ppo_config": {"learning_rate": 0.1, "target_kl": 0.0}},
}


def main(names: list[str]) -> None:
    for name, config in RUNS.items():
        if not names or name in names:
            record(name, {key: {**COMMON.get(key, {}), **config.get(key, {})} for key in COMMON})


def record(name: str, config: dict[str, dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        config_file = Path(folder) / "said.json"
        config_file.write_text(json.dumps(config))
        out = Path(folder) / "run"
        command = ["train", "ppo", "--config", config_file, "--output-dir", out]
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-m", "rlvitals", *command],
            check=True, env=env, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        target = PLACE / name
        target.mkdir(parents=True, exist_ok=True)
        size = keep(sorted((out / "metrics").glob("metrics-*.csv")), target / "metrics.csv")
        settings = json.loads((out / "run.json").read_text())["settings"]
        chosen_settings = {key: value for key, value in settings.items() if key in SETTINGS}
        (target / "config.json").write_text(json.dumps(chosen_settings, indent=1) + "\n")
        print(f"{name}: {size:,} bytes")


def keep(sources: list[Path], target: Path) -> int:
    """Put tables together, in the order of their steps, without what no picture shows."""
    rows: list[dict[str, str]] = []
    for source in sources:
        with source.open(newline="") as file:
            rows += csv.DictReader(file)
    rows.sort(key=lambda row: int(row["step"]))
    keys = [k for k in dict.fromkeys(key for row in rows for key in row) if kept(k)]
    with target.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(keys)
        writer.writerows([short(key, row.get(key, "")) for key in keys] for row in rows)
    return target.stat().st_size


def kept(key: str) -> bool:
    return not key.startswith(DROPPED)


def short(key: str, cell: str) -> str:
    try:
        number = float(cell)
    except ValueError:
        return cell
    is_exact = key in {"step", "wall_time", "time", "timestamp"}
    return cell if is_exact else f"{number:.6g}"


if __name__ == "__main__":
    main(sys.argv[1:])

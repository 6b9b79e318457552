"""Record trainings of tiny-vlm on drawn charts, healthy and with one fault each.

    python scripts/record_chart_runs.py OUT NAME... | --all | --list

Needs `rlvitals[language]`; about a minute of CPU a run on one thread. A fault is put where it would
be in a person's training: in the settings, or in a data folder that the program reads. Each run
leaves `OUT/<name>/trainer_state.json` as the trainer wrote it, `settings.json`, and a line in
`OUT/SUMMARY.md`.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")

import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chart_faults import folder_of_charts
from tiny_language import keep_run, record_named, write_summary

from rlvitals.trainers import schema
from rlvitals.trainers.language import factory, models, presets
from rlvitals.trainers.language.config import Config
from rlvitals.trainers.language.program import Training

if TYPE_CHECKING:
    from collections.abc import Mapping

MODEL, SAMPLES = "tiny-vlm", 1000
SUMMARY = {
    "reward": "reward",
    "right": "rewards/accuracy_reward/mean",
    "form": "rewards/format_reward/mean",
    "right, own image": "language/image_right_own",
    "right, other image": "language/image_right_other",
    "entropy": "entropy",
    "grad norm": "grad_norm",
}


@dataclass(frozen=True, slots=True)
class Run:
    """One run: `fault` is `none` or what is wrong with it; `images` how its images are altered."""

    name: str
    mode: str
    seed: int = 0
    fault: str = "none"
    images: str = ""  # blank, shuffled; empty: as drawn
    settings: Mapping[str, Any] = field(default_factory=dict)


MODES = ("grpo", "psr", "nsr", "w-reinforce")
NEVER = 1e9  # seconds
SHORT = {"training.max_steps": 40}
PAID = {"rewards.functions": ("language_rewards:constant",), "rewards.correctness": "constant"}
FORM = {"rewards.correctness": "format_reward"}
RUNS = (
    *(
        Run(f"{mode}-healthy-{seed}", mode, seed, settings=SHORT)
        for seed in range(3)
        for mode in MODES
    ),
    *(Run(f"{mode}-form-threshold", mode, 7, "form-threshold", "", FORM) for mode in MODES[1:]),
    *(Run(f"{mode}-always-paid", mode, 7, "always-paid", "", PAID) for mode in MODES),
    *(Run(f"{mode}-blank-images", mode, 7, "blank-images", "blank") for mode in MODES),
    *(Run(f"{mode}-shuffled-images", mode, 7, "shuffled-images", "shuffled") for mode in MODES),
)


def record(run: Run, out: Path, bases: Path) -> None:
    """Train, keep the log, rewrite the summary."""
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch) / "run"
        values: dict[str, Any] = {
            "training.mode": run.mode, "training.seed": run.seed,
            "training.output_dir": str(work), "model.vlm_name": MODEL,
            "monitoring.report_to": (), "monitoring.log_completions": False,
            "monitoring.diagnose_seconds": 0.0, "monitoring.progress_bar": False,
            "monitoring.console_seconds": NEVER, **run.settings,
        }  # fmt: skip
        if run.images:
            chart_folder = folder_of_charts(
                Path(scratch) / "charts", run.images, seed=run.seed, count=SAMPLES
            )
            values |= {"data.dataset_name": str(chart_folder), "data.held_out": 0}
        config = schema.load(Config, None, values, below=presets.preset(MODEL))
        base = bases / str(run.seed)  # the warm start of a seed is that of all its modes
        if base.exists():
            shutil.copytree(base, work / models.BASE_FOLDER)
        Training(config).run()
        if not base.exists():
            shutil.copytree(work / models.BASE_FOLDER, base)
        last = work / f"checkpoint-{config.training.max_steps}" / "trainer_state.json"
        for state_file in work.rglob("trainer_state.json"):
            if state_file != last:
                state_file.unlink()
        keep_run(last.parent, out / run.name, run_settings(run, config))
    write_summary(out, SUMMARY)


def run_settings(run: Run, config: Config) -> dict[str, object]:
    """Return what a reader of the run should know, flat."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("trl", "transformers", "torch"))
    return {
        **{key: value for key, value in factory.flat(config).items() if value != ""},
        "mode": run.mode,
        "seed": run.seed,
        "fault": run.fault,
        "injected": False,
        "made_by": f"scripts/record_chart_runs.py, {packages}",
    }


if __name__ == "__main__":
    sys.exit(record_named(RUNS, record, __doc__))

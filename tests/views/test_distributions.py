"""Histograms from whichever log has them become bands; where nobody logged any, nothing is said."""

import json
import os
import subprocess
import sys

import effort
import numpy as np
import pandas as pd
import pytest
from drawn import SPREAD, series, subject
from torch.utils.tensorboard import SummaryWriter

import rlvitals
from rlvitals.types import Histogram, Table, Trace
from rlvitals.views.drawing import bands
from rlvitals.views.figures import distributions
from rlvitals.views.figures.figure import Kind, Subject
from rlvitals.views.figures.panels import picture

KEYS = {  # as TRL's PPO trainer of old calls them
    "env/reward_dist": "reward/distribution",
    "objective/logprobs": "language/logprobs",
    "objective/ref_logprobs": "language/ref_logprobs",
    "ppo/policy/ratio": "policy/ratio",
    "ppo/policy/advantages": "policy/advantage_distribution",
}
UPDATES = 20


def drawn(*subjects):
    return picture(distributions.FIGURE, subjects)


def sampled(update):
    rng = np.random.default_rng(update)
    return {key: rng.normal(at + update, 1.0, 400) for at, key in enumerate(KEYS)}


def scalars(update):
    return {"objective/kl": 0.1 * update, "objective/entropy": 1.0, "ppo/mean_scores": 0.5,
            "ppo/loss/value": 0.1, "ppo/policy/clipfrac": 0.1}  # fmt: skip


def own(folder):
    run = rlvitals.start(folder / "run", settings={"seed": 1})
    for update in range(UPDATES):
        run.log(update, scalars(update))
        for key, values in sampled(update).items():
            run.log_histogram(update, key, values)
    run.finish()
    return folder / "run"


def tensorboard(folder):
    with SummaryWriter(str(folder)) as writer:
        for update in range(UPDATES):
            for key, value in scalars(update).items():
                writer.add_scalar(key, value, update)
            for key, values in sampled(update).items():
                writer.add_histogram(key, values, update)
    return folder


WANDB = """
import json, sys, wandb
run = wandb.init(project="p", mode="offline", dir=sys.argv[1],
                 settings=wandb.Settings(x_disable_stats=True, console="off"))
for numbers, samples in json.load(sys.stdin):
    run.log(numbers | {key: wandb.Histogram(values) for key, values in samples.items()})
run.finish()
"""


def weights_and_biases(folder):
    updates = [
        (scalars(update), {key: values.tolist() for key, values in sampled(update).items()})
        for update in range(UPDATES)
    ]
    command = [sys.executable, "-W", "ignore", "-c", WANDB, folder]
    quiet = {**os.environ, "WANDB_SILENT": "true"}
    subprocess.run(command, check=True, env=quiet, cwd=folder, input=json.dumps(updates), text=True)
    return next((folder / "wandb").glob("offline-run-*"))


@pytest.mark.parametrize("logged", effort.sampled([own, tensorboard, weights_and_biases], 2))
def test_each_log_s_histograms_get_their_names_and_their_bands(logged, tmp_path):
    diagnosis = rlvitals.diagnose(logged(tmp_path))
    assert set(KEYS.values()) <= set(diagnosis.trace.histograms)
    panels = {
        band_panel.lines[0].metric: band_panel
        for band_panel in drawn(Subject("run", diagnosis)).panels
    }
    assert set(panels) == set(KEYS.values())
    for index, (key, name) in enumerate(KEYS.items()):
        panel = panels[name]
        assert panel.kind is Kind.BANDS
        assert len(panel.lines) == len(distributions.QUANTILE_LEVELS)
        levels = distributions.QUANTILE_LEVELS
        truth = np.array([np.quantile(sampled(u)[key], levels) for u in range(20)])
        got = np.stack([line.series.values for line in panel.lines], axis=1)
        # W&B counts in 64 bins, TensorBoard in bins that grow by a tenth.
        assert np.abs(got - truth)[:, 1:-1].max() < 0.12 * (5 + index + UPDATES), name


def test_a_tail_of_one_sample_is_drawn_however_many_steps_there_are():
    rewards = drawn(subject(SPREAD)).panels[0]
    assert rewards.title == "Rewards"
    low, high = rewards.lines[0], rewards.lines[-1]
    assert low.series.values.min() == -25.0
    steps, below, above = bands.envelope(low, high, pixels=10)
    assert len(steps) == 10
    assert below.min() == -25.0
    assert above.max() == high.series.values.max()


def test_several_runs_are_held_beside_each_other_by_median_and_tails():
    drawing = drawn(subject(SPREAD), subject(SPREAD))
    assert {panel.kind for panel in drawing.panels} == {Kind.LINES}
    assert {line.label for line in drawing.panels[0].lines} == {"median", "5 %, 95 %"}
    assert {line.run for line in drawing.panels[0].lines} == {0, 1}


def test_a_run_that_logs_none_has_no_such_picture():
    assert drawn(subject("cluster")) is None


def test_the_gradients_of_a_network_are_left_out():
    histogram = Histogram(1, np.nan, np.array([0.0, 1.0]), np.array([3.0]))
    weights = {f"gradients/layer.{n}.weight": [histogram] for n in range(100)}
    trace = Trace({"outcome/score": series([1.0])}, {}, histograms=weights)
    assert not distributions.has_distribution(trace)


def test_of_a_step_that_was_logged_twice_the_later_attempt_counts():
    def at(step, value):
        return Histogram(step, np.nan, np.array([value, value + 1]), np.array([1.0]))

    spread = distributions.of_histograms([at(1, 0.0), at(2, 0.0), at(1, 5.0)])
    assert spread.steps.tolist() == [1, 2]
    assert spread.values[:, 0].tolist() == [5.0, 0.0]


def test_completions_are_samples_too(tmp_path):
    folder = tmp_path / "completions"
    folder.mkdir()
    for step in range(5, 25, 5):
        rows = {
            "step": step, "prompt": ["p"] * 8, "completion": ["c"] * 8,
            "correct": np.linspace(0, step, 8), "advantage": np.linspace(-1, 1, 8),
        }  # fmt: skip
        pd.DataFrame(rows).to_parquet(folder / f"completions_{step:05d}.parquet")
    spreads = distributions.spreads(rlvitals.trace(tmp_path))
    assert spreads["correct, each sample"].values[:, -1].tolist() == [5, 10, 15, 20]
    assert spreads["policy/advantage_distribution"].values[:, 3].tolist() == pytest.approx(
        [0.0] * 4
    )


def test_a_few_samples_have_no_quantiles():
    table = Table(np.arange(10), {"reward": [1.0] * 10})
    assert distributions.spreads(Trace({}, {}, tables={"t": table})) == {}


def test_what_a_person_maps_takes_the_name(tmp_path):
    folder = tensorboard(tmp_path / "logs")
    with SummaryWriter(str(folder)) as writer:
        writer.add_histogram("my/rewards", np.arange(10.0), 1)
    trace = rlvitals.trace(folder, map={"my/rewards": "reward/distribution"})
    assert len(trace.histograms["reward/distribution"]) == 1
    assert len(trace.histograms["env/reward_dist"]) == UPDATES

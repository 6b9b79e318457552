"""What real programs do to their logs while they are followed: each point is told once."""

import json
import logging
import logging.handlers
import shutil
from pathlib import Path

import numpy as np
import pytest
from following import Followed, assert_as_read_at_once, kinds, of, points

from rlvitals.following import changes

RUNS = Path(__file__).parent.parent / "runs"


def test_sb3_rewrites_its_table_for_a_new_column(tmp_path):
    """Its own writer: a new key means a longer header, and a comma more on every row."""
    from stable_baselines3.common.logger import CSVOutputFormat

    writer = CSVOutputFormat(str(tmp_path / "progress.csv"))
    followed = Followed(tmp_path)
    told = []
    for n in range(1, 41):
        values = {"time/total_timesteps": 100 * n, "rollout/ep_rew_mean": float(n)}
        if n >= 10:
            values["train/approx_kl"] = 0.01
        if n >= 25:
            values["eval/mean_reward"] = 2.0 * n
        writer.write(values, dict.fromkeys(values, ()))
        told += followed.look()
    writer.close()
    assert kinds(told)[0] == "Found"
    assert points(told) == {
        "rollout/ep_rew_mean": 40, "train/approx_kl": 31, "eval/mean_reward": 16
    }  # fmt: skip
    assert not of(changes.Restarted, told)
    followed.settle()
    assert_as_read_at_once(followed, tmp_path)


def test_a_table_of_ours_gets_a_column(tmp_path):
    """A table that is written anew with another head, by whoever: told are the new points."""
    path = tmp_path / "run.csv"
    path.write_text("step,loss\n" + "".join(f"{n},{1 / n}\n" for n in range(1, 6)))
    followed = Followed(tmp_path)
    followed.look()
    rows = "".join(f"{n},{1 / n},{'' if n < 6 else n}\n" for n in range(1, 8))
    path.write_text(f"step,loss,reward\n{rows}")
    told = followed.look()
    assert points(told) == {"loss": 2, "reward": 2}
    assert not kinds(told)


def test_tensorboard_with_a_second_file_after_a_resume(tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    followed = Followed(tmp_path)
    told, seen = [], 0
    for start, stop in ((1, 31), (21, 61)):
        writer = SummaryWriter(str(tmp_path / "ppo"), filename_suffix=f".{start}")
        for step in range(start, stop):
            writer.add_scalar("rollout/ep_rew_mean", 2.0 * step, step)
            writer.add_scalar("train/approx_kl", 0.01, step)
            if step % 5 == 0:
                writer.add_histogram("weights", np.arange(step + 2.0), step)
                writer.flush()
                told += followed.look(3.0)
                seen += 1
        writer.close()
        told += followed.look(3.0)
    assert points(told) == {"rollout/ep_rew_mean": 70, "train/approx_kl": 70}
    assert len(of(changes.Points, told)) >= seen - 1, "each flush is seen when it comes"
    told += followed.settle()
    assert [one.step for one in of(changes.Resumed, told)] == [21]
    assert_as_read_at_once(followed, tmp_path)


def test_a_trainer_s_state_in_one_checkpoint_after_another(tmp_path):
    """Each checkpoint holds all rows so far; only the newest is read."""
    state = json.loads((RUNS / "grpo-healthy" / "run.json").read_text())
    rows = state["log_history"]
    followed = Followed(tmp_path)
    told = []
    for count in (20, 40, 60, len(rows)):
        folder = tmp_path / "out" / f"checkpoint-{rows[count - 1]['step']}"
        folder.mkdir(parents=True)
        part = {**state, "log_history": rows[:count], "global_step": rows[count - 1]["step"]}
        (folder / "trainer_state.json").write_text(json.dumps(part))
        told += followed.look(12.0)
    assert len(followed.watch.runs) == 1
    assert kinds(told)[0] == "Found"
    assert not {"Restarted", "Renamed", "Vanished"} & {*kinds(told)}
    assert points(told)["reward"] == sum("reward" in row for row in rows) == len(rows)
    followed.settle()
    assert_as_read_at_once(followed, tmp_path)


def test_json_lines_rotated_by_the_standard_library(tmp_path):
    """What was written between the last look and the rotation is read where it lies now."""
    path = tmp_path / "metrics.jsonl"
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=1500, backupCount=50)
    logger = logging.getLogger("rotated")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(handler)
    followed = Followed(tmp_path)
    told = []
    for n in range(1, 201):
        logger.info(json.dumps({"step": n, "loss": 1 / n, "return": float(n)}))
        if n % 7 == 0:
            told += followed.look(2.0)
    handler.close()
    told += followed.look(2.0)
    assert len(list(tmp_path.iterdir())) > 4
    assert points(told) == {"loss": 200, "return": 200}
    assert not of(changes.Restarted, told)
    followed.settle()
    assert followed.trace()["optimiser/loss"].steps.tolist() == list(range(1, 201))


def test_a_log_that_is_copied_away_and_emptied(tmp_path):
    """`logrotate` with copytruncate: the same file, emptied, goes on at later steps."""
    path = tmp_path / "metrics.jsonl"
    followed = Followed(tmp_path)
    told = []
    for part in range(3):
        with path.open("w") as file:
            for n in range(10 * part, 10 * part + 10):
                file.write(f'{{"step": {n}, "loss": {n / 7}}}\n')
        told += followed.look(2.0)
    assert points(told) == {"loss": 30}
    assert not of(changes.Restarted, told)
    followed.settle()
    assert followed.trace()["optimiser/loss"].steps.tolist() == list(range(30))


def test_event_files_that_a_trainer_s_run_adopts(tmp_path):
    """The Trainer's event files come first: they are a run until its state lies above them."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(tmp_path / "out" / "runs" / "Jan01_host"))
    for step in range(1, 13):
        writer.add_scalar("train/loss", 1 / step, step)
    writer.flush()
    followed = Followed(tmp_path)
    told = followed.look()
    (before,) = [one.run for one in of(changes.Found, told)]
    rows = [{"step": n, "loss": 1 / n} for n in range(1, 13)]
    (tmp_path / "out" / "trainer_state.json").write_text(json.dumps({"log_history": rows}))
    told = followed.look(3.0)
    assert not {"Found", "Restarted"} & {*kinds(told)}, "it is the same run, under its own name"
    assert [(one.before, one.run) for one in of(changes.Renamed, told)] == [(before, "out")]
    assert points(told) == {"loss": 12}, "of its state alone"
    writer.add_scalar("train/loss", 0.01, 13)
    writer.close()
    assert points(followed.look(1.0)) == {"train/loss": 1}
    followed.settle()
    assert_as_read_at_once(followed, tmp_path)


def test_settings_that_come_later_are_read(tmp_path):
    shutil.copy(RUNS / "ppo-cartpole-healthy" / "run.csv", tmp_path / "progress.csv")
    followed = Followed(tmp_path)
    followed.look()
    assert followed.trace().settings == {}
    (tmp_path / "config.json").write_text('{"target_kl": 0.02, "total_timesteps": 61440}')
    followed.look(2.0)
    told = followed.settle()
    assert followed.trace().number("target_kl") == pytest.approx(0.02)
    assert of(changes.Ended, told)[0].how == "budget spent"

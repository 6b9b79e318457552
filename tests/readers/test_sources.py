"""Which files are one run: a table of folders as people have them, and what reading gives."""

import gzip
import json
import os
import pickle
import sqlite3
from contextlib import closing
from pathlib import Path

import leveldb
import numpy as np
import pytest
import tfrecords

from rlvitals.errors import UnreadableLog
from rlvitals.readers import READERS
from rlvitals.readers.discovery import run_names, sources


def events(*points):
    """A TensorBoard file of (step, value) points of a loss."""
    found = [tfrecords.event(s, tfrecords.simple("loss", v), time=1.7e9 + s) for s, v in points]
    return tfrecords.VERSION + b"".join(found)


def monitor(start, *episodes):
    """A monitor file of (return, length, seconds) episodes."""
    head = "#" + json.dumps({"t_start": start, "env_id": "CartPole-v1"}) + "\nr,l,t\n"
    return (head + "".join(f"{r},{n},{t}\n" for r, n, t in episodes)).encode()


def state(*steps):
    rows = [{"step": step, "loss": 1.0 / step} for step in steps]
    return json.dumps({"global_step": max(steps), "log_history": rows}).encode()


WANDB = leveldb.wandb_file({"_step": 0, "loss": 0.5}, {"_step": 1, "loss": 0.25})
SWANLAB = leveldb.swanlab_file((1, 0.5), (2, 0.25))
RUN, LATER = "run-20260131_100000", "run-20260131_110000"


def trackio(*runs):
    """A Trackio database with a row of a loss for each run."""
    with closing(sqlite3.connect(":memory:")) as base:
        base.executescript(
            "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT,"
            " step INTEGER, metrics TEXT);"
            "CREATE TABLE configs (id INTEGER PRIMARY KEY, run_name TEXT, config TEXT,"
            " created_at TEXT);"
        )
        for run in runs:
            row = ("2026-01-31T10:00:00", run, 1, '{"loss": 0.5}')
            base.execute("INSERT INTO metrics VALUES (NULL, ?, ?, ?, ?)", row)
        base.commit()
        return base.serialize()


EVENTS = events((1, 0.5), (2, 0.25))
MONITOR = monitor(1.7e9, (10.0, 5, 1.0), (20.0, 7, 2.0))
TABLE = b"step,loss\n1,0.5\n2,0.25\n"
LINES = b'{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.25}\n'
SB3 = b"rollout/ep_rew_mean,time/total_timesteps\n1.5,100\n2.5,200\n"
SB3_LINES = b'{"time/total_timesteps": 100, "rollout/ep_rew_mean": 1.5}\n'
RLLIB = b'{"training_iteration": 1, "timesteps_total": 10, "episode_reward_mean": 1.5}\n'
RLLIB_TABLE = b"training_iteration,timesteps_total,episode_reward_mean\n1,10,1.5\n"
SCHEDULER = (
    b"data_type,datetime,reward,step,timestamp\ntraining,2026-01-31T10:00:00,0.5,%d,1769853600.0\n"
)
EVENT_NAME = "events.out.tfevents.17000000{:02d}.host.1.0"
FIRST, SECOND = EVENT_NAME.format(1), EVENT_NAME.format(2)
DATABASE = trackio("first", "second")
CONFIG = b'{"learning_rate": 0.1}'
TRIAL = {"params.json": b'{"lr": 0.1}', "result.json": RLLIB, "progress.csv": RLLIB_TABLE}

# Folder -> the runs in it, each with its files.
CASES = {
    "tensorboard and metrics of one run": (
        {f"tensorboard/{FIRST}": EVENTS, "metrics/ppo_metrics_1.csv": SCHEDULER % 1},
        {"": {f"tensorboard/{FIRST}", "metrics/ppo_metrics_1.csv"}},
    ),
    "runs with tensorboard and metrics": (
        {f"{run}/{name}": EVENTS for run in "ab" for name in (f"tb/{FIRST}", f"logs/{SECOND}")},
        {run: {f"tb/{FIRST}", f"logs/{SECOND}"} for run in "ab"},
    ),
    "five sibling monitor folders": (
        {f"a2c_{n}/0.monitor.csv": MONITOR for n in range(5)},
        {f"a2c_{n}": {"0.monitor.csv"} for n in range(5)},
    ),
    "monitors of parallel environments": (
        {f"{n}.monitor.csv": MONITOR for n in range(3)},
        {"": {f"{n}.monitor.csv" for n in range(3)}},
    ),
    "monitors with names of their own": (
        {f"seed{n}.monitor.csv": MONITOR for n in range(2)},
        {f"seed{n}": {f"seed{n}.monitor.csv"} for n in range(2)},
    ),
    "train and eval of tensorboard": (
        {f"train/{FIRST}": EVENTS, f"eval/{FIRST}": EVENTS},
        {"": {f"train/{FIRST}", f"eval/{FIRST}"}},
    ),
    "a resume in one folder": ({FIRST: EVENTS, SECOND: EVENTS}, {"": {FIRST, SECOND}}),
    "checkpoints of a trainer": (
        {f"checkpoint-{n}/trainer_state.json": state(n) for n in (10, 100, 20)},
        {"": {"checkpoint-100/trainer_state.json"}},
    ),
    "the output folder's own state is as new": (
        {"trainer_state.json": state(100), "checkpoint-100/trainer_state.json": state(100)},
        {"": {"trainer_state.json"}},
    ),
    "the output folder's own state is older": (
        {"trainer_state.json": state(90), "checkpoint-100/trainer_state.json": state(100)},
        {"": {"checkpoint-100/trainer_state.json"}},
    ),
    "a trainer with its runs folder": (
        {"out/checkpoint-5/trainer_state.json": state(5), f"out/runs/Jan31_host/{FIRST}": EVENTS},
        {"out": {"checkpoint-5/trainer_state.json", f"runs/Jan31_host/{FIRST}"}},
    ),
    "trials of a tuner": (
        {f"tune/trial_{n}/{k}": v for n in range(3) for k, v in {**TRIAL, FIRST: EVENTS}.items()},
        {f"tune/trial_{n}": {"result.json", FIRST} for n in range(3)},
    ),
    "everything that SB3 writes": (
        {"progress.csv": SB3, "progress.json": SB3_LINES, FIRST: EVENTS, "0.monitor.csv": MONITOR},
        {"": {"progress.csv", "progress.json", FIRST, "0.monitor.csv"}},
    ),
    "event folders beside each other": (
        {f"runs/ppo_{n}/{FIRST}": EVENTS for n in range(3)},
        {f"runs/ppo_{n}": {FIRST} for n in range(3)},
    ),
    "tables with names of their own": (
        {"seed1.csv": TABLE, "seed2.csv": TABLE, "seed10.csv": TABLE},
        {name: {f"{name}.csv"} for name in ("seed1", "seed10", "seed2")},
    ),
    "a measure in each table": (
        {"rewards.csv": TABLE, "episode_lengths.csv": TABLE, "losses.csv": TABLE},
        {"": {"rewards.csv", "episode_lengths.csv", "losses.csv"}},
    ),
    "measures of two algorithms": (
        {f"{key}_{run}.csv": TABLE for run in ("dqn", "ppo") for key in ("rewards", "losses")},
        {run: {f"rewards_{run}.csv", f"losses_{run}.csv"} for run in ("dqn", "ppo")},
    ),
    "curves that TensorBoard saved": (
        {f"run-PPO_1-tag-{tag}.csv": TABLE for tag in ("rollout_ep_rew_mean", "train_loss")},
        {"": {f"run-PPO_1-tag-{tag}.csv" for tag in ("rollout_ep_rew_mean", "train_loss")}},
    ),
    "one measure of several runs": (
        {"rewards_dqn.csv": TABLE, "rewards_ppo.csv": TABLE},
        {name: {f"{name}.csv"} for name in ("rewards_dqn", "rewards_ppo")},
    ),
    "one table and one event file": (
        {"losses.csv": TABLE, FIRST: EVENTS},
        {"": {"losses.csv", FIRST}},
    ),
    "a train and an eval table": (
        {"train.csv": TABLE, "eval.csv": TABLE},
        {"": {"train.csv", "eval.csv"}},
    ),
    "JSON lines beside what is no log": (
        {"metrics.jsonl": LINES, "config.json": b'{"step": 1}\n', "notes.txt": b"hello, world\n"},
        {"": {"metrics.jsonl"}},
    ),
    "hidden folders, packages and environments": (
        {
            "metrics.jsonl": LINES,
            ".git/log.csv": TABLE,
            "node_modules/a/data.csv": TABLE,
            "checkpoint-9.corrupt/data.csv": TABLE,
            "checkpoint-9.other-1/data.csv": TABLE,
            "venv/a.csv": TABLE,
            "py/pyvenv.cfg": b"",
            "py/a.csv": TABLE,
            "py/lib/b.csv": TABLE,
        },
        {"": {"metrics.jsonl"}},
    ),
    "DVCLive's tables, one a metric": (
        {
            f"{home}plots/metrics/{key}.tsv": f"step\t{key[-1]}\n1\t0.5\n".encode()
            for home in ("a/dvclive/", "b/dvclive/", "own/")
            for key in ("x", "eval/y", "some/where/z")
        },
        {
            run: {f"{inside}plots/metrics/{key}.tsv" for key in ("x", "eval/y", "some/where/z")}
            for run, inside in (("a", "dvclive/"), ("b", "dvclive/"), ("own", ""))
        },
    ),
    "what an MLflow run holds is its own": (
        {
            f"mlruns/1/{run}/{name}": data
            for run in ("aa", "bb")
            for name, data in {
                "meta.yaml": b"run_id: %s\nrun_name: %s\n" % (run.encode(), run.encode()),
                "metrics/train/loss": b"1700000000000 0.5 1\n",
                "artifacts/metrics.csv": TABLE,
            }.items()
        },
        {f"1/{run}": {"meta.yaml", "artifacts/metrics.csv"} for run in ("aa", "bb")},
    ),
    "runs of Weights & Biases": (
        {f"wandb/offline-{RUN}-{n}/run-{n}.wandb": WANDB for n in ("a1", "b2")},
        {f"wandb/offline-{RUN}-{n}": {f"run-{n}.wandb"} for n in ("a1", "b2")},
    ),
    "a run of Weights & Biases beside its project's log": (
        {f"wandb/{RUN}-my-run/run-my-run.wandb": WANDB, FIRST: EVENTS},
        {"": {f"wandb/{RUN}-my-run/run-my-run.wandb", FIRST}},
    ),
    "what Weights & Biases puts beside its file": (
        {
            f"wandb/{RUN}-a1/run-a1.wandb": WANDB,
            f"wandb/{RUN}-a1/files/wandb-summary.json": b'{"loss": 0.25, "_step": 1}',
            f"wandb/{RUN}-a1/logs/debug.log": b"2026-01-31 10:00:00 INFO step 1\n",
        },
        {f"wandb/{RUN}-a1": {"run-a1.wandb"}},
    ),
    "a resumed run of Weights & Biases": (
        {f"wandb/{start}-my-run/run-my-run.wandb": WANDB for start in (RUN, LATER)},
        {
            f"wandb/{RUN}-my-run": {
                f"{RUN}-my-run/run-my-run.wandb",
                f"{LATER}-my-run/run-my-run.wandb",
            }
        },
    ),
    "runs of SwanLab, their local copies among them": (
        {
            f"swanlog/{RUN}-{n}/{name}": data
            for n in ("a1", "b2")
            for name, data in {
                f"run-{n}.swanlab": SWANLAB,
                "logs/1/1000.log": b'{"index": 1, "data": 0.5, "create_time": "2026-01-31"}\n',
                "logs/1/_summary.json": b'{"max": 0.5, "max_step": 1, "num": 1}',
            }.items()
        },
        {f"swanlog/{RUN}-{n}": {f"run-{n}.swanlab"} for n in ("a1", "b2")},
    ),
    "a tracker's folder under a run": (
        {"progress.csv": SB3, f"wandb/offline-{RUN}-abc/run-abc.wandb": WANDB},
        {"": {"progress.csv", f"wandb/offline-{RUN}-abc/run-abc.wandb"}},
    ),
    "a tracker's folder under each of several runs": (
        {
            f"{run}/{name}": data
            for run in "ab"
            for name, data in {
                FIRST: EVENTS,
                f"wandb/{RUN}-{run}/run-{run}.wandb": WANDB,
                f"wandb/{RUN}-{run}/files/config.yaml": b"learning_rate:\n  value: 1\n",
            }.items()
        },
        {run: {FIRST, f"wandb/{RUN}-{run}/run-{run}.wandb"} for run in "ab"},
    ),
    "several runs of a tracker beside one log": (
        {
            "progress.csv": SB3,
            **{f"wandb/{RUN}-{run}/run-{run}.wandb": WANDB for run in ("abc", "xyz")},
        },
        {
            "": {"progress.csv"},
            **{f"wandb/{RUN}-{run}": {f"run-{run}.wandb"} for run in ("abc", "xyz")},
        },
    ),
    "a database with several runs beside a log": (
        {"trackio/project.db": DATABASE, "losses.csv": TABLE},
        {
            "trackio/project/first": {"project.db"},
            "trackio/project/second": {"project.db"},
            "": {"losses.csv"},
        },
    ),
    "every source of one run": (
        {
            "progress.csv": SB3,
            "metrics.jsonl": LINES,
            f"tb/{FIRST}": EVENTS,
            f"wandb/{RUN}-abc/run-abc.wandb": WANDB,
            "config.json": CONFIG,
        },
        {
            "": {
                "progress.csv",
                "metrics.jsonl",
                f"tb/{FIRST}",
                f"wandb/{RUN}-abc/run-abc.wandb",
            }
        },
    ),
    "packed logs": (
        {
            "a/progress.csv.gz": gzip.compress(SB3),
            "b/metrics.jsonl.gz": gzip.compress(LINES),
            "run/meta.yaml.gz": gzip.compress(b"run_id: a\nrun_name: a\n"),
            "run/metrics/loss": b"1700000000000 0.5 1\n",
        },
        {"a": {"progress.csv.gz"}, "b": {"metrics.jsonl.gz"}, "project/a": {"meta.yaml.gz"}},
    ),
    "hparams beside a run's events": (
        {FIRST: EVENTS, f"1700000001.25/{SECOND}": EVENTS},
        {"": {FIRST, f"1700000001.25/{SECOND}"}},
    ),
}
# Frameworks for control, as their examples lay out what they write.
WEIGHTS = b"PK\x03\x04"
CASES |= {
    "CleanRL": (
        {f"runs/CartPole-v1__ppo__{seed}__17000000{seed}/{FIRST}": EVENTS for seed in (1, 2)},
        {f"runs/CartPole-v1__ppo__{seed}__17000000{seed}": {FIRST} for seed in (1, 2)},
    ),
    "skrl": (
        {
            f"runs/torch/Pendulum/26-11-21_PPO/{FIRST}": EVENTS,
            "runs/torch/Pendulum/26-11-21_PPO/checkpoints/agent_100.pt": WEIGHTS,
            f"runs/torch/Pendulum/26-11-22_PPO/{FIRST}": EVENTS,
        },
        {f"runs/torch/Pendulum/26-11-2{n}_PPO": {FIRST} for n in (1, 2)},
    ),
    "rsl_rl under Isaac Lab": (
        {
            f"logs/rsl_rl/ant/2026-11-21_10-00-00/{name}": data
            for name, data in {
                FIRST: EVENTS,
                "model_100.pt": WEIGHTS,
                "params/agent.yaml": b"seed: 1\n",
                "params/env.yaml": b"sim: {}\n",
                "git/rsl_rl.diff": b"diff\n",
            }.items()
        },
        {"logs/rsl_rl/ant/2026-11-21_10-00-00": {FIRST}},
    ),
    "rl_games": (
        {
            f"runs/Ant_21-10-00-00/{name}": data
            for name, data in {
                f"summaries/{FIRST}": EVENTS,
                "nn/Ant.pth": WEIGHTS,
                "config.yaml": b"train: {}\n",
            }.items()
        },
        {"runs/Ant_21-10-00-00": {f"summaries/{FIRST}"}},
    ),
    "Tianshou": (
        {
            f"log/Ant-v4/ppo/{seed}/261121-100000/{name}": data
            for seed in (0, 1)
            for name, data in {FIRST: EVENTS, "policy.pth": WEIGHTS}.items()
        },
        {f"log/Ant-v4/ppo/{seed}/261121-100000": {FIRST} for seed in (0, 1)},
    ),
    "ML-Agents with two behaviours": (
        {
            f"results/soccer/Striker/{FIRST}": EVENTS,
            f"results/soccer/Goalie/{FIRST}": EVENTS,
            "results/soccer/Striker/Striker-100.onnx": WEIGHTS,
            "results/soccer/configuration.yaml": b"behaviors: {}\n",
            "results/soccer/run_logs/timers.json": b'{"name": "root"}',
            "results/soccer/run_logs/training_status.json": b'{"Striker": {}}',
        },
        {f"results/soccer/{name}": {FIRST} for name in ("Striker", "Goalie")},
    ),
    "DreamerV3": (
        {
            "logdir/20261121T100000/metrics.jsonl": LINES,
            "logdir/20261121T100000/scores.jsonl": b'{"step": 4, "episode/score": 1.0}\n',
            "logdir/20261121T100000/config.yaml": b"task: atari_pong\n",
            f"logdir/20261121T100000/{FIRST}": EVENTS,
        },
        {"logdir/20261121T100000": {"metrics.jsonl", "scores.jsonl", FIRST}},
    ),
    "Acme": (
        {
            f"acme/20261121-100000/logs/{label}/logs.csv": b"actor_steps,episode_return\n1,0.5\n"
            for label in ("actor", "learner", "evaluator")
        },
        {
            "acme/20261121-100000": {
                f"logs/{label}/logs.csv" for label in ("actor", "learner", "evaluator")
            }
        },
    ),
}


def build(root, files):
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def found(root):
    return {
        run.name: {str(path.relative_to(run.root)) for path, _ in run.files}
        for run in sources.find(root)
    }


@pytest.mark.parametrize("case", CASES)
def test_which_files_are_one_run(tmp_path, case):
    files, expected = CASES[case]
    root = build(tmp_path / "project", files)
    named = {name or "project": inside for name, inside in expected.items()}
    assert found(root) == named
    databases = [name for name in named if name.startswith("trackio/")]  # in order of start
    assert list(found(root)) == [*databases, *sorted(named.keys() - databases)]
    sent = pickle.dumps(sources.find(root))  # as other processes get them
    for run in pickle.loads(sent):  # noqa: S301 - our own
        assert sum(len(log.series) for log in sources.read(run)) > 0


def test_every_reader_can_be_sent_to_another_process():
    assert pickle.loads(pickle.dumps(READERS)) == READERS  # noqa: S301 - our own


@pytest.mark.parametrize(
    ("name", "data", "run"),
    [("seed1.csv", TABLE, "seed1"), ("progress.csv", SB3, "project"), (FIRST, EVENTS, "project")],
)
def test_a_single_file_is_a_run(tmp_path, name, data, run):
    path = build(tmp_path / "project", {name: data}) / name
    (only,) = sources.find(path)
    assert (only.name, only.root, [file for file, _ in only.files]) == (run, path.parent, [path])
    (log,) = sources.read(only)
    assert log.where == name


def test_a_file_with_others_beside_it_is_headed_by_its_own_name_too(tmp_path):
    folder = build(tmp_path / "project", {"train.csv": TABLE, "log.jsonl": b'{"step": 1}\n'})
    named = [sources.find(folder / name)[0].name for name in ("train.csv", "log.jsonl")]
    assert named == ["project/train.csv", "project/log.jsonl"]
    parts = build(tmp_path / "run", {FIRST: EVENTS, f"{FIRST}.2": EVENTS})
    assert sources.find(parts / FIRST)[0].name == "run"  # of one log


def test_a_part_given_alone_is_a_run(tmp_path):
    root = build(tmp_path, {f"run/eval/{FIRST}": EVENTS, f"run/train/{FIRST}": EVENTS})
    (run,) = sources.find(root / "run" / "eval")
    (log,) = sources.read(run)
    assert list(log.series) == ["loss"]


def test_a_resume_is_read_in_order_of_start(tmp_path):
    late, early = events((3, 0.3), (4, 0.4)), events((1, 0.1), (2, 0.2), (3, 9.0))
    root = build(tmp_path, {f"tb/{SECOND}": late, f"tb/{FIRST}": early})
    (log,) = sources.read(sources.find(root)[0])
    assert log.series["loss"].steps.tolist() == [1, 2, 3, 3, 4]
    np.testing.assert_allclose(log.series["loss"].values, [0.1, 0.2, 9.0, 0.3, 0.4], rtol=1e-6)


def test_a_resumed_run_of_wandb_is_read_in_order_of_start(tmp_path):
    early = leveldb.wandb_file(*({"_step": n, "loss": n} for n in range(3)))
    late = leveldb.wandb_file(*({"_step": n, "loss": n} for n in range(2, 5)))
    files = {f"wandb/{LATER}-x/run-x.wandb": late, f"wandb/{RUN}-x/run-x.wandb": early}
    (run,) = sources.find(build(tmp_path, files))
    (log,) = sources.read(run)
    assert log.series["loss"].steps.tolist() == [0, 1, 2, 2, 3, 4]


def test_settings_in_a_folder_of_several_runs_are_nobody_s(tmp_path):
    files = {"seed1.csv": TABLE, "seed2.csv": TABLE, "config.json": CONFIG}
    runs = sources.find(build(tmp_path, files))
    assert [run.settings for run in runs] == [(), ()]
    (tmp_path / "seed2.csv").unlink()
    (run,) = sources.find(tmp_path)
    assert [path.name for path in run.settings] == ["config.json"]
    assert {"learning_rate": 0.1} in [log.settings for log in sources.read(run)]


def test_a_run_of_a_database_is_found_by_its_name(tmp_path):
    root = build(tmp_path, {"project.db": DATABASE})
    (run,) = sources.find(root / "project.db" / "second")
    assert run.name == "second"
    assert [found.name for found in sources.find(root / "project.db")] == ["first", "second"]
    with pytest.raises(UnreadableLog, match="no run called 'secnod'") as error:
        sources.find(root / "project.db" / "secnod")
    assert "did you mean second?" in error.value.hint


def test_tables_of_one_scheduler_go_on_from_each_other(tmp_path):
    files = {f"metrics/ppo_metrics_20260131_10000{n}.csv": SCHEDULER % n for n in range(3)}
    (log,) = sources.read(sources.find(build(tmp_path, files))[0])
    assert log.series["reward"].steps.tolist() == [0, 1, 2]
    assert log.step_unit == "decisions"


def test_evaluations_have_keys_of_their_own(tmp_path):
    files = {f"train/{FIRST}": EVENTS, f"eval/{FIRST}": events((2, 1.0)), "eval.csv": TABLE}
    logs = sources.read(sources.find(build(tmp_path, files))[0])
    keys = {log.where: list(log.series) for log in logs}
    assert keys == {
        f"eval/{FIRST}": ["eval/loss"],
        f"train/{FIRST}": ["loss"],
        "eval.csv": ["eval/loss"],
    }


def test_monitors_of_parallel_environments_are_one_stream(tmp_path):
    """Episodes in the order they ended; a step of any environment is a step."""
    zero = monitor(100.0 + 1.7e9, (1.0, 10, 1.0), (3.0, 30, 3.0))
    one = monitor(101.0 + 1.7e9, (2.0, 20, 1.0), (4.0, 40, 3.0))
    root = build(tmp_path, {"1.monitor.csv": one, "0.monitor.csv": zero})
    (log,) = sources.read(sources.find(root)[0])
    assert log.series["r"].values.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert log.series["r"].steps.tolist() == [10, 30, 60, 100]
    assert (log.series["r"].times - 1.7e9).tolist() == [101.0, 102.0, 103.0, 104.0]
    assert "2 environments: episodes merged by time" in log.notes


def test_monitors_with_an_extra_column_that_is_not_always_there(tmp_path):
    zero = b'#{"t_start": 1.7e9}\nr,l,t,won\n1,10,1,1\n3,30,3,\n5,50,5,0\n'
    one = monitor(1.7e9, (2.0, 20, 2.0), (4.0, 40, 4.0))
    root = build(tmp_path, {"0.monitor.csv": zero, "1.monitor.csv": one})
    (log,) = sources.read(sources.find(root)[0])
    assert log.series["r"].values.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert log.series["won"].steps.tolist() == [10, 150]
    assert log.series["won"].values.tolist() == [1.0, 0.0]


def test_monitors_without_a_start_are_merged_by_their_own_steps(tmp_path):
    files = {f"{n}.monitor.csv": b"r,l,t\n%d,10,1\n%d,10,2\n" % (n, n + 5) for n in range(2)}
    (log,) = sources.read(sources.find(build(tmp_path, files))[0])
    assert log.series["r"].values.tolist() == [0.0, 1.0, 5.0, 6.0]
    assert log.series["r"].steps.tolist() == [10, 20, 30, 40]
    assert any("for want of a start time" in note for note in log.notes)


def test_a_file_that_fails_is_a_note(tmp_path):
    root = build(tmp_path, {FIRST: EVENTS, "trainer_state.json": b'{"log_history": ['})
    logs = sources.read(sources.find(root)[0])
    assert [log.source for log in logs] == ["tensorboard", "files"]
    assert logs[-1].notes[0].startswith("trainer_state.json not read: the trainer's state is cut")


def test_when_every_file_fails_it_is_an_error(tmp_path):
    root = build(tmp_path, {"trainer_state.json": b'{"log_history": ['})
    with pytest.raises(UnreadableLog, match="cut short") as error:
        sources.read(sources.find(root)[0])
    assert str(root) in error.value.where


def database(path, *runs):
    """Write a database as Trackio of before 0.24 had it, with a row for each run."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp, run_name, step, metrics)"
        )
        db.execute("CREATE TABLE configs (id INTEGER PRIMARY KEY, run_name, config)")
        for name in runs:
            row = ("2026-01-31T10:00:00+00:00", name, 1, '{"loss": 0.5}')
            db.execute("INSERT INTO metrics VALUES (NULL, ?, ?, ?, ?)", row)


def test_a_database_without_a_run(tmp_path):
    database(tmp_path / "empty.db")
    for path in (tmp_path, tmp_path / "empty.db"):
        with pytest.raises(UnreadableLog, match="a database without a run") as error:
            sources.find(path)
        assert str(tmp_path / "empty.db") in error.value.where


def test_a_damaged_database_beside_others_is_a_note(tmp_path):
    database(tmp_path / "empty.db")
    database(tmp_path / "good.db", "a", "b/c")
    database(tmp_path / "cut.db", *map(str, range(500)))
    os.truncate(tmp_path / "cut.db", 9000)
    (tmp_path / "table.csv").write_bytes(TABLE)
    runs = sources.find(tmp_path)
    assert [run.name for run in runs] == ["good/a", "good/b/c", tmp_path.name]
    for run in runs:
        assert run.notes[0].startswith("cut.db: the database is cut short")
        assert run.notes[1] == "empty.db: a database without a run"
        assert len(sources.read(run)[0].series["loss"]) in {1, 2}
    (run,) = sources.find(tmp_path / "good.db" / "b" / "c")
    assert run.name == "b/c"


def test_an_empty_folder(tmp_path):
    with pytest.raises(UnreadableLog, match="no training log") as error:
        sources.find(tmp_path)
    assert "it is empty" in error.value.where
    assert "rlvitals readers" in error.value.hint


def test_a_folder_of_other_things_says_what_it_holds(tmp_path):
    root = build(tmp_path, {"a.png": b"", "b.png": b"", "c.pt": b"", "Makefile": b"", "x.csv": b""})
    with pytest.raises(UnreadableLog) as error:
        sources.find(root)
    assert "found 2 .png, 1 .csv, 1 .pt, 1 without an ending" in error.value.where


CRASHED = b"loading\nTraceback (most recent call last):\n  File 'a.py', line 1\nKeyError: 'q'\n"


def test_the_only_text_of_a_folder_is_its_log_though_it_failed_before_its_first_row(tmp_path):
    (run,) = sources.find(build(tmp_path / "a", {"train.log": CRASHED, "c.pt": b""}))
    assert sources.read(run)[0].ending.traceback.endswith("KeyError: 'q'")
    several = build(tmp_path / "b", {"train.log": CRASHED, "notes.txt": b"to do\n"})
    with pytest.raises(UnreadableLog, match="no training log"):
        sources.find(several)


def test_what_is_not_there(tmp_path):
    with pytest.raises(UnreadableLog, match="this path does not exist") as error:
        sources.find(tmp_path / "gone")
    assert str(tmp_path / "gone") in error.value.where


def test_loops_and_second_names_are_met_once(tmp_path):
    root = build(tmp_path / "project", {"real/progress.csv": SB3})
    (root / "a_link").symlink_to(root / "real")
    (root / "real" / "loop").symlink_to(root)
    (root / "self").symlink_to(root / "self")
    (root / "gone").symlink_to(root / "nowhere")
    (root / "copy.csv").symlink_to(root / "real" / "progress.csv")
    assert found(root) == {"real": {"progress.csv"}}
    (run,) = sources.find(root)
    assert any(note.startswith("cannot look into self:") for note in run.notes)


def test_a_link_out_of_the_folder_is_followed(tmp_path):
    build(tmp_path, {"elsewhere/progress.csv": SB3})
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "run").symlink_to(tmp_path / "elsewhere")
    assert found(tmp_path / "here") == {"run": {"progress.csv"}}


def test_a_folder_that_cannot_be_opened_is_a_note(tmp_path, monkeypatch):
    """Permission bits do not stop root: the system call itself is refused."""
    root = build(tmp_path, {"open/progress.csv": SB3, "closed/progress.csv": SB3})
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    (run,) = sources.find(root)
    assert run.name == "open"
    assert run.notes == ("cannot look into closed: Permission denied",)


def test_limits_are_said(tmp_path, monkeypatch):
    deep = "/".join("d" * 20)
    root = build(tmp_path, {f"{deep}/progress.csv": SB3, "progress.csv": SB3})
    (run,) = sources.find(root)
    assert run.notes == ("folders more than 12 deep were not looked at",)
    monkeypatch.setattr("rlvitals.readers.discovery.walk.MAX_WALK_ENTRIES", 3)
    build(root, {f"{n}.bin": b"" for n in range(9)})
    (run,) = sources.find(root)
    assert "more than 3 files: the rest was not looked at" in run.notes


def test_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "progress.csv")
    with pytest.raises(UnreadableLog) as error:
        sources.find(tmp_path)
    assert "not a regular file" in error.value.where


@pytest.mark.parametrize(
    ("log", "file", "text", "settings"),
    [
        (
            f"logs/ant/1/{FIRST}",
            "logs/ant/1/params/agent.yaml",
            b"algorithm:\n  learning_rate: 1e-3\n",
            {"algorithm/learning_rate": 1e-3},
        ),
        (
            f"runs/Ant/summaries/{FIRST}",
            "runs/Ant/config.yaml",
            b"train:\n  params:\n    config: {e_clip: 0.2}\n",
            {"train/params/config/e_clip": 0.2},
        ),
        (
            f"results/ball/3DBall/{FIRST}",
            "results/ball/configuration.yaml",
            b"behaviors:\n  3DBall:\n    max_steps: 500000\n",
            {"max_steps": 500000},
        ),
    ],
)
def test_settings_belong_to_the_run_beside_or_below_them(tmp_path, log, file, text, settings):
    (run,) = sources.find(build(tmp_path, {log: EVENTS, file: text}))
    assert {key: value for log in sources.read(run) for key, value in log.settings.items()} == (
        settings
    )


def test_settings_of_two_behaviours_belong_each_to_its_own(tmp_path):
    files = {f"ball/{name}/{FIRST}": EVENTS for name in "ab"}
    text = b"behaviors:\n  a: {max_steps: 1}\n  b: {max_steps: 2}\n"
    runs = sources.find(build(tmp_path, {**files, "ball/configuration.yaml": text}))
    assert [sources.read(run)[-1].settings for run in runs] == [{"max_steps": 1}, {"max_steps": 2}]


def test_acme_evaluates_apart(tmp_path):
    table = b"actor_steps,episode_return\n100,0.5\n200,0.7\n"
    files = {f"logs/{label}/logs.csv": table for label in ("actor", "evaluator")}
    logs = sources.read(sources.find(build(tmp_path, files))[0])
    assert [list(log.series) for log in logs] == [["episode_return"], ["eval/episode_return"]]
    assert {log.step_unit for log in logs} == {"environment steps"}
    assert logs[0].series["episode_return"].steps.tolist() == [100, 200]


@pytest.mark.real_logs
def test_real_folders(real_logs):
    """Other folders may lie beside these."""
    names = [run.name for run in sources.find(real_logs)]
    assert names == sorted(names)
    (run,) = sources.find(real_logs / "vidurrl-20250918_232535")
    assert {reader.name for _, reader in run.files} == {"tensorboard", "scheduler-csv"}
    assert len(sources.find(real_logs / "sb3-monitor")) == 5
    runs = sources.find(real_logs / "wandb")
    assert [run.name for run in runs] == [
        "run-20230330_004402-22gd2nys",
        "run-20230402_020025-14kim7w1",
    ]


@pytest.mark.parametrize("up", ["..", "../..", "/", "."])
def test_a_link_that_leads_up_is_not_followed(tmp_path, up):
    root = build(tmp_path, {"a/run.jsonl": LINES, "b/run.jsonl": LINES})
    (root / "a" / "up").symlink_to(up)
    (run,) = sources.find(root / "a")
    assert [file for file, _ in run.files] == [root / "a" / "run.jsonl"]


def test_a_folder_that_holds_any_run_is_named_after_its_parent(tmp_path):
    for folder in ("ppo/results", "ppo/runs", "ppo/seed_1"):
        (tmp_path / folder).mkdir(parents=True)
        path = tmp_path / folder / "results.csv"
        path.write_text("step,reward\n" + "".join(f"{i},{i}\n" for i in range(20)))
        for place in (path.parent, path):
            (run,) = sources.find(place)
            assert run.name == ("seed_1" if folder == "ppo/seed_1" else folder)


def test_what_several_programs_printed_is_not_mixed_with_the_run_beside(tmp_path):
    text = b"".join(b"step=%d reward=%d\n" % (step, step) for step in range(1, 20))
    files = {"ppo.out": text, "dqn.out": text, "logs/progress.csv": SB3}
    runs = sources.find(build(tmp_path / "work", files))
    assert [(run.name, [file.name for file, _ in run.files]) for run in runs] == [
        ("work", ["progress.csv"]),
        ("dqn", ["dqn.out"]),
        ("ppo", ["ppo.out"]),
    ]
    ranks = {"rank_0.log": text, "rank_1.log": text, "logs/progress.csv": SB3}
    (run,) = sources.find(build(tmp_path / "ranks", ranks))
    assert len(run.files) == 3
    chunks = {"chunk_1.log": text, "chunk_2.log": text, "logs/progress.csv": SB3}
    (run,) = sources.find(build(tmp_path / "chunks", chunks))
    assert len(run.files) == 3


def test_a_log_beside_a_folder_of_its_name_is_told_apart_by_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "step,return\n" + "\n".join(f"{step},{step}" for step in range(20))
    Path("ppo").mkdir()
    Path("ppo", "metrics.csv").write_text(rows)
    Path("ppo.csv").write_text(rows)
    Path("sac.csv").write_text(rows)
    names = {run.name for run in sources.find(Path())}
    assert names == {"ppo (ppo)", "ppo (ppo.csv)", "sac"}


@pytest.mark.parametrize("name", ["info.json", "evaluations.npz"])
def test_a_file_that_its_framework_names_gives_no_name_to_a_run(name):
    assert run_names.own_name(Path("runs/ppo_3") / name) == ""

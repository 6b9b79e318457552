"""The look-alike of W&B's module: what it takes, and which step a number stands at."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import wandb as real
from held import events, log, notes, rows, settings

import rlvitals
from rlvitals import wandb

SCRIPT = Path(__file__).parent / "wandb_style.py"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Each test in a folder of its own, without anybody's variables; its run is ended."""
    for name in list(os.environ):
        if name.startswith("WANDB_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    yield
    wandb.finish()


def only():
    (folder,) = Path("runs").iterdir()
    return folder


def test_a_script_records_with_one_changed_import(tmp_path):
    text = SCRIPT.read_text()
    assert text.count("import wandb\n") == 1
    Path("script.py").write_text(text.replace("import wandb\n", "import rlvitals.wandb as wandb\n"))
    known = {**os.environ, "PYTHONPATH": str(Path(rlvitals.__file__).parent.parent)}
    subprocess.run([sys.executable, "script.py"], check=True, env=known, cwd=tmp_path)
    folder = only()
    found = rlvitals.trace(folder)
    assert found.settings["env_id"] == "CartPole-v1"
    assert {"seed": 3, "clip_range": 0.2, "total_steps": 20_000}.items() <= found.settings.items()
    assert list(found["outcome/return"].steps) == [500 * (i + 1) for i in range(40)]
    assert list(found["policy/approx_kl"].steps) == list(found["outcome/return"].steps)
    read = log(folder)
    assert len(read.histograms["advantages"]) == 4
    assert len(read.tables["episodes"]) == 40
    assert events(folder, "alert")[0]["title"] == "done"
    assert len([one for one in notes(folder) if "frame" in one]) == 1
    assert rlvitals.diagnose(folder).verdict.word == "learning"


def test_the_same_script_runs_with_the_real_one(tmp_path):
    known = {**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    command = [sys.executable, "-W", "ignore", SCRIPT]
    done = subprocess.run(command, check=False, env=known, cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_steps_count_as_theirs_do():
    wandb.init()
    wandb.log({"a": 1})
    wandb.log({"a": 2}, commit=False)
    wandb.log({"b": 3})
    wandb.log({"a": 4}, step=10)
    wandb.log({"b": 5}, step=10)
    wandb.log({"a": 6}, step=12, commit=True)
    wandb.log({"a": 7})
    wandb.finish()
    expected = [(0, {"a": 1}), (1, {"a": 2, "b": 3}), (10, {"a": 4, "b": 5}), (12, {"a": 6})]
    assert rows(only()) == [*expected, (13, {"a": 7})]


@pytest.mark.soak
def test_steps_of_the_real_one_are_the_same(tmp_path):
    """The same calls, read from W&B's own file."""
    for module, keywords in ((real, {"mode": "offline", "dir": str(tmp_path)}), (wandb, {})):
        with module.init(**keywords) as run:
            run.define_metric("global_step")
            run.define_metric("loss*", step_metric="global_step")
            for i in range(5):
                run.log({"global_step": 100 * i, "loss/policy": float(i)}, commit=False)
                run.log({"charts/x": -float(i)})
            run.log({"late": 1.0}, step=9)
    (theirs,) = rlvitals.read(next((tmp_path / "wandb").glob("offline-run-*")))[:1]
    ours = log(only())
    for key in ("loss/policy", "charts/x", "late"):
        np.testing.assert_array_equal(theirs.series[key].steps, ours.series[key].steps, key)
        np.testing.assert_array_equal(theirs.series[key].values, ours.series[key].values, key)


def test_a_known_step_column_is_the_step_of_all():
    wandb.init()
    for i in range(3):
        wandb.log({"train/global_step": 10 * i, "loss": i})
    wandb.finish()
    assert list(log(only()).series["loss"].steps) == [0, 10, 20]


def test_config_by_item_attribute_and_update():
    parsed = argparse.Namespace(gamma=0.99, nested={"a": 1})
    wandb.init(config=parsed)
    wandb.config.lr = 0.1
    wandb.config["n"] = 2
    wandb.config.update({"lr": 0.2}, allow_val_change=True)
    wandb.config.setdefaults({"lr": 0.5, "m": 7})
    assert (wandb.config.lr, wandb.config["n"], wandb.config.get("no", 5)) == (0.2, 2, 5)
    assert "gamma" in wandb.config
    assert dict(wandb.config) == wandb.config.as_dict()
    with pytest.raises(AttributeError, match="no 'missing'"):
        _ = wandb.config.missing
    wandb.finish()
    expected = {"gamma": 0.99, "nested/a": 1, "lr": 0.2, "n": 2, "m": 7}
    assert expected.items() <= settings(only()).items()


def test_the_summary_keeps_what_is_asked_for():
    run = wandb.init()
    run.define_metric("loss", summary="min")
    run.define_metric("acc", summary="max")
    for loss, acc in ((3, 1), (1, 5), (2, 4)):
        run.log({"loss": loss, "acc": acc, "last": loss})
    assert (run.summary["loss"], run.summary.acc, run.summary["last"]) == (1, 5, 2)
    wandb.summary["mine"] = 9
    wandb.finish()
    assert events(only(), "summary")[-1]["values"]["loss"] == 1
    assert any(one["values"].get("mine") == 9 for one in events(only(), "summary"))


def test_tables_of_rows_and_of_data_frames_as_trl_logs_them():
    wandb.init()
    frame = pd.DataFrame({"prompt": ["a", "b"], "reward": [0.5, 1.0]})
    wandb.log({"completions": wandb.Table(dataframe=frame)})
    table = wandb.Table(columns=["x", "picture"], data=[[1, wandb.Image(None)]])
    table.add_column("y", [2])
    with pytest.raises(ValueError, match="2 cells for 3 columns"):
        table.add_data(1, 2)
    wandb.log({"t": table})
    wandb.finish()
    read = log(only()).tables
    assert list(read["completions"].columns["prompt"]) == ["a", "b"]
    assert list(read["completions"].columns["reward"]) == [0.5, 1.0]
    assert list(read["t"].columns["picture"]) == ["<Image>"]
    pd.testing.assert_frame_equal(wandb.Table(dataframe=frame).get_dataframe(), frame)


def test_what_else_can_be_logged():
    wandb.init()
    wandb.log({"said": "hello", "tensor": torch.tensor(2.0), "many": np.arange(100.0)})
    wandb.log({"outer": {"inner": 1}, "none": None, "flag": True})
    wandb.log({"h": wandb.Histogram(np_histogram=np.histogram([1, 2, 3], bins=2))})
    wandb.finish()
    read = log(only())
    assert read.texts["said"][0].text == "hello"
    assert read.series["tensor"].values[0] == 2.0
    assert read.series["outer/inner"].values[0] == 1
    assert read.series["flag"].values[0] == 1
    assert read.histograms["many"][0].counts.sum() == 100
    assert list(read.histograms["h"][0].counts) == [1, 2]


def test_what_means_nothing_here_is_said_once_and_is_not_fatal():
    run = wandb.init(monitor_gym=True, colour="red", anonymous="allow")
    for _ in range(3):
        run.log({"v": wandb.Video(None), "list": [1, 2]}, telemetry=1)
        run.log("no mapping")
    wandb.require("core")
    run.log_code(".")
    wandb.finish()
    said = [one for one in notes(only()) if "of W&B" in one]
    told = ("monitor_gym", "colour", "telemetry", "v (", "list (", "of a str")
    assert [len([one for one in said if word in one]) for word in told] == [1] * len(told)
    assert not any("anonymous" in one for one in said)


def test_watch_records_histograms_of_gradients_and_changes_none():
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    run = wandb.init()
    run.watch(model, log="all", log_freq=2)
    gradients = []
    for _ in range(4):
        model.zero_grad()
        model(torch.ones(1, 3)).sum().backward()
        gradients.append(model.weight.grad.clone())
        run.log({"x": 1})
    wandb.unwatch(model)
    model(torch.ones(1, 3)).sum().backward()
    wandb.finish()
    read = log(only()).histograms
    assert set(read) == {
        f"{of}/{part}" for of in ("gradients", "parameters") for part in ("weight", "bias")
    }
    assert len(read["gradients/weight"]) == 2
    assert all(torch.equal(g, torch.ones(1, 3)) for g in gradients)


def test_files_and_artifacts_are_named_and_stay():
    Path("model.pt").write_text("weights")
    wandb.init()
    assert wandb.save("*.pt") == ["model.pt"]
    artifact = wandb.Artifact("policy", type="model", metadata={"step": 1})
    artifact.add_file("model.pt")
    wandb.log_artifact(artifact)
    wandb.log_artifact("model.pt", name="again", type="model").wait()
    wandb.finish()
    assert events(only(), "files")[0]["files"] == ["model.pt"]
    names = [(one["name"], one["files"]) for one in events(only(), "artifact")]
    assert names == [("policy", ["model.pt"]), ("again", ["model.pt"])]


def test_one_run_at_a_time_unless_another_is_asked_for():
    first = wandb.init(project="p", name="one")
    assert wandb.init() is first is wandb.run
    second = wandb.init(reinit=True, name="two")
    assert second is wandb.run
    assert first.finished
    wandb.finish()
    assert wandb.run is None
    with pytest.raises(rlvitals.UsageError, match="no run has begun"):
        wandb.log({"a": 1})
    assert sorted(p.name.partition("-")[0] for p in Path("runs").iterdir()) == ["one", "two"]


def test_an_id_goes_on_with_its_run():
    wandb.init(id="abc", config={"lr": 1}).log({"a": 1})
    wandb.finish()
    again = wandb.init(id="abc", resume="allow")
    assert again.resumed
    again.log({"a": 2}, step=5)
    wandb.finish()
    assert only().name == "abc"
    assert len(list((only() / "blocks").iterdir())) == 2
    named = wandb.init(name="with a name")
    assert not named.resumed
    wandb.finish()
    assert wandb.init(id=named.id).recording.folder == named.recording.folder


def test_the_environment_s_variables_hold(monkeypatch):
    for name, value in {"PROJECT": "p", "NAME": "n", "TAGS": "a,b", "RUN_GROUP": "g"}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    run = wandb.init(name="given")
    assert (run.project, run.name, run.tags, run.group) == ("p", "given", ("a", "b"), "g")


def test_disabled_writes_nothing(tmp_path):
    with wandb.init(mode="disabled", config={"lr": 1}) as run:
        run.log({"a": 1})
        run.summary["x"] = 1
        assert run.config.lr == 1
        assert run.disabled
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("code", "status"), [(0, "finished"), (3, "failed")])
def test_how_a_run_ended(code, status):
    wandb.init().log({"a": 1}, commit=False)
    wandb.finish(exit_code=code)
    assert events(only(), "finish")[0]["status"] == status
    assert rows(only()) == [(0, {"a": 1})]  # what was not committed is not lost


@pytest.mark.parametrize("name", ["module", "run", "teardown"])
def test_the_exit_code_is_kept(name):
    run = wandb.init()
    run.log({"a": 1})
    {"module": wandb.finish, "run": run.finish, "teardown": wandb.teardown}[name](3)
    assert events(only(), "finish")[0]["exit_code"] == 3
    found = rlvitals.trace(only()).lifecycle
    assert (found.exit_code, found.reason) == (3, "exit code 3")


def test_a_block_that_fails_is_a_failed_run():
    with pytest.raises(ZeroDivisionError), wandb.init() as run:
        run.log({"a": 1 / 0})
    assert events(only(), "finish")[0]["status"] == "failed"


def test_names_of_the_module():
    for name in wandb.__all__:
        if name not in {"run", "config", "summary", "api", "attach"}:
            assert hasattr(real, name), name
            assert getattr(wandb, name) is not None
    with pytest.raises(AttributeError, match="talks to no server"):
        _ = wandb.keras


def test_names_are_there_before_a_run_begins():
    names = {}
    exec("from rlvitals.wandb import *", names)  # noqa: S102 - at module level only
    assert {"config", "summary", "run", "Api", "init"} <= set(names)
    assert hasattr(wandb, "config")
    for call in (lambda: wandb.config.lr, lambda: wandb.summary.update({"a": 1})):
        with pytest.raises(wandb.Error, match="no run has begun"):
            call()
    with pytest.raises(wandb.errors.UsageError, match="no run has begun"):
        wandb.config["lr"] = 1


def test_the_writers_of_tensorboard_are_followed(tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    wandb.init(sync_tensorboard=True, config={"lr": 1})
    with SummaryWriter(tmp_path / "events") as writer:
        for i in range(5):
            writer.add_scalar("charts/episodic_return", i, 100 * i)
            wandb.log({"eval/score": -i})
        writer.add_image("picture", np.zeros((3, 2, 2)), 1)
    wandb.finish()
    read = log(only())
    assert list(read.series["charts/episodic_return"].steps) == [0, 100, 200, 300, 400]
    assert list(read.series["eval/score"].steps) == [0, 100, 200, 300, 400]
    assert len([one for one in notes(only()) if "add_image" in one]) == 1
    assert len(list((tmp_path / "events").iterdir())) == 1
    with SummaryWriter(tmp_path / "later") as writer:  # no run has begun
        writer.add_scalar("x", 1, 1)
    wandb.tensorboard.patch(root_logdir="events")
    run = wandb.init(name="second")
    with SummaryWriter(tmp_path / "patched") as writer:
        writer.add_scalar("x", 2, 7)
    wandb.finish()
    assert rows(run.dir)[0] == (7, {"x": 2})


def test_the_last_row_of_a_script_that_never_finishes_is_kept():
    run = wandb.init()
    run.log({"a": 1}, step=3)
    run.recording.finish()  # as at the end of the process
    run.finished = True
    assert rows(only()) == [(3, {"a": 1})]


def test_the_callback_for_stable_baselines3(tmp_path):
    from stable_baselines3 import PPO

    from rlvitals.wandb.integration.sb3 import WandbCallback

    run = wandb.init(sync_tensorboard=True)
    model = PPO(
        "MlpPolicy", "CartPole-v1", n_steps=64, tensorboard_log=str(tmp_path / "tb"), seed=1
    )
    callback = WandbCallback(
        gradient_save_freq=10, model_save_path=str(tmp_path / "m"), model_save_freq=100
    )
    model.learn(192, callback=callback)
    wandb.finish()
    read = log(run.dir)
    assert list(read.series["time/fps"].steps) == [64, 128, 192]
    assert settings(run.dir)["algo"] == "PPO"
    assert settings(run.dir)["n_steps"] == 64
    assert any(name.startswith("gradients/") for name in read.histograms)
    assert (tmp_path / "m" / "model.zip").exists()


def test_an_object_that_cannot_be_asked_is_a_note():
    class Strange:
        columns = data = 3

    wandb.init()
    wandb.log({"a": Strange()})
    wandb.log({"a": 1})
    wandb.finish()
    assert rows(only()) == [(1, {"a": 1})]
    assert any("a is not recorded" in one for one in notes(only()))


def test_an_artifact_s_new_file_is_named():
    run = wandb.init()
    artifact = wandb.Artifact("texts", type="samples")
    with artifact.new_file("step_1/texts.jsonl.zip", mode="wb") as file:
        file.write(b"bytes")
    run.log_artifact(artifact)
    run.log_model("policy.pt", name="policy")
    wandb.finish()
    names = [(one["name"], one["files"]) for one in events(only(), "artifact")]
    assert names == [("texts", ["texts.jsonl.zip"]), ("policy", ["policy.pt"])]


def test_a_value_whose_shape_is_not_known_yet_is_noted_and_no_error():
    run = wandb.init()
    wandb.log({"weight": torch.nn.parameter.UninitializedParameter(), "reward": 1.0})
    wandb.finish()
    assert log(Path(run.dir)).series["reward"].values.tolist() == [1.0]
    assert any("weight" in note for note in notes(Path(run.dir)))


def test_a_mapping_that_contains_itself_is_noted_and_its_numbers_are_kept():
    run = wandb.init()
    losses = {"policy": 0.5}
    losses["all"] = losses
    wandb.log({"reward": 1.0, "loss": losses})
    wandb.finish()
    series = log(Path(run.dir)).series
    assert (series["reward"].values[0], series["loss/policy"].values[0]) == (1.0, 0.5)
    assert any("loss/all" in note for note in notes(Path(run.dir)))

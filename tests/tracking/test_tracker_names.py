"""The names that a script for another tracker types, on our run and on the module."""

import argparse
import math
import time

import numpy as np
import pytest
from recording_checks import happened, points

import rlvitals
import rlvitals.wandb
from rlvitals.storage.run_folder import RunFolder


def test_config_is_another_name_of_settings(tmp_path):
    with rlvitals.start(tmp_path / "a", config=argparse.Namespace(lr=1e-3, env="maze")) as run:
        assert run.config.lr == run.config["lr"] == 1e-3
        run.config.lr = 0.5
        run.config.update({"gamma": 0.9}, allow_val_change=True)
        run.update_settings({"batch": 8})
        assert dict(run.config) == {"lr": 0.5, "env": "maze", "gamma": 0.9, "batch": 8}
        assert dict(run.settings) == dict(run.config)
    assert RunFolder.open(tmp_path / "a").about.settings == {"lr": 1e-3, "env": "maze"}
    assert len(happened(tmp_path / "a", "settings")) == 3
    with pytest.raises(rlvitals.UsageError, match="settings and config are the same"):
        rlvitals.start(tmp_path / "b", config={"lr": 1}, settings={"lr": 1})


def test_a_run_that_is_not_recorded_has_its_config_too(tmp_path, monkeypatch):
    monkeypatch.setenv("RLVITALS_MODE", "off")
    with rlvitals.start(tmp_path / "a", config={"lr": 1}) as run:
        run.config.gamma = 0.9
        run.summary["best"] = 3
        run.alert("look")
        assert (run.config.lr, run.config.gamma, run.summary.best) == (1, 0.9, 3)
    assert not (tmp_path / "a").exists()


def test_summary_alert_url_and_close(tmp_path):
    run = rlvitals.start(tmp_path / "a")
    run.summary["best"] = 3.5
    run.alert("diverged", "KL is 40", level="WARN")
    assert run.url == (tmp_path / "a").as_uri()
    run.close()
    (summary,) = happened(tmp_path / "a", "summary")
    assert summary.facts["values"] == {"best": 3.5}
    (alert,) = happened(tmp_path / "a", "alert")
    assert alert.facts["title"] == "diverged"
    assert alert.facts["level"] == "WARN"
    assert happened(tmp_path / "a", "finish")


def test_init_log_and_finish_are_those_of_the_look_alike(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rlvitals.UsageError, match="no run has begun"):
        rlvitals.log({"loss": 1.0})
    run = rlvitals.init(project="maze", config={"lr": 1e-3})
    rlvitals.log({"loss": 2.0})
    rlvitals.log({"loss": 1.0})
    rlvitals.finish()
    assert run.config.lr == 1e-3
    assert points(run.dir)["loss"] == [(0, 2.0), (1, 1.0)]


def test_log_and_finish_take_the_run_that_start_began(tmp_path):
    run = rlvitals.start(tmp_path / "a")
    rlvitals.log({"loss": 2.0}, step=7)
    rlvitals.finish()
    assert points(tmp_path / "a")["loss"] == [(7, 2.0)]
    assert happened(tmp_path / "a", "finish")
    assert run.config == {}


def test_what_only_the_look_alike_s_run_has_is_told(tmp_path):
    run = rlvitals.start(tmp_path / "a")
    for name in ("define_metric", "watch", "unwatch", "save", "log_artifact", "log_model"):
        assert hasattr(rlvitals.wandb.Run, name)
        with pytest.raises(AttributeError, match=rf"attribute '{name}': run = rlvitals.init\(\)"):
            getattr(run, name)
    with pytest.raises(AttributeError, match=r"attribute 'dir': run\.folder$"):
        _ = run.dir
    with pytest.raises(AttributeError, match=r"'Run' object has no attribute 'nothing'$"):
        _ = run.nothing
    run.finish()


def test_a_summary_writer_records(tmp_path):
    writer = rlvitals.SummaryWriter(tmp_path / "a")
    writer.add_scalar("loss", 0.5, 3)
    writer.close()
    assert points(tmp_path / "a")["loss"] == [(3, 0.5)]


def test_a_run_of_the_look_alike_that_ended_takes_no_more(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with rlvitals.init():
        pass
    with pytest.raises(rlvitals.UsageError, match="no run has begun"):
        rlvitals.log({"loss": 1.0})
    rlvitals.start(tmp_path / "a")
    rlvitals.log({"loss": 2.0}, step=7)
    rlvitals.finish()
    assert points(tmp_path / "a")["loss"] == [(7, 2.0)]


@pytest.mark.parametrize("options", [{}, {"durable": True}, {"sinks": ["jsonl"]}], ids=str)
@pytest.mark.parametrize("compiled", ["on", "off"])
def test_summary_has_the_last_value_of_each_metric(tmp_path, monkeypatch, options, compiled):
    monkeypatch.setenv("RLVITALS_COMPILED", compiled)
    run = rlvitals.start(tmp_path / "a", **options)
    summary = run.summary
    assert dict(summary) == {}
    run.log(1, {"loss": 2.0, "return": 10.0})
    run.log(2, {"loss": 1.0}, episode=3)
    run.log(3, {"eval": {"return": np.float32(4)}, "lost": None})
    expected = {"loss": 1.0, "return": 10.0, "eval/return": 4.0}
    assert summary == expected
    assert run.flush()
    assert summary == expected
    run.log(4, {"return": 7, "loss": math.nan})
    run.log(5, {"loss": 0.5})
    assert (summary.loss, run.summary["return"], len(summary)) == (0.5, 7.0, 3)
    run.finish()
    assert summary == {**expected, "loss": 0.5, "return": 7.0}


def test_what_is_set_in_the_summary_stays_over_what_is_logged(tmp_path):
    with rlvitals.start(tmp_path / "a") as run:
        run.log(1, {"loss": 2.0})
        run.summary["loss"] = 0.1
        run.summary.setdefaults({"loss": 5, "best": 3})
        run.log(2, {"loss": 1.0})
        assert run.summary == {"loss": 0.1, "best": 3}
        del run.summary["loss"]
        assert run.summary.as_dict() == {"loss": 1.0, "best": 3}
    assert len(happened(tmp_path / "a", "summary")) == 2


def test_a_summary_read_while_rows_are_written_misses_none(tmp_path):
    """Rows go from the list to the thread and on to the disk meanwhile."""
    with rlvitals.start(tmp_path / "a", flush_seconds=0.01) as run:
        for i in range(3000):
            run.log(i, {"i": float(i), f"m{i % 3}": 1.0})
            if not i % 7:
                assert run.summary["i"] == i


def test_a_summary_holds_no_axis_and_nothing_of_the_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("RLVITALS_RECORDING_MACHINE_SECONDS", "0.01")
    with rlvitals.start(tmp_path / "a", flush_seconds=0.01) as run:
        deadline = time.monotonic() + 60
        while "machine/cpu_percent" not in points(tmp_path / "a"):
            run.log(1, {"loss": 1.0}, tokens=5)
            run.flush()
            assert time.monotonic() < deadline
        assert run.summary == {"loss": 1.0}

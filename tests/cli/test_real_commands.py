"""Other people's runs, from the command line: the exit code and the first words."""

import json

import pytest

pytestmark = pytest.mark.real_logs


def test_the_collapsed_scheduler_run(call, real_logs):
    code, out, _ = call("diagnose", real_logs / "vidurrl-20250917_201326")
    assert code == 1
    assert out.startswith(" COLLAPSED ")
    first = next(line for line in out.splitlines() if line.startswith(("error", "warning", "note")))
    assert first.startswith("error[action-collapse]")


def test_the_run_under_a_shifted_header(call, real_logs):
    argv = ("diagnose", real_logs / "vidurrl-20250918_232535", "--set", "target_kl=0.02")
    code, out, _ = call(*argv)
    assert code == 1
    assert "kl-above-target" in out
    assert "clip-fraction-high" in out


@pytest.mark.parametrize("folder", ["rllib", "sb3-monitor"])
def test_healthy_runs_one_line_each(call, real_logs, folder):
    code, out, _ = call("diagnose", real_logs / folder, "--width", "200")
    assert code == 0
    runs = [p for p in (real_logs / folder).iterdir() if p.is_dir()]
    assert len(out.splitlines()) == 1 + len(runs)
    for document in json.loads(call("diagnose", real_logs / folder, "--json")[1]):
        assert not [c for c in document["causes"] if c["severity"] != "note"]


def test_wandb_runs_under_names_that_nobody_knows(call, real_logs):
    code, out, _ = call("diagnose", real_logs / "wandb")
    assert code == 4
    assert out.count("unknown") == 2
    mapped = [
        *("--map", "train/0_reward=outcome/return"),
        *("--map", "test/0_reward=outcome/eval_return"),
    ]
    code, out, _ = call("diagnose", real_logs / "wandb", *mapped)
    assert code == 0
    assert "plateau" in out
    assert "converged" in out

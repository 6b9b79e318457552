"""Whole RLHF trainings: what they leave, resumed bit for bit, asked, stopped, and failing well."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import rlhf_parts
import rlhf_programs as programs
from effort import sampled
from transformers import AutoModelForCausalLM, AutoTokenizer
from waiting import HANG_SECONDS

import rlvitals
from rlvitals import UsageError, VitalsError
from rlvitals.cli import main
from rlvitals.trainers.language import rewards

LONGER = {  # 20 updates of a model that knows how to end
    "model.warm_start_steps": 60, "rlhf.total_episodes": 160, "rlhf.response_length": 6,
    "checkpointing.save_steps": 20,
}  # fmt: skip
LORA = {"model.lora": True, "model.lora_r": 2}


@pytest.fixture(scope="module")
def reward_model(tmp_path_factory):
    return rlhf_parts.reward_model(tmp_path_factory.mktemp("reward_model"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that never stopped."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    programs.run(folder, programs.ALL)
    return folder


def test_killed_and_resumed_is_bit_for_bit_what_never_stopped(tmp_path, whole):
    for at in (3, 5):
        programs.cut_short(tmp_path, programs.ALL, at)
    programs.run(tmp_path, programs.ALL)
    assert any("bit-exact" in line for line in programs.log(tmp_path))
    assert programs.last(tmp_path) == programs.last(whole)


@pytest.mark.soak
def test_adapters_are_resumed_bit_for_bit_too(tmp_path):
    programs.run(tmp_path / "whole", programs.ALL, **LORA)
    programs.cut_short(tmp_path / "cut", {**programs.ALL, **LORA}, 3)
    shutil.move(tmp_path / "cut", tmp_path / "moved")
    programs.run(tmp_path / "moved", programs.ALL, **LORA)
    found = programs.last(tmp_path / "moved")
    assert found == programs.last(tmp_path / "whole")
    assert "adapter_model.safetensors" in found
    assert "model.safetensors" not in found


@pytest.mark.soak
@pytest.mark.parametrize("damage", sampled(["cut", "emptied", "flipped"], 3))
def test_a_broken_newest_checkpoint_falls_back_to_the_one_before(tmp_path, whole, damage):
    programs.cut_short(tmp_path, programs.ALL, 5)
    file = tmp_path / "checkpoint-4" / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes({"cut": data[:-9], "emptied": b"", "flipped": data}[damage])
    programs.run(tmp_path, programs.ALL)
    assert (tmp_path / "checkpoint-4.corrupt").is_dir()
    assert programs.last(tmp_path) == programs.last(whole)


def test_a_checkpoint_is_a_model_that_others_read(whole):
    newest = whole / (whole / "latest").read_text().strip()
    for folder in (newest, whole):
        model = AutoModelForCausalLM.from_pretrained(folder)
        asked = AutoTokenizer.from_pretrained(folder)(["3+4="], return_tensors="pt")
        assert model(**asked).logits.isfinite().all()


def test_a_run_is_recorded_under_both_vocabularies_and_read_once(whole):
    trace = rlvitals.trace(whole)
    assert trace.profile == rlvitals.lab.Profile.RLHF_PPO
    assert trace.measured["outcome/score"].key == "objective/scores"
    assert trace.measured["policy/approx_kl"].key == "policy/approxkl_avg"
    assert {*trace.unmapped} == {"skipped_minibatches", "stopped_early"}
    assert not any("under two keys" in note for note in trace.notes)
    assert len(trace["outcome/score"]) == 6
    assert {*trace.histograms} == {
        "language/length_distribution", "language/logprobs", "language/query_length_distribution",
        "language/ref_logprobs", "policy/advantage_distribution", "policy/ratio",
        "policy/kl_to_reference_distribution", "reward/distribution",
    }  # fmt: skip
    table = trace.tables["game_log"]
    assert len(table) == 48
    assert {"prompt", "completion", "reward"} <= {*table.columns}
    told = dict(trace.settings)
    assert (told["kl_coef"], told["clip_range"], told["gae_lambda"]) == (0.05, 0.2, 0.95)
    assert told["target_kl"] == 0.5


def test_what_adds_up_and_what_is_known_at_first_is_checked(whole):
    found = rlvitals.diagnose(whole)
    judged = {rule.name for rule, _ in found.findings} | {rule.name for rule in found.clear}
    assert {"accounting-broken", "first-update-off"} <= judged
    wrong = {"accounting-broken", "first-update-off", "impossible-value"}
    assert not wrong & {rule.name for rule, _ in found.findings}


def test_a_warm_start_is_told_and_so_is_how_long_the_training_is(tmp_path, capfd):
    made = programs.training(tmp_path, copy_base=False)
    begun, line = (one for one in programs.log(tmp_path) if "tiny-lm" in one)
    assert begun.endswith("tiny-lm is made, and taught for 5 steps first ...")
    assert "Warm start of tiny-lm: 5 steps, loss " in line
    assert "Warm start of tiny-lm" in capfd.readouterr().out
    made.run()
    assert rlvitals.trace(tmp_path).budget.steps == 6


@pytest.mark.soak
def test_minibatches_that_are_all_skipped_are_told_by_what_skips_them(tmp_path):
    """The mean ratio of a first minibatch is 1."""
    programs.run(tmp_path, **LONGER, **{"rlhf.ratio_threshold": 1e-9})
    assert set(rlvitals.trace(tmp_path)["optimiser/update_success"].values) == {0.0}
    found = rlvitals.diagnose(tmp_path)
    assert found.cases[0].rule.name == "setting-out-of-range"
    assert "ratio_threshold is 1e-09" in found.cases[0].finding.summary
    assert found.cases[0].finding.severity is rlvitals.Severity.WARNING
    assert "first-update-off" not in {rule.name for rule, _ in found.findings}


@pytest.mark.soak
@pytest.mark.parametrize(
    ("function", "first"), [("none_right", "constant-reward"), ("raising", "judge-outage")]
)
def test_rewards_that_tell_nothing_are_named_first(tmp_path, function, first):
    said = {"rewards.functions": (f"trained:{function}",), **LONGER}
    programs.run(tmp_path, **said, **{"rlhf.missing_eos_penalty": 0.0})
    found = rlvitals.diagnose(tmp_path)
    assert found.cases[0].rule.name == first
    assert found.cases[0].finding.severity >= rlvitals.Severity.WARNING
    roots = {case.rule.name for case in found.cases}
    assert not roots & {"reference-kl-out-of-range", "first-update-off"}


@pytest.mark.soak
def test_a_run_at_its_end_is_left_as_it_is_and_can_be_taken_further(tmp_path):
    programs.run(tmp_path)
    before = programs.last(tmp_path)
    programs.run(tmp_path)
    assert programs.last(tmp_path) == before
    assert any("was trained to its end" in line for line in programs.log(tmp_path))
    programs.run(tmp_path, **{"rlhf.total_episodes": 64})
    assert (tmp_path / "checkpoint-8").is_dir()
    with pytest.raises(UsageError, match="a run is here"):
        programs.run(tmp_path, **{"checkpointing.resume": False})


def during(made, at, act):
    """Do something after the update of a number."""
    iterate = made.ppo.iterate

    def then():
        found = iterate()
        if made.ppo.counters.updates == at:
            act()
        return found

    made.ppo.iterate = then


@pytest.mark.soak
@pytest.mark.parametrize("what", ["save", "stop"])
def test_it_can_be_asked_to_save_and_to_stop(tmp_path, what):
    made = programs.training(tmp_path, **{"checkpointing.save_steps": 50})

    def ask():
        assert main(["ask", str(tmp_path), what]) == 0
        deadline = time.monotonic() + HANG_SECONDS
        while not getattr(made.recorder._control, f"_{what}s") and time.monotonic() < deadline:
            time.sleep(0.01)  # until the recorder's thread has seen it

    during(made, 3, ask)
    assert made.run() == ("stopped" if what == "stop" else "finished")
    assert (tmp_path / "checkpoint-3").is_dir()
    assert (tmp_path / "checkpoint-6").is_dir() is (what == "save")
    if what == "stop":
        programs.run(tmp_path)
        assert (tmp_path / "checkpoint-6").is_dir()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_after_the_update(tmp_path, number):
    made = programs.training(tmp_path, **{"checkpointing.save_steps": 50})
    during(made, 3, lambda: signal.raise_signal(number))
    with pytest.raises(KeyboardInterrupt):
        made.run()
    assert (tmp_path / "checkpoint-3").is_dir()
    assert any("run the same command again" in line for line in programs.log(tmp_path))


def test_a_reward_function_that_raises_names_the_sample_or_ends_the_training(tmp_path, monkeypatch):
    """The task's own reward, broken for some samples."""
    measure = next(one for one in rewards.REWARD_MEASURES if one.name == "accuracy_reward")

    def broken(sample):
        if len(sample.completion) % 2:
            raise ZeroDivisionError("no such answer")
        return measure.score(sample)

    catalogue = tuple(
        replace(one, score=broken) if one is measure else one for one in rewards.REWARD_MEASURES
    )
    monkeypatch.setattr(rewards, "REWARD_MEASURES", catalogue)
    made = programs.run(tmp_path / "skip")
    assert made.failures > 0
    assert any("no such answer" in line for line in programs.log(tmp_path / "skip"))
    trace = rlvitals.trace(tmp_path / "skip")
    share = trace["reward/none_share/accuracy_reward"].values
    assert ((share > 0) & (share <= 1)).any()
    assert trace["language/error_share"].values.tolist() == share.tolist()
    with pytest.raises(VitalsError, match="no such answer"):
        programs.run(tmp_path / "stop", **{"rewards.on_error": "stop"})
    assert rlvitals.diagnose(tmp_path / "stop").verdict.word.value == "failed"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"rlhf.batch_size": 9, "rlhf.num_mini_batches": 2}, "cannot be shared out"),
        ({"rlhf.temperature": 0.0}, "temperature cannot be 0"),
        ({"rlhf.num_ppo_epochs": 0}, "num_ppo_epochs cannot be 0"),
        ({"rlhf.output_dir": "{nothing}"}, "cannot be filled in"),
        ({"monitoring.report_to": ("mlflow",)}, "nothing reports to"),
        ({"rlhf.reward_model": "/no/such/folder"}, "/no/such/folder"),
    ],
)
def test_settings_that_do_not_fit_are_named(tmp_path, monkeypatch, said, problem):
    monkeypatch.chdir(tmp_path)
    folder = said.get("rlhf.output_dir", "run")
    with pytest.raises(UsageError, match=problem):
        programs.training(folder, **{key: v for key, v in said.items() if key != "rlhf.output_dir"})


def test_the_command_line_trains_and_reports(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    flags = [
        "--warm-start-steps", "5", "--total-episodes", "32", "--batch-size", "8", "--seed", "7",
        "--subset-size", "30", "--report-to", "tensorboard", "wandb", "--logging-dir", "tb",
        "--cliprange", "0.3", "--missing-eos-penalty", "1",
        "--output-dir", str(tmp_path / "run-{seed}"),
    ]  # fmt: skip
    assert main(["train", "rlhf", *flags]) == 0
    run = tmp_path / "run-7"
    said = json.loads((run / "rlhf_config.json").read_text())
    assert (said["rlhf"]["cliprange"], said["model"]["vlm_name"]) == (0.3, "tiny-lm")
    (events,) = (run / "tb").glob("events.out.tfevents.*")
    (log,) = rlvitals.read(events)
    assert {"objective/kl", "ppo/val/var_explained", "env/reward_mean", "eps"} <= {*log.series}
    assert log.series["episode"].values.tolist() == [8, 16, 24, 32]
    assert {"ppo/policy/ratio", "objective/kl_dist"} <= {*log.histograms}
    (offline,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    (log,) = rlvitals.read(offline)
    assert {"objective/kl", "ppo/policy/approxkl", "policy/approxkl_avg"} <= {*log.series}
    told = capsys.readouterr()
    assert "RLHF PPO TRAINING CONFIGURATION:" in told.out
    assert "✓ Training completed successfully" in told.out
    assert "Loading weights" not in told.err + told.out
    assert "Writing model" not in told.err + told.out
    assert main(["train", "rlhf", "--write-config", str(tmp_path / "c.json")]) == 0
    assert json.loads((tmp_path / "c.json").read_text())["rlhf"]["lr"] == 1.5e-4


@pytest.mark.parametrize("flags", [[], ["--base"]])
def test_a_run_is_evaluated_like_those_of_other_modes(whole, capsys, flags):
    asked = ["--questions", "20", "--samples", "2", "--json", *flags]
    assert main(["evaluate", str(whole), *asked]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["mode"] == "rlhf"
    assert [one["step"] for one in said["policies"]] == ([6, 0] if flags else [6])


@pytest.mark.soak
def test_one_process_in_bfloat16_and_with_a_reward_model(tmp_path, reward_model):
    """In a process of its own: what it computes in is set once for each."""
    flags = [
        "--warm-start-steps", "5", "--total-episodes", "16", "--batch-size", "8", "--bf16",
        "--subset-size", "30", "--report-to", "none", "--reward-model", str(reward_model),
        "--output-dir", str(tmp_path / "run"),
    ]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": str(Path(rlvitals.__file__).parents[1])}
    command = [sys.executable, "-m", "rlvitals", "train", "rlhf", *flags]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    trace = rlvitals.trace(tmp_path / "run")
    assert "reward/component/reward_model" in trace
    scores = trace["outcome/score"].values
    assert ((scores != 0) & (scores != 1)).all()  # no accuracy
    assert abs(trace["policy/kl_to_reference"].values[0]) < 1e-2
    assert trace.settings["bf16"] is True


@pytest.mark.soak
def test_sigkill_at_any_time_loses_nothing_that_was_saved(tmp_path):
    flags = [
        "--warm-start-steps", "5", "--total-episodes", "800", "--batch-size", "8", "--seed", "3",
        "--subset-size", "30", "--report-to", "none", "--save-steps", "3",
        "--missing-eos-penalty", "1", "--kl-controller", "adaptive",
    ]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": str(Path(rlvitals.__file__).parents[1])}
    command = [sys.executable, "-m", "rlvitals", "train", "rlhf", *flags, "--output-dir"]
    for name, kills in (("whole", 0), ("cut", 4)):
        for kill in range(kills):
            one = subprocess.Popen([*command, tmp_path / name], env=env, stdout=subprocess.DEVNULL)
            deadline = time.monotonic() + HANG_SECONDS
            while not (tmp_path / name / f"checkpoint-{9 * (kill + 1)}").exists():
                assert one.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
            time.sleep(0.05 * kill)
            one.kill()
            one.wait()
        subprocess.run([*command, tmp_path / name], env=env, check=True, capture_output=True)
    assert programs.last(tmp_path / "cut") == programs.last(tmp_path / "whole")

"""A language model's whole training: its lines, its files, its ends, and going on."""

import json
import os
import re
import shutil
import signal
import subprocess
from dataclasses import replace

import forked
import pytest
import trained
from effort import cases, sampled
from trained import SAID, train

import rlvitals
from rlvitals.trainers.signal_handlers import Terminated

pytestmark = [
    pytest.mark.filterwarnings("ignore", "error:::rlvitals"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]
STAMP = re.compile(r"^\S+ \S+ (?:DEBUG|INFO|WARNING|ERROR) rlvitals: ?", re.MULTILINE)


def said(out):
    """What `debug.log` holds of ours, without the times."""
    lines = (out / "logs" / "debug.log").read_text().splitlines()
    return [STAMP.sub("", line) for line in lines if STAMP.match(line)]


def row(out, key):
    return [row[key] for row in json.loads((out / "trainer_state.json").read_text())["log_history"]
            if key in row]  # fmt: skip


@pytest.fixture(scope="module")
def finished(tiny, tmp_path_factory):
    """The folder of a run that was trained to its end, once for all."""
    out = tmp_path_factory.mktemp("finished") / "run"
    train(out, "nsr", tiny, **SAID)
    return out


# -- what is said ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "batch", "heading"),
    [
        (
            "nsr",
            "NSR [Step 0]: 4/8 negative samples | Avg reward: -0.250",
            ["  Reward threshold: 0.5", "", "✓ NSR reward filtering enabled",
             "  → Training only on NEGATIVE samples"],
        ),
        (
            "psr",
            "PSR [Step 0]: 4/8 positive samples | Avg reward: 0.500",
            ["  Reward threshold: 0.5", "", "✓ PSR reward filtering enabled",
             "  → Training only on POSITIVE samples"],
        ),
        (
            "w-reinforce",
            "W-REINFORCE [Step 0]: 4 pos (λ=0.1) + 4 neg (λ=1.0) | Avg reward: -0.200",
            ["  Reward threshold: 0.5", "  Lambda: 0.1", "",
             "✓ W-REINFORCE reward filtering enabled",
             "  → Training on both, POSITIVE samples weighted by λ"],
        ),
        ("grpo", "GRPO [Step 0]: 8 samples | Avg reward: 0.500", []),
    ],
    ids=["nsr", "psr", "w-reinforce", "grpo"],
)  # fmt: skip
def test_every_line(tiny, tmp_path, mode, batch, heading):
    train(tmp_path, mode, tiny, **SAID, training__max_steps=2, checkpointing__save_steps=2)
    lines = said(tmp_path)
    begin = lines.index(f"{mode.upper()} TRAINING CONFIGURATION:")
    assert any(line.startswith("preset of tiny-lm: ") for line in lines[:begin])
    expected = [f"  Training mode: {mode}", "  Training samples: 32", "  Steps: 2", *heading]
    assert lines[begin + 1 : begin + 1 + len(expected)] == expected
    assert lines[begin + 1 + len(expected) :][:2] == ["", "Training:"]
    assert lines.count(batch) == 1
    assert batch.replace("Step 0", "Step 1") in lines
    assert "alternating: [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]" in lines
    (progress,) = (line for line in lines if line.startswith("Training progress: 100%"))
    assert re.fullmatch(
        r"Training progress: 100% 2/2 \[\d\d:\d\d<00:00, +[\d.]+(it/s|s/it)\]", progress
    )
    end = lines.index("✓ Training completed successfully")
    assert lines[end + 1] == f"✓ Model saved to {tmp_path}/"
    assert lines[end + 3 : end + 5] == ["TRAINING SUMMARY:", f"  Run: {tmp_path.name}"]
    assert "  Total steps: 2" in lines[end:]


def test_the_average_of_grpo_is_the_reward_that_is_logged(tiny, tmp_path):
    """Weighted, and without the samples that no function pays."""
    from rlvitals.trainers.language import console
    from rlvitals.trainers.language.modes import BatchResult

    named = {"rewards__functions": ("trained:alternating", "trained:first_half")}
    train(tmp_path, "grpo", tiny, **named, rewards__weights=(0.5, 3.0), training__max_steps=2)
    assert row(tmp_path, "reward") == [1.0, 1.0]
    assert "GRPO [Step 0]: 8 samples | Avg reward: 1.000" in said(tmp_path)
    nan = float("nan")
    told = BatchResult(7, None, {"one": [1.0, nan, 2.0], "two": [4.0, nan, nan]})
    line = console.batch_line("grpo", told, 0.1, (1.0, 0.5))
    assert line == "GRPO [Step 7]: 3 samples | Avg reward: 2.500"


def test_rewards_are_called_as_the_guide_calls_them():
    from rlvitals.trainers.language import console, rewards

    titles = {one.name: one.title for one in rewards.REWARD_MEASURES}
    assert titles == {
        "format_reward": "Format rewards", "num_token_reward": "Count rewards",
        "accuracy_reward": "Rewards Accuracy", "length_think_reward": "Length Rewards",
        "chart_type_reward": "Graph Type Rewards", "table_style_reward": "Table style rewards",
        "process_style_reward": "Process Style Rewards",
    }  # fmt: skip
    line = console.reward_line("Format rewards", [2.0, 0.0, 2.0, 0.0], console.MAX_CONSOLE_REWARDS)
    assert line == "Format rewards: [2.0, 0.0, 2.0, 0.0]"
    assert console.reward_line("x", [1 / 3, float("nan")]) == "x: [0.333, none]"
    assert console.reward_line("x", [1.0] * 3, 2) == "x: [1.0, 1.0, … 3 in all]"


def test_what_the_libraries_say_is_not_on_the_console(tiny, tmp_path, capfd):
    train(tmp_path, "nsr", tiny, **SAID, training__max_steps=1)
    told = capfd.readouterr()
    assert "{'loss'" not in told.out
    assert "Warning" not in told.out + told.err
    assert "NSR [Step 0]" in told.out


# -- what is kept ------------------------------------------------------------------------------

CHECKPOINT = {
    "adapter_config.json", "adapter_model.safetensors", "optimizer.pt", "rng_state.pth",
    "scheduler.pt", "trainer_state.json", "training_args.bin", "manifest.json",
}  # fmt: skip


@pytest.mark.soak
def test_the_tree_of_a_training_is_the_guides(tmp_path, monkeypatch):
    from rlvitals.cli import main

    monkeypatch.chdir(tmp_path)
    run = tmp_path / "grpo-start-ckpts" / "tiny-lm-prm-large-train-v2-nsr-2025"
    flags = [
        "--vlm-name", "tiny-lm", "--warm-start-steps", "40", "--lora", "--max-steps", "8",
        "--save-steps", "2", "--batch-size", "8", "--num-generations", "4", "--subset-size", "32",
        "--report-to", "tensorboard", "wandb", "--plots-dir", "training_plots",
        "--reward-threshold", "0.5", "--diagnose-seconds", "0", "--wandb-project", "chartrl-nsr",
        "--wandb-entity", "chartrl", "--wandb-steps", "3", "--logging-steps", "1",
    ]  # fmt: skip
    assert main(["train", "nsr", *flags]) == 0
    checkpoints = sorted(path.name for path in run.glob("checkpoint-*"))
    assert checkpoints == ["checkpoint-4", "checkpoint-6", "checkpoint-8"]
    for name in checkpoints:
        assert {path.name for path in (run / name).iterdir()} >= CHECKPOINT
    root = {path.name for path in run.iterdir()}
    assert root >= {
        "adapter_config.json", "adapter_model.safetensors", "trainer_state.json",
        "training_args.bin", "training_progress.json", "training_config.json", "run.json",
    }  # fmt: skip
    logs = sorted(path.name for path in (run / "logs").iterdir())
    assert logs[0] == "debug.log"
    assert logs[1].startswith("events.out.tfevents.")
    (wandb,) = (tmp_path / "wandb").glob("offline-run-*-nsr")
    assert re.fullmatch(r"offline-run-\d{8}_\d{6}-\w+-nsr", wandb.name)
    (told,) = rlvitals.read(wandb)
    assert told.settings["wandb/project"] == "chartrl-nsr"
    assert told.settings["wandb/name"] == "nsr-tiny-lm-sums-32-2025"
    assert told.series["train/loss"].steps.tolist() == [1, 4, 7, 8]
    assert {"train/learning_rate", "nsr/negative_ratio"} <= set(told.series)
    for search in (r"NSR \[Step", "Avg reward"):
        line = f'grep "{search}" grpo-start-ckpts/*/logs/debug.log'
        found = subprocess.run(line, shell=True, capture_output=True, text=True, check=True)  # noqa: S602 - as the guide has it
        assert len(found.stdout.splitlines()) == 8
    drawn = {path.name for path in (tmp_path / "training_plots").iterdir()}
    assert drawn >= {
        "training_loss.png", "learning_rate.png", "gradient_norm.png", "rewards.png",
        "nsr_metrics.png", "summary.txt",
    }  # fmt: skip
    assert "TRAINING SUMMARY:" in (tmp_path / "training_plots" / "summary.txt").read_text()


def test_the_entity_goes_to_wandb():
    from rlvitals.trainers.language import run_metadata

    found = trained.config("runs", monitoring__report_to=("wandb",)).monitoring
    assert "entity" not in run_metadata.sinks(found, "name", "nsr")["wandb"]
    found = replace(found, wandb_entity="chartrl")
    assert run_metadata.sinks(found, "name", "nsr")["wandb"]["entity"] == "chartrl"


def test_the_folder_is_filled_in_and_both_spellings_of_grpo_are_found(tmp_path, monkeypatch):
    from rlvitals.trainers.language import factory
    from rlvitals.trainers.language.config import OUTPUT_DIR_TEMPLATE

    monkeypatch.chdir(tmp_path)

    def folder(mode):
        found = trained.config(OUTPUT_DIR_TEMPLATE, mode, training__seed=2025)
        return factory.folder(found).as_posix()

    home = "grpo-start-ckpts/tiny-lm-prm-large-train-v2"
    assert folder("psr") == f"{home}-psr-2025"
    assert folder("grpo") == f"{home}-2025"
    (tmp_path / f"{home}-grpo-2025").mkdir(parents=True)
    assert folder("grpo") == f"{home}-grpo-2025"
    (tmp_path / f"{home}-2025").mkdir()
    assert folder("grpo") == f"{home}-2025"


COUNTED = {
    "psr": {"psr/positive_samples", "psr/positive_ratio", "psr/avg_reward"},
    "nsr": {"nsr/negative_samples", "nsr/negative_ratio", "nsr/avg_reward"},
    "w-reinforce": {
        "w_reinforce/positive_samples", "w_reinforce/negative_samples",
        "w_reinforce/pos_neg_ratio", "w_reinforce/avg_reward",
    },
}  # fmt: skip


@pytest.mark.parametrize("mode", sampled(COUNTED, 3))
def test_tensorboard_has_the_guides_tags(tiny, tmp_path, mode):
    """Each at every step, in order."""
    train(tmp_path, mode, tiny, **SAID, monitoring__report_to=("tensorboard",))
    shutil.rmtree(tmp_path / "blocks")
    (log,) = rlvitals.read(tmp_path / "logs")[:1]
    standard = {f"train/{name}" for name in ("loss", "learning_rate", "grad_norm", "reward")}
    for name in COUNTED[mode] | standard:
        assert log.series[name].steps.tolist() == [*range(1, 10)]
    assert "train/epoch" in log.series


def test_the_run_is_read_once_and_its_completions_are_kept(tiny, tmp_path):
    train(tmp_path, "nsr", tiny, **SAID, monitoring__report_to=("tensorboard",))
    found = rlvitals.diagnose(tmp_path)
    assert found.trace.profile == "nsr"
    (native, *_) = rlvitals.read(tmp_path)
    table = native.tables["completions"]
    assert len(table) == 9 * 8
    assert set(table.columns) >= {"prompt", "completion", "alternating", "advantage"}


# -- going on ----------------------------------------------------------------------------------

WAYS = {
    "grpo": {"training__num_iterations": 2, "training__beta": 0.04},
    "psr": {"training__steps_per_generation": 4, "training__batch_size": 4},
    "nsr": {"training__gradient_accumulation_steps": 2, "training__batch_size": 4},
    "w-reinforce": {
        "training__num_iterations": 2, "training__steps_per_generation": 4,
        "training__gradient_accumulation_steps": 2, "training__batch_size": 2,
    },
}  # fmt: skip


@pytest.mark.parametrize("mode", sampled(WAYS, 4))
def test_killed_and_run_again_it_ends_to_the_bit_as_it_would_have(tiny, tmp_path, mode):
    way = WAYS[mode]
    straight, out = tmp_path / "straight", tmp_path / "out"
    dying = {**SAID, "rewards__functions": ("trained:killed",), "rewards__correctness": "killed"}
    train(straight, mode, tiny, **SAID, **way)
    assert forked.apart(lambda: train(out, mode, tiny, **dying, **way)) == -signal.SIGKILL
    assert not (out / "checkpoint-9").exists()
    assert forked.apart(lambda: train(out, mode, tiny, **SAID, **way)) == 0
    assert any("bit-exact" in line for line in said(out))
    assert forked.state(out / "checkpoint-9") == forked.state(straight / "checkpoint-9")


@pytest.mark.soak  # test_language_families resumes one in a few steps
def test_a_model_that_sees_goes_on_to_the_bit_too(tmp_path):
    """Its adapters, on a model that was taught nothing; from a folder that was moved."""
    way = {
        "model__vlm_name": "tiny-vlm", "model__lora": True, "data__dataset_name": "charts",
        "model__warm_start_steps": 0, "training__max_completion_length": 4,
        "training__batch_size": 4, "training__num_iterations": 2,
    }  # fmt: skip
    straight, out = tmp_path / "straight", tmp_path / "out"
    dying = {"rewards__functions": ("trained:killed",), "rewards__correctness": "killed"}
    train(straight, "nsr", **SAID, **way)
    assert forked.apart(lambda: train(out, "nsr", **dying, **way)) == -signal.SIGKILL
    out = out.rename(tmp_path / "moved")
    assert forked.apart(lambda: train(out, "nsr", **SAID, **way)) == 0
    assert any("bit-exact" in line for line in said(out))
    kept = ("adapter_model.safetensors", "optimizer.pt", "rng_state.pth")
    for name in kept:
        ends = [(place / "checkpoint-9" / name).read_bytes() for place in (straight, out)]
        assert ends[0] == ends[1], name


def cut(folder):
    whole = (folder / "optimizer.pt").read_bytes()
    (folder / "optimizer.pt").write_bytes(whole[: len(whole) // 2])


def emptied(folder):
    for path in folder.iterdir():
        path.unlink()


def flipped(folder):
    held = bytearray((folder / "model.safetensors").read_bytes())
    held[-100] ^= 1
    (folder / "model.safetensors").write_bytes(held)


@pytest.mark.soak
@pytest.mark.parametrize("spoil", sampled([cut, emptied, flipped], 3))
def test_moved_and_its_newest_checkpoint_spoilt_it_goes_on_from_the_one_before(
    finished, tmp_path, spoil
):
    first, moved = tmp_path / "first", tmp_path / "elsewhere" / "moved"
    shutil.copytree(finished, first)
    end = forked.state(first / "checkpoint-9")
    spoil(first / "checkpoint-9")
    moved.parent.mkdir()
    first.rename(moved)
    train(moved, "nsr", **SAID)
    assert any(line.startswith("[checkpoint] resumed at step 6") for line in said(moved))
    assert forked.state(moved / "checkpoint-9") == end


def test_run_again_after_its_end_it_changes_nothing(finished, tmp_path):
    out = shutil.copytree(finished, tmp_path / "run")
    train(out, "nsr", **SAID)
    assert trained.weights(out) == trained.weights(finished)
    assert said(out).count("✓ Training completed successfully") == 2


@pytest.mark.soak
def test_sigterm_saves_and_says_how_to_go_on(tiny, finished, tmp_path):
    ends = {**SAID, "rewards__functions": ("trained:terminated",)}
    ends["rewards__correctness"] = "terminated"

    def end():
        with pytest.raises(Terminated):
            train(tmp_path / "out", "nsr", tiny, **ends)

    assert forked.apart(end) == 0
    assert (tmp_path / "out" / "checkpoint-5").is_dir()
    assert any("run the same command again" in line for line in said(tmp_path / "out"))
    train(tmp_path / "out", "nsr", **SAID)
    end = "checkpoint-9"
    assert forked.state(tmp_path / "out" / end) == forked.state(finished / end)


def test_asked_to_stop_it_saves_and_stops(tiny, tmp_path, monkeypatch):
    from rlvitals.tracking.requests import ask

    real = trained.alternating

    def alternating(completions, **_):
        ask(tmp_path, "stop")
        return real(completions)

    monkeypatch.setattr(trained, "alternating", alternating)
    train(tmp_path, "nsr", tiny, **SAID, training__max_steps=4000)
    assert "stopped, as asked: run the same command again to go on" in said(tmp_path)
    saved = [int(path.name.split("-")[1]) for path in tmp_path.glob("checkpoint-*")]
    assert max(saved) == row(tmp_path, "step")[-1] < 4000


@pytest.mark.soak
def test_another_number_of_processes_goes_on_and_says_what_is_lost(finished, tmp_path):
    def two(rank, out):
        train(out, "nsr", **SAID, training__batch_size=4, training__max_steps=12)
        return rank

    out = shutil.copytree(finished, tmp_path / "run")
    assert forked.ranks(two, out) == [0, 1]
    assert (out / "checkpoint-12").is_dir()
    told = "\n".join(said(out))
    assert "resumed at step 9 from checkpoint-9" in told
    assert "not bit-exact" in told
    assert told.count("NSR [Step 9]: 4/8 negative samples") == 1  # one process speaks


# -- what goes wrong ---------------------------------------------------------------------------


def paid(name):
    return {"rewards__functions": (f"trained:{name}",), "rewards__correctness": name}


MODES = ("grpo", "psr", "nsr", "w-reinforce")
WITHOUT_DIFFERENCE = [
    *((mode, name) for mode in MODES for name in ("all_right", "none_right")),
    *((mode, name) for mode in cases(("nsr",), MODES) for name in ("nothing", "not_numbers")),
]


@pytest.mark.parametrize(
    ("mode", "name"), sampled([pytest.param(*one) for one in WITHOUT_DIFFERENCE], 3)
)
def test_rewards_without_a_difference_harm_nothing(tiny, tmp_path, mode, name):
    train(tmp_path, mode, tiny, **paid(name), training__max_steps=2, checkpointing__save_steps=2)
    assert len(row(tmp_path, "loss")) == 2
    moved = trained.weights(tmp_path) != (tiny / "model.safetensors").read_bytes()
    learns = {"psr": "all_right", "nsr": "none_right"}
    both = mode == "w-reinforce" and name in {"all_right", "none_right"}
    assert moved == (both or learns.get(mode) == name)


def test_completions_that_are_all_cut_teach_nothing(tiny, tmp_path):
    train(
        tmp_path, "nsr", tiny, **paid("none_right"), training__max_steps=2,
        training__max_completion_length=1, training__mask_truncated_completions=True,
    )  # fmt: skip
    assert row(tmp_path, "completions/clipped_ratio")[0] > 0.5


def test_completions_that_are_empty_are_judged_like_any(tiny, tmp_path, monkeypatch):
    from rlvitals.trainers.language.modes import ModesTrainer

    real = ModesTrainer._generate_single_turn

    def nothing(self, *args, **options):
        ids, logprobs = real(self, *args, **options)[:2]
        return [[self.eos_token_ids[0]] for _ in ids], logprobs

    monkeypatch.setattr(ModesTrainer, "_generate_single_turn", nothing)
    train(tmp_path, "nsr", tiny, training__max_steps=2)
    assert row(tmp_path, "completions/max_length") == [1.0, 1.0]
    assert row(tmp_path, "nsr/negative_ratio") == [1.0, 1.0]


def test_one_question_is_enough(tiny, tmp_path):
    train(tmp_path, "nsr", tiny, **SAID, data__subset_size=1, training__batch_size=4,
          training__max_steps=3)  # fmt: skip
    assert len(row(tmp_path, "loss")) == 3


def test_a_reward_that_raises_is_named_and_training_goes_on(tiny, tmp_path, capfd):
    training = train(tmp_path, "nsr", tiny, **paid("picky"), training__max_steps=4)
    assert training.failures > 0
    told = capfd.readouterr().out
    assert "picky failed on sample" in told
    assert "ValueError: odd" in told
    assert len(row(tmp_path, "loss")) == 4
    shares = row(tmp_path, "language/error_share")
    assert sum(shares) * 8 == training.failures  # samples of a step


@pytest.mark.soak
def test_a_reward_that_always_raises_is_named_first(tiny, tmp_path):
    train(tmp_path, "nsr", tiny, **paid("raising"), training__max_steps=30)
    (case,) = rlvitals.diagnose(tmp_path).cases
    assert case.rule.name == "judge-outage"
    assert case.finding.severity is rlvitals.Severity.ERROR


@pytest.mark.soak
def test_a_sample_that_two_functions_fail_on_is_one(tiny, tmp_path):
    said = {"rewards__functions": ("trained:raising", "trained:picky", "trained:alternating")}
    train(tmp_path, "nsr", tiny, **said, rewards__correctness="alternating", training__max_steps=12)
    assert rlvitals.trace(tmp_path)["language/error_share"].values.tolist() == [1.0] * 12
    assert rlvitals.diagnose(tmp_path).cases[0].rule.name == "judge-outage"


def test_or_ends_it_where_that_is_asked_for(tiny, tmp_path):
    with pytest.raises(rlvitals.VitalsError, match="picky failed on sample"):
        train(tmp_path, "nsr", tiny, **paid("picky"), rewards__on_error="stop")
    assert rlvitals.diagnose(tmp_path).verdict.word.value == "failed"


@pytest.mark.soak
def test_a_step_with_nothing_to_learn_moves_no_weight_where_it_is_skipped(tiny, tmp_path):
    """Adam's momentum moves them else: right at first, then never again."""
    turns = {"rewards__functions": ("trained:turns",), "rewards__correctness": "turns"}

    def moved(out, *, skip):
        train(
            out, "psr", tiny, **turns, signal__skip_empty_steps=skip, training__max_steps=4,
            checkpointing__save_steps=1, checkpointing__keep=0,
        )  # fmt: skip
        return trained.weights(out / "checkpoint-2") != trained.weights(out / "checkpoint-4")

    assert moved(tmp_path / "plain", skip=False)
    assert not moved(tmp_path / "skips", skip=True)
    assert sum("nothing to learn from, skipped" in line for line in said(tmp_path / "skips")) == 2


@pytest.mark.soak
def test_the_console_shows_each_generation_or_one_now_and_then(tiny, tmp_path, capsys):
    def shown(out, seconds):
        train(out, "nsr", tiny, **SAID, monitoring__console_seconds=seconds)
        assert sum("negative samples |" in line for line in said(out)) == 9
        return capsys.readouterr().out.count("negative samples |")

    assert shown(tmp_path / "all", 0.0) == 9
    assert shown(tmp_path / "few", 1000.0) == 1


@pytest.mark.soak
def test_the_trial_of_the_guide(tmp_path, monkeypatch, capsys):
    """100 charts, four generations: about a minute, and more answers are right after it."""
    from rlvitals.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["train", "nsr", "--quick-test"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("Quick test: all parts ran, and 60 steps show a rise: ")
    (run,) = (tmp_path / "grpo-start-ckpts").iterdir()
    assert run.name == "tiny-vlm-prm-large-train-v2-nsr-2025"
    assert {path.name for path in run.glob("checkpoint-*")} == {"checkpoint-50", "checkpoint-60"}
    lines = said(run)
    assert "  Training samples: 100" in lines
    paid = row(run, "rewards/accuracy_reward/mean")
    assert sum(paid[-20:]) / 20 > sum(paid[:20]) / 20 + 0.1
    drawn = {path.name for path in (tmp_path / "training_plots").iterdir()}
    assert drawn >= {"training_loss.png", "rewards.png", "nsr_metrics.png", "summary.txt"}

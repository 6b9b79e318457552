"""`rlvitals train ppo` and `rlvitals demos`: their flags, their files, their errors."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

from rlvitals import UsageError, VitalsError
from rlvitals.cli import main
from rlvitals.cli.train import read
from rlvitals.trainers import schema
from rlvitals.trainers.ppo import demonstrations, factory
from rlvitals.trainers.ppo.command import TRAIN_COMMAND, conclusion, expectation
from rlvitals.trainers.ppo.config import Config

TINY = [
    "--num-envs", "4", "--rollout-length", "16", "--total-steps", "200", "--demo-steps", "10",
    "--bc-epochs", "1", "--diagnose-seconds", "0", "--hidden-sizes", "8",
    "--held-out-clusters", "4", "--held-out-decisions", "32",
]  # fmt: skip


@pytest.fixture(autouse=True)
def as_it_was():
    thread_count = torch.get_num_threads()
    yield
    torch.set_num_threads(thread_count)


def config(*words):
    ppo, options = read("ppo", list(words))
    return ppo.configure("ppo", options)


def test_the_shipped_file_is_the_defaults():
    shipped = factory.SHIPPED_CONFIGS / "ppo_warmstart.json"
    assert json.loads(shipped.read_text()) == schema.to_dict(Config())
    assert config("--config", "configs/ppo_warmstart.json") == Config()
    assert config() == Config()


def test_a_command_line_is_written_as_a_file_that_is_read_again(tmp_path, capsys):
    file = tmp_path / "sub" / "mine.json"
    argv = ["--num-replicas", "8", "--total-requests", "5000", "--clip-ratio", "0.1"]
    assert main(["train", "ppo", *argv, "--write-config", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}\n"
    settings = config("--config-file", str(file))
    assert (settings.cluster.replicas, settings.training.total_steps) == (8, 5000)
    assert settings.ppo_config.clip_ratio == 0.1
    assert config("--config", str(file), "--clip-ratio", "0.3").ppo_config.clip_ratio == 0.3
    assert not Path("outputs").exists()


def test_a_truth_may_stand_alone():
    assert config("--skip-warmstart").warm_start.skip_warmstart is True
    assert config("--skip-warmstart", "false").warm_start.skip_warmstart is False
    settings = config("--chunk-mode", "--force-warmstart", "--wandb", "--seed", "3")
    assert (settings.training.chunk_mode, settings.warm_start.force_warmstart) == (True, True)
    assert (settings.monitoring.wandb, settings.training.seed) == (True, 3)


def test_every_other_spelling_means_the_same():
    for name, flags in TRAIN_COMMAND.flag_aliases.items():
        for flag in flags:
            value = "true" if "skip" in flag else "7"
            options = read("ppo", [flag, value])[1]
            assert options[name] in (True, 7, "7")
    assert config("--external-pretrain", "a") == config("--pretrained-actor-path", "a")


def test_a_quick_test_is_small_and_what_is_said_is_above_it():
    assert config("--quick-test").training.total_steps == 120_000
    assert config("--quick-test", "--total-steps", "500").training.total_steps == 500


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--learning-rat", "1"], "--learning-rat"),
        (["--epochs", "many"], "invalid int value: 'many'"),
        (["--activation", "tanj"], "did you mean tanh?"),
        (["--config", "none.json"], "cannot be read"),
        (["--clip-ratio", "-1"], "it cannot be -1.0"),
        (["--env", "NoSuch-v0"], "there is no environment NoSuch-v0"),
    ],
)
def test_mistakes_are_named_and_leave_nothing(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "ppo", *words]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"ppo_config": {"clip_range": 0.1}}, "there is no ppo_config.clip_range"),
        ({"monitoring": {"visualisation": {}}}, "there is no monitoring.visualisation"),
        ({"ppo_config": {"epochs": "4"}}, "'4' is not a number"),
        ({"ppo_config": 3}, "ppo_config is no table"),
        ([], "the settings are no table"),
    ],
)
def test_files_are_checked_key_by_key(section, said, tmp_path, capsys):
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(section))
    assert main(["train", "ppo", "--config", str(file)]) == 2
    assert said in capsys.readouterr().err


def test_it_trains_and_says_how_to_go_on(tmp_path, capsys):
    assert main(["train", "ppo", *TINY, "--output-dir", str(tmp_path / "run")]) == 0
    output = capsys.readouterr()
    assert "[PPO:init]" in output.out
    assert "[PPO:checkpoint]" in output.out
    few = ["evaluate", str(tmp_path / "run"), "--seeds", "1", "--steps", "20"]
    assert main(few) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert re.match(r"On 1 stream .*, ppo has a mean latency .* other schedulers\)", last)
    assert main([*few, "--no-baselines", "--replicas", "6", "--load", "0.9"]) == 0
    output = capsys.readouterr().out
    assert "6 replicas, load 0.9" in output
    assert "lor" not in output
    assert main([*few, "--replicas", "1"]) == 2


@pytest.mark.soak
def test_demonstrations_are_collected_and_cloned(tmp_path, capsys):
    file = tmp_path / "demos.npz"
    argv = ["--policies", "lor", "random", "--steps", "20", "--loads", "0.5", "2", "--envs", "4"]
    cluster = ["--replicas", "3", "--speeds", "2", "1", "1"]
    assert main(["demos", "-o", str(file), *argv, *cluster]) == 0
    assert "320 decisions of lor, random" in capsys.readouterr().out
    demos = demonstrations.load(file)
    assert (len(demos), set(demos.actions)) == (320, {0, 1, 2})
    train = ["train", "ppo", *TINY, "--demo-path", str(file)]
    assert main([*train, *cluster, "--output-dir", str(tmp_path / "run")]) == 0
    assert "[PPO:warmstart] 320 decisions of lor, random" in capsys.readouterr().out
    assert main([*train, "--output-dir", str(tmp_path / "other")]) == 2
    assert "the demonstrations' states have" in capsys.readouterr().err


def test_demonstrations_take_a_trainings_settings(tmp_path, capsys):
    file, settings = tmp_path / "demos.npz", tmp_path / "settings.json"
    settings.write_text(json.dumps({"cluster": {"replicas": 2, "speeds": [1.0, 3.0]}}))
    argv = ["demos", "-o", str(file), "--steps", "5", "--envs", "2", "--loads", "1"]
    assert main([*argv, "--config", str(settings)]) == 0
    assert set(demonstrations.load(file).actions) == {0, 1}
    assert main([*argv, "--policies", "lorr"]) == 2
    assert "no scheduler is called 'lorr'" in capsys.readouterr().err
    assert main([*argv, "--replicas", "1"]) == 2
    assert main([*argv, "--steps", "0"]) == 2


@pytest.mark.parametrize(
    ("words", "flag", "default"),
    [
        ("psr", "--mode", "psr"), ("nsr", "--mode", "nsr"),
        ("w-reinforce", "--mode", "w-reinforce"),
        ("nsr", "--max-completion-length", "24, preset of tiny-vlm"),
        ("nsr --quick-test", "--subset-size", "100, --quick-test"), ("nsr", "--subset-size", "0"),
        ("rlhf", "--vlm-name", "tiny-lm"), ("rlhf --vlm-name gpt2", "--vlm-name", "tiny-lm"),
        ("rlhf", "--lora", "false, preset of tiny-lm"),
        ("rlhf --quick-test", "--total-episodes", "6400, --quick-test"),
        ("ppo --quick-test", "--demo-steps", "300, --quick-test"),
        ("ppo", "--trace", "none"),
    ],
)  # fmt: skip
def test_help_shows_what_is_trained_with(words, flag, default, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    assert main(["train", *words.split(), "--help"]) == 0
    lines = re.sub(r"\n {10,}", " ", capsys.readouterr().out).splitlines()
    assert next(line for line in lines if f" {flag} " in line and "default" in line).endswith(
        f"(default: {default})"
    )


def test_help_of_either_loads_nothing_heavy():
    code = (
        "import sys; from rlvitals.cli import main; main(['demos', '--help']); "
        "print(sorted({'numpy', 'torch', 'gymnasium'} & set(sys.modules)))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout.splitlines()[-1] == "[]"


@pytest.mark.soak
def test_the_settings_are_in_the_wheel(tmp_path):
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, check=True, cwd=root, capture_output=True)
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    assert "rlvitals/trainers/ppo/configs/ppo_warmstart.json" in names


VISUAL = {"plot_attention_heatmaps": False, "plot_policy_evolution": True,
          "plot_reward_decomposition": True}  # fmt: skip


def test_a_configuration_with_a_visualization_block_is_read_with_a_note(tmp_path, capsys):
    file = tmp_path / "theirs.json"
    file.write_text(json.dumps({"monitoring": {"tensorboard_port": 6007, "visualization": VISUAL}}))
    assert config("--config", str(file)).monitoring.tensorboard_port == 6007
    output = capsys.readouterr().out
    assert output.count("monitoring.visualization is not read: rlvitals plot RUN draws") == 1
    file.write_text(json.dumps({"monitoring": {"visualisations": VISUAL}}))
    with pytest.raises(UsageError, match="visualisations"):
        config("--config", str(file))


@pytest.mark.parametrize(
    ("returns", "said"),
    [
        ([-420.0, -500.0, -291.5], "and the held-out return rose from -420.0 to -291.5"),
        ([-323.0, -380.2], "too short to learn: the held-out return went from -323.0 to -380.2"),
        ([-323.0, -323.0], "too short to learn: the held-out return went from -323.0 to -323.0"),
        ([-323.0], "nothing was evaluated before and after"),
    ],
)
def test_a_quick_test_ends_by_saying_what_it_showed(returns, said):
    assert conclusion(returns).startswith("[PPO:end] quick test: all parts ran")
    assert conclusion(returns).endswith(said)


def test_a_quick_test_whose_return_is_not_finite_fails():
    with pytest.raises(VitalsError, match="not finite"):
        conclusion([-323.0, float("nan")])


@pytest.mark.soak
def test_the_last_line_of_a_quick_test_is_about_its_own_evaluations(tmp_path, capsys):
    argv = ["train", "ppo", "--quick-test", *TINY, "--evaluation-interval", "64"]
    assert main([*argv, "--output-dir", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    returns = [
        float(re.search(r" return=(\S+)", line)[1]) for line in lines if "] step=" in line and
        " ppo return=" in line
    ]  # fmt: skip
    assert len(returns) > 2
    ends = re.search(r"return (?:rose|went) from (\S+) to (\S+)$", lines[-1])
    reported = [float(ends[1]), float(ends[2])]
    assert reported == pytest.approx([returns[0], returns[-1]], rel=2e-3)
    assert (" rose " in lines[-1]) == (returns[-1] > returns[0])


def test_a_quick_test_says_what_to_expect():
    text = expectation(config("--quick-test"))
    assert f"{config('--quick-test').training.total_steps:,} of the usual" in text
    assert f"{Config().training.total_steps:,} steps" in text
    assert "the last line says whether the held-out return rose" in text
    usual = config("--env", "CartPole-v1").training.total_steps
    assert f"usual {usual:,} steps" in expectation(config("--quick-test", "--env", "CartPole-v1"))

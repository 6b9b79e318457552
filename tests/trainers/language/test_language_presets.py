"""What a tiny model's name alone starts from, and what comes of it."""

import pytest

import rlvitals
from rlvitals.cli import main
from rlvitals.trainers import schema
from rlvitals.trainers.language import evaluate_model, presets
from rlvitals.trainers.language.config import Config
from rlvitals.trainers.language.program import Training

pytestmark = pytest.mark.filterwarnings("ignore", "error:::rlvitals")  # transformers' own
# Greedy accuracy after the steps of the preset, from about a third.
WANTED = {"grpo": 0.70, "psr": 0.70, "nsr": 0.60, "w-reinforce": 0.60}


def settings(tmp_path, *options):
    """What a command line comes to."""
    file = tmp_path / "settings.json"
    assert main(["train", "nsr", *options, "--write-config", str(file)]) == 0
    return schema.load(Config, file, {})


def test_the_name_alone_is_enough(tmp_path):
    made = settings(tmp_path, "--vlm-name", "tiny-lm")
    assert made.data.dataset_name == "sums"
    assert (made.training.max_steps, made.signal.num_generations) == (300, 8)
    assert made.training.mode == "nsr"
    assert not made.model.lora
    assert settings(tmp_path, "--quick-test").model.lora  # the guide's files are of adapters
    assert settings(tmp_path, "--vlm-name", "tiny-lm", "--lora").model.lora


def test_most_models_start_from_the_defaults():
    assert presets.preset("Qwen/Qwen2.5-0.5B") == {}
    assert presets.source("qwen2-5-3b") == ""
    assert presets.line(schema.load(Config, None, {"model.vlm_name": "qwen2-5-3b"})) == ""


@pytest.mark.parametrize("name", ["", *presets.MODEL_PRESETS])
def test_an_answer_counts_by_whether_it_is_right_and_not_by_its_form(name):
    made = schema.load(Config, None, {}, below=presets.preset(name))
    assert made.rewards.correctness == "accuracy_reward"
    assert made.signal.threshold_on == "correctness"


@pytest.mark.parametrize("name", presets.MODEL_PRESETS)
def test_a_preset_names_settings_that_are_no_defaults(name):
    said = {"model.vlm_name": name}
    plain, made = (schema.load(Config, None, said, below=b) for b in ({}, presets.preset(name)))
    for key, value in presets.preset(name).items():
        section, field = key.split(".")
        assert getattr(getattr(made, section), field) == value
    assert made != plain
    assert made.training.learning_rate == presets.MODEL_PRESETS[name]["training.learning_rate"]
    line = presets.line(made)
    assert line.startswith(f"preset of {name}: ")
    assert "learning_rate=" in line
    assert f"| {name} |" in presets.table()


def test_a_flag_is_above_a_preset():
    said = {"model.vlm_name": "tiny-lm", "training.learning_rate": 0.01}
    made = schema.load(Config, None, said, below=presets.preset("tiny-lm"))
    assert made.training.learning_rate == 0.01
    assert made.training.max_steps == 300
    assert "learning_rate" not in presets.line(made)
    assert "max_steps=300" in presets.line(made)


@pytest.mark.soak
@pytest.mark.parametrize("name", presets.MODEL_PRESETS)
@pytest.mark.parametrize("mode", WANTED)
def test_a_tiny_model_learns_right_answers(mode, name, tmp_path):
    said = {
        "training.mode": mode, "training.seed": 1, "training.output_dir": str(tmp_path / "run"),
        "model.vlm_name": name, "monitoring.progress_bar": False,
    }  # fmt: skip
    config = schema.load(Config, None, said, below=presets.preset(name))
    assert Training(config).run() == "finished"
    # Whether it still moves after 300 steps differs between processors.
    assert rlvitals.diagnose(tmp_path / "run").verdict.word.value in {"learning", "plateau"}
    end, start = (
        evaluate_model.evaluate(evaluate_model.load(tmp_path / "run", step=step), samples=0)
        for step in (None, 0)
    )
    assert end.questions == 1024
    assert 0.28 <= start.right / start.questions <= 0.40
    assert end.right / end.questions >= WANTED[mode]

"""Whose names a Trainer's rows have, told by the class of its arguments."""

from types import SimpleNamespace

import pytest
from transformers import PretrainedConfig, Seq2SeqTrainingArguments, TrainingArguments
from trl import DPOConfig, GRPOConfig, KTOConfig, RewardConfig, SFTConfig

from rlvitals.integrations import hook_facts
from rlvitals.metrics.frameworks import TABLES


def built_on(base, module):
    """The class that another project derives from one of TRL's."""
    made = type("Their" + base.__name__, (base,), {"__module__": module})
    return object.__new__(made)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (object.__new__(GRPOConfig), "trl-grpo"),
        (object.__new__(DPOConfig), "trl-dpo"),
        (object.__new__(KTOConfig), "trl-dpo"),
        (object.__new__(RewardConfig), "trl-dpo"),
        (object.__new__(TrainingArguments), "hf-trainer"),
        (object.__new__(SFTConfig), ""),
        (object.__new__(Seq2SeqTrainingArguments), ""),
        (built_on(GRPOConfig, "my_script"), "trl-grpo"),
        (built_on(GRPOConfig, "swift.trainers.rlhf_arguments"), "ms-swift"),
        (built_on(GRPOConfig, "UnslothGRPOTrainer"), "unsloth"),
        (SimpleNamespace(), ""),
    ],
)
def test_arguments_tell_whose_names_they_are(arguments, expected):
    assert hook_facts.framework(arguments) == expected


def test_what_is_told_is_a_table_s():
    known = {table.framework for table in TABLES}
    assert {
        *hook_facts.FRAMEWORK_BY_ARGUMENTS.values(),
        *hook_facts.FRAMEWORK_BY_MODULE.values(),
        "rllib",
        "lightning",
    } <= known


def test_a_path_in_the_runs_folder_is_told_from_there(tmp_path):
    def told(name, model):
        args = TrainingArguments(output_dir=str(tmp_path / name), use_cpu=True)
        state, config = SimpleNamespace(max_steps=3), PretrainedConfig(name_or_path=str(model))
        return hook_facts.read_settings(args, state, SimpleNamespace(config=config))

    one, two = (told(name, tmp_path / name / "base") for name in ("seed-1", "seed-2"))
    assert [key for key in one if one[key] != two[key]] == ["output_dir"]
    assert one["model_name_or_path"] == one["model_config"]["_name_or_path"] == "base"
    beside = tmp_path / "seed-10" / "base"
    assert told("seed-1", beside)["model_name_or_path"] == str(beside)

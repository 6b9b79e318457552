"""Every setting of a language model's training changes something: what is built, or what is left.

Most are shown by what the program builds, which takes no training; the rest by two trainings of
two steps, which share the tiny model.
"""

import json
import shutil

import pytest
import torch
import trained
from accelerate.state import AcceleratorState
from effort import sampled
from rlhf_parts import reward_model
from transformers import BertConfig, BertModel, BertTokenizerFast

import rlvitals
from rlvitals.trainers import schema
from rlvitals.trainers.language import command as language
from rlvitals.trainers.language import data, factory, models, rewards
from rlvitals.trainers.language.config import Config
from rlvitals.trainers.language.rlhf import command
from rlvitals.trainers.language.rlhf import config as rlhf
from rlvitals.trainers.language.rlhf import factory as rlhf_building
from rlvitals.trainers.language.rlhf import program as rlhf_program

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
KEYS = {key.name: key for key in schema.keys(Config)}
RLHF = {key.name: key for key in schema.keys(rlhf.Config)}


def other(key):
    """Another value than the default."""
    if key.choices:
        return next(one for one in key.choices if one != key.default)
    if isinstance(key.default, bool):
        return not key.default
    if isinstance(key.default, int):
        return key.default + 1
    return key.default * 2 or 0.5


def config(**said):
    return schema.load(Config, None, {name.replace("__", "."): v for name, v in said.items()})


# -- what is built of settings alone --------------------------------------------------------------

# TRL's arguments, which its trainer is built of; our names and values where they are others.
ARGUMENTS = {
    name
    for name in KEYS
    if name.startswith("training.") and name not in {"training.mode", "training.threads"}
} | {
    "signal.num_generations", "checkpointing.save_steps", "checkpointing.keep",
    "monitoring.logging_steps", "monitoring.run_name",
}  # fmt: skip
VALUES = {
    "training.output_dir": "runs/{mode}", "monitoring.run_name": "mine",
    "training.batch_size": 8, "signal.num_generations": 2, "training.steps_per_generation": 2,
    "monitoring.logging_dir": "tb", "monitoring.wandb_entity": "us",
    "monitoring.wandb_project": "trams", "monitoring.report_to": ("wandb",),
}  # fmt: skip

FILLED_IN = {"training.output_dir": "runs/grpo"}


def arguments(**said):
    made = config(**said)
    return factory.arguments(made, factory.folder(made)).to_dict()


TRLS_NAMES = {
    "training.num_epochs": "num_train_epochs",
    "training.batch_size": "per_device_train_batch_size",
    "training.cliprange": "epsilon",
    "training.gradient_checkpointing": "activation_checkpointing",
    "checkpointing.keep": "save_total_limit",
}


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_trls_arguments_have_it(name):
    value = VALUES.get(name) or other(KEYS[name])
    was, now = arguments(), arguments(**{name: value})
    key = TRLS_NAMES.get(name) or name.split(".")[1]
    assert now[key] == FILLED_IN.get(name, value) != was[key]


SINKS = {
    "monitoring.logging_dir": ("tensorboard", "folder"),
    "monitoring.wandb_steps": ("wandb", "every"),
    "monitoring.wandb_project": ("wandb", "project"),
    "monitoring.wandb_entity": ("wandb", "entity"),
}


@pytest.mark.parametrize("name", sorted(SINKS))
def test_sinks_have_it(name):
    both = {"monitoring.report_to": ("tensorboard", "wandb")}
    value = VALUES.get(name) or other(KEYS[name])
    sink, option = SINKS[name]
    was, now = (
        factory.sinks(config(**{**both, **more}).monitoring, "run", "nsr")[sink].get(option)
        for more in ({}, {name: value})
    )
    assert now == value != was


def test_reports_go_where_they_are_wanted():
    found = factory.sinks(config(monitoring__report_to=("wandb",)).monitoring, "run", "nsr")
    assert list(found) == ["wandb"]


# -- the data, the model, the rewards -------------------------------------------------------------


def asked(**said):
    """What a task asks and holds out."""
    found = data.load(
        config(data__held_out=4, data__subset_size=6, **said).data, vision=True, seed=1
    )
    return [
        [{**row, "image": row["image"].size if "image" in row else None} for row in part]
        for part in (found.train, found.held_out)
    ]


@pytest.mark.parametrize(
    "said",
    [
        {"data__dataset_name": "sums"}, {"data__chart_pixels": 56}, {"data__image_pixels": 400},
        {"data__prompt_template": "{query}?"},
    ],
)  # fmt: skip
def test_the_task_is_another(said):
    assert asked() != asked(**said)


@pytest.mark.parametrize("name", ["data.subset_size", "data.held_out"])
def test_the_task_has_as_many(name):
    said = {"data.subset_size": 6, "data.held_out": 4, "data.dataset_name": "sums", name: 5}
    found = data.load(config(**said).data, vision=False, seed=1)
    assert 5 in {len(found.train), len(found.held_out)}


def test_questions_are_a_persons_turn_where_the_model_chats():
    said = {"data__dataset_name": "sums", "data__subset_size": 6, "data__held_out": 4}
    as_they_are = data.load(config(**said).data, vision=False, seed=1)
    found = data.load(config(**said, data__chat=True).data, vision=False, seed=1)
    for before, now in zip(
        (as_they_are.train, as_they_are.held_out), (found.train, found.held_out), strict=True
    ):
        turns = [[{"role": "user", "content": prompt}] for prompt in before["prompt"]]
        assert (now["prompt"][:], now["answer"][:]) == (turns, before["answer"][:])


def test_a_part_of_the_data_is_taken(tmp_path):
    for split, count in (("train", 3), ("test", 2)):
        rows = [json.dumps({"prompt": f"{i}+1=", "answer": str(i + 1)}) for i in range(count)]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(rows))
    said = {"data__dataset_name": str(tmp_path), "data__held_out": 0}
    assert len(data.load(config(**said).data, vision=False, seed=1).train) == 3
    other_part = config(**said, data__dataset_split="test")
    assert len(data.load(other_part.data, vision=False, seed=1).train) == 2


def test_the_model_is_the_one_that_is_named(tmp_path):
    said = {"model__warm_start_steps": 0, "model__lora": False}
    found = [
        models.load(config(**said, model__vlm_name=name).model, seed=1, base=tmp_path / name)
        for name in ("tiny-lm", "tiny-vlm")
    ]
    assert [one.vision for one in found] == [False, True]
    copy = config(**said, model__vlm_name=str(tmp_path / "tiny-lm"), model__dtype="bfloat16")
    assert models.load(copy.model, seed=1, base=tmp_path).model.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lora", False), ("lora_r", 2), ("lora_alpha", 3.0), ("lora_dropout", 0.5),
        ("lora_targets", ("q_proj",)),
    ],
)  # fmt: skip
def test_the_adapters_have_it(tmp_path, name, value):
    said = {"model__vlm_name": "tiny-lm", "model__warm_start_steps": 0}
    was, now = (
        models.load(config(**said, **more).model, seed=1, base=tmp_path / "base").lora
        for more in ({}, {f"model__{name}": value})
    )
    assert was is not None
    assert now is None if name == "lora" else was.to_dict() != now.to_dict()


@pytest.mark.parametrize("name", ["warm_start_steps", "warm_start_noise"])
def test_the_warm_start_has_it(tmp_path, name):
    said = {"model__vlm_name": "tiny-lm", "model__warm_start_steps": 2}
    more = {"warm_start_steps": 3, "warm_start_noise": 1.0}[name]
    weights = [
        models.load(
            config(**{**said, **again}).model, seed=1, base=tmp_path / str(i)
        ).model.state_dict()
        for i, again in enumerate(({}, {f"model__{name}": more}))
    ]
    assert any(not torch.equal(weights[0][key], weights[1][key]) for key in weights[0])


def paid(tell=lambda _: None, **said):
    made = config(**said).rewards
    found = rewards.functions(made, ("accuracy_reward", "format_reward"), failed=tell)
    return found, rewards.weights(made, found)


def test_the_rewards_are_those_that_are_named():
    assert [one.name for one in paid()[0]] == ["accuracy_reward", "format_reward"]
    assert [one.name for one in paid(rewards__functions=("format_reward",))[0]] == ["format_reward"]
    assert paid()[1] == [1.0, 1.0]
    assert paid(rewards__weights=(1.0, 0.5))[1] == [1.0, 0.5]


def test_a_failure_is_skipped_or_stops():
    told = []
    said = {"rewards__functions": ("trained:picky",)}
    batch = (["1+1=", "2+2="], ["2", "4"])
    assert paid(told.append, **said)[0][0](*batch) == [None, 1.0]
    assert len(told) == 1
    with pytest.raises(rlvitals.VitalsError, match="failed on sample 0"):
        paid(**said, rewards__on_error="stop")[0][0](*batch)


def test_an_encoder_adds_its_reward(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nstep\nbar\n")
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    BertModel(BertConfig(vocab_size=7, intermediate_size=8, **sizes)).save_pretrained(tmp_path)
    BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    names = [one.name for one in paid(rewards__process_model=str(tmp_path))[0]]
    assert names[-1] == "process_style_reward"


# -- what a training leaves -----------------------------------------------------------------------

LEFT = {
    "training.mode": ("psr", {}),
    "training.threads": (2, {}),
    "signal.reward_threshold": (2.0, {}),
    "signal.threshold_on": ("total", {"signal.reward_threshold": 2.0, "rewards.weights": (3.0,)}),
    "signal.lambda_psr": (0.5, {"training.mode": "w-reinforce"}),
    "signal.normalise": ("kept", {}),
    "signal.skip_empty_steps": (True, {"rewards.functions": ("trained:turns",),
                                       "rewards.correctness": "turns", "training.mode": "psr",
                                       "training.max_steps": 4}),
    "rewards.correctness": ("none_right", {"rewards.functions": ("trained:alternating",
                                                                 "trained:none_right")}),
    "checkpointing.resume": (False, {"again": True, "training.max_steps": 3}),
    "monitoring.log_completions": (False, {}),
    "monitoring.completions_every": (2, {}),
    "monitoring.console_seconds": (0.0, {}),
    "monitoring.progress_bar": (False, {}),
    "monitoring.diagnose_seconds": (0.001, {}),
}  # fmt: skip
# What each changes; where there is a count of it, which way: 1 more, -1 less.
CHANGED = {
    **dict.fromkeys(LEFT, ("weights", 0)),
    "training.threads": ("threads", 1),
    "checkpointing.resume": ("resumed", -1),
    "monitoring.log_completions": ("tables", -1),
    "monitoring.completions_every": ("tables", 0),
    "monitoring.console_seconds": ("shown", 1),
    "monitoring.progress_bar": ("progress", -1),
    "monitoring.diagnose_seconds": ("judged", 1),
}
PLOTS = "monitoring.plots_dir"  # by the command, of what its training came to


@pytest.fixture(scope="module")
def left(tmp_path_factory, tiny):
    """What a small training with some settings leaves, once for each."""
    known = {}

    def make(said):
        name = json.dumps(said, sort_keys=True)
        if name not in known:
            known[name] = _left(tmp_path_factory.mktemp("run"), tiny, dict(said))
        return known[name]

    return make


def _left(out, tiny, said):
    given = {**trained.SAID, "training.max_steps": 2, "monitoring.console_seconds": 99.0, **said}
    if given.pop("again", False):
        trained.train(out, base=tiny, **{**given, "checkpointing.save_steps": 1})
    trained.train(out, base=tiny, **{"mode": given.pop("training.mode", "nsr"), **given})
    lines = (out / "logs" / "debug.log").read_text().splitlines()
    (about,) = rlvitals.read(out)[:1]
    return {
        "weights": trained.weights(out),
        "threads": torch.get_num_threads(),
        "judged": sum("[diagnosis]" in line for line in lines),
        "tables": {name: repr(table) for name, table in about.tables.items()},
        "shown": sum("NSR [Step" in line and line.split(" ", 3)[2] == "INFO" for line in lines),
        "progress": sum("Training progress" in line for line in lines),
        "resumed": sum("resumed at step" in line for line in lines),
    }  # fmt: skip


@pytest.mark.soak
@pytest.mark.parametrize("name", sampled(sorted(LEFT), 12))
def test_a_training_leaves_something_else(name, left):
    value, beside = LEFT[name]
    was, now = left(beside), left({**beside, name: value})
    torch.set_num_threads(1)
    part, sign = CHANGED[name]
    assert was[part] != now[part]
    if sign:
        before, after = (_count(left[part]) for left in (was, now))
        assert sign * (after - before) > 0, (before, after)


def _count(part):
    return len(part) if isinstance(part, list | dict) else part


def test_the_seed_draws_other_answers_of_the_same_model(tmp_path, tiny):
    said = {**trained.SAID, "training.max_steps": 2, "model.vlm_name": str(tiny)}
    drawn = []
    for place, seed in enumerate((7, 7, 8)):
        out = tmp_path / str(place)
        trained.train(out, **said, **{"training.seed": seed})
        (about, *_) = rlvitals.read(out)
        drawn.append(about.tables["completions"].columns["completion"])
    assert drawn[0] == drawn[1] != drawn[2]


def test_pictures_are_wanted_where_a_folder_is_named(tmp_path, tiny):
    shutil.copytree(tiny, tmp_path / "base")
    said = {**trained.SAID, "training.max_steps": 1}
    assert language.train(trained.config(tmp_path, **said), {}).plots_dir == ""
    result = language.train(trained.config(tmp_path, **said, monitoring__plots_dir="drawn"), {})
    assert (result.folder, result.plots_dir) == (tmp_path, "drawn")


def test_no_setting_is_left_out():
    by_name = {
        "data.dataset_name", "data.chart_pixels", "data.image_pixels", "data.prompt_template",
        "data.chat", "data.subset_size", "data.held_out", "data.dataset_split",
        "model.vlm_name", "model.dtype", "model.lora", "model.lora_r", "model.lora_alpha",
        "model.lora_dropout", "model.lora_targets", "model.warm_start_steps",
        "model.warm_start_noise",
        "rewards.functions", "rewards.weights", "rewards.on_error", "rewards.process_model",
        "monitoring.report_to", "checks.image_check_steps", "checks.image_check_questions",
    }  # fmt: skip
    assert KEYS.keys() == ARGUMENTS | SINKS.keys() | by_name | LEFT.keys() | {PLOTS}


# -- RLHF: what differs from the sections above ---------------------------------------------------

RLHF_BASE = {
    "rlhf.total_episodes": 16, "rlhf.batch_size": 8, "rlhf.response_length": 4, "rlhf.lr": 1e-2,
    "rlhf.value_lr": 1e-2, "rlhf.temperature": 1.0, "rlhf.missing_eos_penalty": 0.3,
    "data.subset_size": 30, "data.held_out": 4, "model.warm_start_steps": 40,
    "monitoring.report_to": ("none",), "monitoring.diagnose_seconds": 0.0,
    "checkpointing.save_steps": 0,
}  # fmt: skip
ADAPTIVE = {"rlhf.kl_controller": "adaptive", "rlhf.kl_target": 0.01}
RLHF_LEFT = {
    "rlhf.seed": (7, {"model.warm_start_steps": 0, "again": "fresh"}),
    "rlhf.total_episodes": (24, {}),
    "rlhf.batch_size": (16, {}),
    "rlhf.num_mini_batches": (2, {}),
    "rlhf.num_ppo_epochs": (2, {}),
    "rlhf.forward_batch_size": (3, {}),
    "rlhf.lr": (1e-3, {}),
    "rlhf.value_lr": (1e-3, {}),
    "rlhf.lr_schedule": ("constant", {}),
    "rlhf.max_grad_norm": (1e-3, {}),
    "rlhf.response_length": (2, {}),
    "rlhf.temperature": (0.5, {}),
    "rlhf.missing_eos_penalty": (0.0, {}),
    "rlhf.reward_model": ("made", {}),
    "rlhf.kl_coef": (0.5, {}),
    "rlhf.kl_controller": ("adaptive", {"rlhf.kl_horizon": 20}),
    "rlhf.kl_target": (100.0, {**ADAPTIVE, "rlhf.kl_horizon": 20, "rlhf.total_episodes": 24}),
    "rlhf.kl_horizon": (50, ADAPTIVE),
    "rlhf.kl_estimator": ("k3", {}),
    "rlhf.gamma": (0.5, {}),
    "rlhf.lam": (0.5, {}),
    "rlhf.whiten_rewards": (True, {}),
    "rlhf.cliprange": (1e-3, {}),
    "rlhf.cliprange_value": (1e-3, {}),
    "rlhf.vf_coef": (1.0, {}),
    "rlhf.target_kl": (1e-6, {}),
    "rlhf.ratio_threshold": (1e-3, {}),
    "rlhf.bf16": (True, {}),
    "rlhf.threads": (2, {}),
}  # fmt: skip
CLOCK = ("eps", "machine/", "time/")


@pytest.fixture(scope="module")
def rlhf_left(tmp_path_factory):
    """What a small RLHF training with some settings leaves, once for each."""
    known, base = {}, tmp_path_factory.mktemp("rlhf") / "base"

    def make(said):
        name = json.dumps(said, sort_keys=True)
        if name not in known:
            known[name] = _rlhf_left(tmp_path_factory.mktemp("run"), base, dict(said))
        return known[name]

    return make


def _rlhf_left(out, base, said):
    fresh = said.pop("again", "")
    given = {**RLHF_BASE, "rlhf.output_dir": str(out), **said}
    if base.exists() and not fresh:
        shutil.copytree(base, out / "base")
    if "rlhf.reward_model" in said:
        given["rlhf.reward_model"] = str(reward_model(out / "reward"))
    AcceleratorState._reset_state(reset_partial_state=True)  # one precision for each process
    made = rlhf_program.Training(
        schema.load(rlhf.Config, None, given, below=command.TINY_LM_PRESET)
    )
    if not (base.exists() or fresh):
        shutil.copytree(out / "base", base)
    rows, record = [], made.recorder.log
    made.recorder.log = lambda step, told, **axes: (
        rows.append((step, told)),
        record(step, told, **axes),
    )
    made.run()
    return {
        "weights": [one.detach().float().numpy().tobytes() for one in made.ppo.learning],
        "threads": torch.get_num_threads(),
        "rows": [
            (step, {key: repr(value) for key, value in told.items() if not key.startswith(CLOCK)})
            for step, told in rows
        ],
    }


@pytest.mark.soak
@pytest.mark.parametrize("name", sampled(sorted(RLHF_LEFT), 16))
def test_an_rlhf_training_leaves_something_else(name, rlhf_left):
    value, beside = RLHF_LEFT[name]
    was, now = rlhf_left(beside), rlhf_left({**beside, name: value})
    torch.set_num_threads(1)
    assert [part for part in was if was[part] != now[part]] != []


def test_two_trainings_of_the_same_settings_leave_the_same(tmp_path, rlhf_left, left, tiny):
    assert rlhf_left({}) == _rlhf_left(tmp_path / "rlhf", tmp_path / "none", {})
    assert left({}) == _left(tmp_path / "grpo", tiny, {})


def test_no_setting_of_rlhf_is_left_out():
    own = {name for name in RLHF if name.startswith("rlhf.")}
    assert own == RLHF_LEFT.keys() | {"rlhf.output_dir"}
    said = {"rlhf.output_dir": "runs/{vlm}"}
    assert rlhf_building.folder(schema.load(rlhf.Config, None, said)).parent.name == "runs"

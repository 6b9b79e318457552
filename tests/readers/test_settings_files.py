"""Files of settings: read as plain content, never constructed, unpickled or run."""

import argparse
import enum
import json
import os
import pickle
import subprocess
import sys
import zipfile
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import log_checks
import numpy as np
import pytest
import stable_baselines3
import torch
import yaml
from test_sources import EVENTS, FIRST, LINES, build

from rlvitals.readers.discovery import settings_files, sources
from rlvitals.readers.formats import plain_yaml
from rlvitals.readers.formats.plain_yaml import NotPlainError, leaves, parse, resolve_scalar


@pytest.fixture
def read(tmp_path):
    def made(name, data, run=""):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return settings_files.read(path, run)

    return made


def found(read, name, data, run=""):
    settings, notes = read(name, data, run)
    assert notes == []
    return settings


class Precision(enum.Enum):
    HALF = "bf16"


class Recorder:
    """Whoever constructs it, or calls what it was reduced to, leaves a trace."""

    def __reduce__(self):
        return os.system, ("touch constructed",)


@dataclass
class Arguments:
    learning_rate: float = 3e-6
    max_steps: int = 77
    bf16: bool = True
    run_name: str = "first"
    precision: Precision = Precision.HALF
    betas: tuple[float, float] = (0.9, 0.99)
    extra: dict[str, object] = field(default_factory=lambda: {"deep": {"learning_rate": 9.0}})
    _n_gpu: int = 1
    big: int = 2**70
    nothing: None = None


@pytest.mark.parametrize("name", ["params.json", "args.json", "config.json", "hparams.json"])
def test_json(read, name):
    item = {"lr": 0.1, "env": {"name": "Ant", "ids": [1, 2]}, "use": True, "none": None}
    expected = {"lr": 0.1, "env/name": "Ant", "env/ids": "[1, 2]", "use": True}
    assert found(read, name, json.dumps(item)) == expected


@pytest.mark.parametrize("suffix", ["yaml", "yml"])
@pytest.mark.parametrize("stem", ["hparams", "config", "args", "params"])
def test_yaml(read, stem, suffix):
    text = "lr: 1e-4\nbatch_size: 64\nlayers: [64, [32, 16]]\nalgorithm: {gamma: 0.99, name: ppo}\n"
    assert found(read, f"{stem}.{suffix}", text) == {
        "lr": 1e-4,
        "batch_size": 64,
        "layers": "[64, [32, 16]]",
        "algorithm/gamma": 0.99,
        "algorithm/name": "ppo",
    }


def test_lightnings_hparams(read, tmp_path):
    from lightning.pytorch.core.saving import save_hparams_to_yaml

    hparams = {"lr": 0.02, "layer": 3, "kind": Precision.HALF, "name": "a: b", "sizes": [1, 2]}
    save_hparams_to_yaml(tmp_path / "made.yaml", hparams)
    settings = found(read, "hparams.yaml", (tmp_path / "made.yaml").read_bytes())
    assert settings == {"lr": 0.02, "layer": 3, "kind": "HALF", "name": "a: b", "sizes": "[1, 2]"}


def test_the_yaml_of_python_objects(read):
    pairs = OrderedDict([("algo", "ppo"), ("seed", 7), ("lr", 3e-4)])  # rl-zoo's args.yml
    assert found(read, "args.yml", yaml.dump(pairs)) == dict(pairs)
    item = {
        "args": argparse.Namespace(lr=0.1, eps=1e-8),
        "sizes": (64, 64),
        "path": PurePosixPath("/tmp/run"),  # noqa: S108 - a name
        "scalar": np.float64(0.5),
        "kind": Precision.HALF,
        "act": torch.nn.Tanh,
        "raw": b"\0\1",
        "lr": 0.3,
    }
    assert found(read, "config.yml", yaml.dump(item)) == {
        "args/lr": 0.1,
        "args/eps": 1e-8,
        "kind": "bf16",
        "lr": 0.3,
        "sizes": "[64, 64]",
    }


def test_nothing_in_a_file_is_constructed(read, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert found(read, "config.yaml", yaml.dump({"a": Recorder(), "lr": 1})).pop("lr") == 1
    torch.save(Recorder(), tmp_path / "training_args.bin")
    settings, notes = settings_files.read(tmp_path / "training_args.bin")
    assert settings == {}
    assert notes == ["not an object with fields: its settings are not known"]
    hidden = Arguments(extra={"a": Recorder()})
    torch.save(hidden, tmp_path / "training_args.bin")
    assert settings_files.read(tmp_path / "training_args.bin")[0]["max_steps"] == 77
    assert not (tmp_path / "constructed").exists()
    pickle.loads(pickle.dumps(Recorder()))  # noqa: S301 - what unpickling would have done
    assert (tmp_path / "constructed").exists()


def test_training_arguments(tmp_path):
    path = tmp_path / "training_args.bin"
    torch.save(Arguments(), path)
    assert settings_files.read(path) == (
        {"learning_rate": 3e-6, "max_steps": 77, "bf16": True, "run_name": "first", "big": 2**70},
        [],
    )
    torch.save(Arguments(max_steps=-1), path)
    assert "max_steps" not in settings_files.read(path)[0]


@pytest.mark.parametrize("protocol", range(1, 6))
def test_training_arguments_of_every_pickle_protocol(tmp_path, protocol):
    path = tmp_path / "training_args.bin"
    torch.save(Arguments(), path, pickle_protocol=protocol)
    assert settings_files.read(path)[0]["learning_rate"] == 3e-6


@pytest.mark.parametrize("item", [{"lr": 1}, [1], 3, torch.zeros(2), torch.nn.Linear(2, 2)])
def test_what_torch_saved_otherwise_gives_no_numbers(tmp_path, item):
    path = tmp_path / "training_args.bin"
    torch.save(item, path)
    settings, _ = settings_files.read(path)
    assert not any(key in settings for key in ("lr", "learning_rate"))


def test_damaged_training_arguments_are_a_note(tmp_path):
    path = tmp_path / "training_args.bin"
    torch.save(Arguments(), path)
    data, rng = path.read_bytes(), log_checks.chance_of(0)
    for trial in range(400):
        changed = bytearray(data)
        if trial % 4 == 0:
            del changed[rng.randrange(len(data)) :]
        else:
            changed[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(changed)
        settings, notes = settings_files.read(path)
        # The zip checks the pickle with a CRC: what reads is what was written.
        assert settings.get("learning_rate", 3e-6) == 3e-6
        assert settings or len(notes) == 1


@pytest.mark.parametrize(
    "pickled",
    [
        b"\x80\x02" + b"(" * 300_000,
        b"\x80\x02" + b"0" * 10,
        b"\x80\x02h\x05.",
        b"\x80\x02u.",
        b"\x80\x02X\xff\xff\xff\x7fabc.",
        b"\x80\x02}b.",
        b"\x80\x02\x8b\xff\xff\xff\x7f.",
        b"",
    ],
)
def test_hostile_pickles_are_a_note(tmp_path, pickled):
    path = tmp_path / "training_args.bin"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("training_args/data.pkl", pickled)
    settings, notes = settings_files.read(path)
    assert settings == {}
    assert len(notes) == 1


def test_trackers_and_ml_agents_wrappings_are_taken_away(read):
    item = {"wandb_version": 1, "_wandb": {"value": {"cli_version": "0.22"}}}
    item |= {"lr": {"desc": None, "value": 0.1}, "env": {"value": {"name": "Ant"}}}
    assert found(read, "config.yaml", yaml.safe_dump(item)) == {"lr": 0.1, "env/name": "Ant"}
    one = {"trainer_type": "ppo", "hyperparameters": {"beta": 0.005}, "max_steps": 500}
    other = {"trainer_type": "sac"}
    item = {"behaviors": {"Ball": one, "Walker": other}, "env_settings": {"seed": -1}}
    text = yaml.safe_dump(item)
    expected = {"trainer_type": "ppo", "hyperparameters/beta": 0.005, "max_steps": 500}
    assert found(read, "configuration.yaml", text, "Ball") == expected
    assert found(read, "configuration.yaml", text, "Walker") == other
    assert found(read, "configuration.yaml", text, "Other") == {}
    only = yaml.safe_dump({"behaviors": {"Ball": one}})
    assert found(read, "configuration.yaml", only, "run") == expected


def test_a_lora_adapter(read):
    item = {"peft_type": "LORA", "r": 16, "lora_alpha": 32, "target_modules": ["q", "v"]}
    assert found(read, "adapter_config.json", json.dumps(item)) == {
        "peft_type": "LORA",
        "lora_r": 16,
        "lora_alpha": 32,
        "lora_target_modules": "[q, v]",
    }


@pytest.mark.parametrize(
    "item",
    [
        {"architectures": ["GPT2LMHeadModel"], "n_layer": 2},
        {"model_type": "llama", "hidden_size": 64, "learning_rate": 1},
        {"transformers_version": "5.2", "vocab_size": 9},
    ],
)
def test_a_models_configuration_is_no_trainers(read, item):
    assert read("config.json", json.dumps(item)) == ({}, [])


def test_laughs_and_depth_are_bounded(read):
    links = "".join(
        f"l{n + 1}: &l{n + 1} {{{', '.join(f'k{k}: *l{n}' for k in range(10))}}}\n"
        for n in range(30)
    )
    for bottom in ("{x: 1}", "{}", "[]"):
        settings, notes = read("config.yaml", f"lr: 0.1\nl0: &l0 {bottom}\n{links}")
        assert settings["lr"] == 0.1
        assert len(settings) <= 5000
        assert notes[0].startswith("more settings than are read")
    lists = "".join(f"l{n + 1}: &l{n + 1} [{', '.join([f'*l{n}'] * 10)}]\n" for n in range(30))
    settings, _ = read("config.yaml", f"l0: &l0 [x]\n{lists}")
    assert all(len(value) <= settings_files.MAX_SETTING_CHARACTERS for value in settings.values())
    merges = "a: &a {" + ", ".join(f"k{n}: 1" for n in range(5000)) + "}\n" + "b: {<<: *a}\n" * 200
    assert read("config.yaml", merges)[1]
    for text in ("[" * 100_000, "{a: " * 100_000, "- " * 100_000, "&a [*a]", "a: *b"):
        settings, notes = read("config.yaml", text)
        assert settings == {}
        assert len(notes) <= 1


@pytest.mark.parametrize(
    ("name", "data", "note"),
    [
        ("config.json", "{", "not JSON: its settings are not known"),
        ("config.json", "[1]", "not JSON: its settings are not known"),
        ("config.yaml", "a: [", "not YAML: its settings are not known"),
        ("config.yaml", "a: b: c", "not YAML: its settings are not known"),
        ("config.yaml", b"\x00\xff", "not YAML: its settings are not known"),
        ("config.yaml", "- a", "no settings in it"),
        ("config.yaml", "a" * 2**21, "longer than 1 MiB: its settings are not known"),
        ("training_args.bin", "text", "not a file of torch.save: its settings are not known"),
    ],
)
def test_what_is_not_read_is_a_note(read, name, data, note):
    assert read(name, data) == ({}, [note])


def test_an_empty_file_says_nothing(read):
    assert read("config.yaml", "") == ({}, [])
    assert read("config.yaml", "# nothing\n") == ({}, [])


SCALARS = ("1", "-1", "0", "010", "0x1F", "1_000", "1.5", ".5", "1e3", "1.5e-3", ".inf", "-.inf")
SCALARS += ("yes", "no", "off", "null", "~", "text", "1.2.3")


@pytest.mark.parametrize("text", SCALARS)
def test_scalars_are_what_pyyaml_reads(text):
    expected = yaml.safe_load(f"a: {text}")["a"]
    if text == "1e3":
        expected = 1000.0  # PyYAML reads text, whoever wrote it meant a number
    assert resolve_scalar(text) == expected
    assert type(resolve_scalar(text)) is type(expected)


def test_plain_yaml_reads_what_pyyaml_reads():
    item = {"a": [1, {"b": "x"}], "c": {"d": None, "e": "1"}, "f": "multi\nline", "g": {}}
    assert parse(yaml.safe_dump(item)) == item
    text = "base: &b {x: 1, y: 2}\nown: {<<: *b, y: 3}\nboth: {<<: [*b, {z: 9}]}\n"
    assert parse(text) == yaml.safe_load(text)
    with pytest.raises(NotPlainError):
        list(leaves(parse("a: {b: 1, c: 2, d: 3}"), 3))
    assert sys.getrecursionlimit() > plain_yaml.MAX_YAML_DEPTH


def test_deep_yaml_does_not_take_the_process_down():
    code = "from rlvitals.readers.formats.plain_yaml import parse\nparse('[' * 1_000_000)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "NotPlainError" in done.stderr


CONFIG = b"lr: 0.25\n"
# Folder -> for each run, the files of settings that are its own.
CASES = {
    "beside the log": ({"r/m.jsonl": LINES, "r/config.yaml": CONFIG}, {"r": ["config.yaml"]}),
    "Hydra's own folder": (
        {"o/12-00/.hydra/config.yaml": CONFIG, "o/12-00/.hydra/hydra.yaml": CONFIG}
        | {f"o/12-00/tb/{FIRST}": EVENTS},
        {"o/12-00": [".hydra/config.yaml"]},
    ),
    "Hydra above the only run": (
        {".hydra/config.yaml": CONFIG, f"ppo_1/{FIRST}": EVENTS},
        {"ppo_1": ["../.hydra/config.yaml"]},
    ),
    "a sweep's folder is nobody's": (
        {"config.yaml": CONFIG, f"a/{FIRST}": EVENTS, f"b/{FIRST}": EVENTS},
        {"a": [], "b": []},
    ),
    "rl-zoo": (
        {f"ppo/Ant_1/{FIRST}": EVENTS, "ppo/Ant_1/Ant/args.yml": CONFIG}
        | {"ppo/Ant_1/Ant/config.yml": CONFIG, f"ppo/Ant_2/{FIRST}": EVENTS},
        {"ppo/Ant_1": ["Ant/args.yml", "Ant/config.yml"], "ppo/Ant_2": []},
    ),
    "checkpoints hold the same": (
        {f"out/checkpoint-{n}/training_args.bin": b"" for n in (1, 2, 3)}
        | {"out/checkpoint-3/trainer_state.json": b'{"log_history": [{"step": 1, "loss": 1}]}'},
        {"out": ["checkpoint-1/training_args.bin"]},
    ),
    "ML-Agents": (
        {f"results/r/{b}/events.out.tfevents.{n}.h.1": EVENTS for n, b in enumerate("AB")}
        | {"results/r/configuration.yaml": b"behaviors: {A: {lr: 1}, B: {lr: 2}}\n"}
        | {"results/r/run_logs/timers.json": b'{"name": "root", "total": 1.5, "count": 1}'}
        | {"results/r/run_logs/training_status.json": b'{"A": {"checkpoints": [{"steps": 5}]}}'},
        {f"results/r/{b}": ["../configuration.yaml"] for b in "AB"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_whose_settings_they_are(tmp_path, case):
    files, expected = CASES[case]
    runs = sources.find(build(tmp_path / "project", files))
    told = {run.name: [os.path.relpath(at, run.root) for at in run.settings] for run in runs}
    assert told == expected


def test_each_behaviour_has_its_own_settings(tmp_path):
    root = build(tmp_path / "project", CASES["ML-Agents"][0])
    logs = [sources.read(run) for run in sources.find(root)]
    assert [log.settings for found in logs for log in found if log.settings] == [
        {"lr": 1},
        {"lr": 2},
    ]


def test_a_single_file_has_hydras_settings(tmp_path):
    root = build(tmp_path, {"m.jsonl": LINES, ".hydra/config.yaml": CONFIG})
    (run,) = sources.find(root / "m.jsonl")
    assert [Path(os.path.relpath(at, root)) for at in run.settings] == [Path(".hydra/config.yaml")]


def saved_model(folder, name, algorithm, *, steps=0, **arguments):
    """Save a model as SB3's users do, after so many steps."""
    model = algorithm("MlpPolicy", "CartPole-v1", device="cpu", **arguments)
    model._total_timesteps, model.num_timesteps = 400, steps
    folder.mkdir(exist_ok=True)
    model.save(folder / name)


def test_a_model_that_sb3_saved_holds_the_settings_of_the_csv_beside_it(tmp_path):
    rows = "".join(f"{step},{step / 10}\n" for step in range(20, 401, 20))
    (tmp_path / "progress.csv").write_text(f"time/total_timesteps,rollout/ep_rew_mean\n{rows}")
    saved_model(
        tmp_path, "ppo", stable_baselines3.PPO, steps=400, gamma=0.9, n_steps=20, batch_size=5
    )
    for path in (tmp_path, tmp_path / "progress.csv"):
        (run,) = sources.find(path)
        (settings,) = (log.settings for log in sources.read(run) if log.source == "settings")
        assert settings["algorithm"] == "ppo"
        assert (settings["gamma"], settings["clip_range"], settings["n_steps"]) == (0.9, 0.2, 20)
        assert (settings["total_timesteps"], settings["n_actions"]) == (400, 2)
        assert "policy_class" not in settings
    saved_model(tmp_path, "older", stable_baselines3.PPO, gamma=0.5, n_steps=20, batch_size=5)
    assert sources.find(tmp_path)[0].settings == (), "nobody can say whose settings they are"


def test_a_model_of_a_longer_training_is_not_this_one_s(tmp_path):
    (tmp_path / "progress.csv").write_text("time/total_timesteps,rollout/ep_rew_mean\n100,1.0\n")
    saved_model(tmp_path, "dqn", stable_baselines3.DQN, steps=300)
    (run,) = sources.find(tmp_path)
    (log,) = (log for log in sources.read(run) if log.source == "settings")
    assert (log.settings, log.notes) == ({}, ("saved at step 300, by another training",))


@pytest.mark.parametrize("name", ["PPO", "A2C", "DQN"])
def test_the_algorithm_is_named_by_what_it_saved(tmp_path, name):
    saved_model(tmp_path, "model", getattr(stable_baselines3, name))
    settings, notes = settings_files.read(tmp_path / "model.zip")
    assert (settings["algorithm"], notes) == (name.lower(), [])
    assert ("n_steps" in settings) == (name != "DQN")


def test_a_saved_model_constructs_nothing(tmp_path):
    data = {"gamma": 0.5, "policy_class": {":serialized:": str(pickle.dumps(Recorder()))}}
    for text, problem in ((json.dumps(data), []), ("[]", ["not a model"]), ("{", ["not a model"])):
        with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
            archive.writestr("data", text)
        settings, notes = settings_files.read(tmp_path / "model.zip")
        assert settings == ({"gamma": 0.5} if not problem else {})
        assert [note.startswith(start) for note, start in zip(notes, problem, strict=True)] == [
            True
        ] * len(problem)
    (tmp_path / "model.zip").write_bytes(b"PK\x03\x04" + b"\0" * 22 + b"\x04\0\0\0data cut short")
    assert settings_files.is_settings(tmp_path / "model.zip")
    assert settings_files.read(tmp_path / "model.zip")[0] == {}

"""Settings that are written as text, one by one or many in one."""

import json
import math
from argparse import Namespace

import pytest
from torch.utils.tensorboard import SummaryWriter

from rlvitals.metrics import canonicalize
from rlvitals.readers.discovery import sources
from rlvitals.readers.event_files.texts import settings_in
from rlvitals.readers.formats.literals import setting
from rlvitals.types import Profile

ARGUMENTS = {
    "exp_name": "ppo",
    "seed": 1,
    "env_id": "CartPole-v1",
    "learning_rate": 2.5e-4,
    "anneal_lr": True,
    "clip_coef": 0.2,
    "target_kl": None,
    "total_timesteps": 500000,
}


def table(arguments):
    """As CleanRL writes it: the code of its main loop."""
    rows = "\n".join([f"|{key}|{value}|" for key, value in arguments.items()])
    return f"|param|value|\n|-|-|\n{rows}"


KNOWN = {key: value for key, value in ARGUMENTS.items() if value is not None}


def test_cleanrl_writes_a_table():
    assert settings_in(table(ARGUMENTS)) == KNOWN


def test_tianshou_prints_a_namespace():
    arguments = Namespace(**ARGUMENTS, hidden_sizes=[64, 64], device="cpu")
    assert settings_in(str(arguments)) == {**KNOWN, "device": "cpu"}


@pytest.mark.parametrize(
    "value",
    [
        "",
        "|",
        "|param|value|",
        "|a|b|c|\n|-|-|-|\n|1|2|3|",
        "Namespace(",
        "Namespace(a=__import__('os').getcwd())",
        "Namespace(a=" + "(" * 5000,
        "Namespace(a=1) and more",
        "a plain note",
    ],
)
def test_what_holds_no_settings(value):
    assert settings_in(value) == {}


def test_they_reach_the_trace_under_canonical_names(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_text("hyperparameters", table(ARGUMENTS))
        for step in range(30):
            writer.add_scalar("charts/episodic_return", step, step)
            writer.add_scalar("losses/approx_kl", 0.01, step)
    (run,) = sources.find(tmp_path)
    trace = canonicalize.trace(sources.read(run))
    assert trace.settings["clip_range"] == 0.2
    assert trace.settings["env_id"] == "CartPole-v1"
    assert trace.budget.steps == 500000
    assert trace.profile is Profile.CONTROL_PPO


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("0.5", 0.5),
        ("1e-4", 1e-4),
        ("True", True),
        ("None", None),
        ("", None),
        ("inf", math.inf),
        ("007", "007"),
        ("0", 0),
        ("[64, 64]", "[64, 64]"),
        ("9" * 30, 1e30),
        ("tanh", "tanh"),
        ("1_0", "1_0"),
    ],
)
def test_what_a_setting_was(text, value):
    found = setting(text)
    assert found == value
    assert type(found) is type(value)


def test_the_arguments_of_transformers_are_settings():
    arguments = {"output_dir": "out", "beta": 0.04, "num_generations": 8, "hub_token": None}
    expected = {"output_dir": "out", "beta": 0.04, "num_generations": 8}
    assert settings_in(json.dumps(arguments, indent=2)) == expected
    assert settings_in('{"output_dir": ') == {}
    assert settings_in(json.dumps({"answer": "a completion in JSON"})) == {}

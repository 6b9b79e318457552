"""Settings that a script logged as a text."""

from argparse import Namespace

import numpy as np
import pytest

from rlvitals.metrics import assemble, written
from rlvitals.records import Log, Profile, Series, Text

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


def text(value):
    return [Text(0, 1.7e9, value)]


def log(texts, settings=None):
    steps = np.arange(1, 31)
    series = Series(steps, 1.7e9 + steps, steps / 100)
    keys = ("charts/episodic_return", "losses/approx_kl")
    return Log("tensorboard", dict.fromkeys(keys, series), settings or {}, texts=texts)


KNOWN = {key: value for key, value in ARGUMENTS.items() if value is not None}


@pytest.mark.parametrize("tag", ["hyperparameters", "hyperparameters/text_summary"])
def test_cleanrl_writes_a_table(tag):
    assert written.settings({tag: text(table(ARGUMENTS))}) == KNOWN


def test_tianshou_prints_a_namespace():
    arguments = Namespace(**ARGUMENTS, hidden_sizes=[64, 64], device="cpu")
    found = written.settings({"args/text_summary": text(str(arguments))})
    assert found == {**KNOWN, "device": "cpu"}


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
    assert written.settings({"hyperparameters": text(value)}) == {}


def test_other_texts_are_not_read():
    assert written.settings({"sample/text_summary": text(table(ARGUMENTS))}) == {}
    assert written.settings({"args": []}) == {}


def test_they_reach_the_trace_under_canonical_names():
    trace = assemble.trace([log({"hyperparameters": text(table(ARGUMENTS))})])
    assert trace.settings["clip_range"] == 0.2
    assert trace.settings["env_id"] == "CartPole-v1"
    assert trace.budget.steps == 500000
    assert trace.profile is Profile.CONTROL_PPO


def test_what_a_file_says_counts_more():
    own = log({"args": text(table(ARGUMENTS))}, settings={"seed": 7})
    assert assemble.trace([own]).settings["seed"] == 7

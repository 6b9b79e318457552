"""The guides of the PPO trainer name what there is: settings, columns, lines."""

import re
from pathlib import Path

import pytest

from rlvitals.trainers import schema
from rlvitals.trainers.ppo import telemetry
from rlvitals.trainers.ppo.config import Config

DOCS = Path(__file__).resolve().parents[3] / "docs"
GUIDES = (
    "reward", "temperature", "kl-regularization", "statistics-stabilization", "warm-start",
    "monitoring",
)  # fmt: skip
KEYS = schema.keys(Config)
KNOWN = {key.path[-1] for key in KEYS} | {key.name for key in KEYS}
KNOWN |= {".".join(key.path[:i]) for key in KEYS for i in range(1, len(key.path))}
# The columns and words that guides name beside settings.
COLUMNS = set(telemetry.TENSORBOARD_TAGS) | {
    "approx_kl_k1", "entropy_policy", "kl_ref", "utilisation_gap", "obs_norm_count",
    "obs_norm_mean", "obs_norm_std", "reward_norm_count", "reward_norm_std", "temp_pulse_remaining",
    "temp_step_count", "temp_current_temperature", "action_replica_0", "action_replica_n",
    "action_count_n", "latency_p95", "act", "warm", "random", "policy", "stagnation", "interval",
    "hybrid", "instant", "delta", "adjustment", "load_balance_penalty", "blocks/", "tensorboard/",
    "metrics/", "eval_return", "eval_latency", "eval_latency_p95", "eval_latency_p99",
    "baseline_return", "lor/speed", "ep_return",
    *(f"{tag.partition('/')[0]}/" for tag in telemetry.TENSORBOARD_TAGS.values()),
}  # fmt: skip
ELEVEN = {
    "base_temperature", "min_temperature", "max_temperature", "qps_sensitivity",
    "latency_sensitivity", "pressure_ema_alpha", "enable_pulse", "pulse_interval",
    "pulse_magnitude", "stagnation_threshold", "stagnation_memory",
}  # fmt: skip


def page(name):
    text = (DOCS / "trainers" / f"{name}.md").read_text()
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("name", GUIDES)
def test_every_word_in_code_is_a_setting_or_a_column(name):
    words = set(re.findall(r"`([a-z_.0-9/]+)`", page(name)))
    unknown = {word for word in words - KNOWN - COLUMNS if not re.search(r"\.\w+$", word)}
    assert unknown - {word for word in words if "." in word and word in KNOWN} == set()


@pytest.mark.parametrize("name", GUIDES)
def test_the_guides_stand_in_the_manual_and_lead_to_the_settings(name):
    assert f"trainers/{name}.md" in (DOCS.parent / "mkdocs.yml").read_text()
    assert f"trainers/{name}.md" in (DOCS / "how-to" / "train-a-scheduler.md").read_text()
    assert "(ppo-settings.md" in page(name)


def test_the_three_that_push_on_one_policy_name_each_other():
    assert "(temperature.md)" in page("reward")
    assert "(kl-regularization.md)" in page("reward")
    assert "(reward.md)" in page("kl-regularization")


def test_the_eleven_parameters_of_temperature_stand_with_their_defaults():
    rows = dict(re.findall(r"\| `(\w+)` \| ([\w.]+) \|", page("temperature")))
    held = {key.path[-1]: key.default for key in KEYS if key.path[0] == "temperature_control"}
    assert rows.keys() == ELEVEN
    for name, value in rows.items():
        assert str(held[name]).lower() == value, name


def test_every_setting_of_the_phase_has_its_row():
    named = {key.path[-1] for key in KEYS if key.path[0] == "statistics_stabilization"}
    rows = re.findall(r"^\| `(\w+)` \|", page("statistics-stabilization"), re.MULTILINE)
    assert set(rows) == named


def test_the_settings_page_names_every_key():
    text = (DOCS / "trainers" / "ppo-settings.md").read_text()
    for key in KEYS:
        assert f"`{key.path[-1]}`" in text
        assert f"`{key.flag}`" in text

"""Every setting of a training changes something: its weights, its numbers, lines, events, files.

Settings of the program have a number here that must move their way. Those of an update, a cluster
and a temperature have theirs in test_setting_effects.py, where a moment's work shows it.
"""

import json
from fnmatch import fnmatch

import numpy as np
import programs
import pytest
import torch
from effort import sampled

from rlvitals.storage import events
from rlvitals.trainers import schema
from rlvitals.trainers.ppo import console, demonstrations, factory
from rlvitals.trainers.ppo.cluster import ClusterConfig
from rlvitals.trainers.ppo.cluster.backends import resolve_backend
from rlvitals.trainers.ppo.config import Config

BASE = {
    **programs.CLUSTER, "training.total_steps": 256, "ppo_config.rollout_length": 16,
    "ppo_config.minibatch_size": 32, "ppo_config.learning_rate": 0.01, "network.hidden_sizes": [6],
    "checkpointing.interval": 128, "cluster.load": 3.0, "cluster.queue_limit": 4,
    "cluster.horizon": 48, "reward_config.latency_threshold": 0.5, "warm_start.demo_steps": 6,
    "warm_start.bc_epochs": 1, "warm_start.demo_loads": [1.0, 2.0],
    "evaluation.held_out_clusters": 2, "evaluation.held_out_decisions": 8,
}  # fmt: skip
INSTANT = {"reward_config.mode": "instant"}
EASY = {"curriculum_learning.decisions": 300}
ENTROPY = {"ppo_config.entropy_coef": 0.1}
FLOOR = {"ppo_config.entropy_min": 1.5}
KL = {"ppo_config.kl_coef": 0.1}
HELD = {"kl_regularization.kl_ref_coef_initial": 0.5}
CLONED = {"warm_start.bc_epochs": 20, "warm_start.bc_learning_rate": 0.05}
SETTLE = {"statistics_stabilization.statistics_stabilization_steps": 5}
FAILING = {"cluster.failures.mean_time_to_failure": 1.0}
TEMPERATURE = {
    "temperature_control.enabled": True, "temperature_control.stagnation_window": 3,
    "temperature_control.stagnation_memory": 2, "temperature_control.stagnation_threshold": 5.0,
}  # fmt: skip
PERIODIC = {"temperature_control.enabled": True, "temperature_control.periodic_pulses": True}
SPIKES = {
    "training.total_steps": 900, "advanced_optimization.adaptive_batch_size.enable": True,
    "advanced_optimization.adaptive_batch_size.spike_threshold": 0.6,
    "advanced_optimization.adaptive_batch_size.min": 24,
}  # fmt: skip
COSINE = {"advanced_optimization.learning_rate_schedule.type": "cosine_annealing_with_warmup"}
LINEAR = {"advanced_optimization.learning_rate_schedule.type": "linear"}
OFTEN = {
    "training.total_steps": 500,
    "checkpointing.interval": 64,
    "checkpointing.keep": 1,
    "checkpointing.keep_best": "",
}
SPIKE = "advanced_optimization.adaptive_batch_size"
RATE = "advanced_optimization.learning_rate_schedule"
TRACK = "monitoring.advanced_metrics"
TAIL = "monitoring.tail_latency_tracking"
# Where another value than the default's follower is needed, or other settings beside it.
CASES = {
    "training.env": ("CartPole-v1", {}),
    "training.num_envs": (6, {}),
    "training.total_steps": (400, {}),
    "training.chunk_size": (100, {"training.chunk_mode": True}),
    "training.diagnose_seconds": (0.001, {}),
    "ppo_config.learning_rate": (0.02, {}),
    "ppo_config.gamma": (0.9, {}),
    "ppo_config.gae_lambda": (0.5, {}),
    "ppo_config.clip_ratio": (0.01, {}),
    "ppo_config.value_clip_ratio": (0.01, {}),
    "ppo_config.rollout_length": (24, {}),
    "ppo_config.minibatch_size": (16, {}),
    "ppo_config.max_grad_norm": (0.01, {}),
    "ppo_config.entropy_coef_final": (0.0, ENTROPY),
    "ppo_config.entropy_warmup_coef": (0.5, {"ppo_config.entropy_warmup_updates": 3}),
    "ppo_config.entropy_warmup_updates": (3, {"ppo_config.entropy_warmup_coef": 0.5}),
    "ppo_config.entropy_min": (1.5, {}),
    "ppo_config.entropy_floor_coef": (0.5, FLOOR),
    "ppo_config.kl_adaptive": (True, KL),
    "ppo_config.kl_coef_target": (1e-6, {**KL, "ppo_config.kl_adaptive": True}),
    "ppo_config.target_kl": (1e-6, {}),
    "network.hidden_sizes": ([8], {}),
    "kl_regularization.kl_ref_coef_final": (0.4, HELD),
    "kl_regularization.kl_ref_decay_steps": (10, HELD),
    "cluster.replicas": (6, {}),
    "cluster.speeds": ([1.0, 2.0], {}),
    "cluster.max_batch": (2, {}),
    "cluster.kv_capacity": (7500, {"cluster.prompt_mean": 2000.0}),
    "cluster.chunk": (64, {}),
    "cluster.queue_limit": (1, {}),
    "cluster.load": (0.5, {}),
    "cluster.qps": (10.0, {}),
    "cluster.cv": (4.0, {"cluster.arrivals": "gamma"}),
    "cluster.arrivals": ("gamma", {}),
    "cluster.prompt_mean": (100.0, {}),
    "cluster.max_prompt": (500, {}),
    "cluster.max_output": (60, {}),
    "cluster.horizon": (20, {}),
    "cluster.window": (8, {}),
    "cluster.failures.mean_time_to_failure": (1.0, {}),
    "cluster.failures.mean_time_to_repair": (0.5, FAILING),
    "ppo_config.mask_actions": (False, FAILING),
    "cluster.safety.queue_limit": (1, {}),
    "cluster.safety.max_latency": (0.05, {"cluster.horizon": 200}),
    "cluster.safety.failure_penalty": (2.0, {"cluster.safety.max_latency": 0.05,
                                             "cluster.horizon": 200}),
    "reward_config.latency_weight": (2.0, INSTANT),
    "reward_config.threshold_penalty": (2.0, INSTANT),
    "reward_config.sigma": (2.0, {"reward_config.kappa": 0.5}),
    "reward_config.limit": (0.2, {}),
    "reward_config.mode": ("delta", {}),
    "reward_config.tail_penalty": (0.5, {"reward_config.latency_threshold": 0.01}),
    "curriculum_learning.start_load": (0.2, EASY),
    "curriculum_learning.start_heterogeneity": (0.9, EASY),
    "warm_start.demo_policies": (["random"], {}),
    "warm_start.demo_loads": ([0.5], {}),
    "warm_start.bc_batch_size": (16, {}),
    "warm_start.bc_noise": (0.5, {}),
    "warm_start.bc_holdout": (0.5, {}),
    "statistics_stabilization.stabilization_policy": ("policy", {**SETTLE, **CLONED}),
    "statistics_stabilization.stabilization_action_distribution": ([1.0, 0.0, 0.0, 0.0], SETTLE),
    "statistics_stabilization.freeze_normalizers_during_stabilization": (True, SETTLE),
    "statistics_stabilization.freeze_normalizers_after_stabilization": (True, SETTLE),
    "statistics_stabilization.collect_baseline_stats": (False, SETTLE),
    "evaluation.interval": (70, {}),
    "evaluation.held_out_episodes": (2, {"training.env": "CartPole-v1"}),
    "temperature_control.base_temperature": (1.5, {}),
    "temperature_control.min_temperature": (1.3, TEMPERATURE),
    "temperature_control.max_temperature": (1.02, TEMPERATURE),
    "temperature_control.target_qps": (5.0, TEMPERATURE),
    "temperature_control.target_latency": (0.01, TEMPERATURE),
    "temperature_control.pulse_interval": (3, PERIODIC),
    "temperature_control.pulse_duration": (1, TEMPERATURE),
    "temperature_control.pulse_magnitude": (0.3, TEMPERATURE),
    "temperature_control.periodic_pulses": (True, {"temperature_control.enabled": True}),
    "temperature_control.stagnation_window": (7, TEMPERATURE),
    "temperature_control.stagnation_memory": (4, TEMPERATURE),
    "temperature_control.stagnation_threshold": (0.0, TEMPERATURE),
    "temperature_control.pressure_ema_alpha": (0.6, {**TEMPERATURE,
                                                     "temperature_control.target_qps": 5.0}),
    "temperature_control.qps_sensitivity": (1.0, {**TEMPERATURE,
                                                  "temperature_control.target_qps": 5.0}),
    "temperature_control.latency_sensitivity": (
        9.0, {**TEMPERATURE, "temperature_control.target_latency": 0.05}
    ),
    "temperature_control.enable_pulse": (False, TEMPERATURE),
    f"{SPIKE}.min": (30, {**SPIKES, f"{SPIKE}.direction": "down"}),
    f"{SPIKE}.max": (33, SPIKES),
    f"{SPIKE}.adaptation_rate": (0.5, SPIKES),
    f"{SPIKE}.direction": ("down", SPIKES),
    f"{SPIKE}.spike_threshold": (50.0, SPIKES),
    f"{SPIKE}.min_lr_factor": (0.95, SPIKES),
    f"{SPIKE}.enable": (True, {key: value for key, value in SPIKES.items() if "enable" not in key}),
    f"{RATE}.type": ("constant", {}),
    f"{RATE}.warmup_steps": (3, COSINE),
    f"{RATE}.restart_period": (2, COSINE),
    f"{RATE}.min_lr_ratio": (0.5, LINEAR),
    "checkpointing.keep": (2, OFTEN),
    "checkpointing.keep_best": ("reward_max", OFTEN),
    "checkpointing.keep_every": (100, OFTEN),
    "monitoring.metrics_subsamples": (2, {"training.total_steps": 900}),
    "monitoring.tensorboard_enabled": (True, {}),
    f"{TRACK}.track_policy_entropy": (False, {"temperature_control.base_temperature": 1.5}),
    f"{TAIL}.percentiles": ([99], {}),
    f"{TAIL}.alert_threshold_p99": (0.001, {}),
}  # fmt: skip
# These change no such thing, or are shown by tests of their own.
APART = {
    "training.output_dir", "training.threads", "training.processes", "cluster.backend",
    "cluster.trace", "warm_start.demo_path", "warm_start.external_pretrain",
    "warm_start.force_warmstart", "checkpointing.keep_healthy", "monitoring.progress_bar",
    "monitoring.metrics_export_interval", "monitoring.tensorboard_port", "monitoring.wandb",
    "monitoring.wandb_project",
}  # fmt: skip


def rows(column):
    """How many rows have a column."""
    return lambda left: sum(column in told for _, told in left["rows"])


def last(column):
    return lambda left: [float(told[column]) for _, told in left["rows"] if column in told][-1]


def lines(text):
    return lambda left: sum(text in line for line in left["lines"])


def files(pattern):
    return lambda left: sum(fnmatch(name, pattern) for name in left["files"])


def events_of(kind):
    return lambda left: sum(name == kind for name, _ in left["events"])


def cloning_loss(left):
    return [float(facts["loss"]) for kind, facts in left["events"] if kind == "warm_start"][-1]


def decisions(left):
    """How many demonstrations were cloned."""
    told = next(line for line in left["lines"] if " decisions of " in line)
    return int(told.split()[1])


def steps(left):
    return max(step for step, _ in left["rows"])


def exported(left):
    return sum(left["csv"])


UP, DOWN, OTHER = 1, -1, 0
SAVED, CHUNKS = files("checkpoint-*"), files("chunk_*.log")
CLONED = "[PPO:warmstart] epoch"
# Settings of the program: the number that each moves from the value before to the one after, and
# its way. OTHER: what it names is another, neither more nor less.
NUMBERS = {
    "training.env": (rows("action_replica_2"), DOWN),
    "training.num_envs": (rows("update"), DOWN),
    "training.total_steps": (steps, UP),
    "training.chunk_mode": (CHUNKS, UP),
    "training.chunk_size": (CHUNKS, UP),
    "training.seed": (lambda left: left["weights"], OTHER),
    "training.diagnose_seconds": (lines(""), UP),
    "warm_start.skip_warmstart": (lines(CLONED), DOWN),
    "warm_start.demo_policies": (lines("decisions of random"), UP),
    "warm_start.demo_steps": (decisions, UP),
    "warm_start.demo_loads": (decisions, DOWN),
    "warm_start.bc_epochs": (events_of("warm_start"), UP),
    "warm_start.bc_batch_size": (cloning_loss, DOWN),
    "warm_start.bc_learning_rate": (cloning_loss, DOWN),
    "warm_start.bc_noise": (cloning_loss, OTHER),
    "warm_start.bc_holdout": (cloning_loss, OTHER),
    "warm_start.hold_to_reference": (rows("kl_ref"), DOWN),
    "statistics_stabilization.statistics_stabilization_steps": (last("obs_norm_count"), UP),
    "statistics_stabilization.stabilization_policy": (last("obs_norm_mean"), OTHER),
    "statistics_stabilization.stabilization_action_distribution": (last("obs_norm_mean"), OTHER),
    "statistics_stabilization.freeze_normalizers_during_stabilization": (
        last("obs_norm_count"), DOWN
    ),
    "statistics_stabilization.freeze_normalizers_after_stabilization": (
        last("obs_norm_count"), DOWN
    ),
    "statistics_stabilization.collect_baseline_stats": (rows("baseline/reward"), DOWN),
    "evaluation.enable": (rows("eval_latency"), DOWN),
    "evaluation.interval": (rows("eval_latency"), UP),
    "evaluation.held_out_clusters": (last("eval_latency"), OTHER),
    "evaluation.held_out_decisions": (last("eval_latency"), OTHER),
    "evaluation.baseline_scheduler": (lines("step=0 random"), UP),
    "evaluation.held_out_episodes": (rows("eval_return"), UP),
    "checkpointing.enable": (SAVED, DOWN),
    "checkpointing.interval": (SAVED, DOWN),
    "checkpointing.keep": (SAVED, UP),
    "checkpointing.keep_best": (lambda left: left["files"], OTHER),
    "checkpointing.keep_every": (SAVED, UP),
    "monitoring.metrics_export_enabled": (exported, DOWN),
    "monitoring.metrics_export_format": (exported, DOWN),
    "monitoring.metrics_subsamples": (exported, DOWN),
    "monitoring.tensorboard_enabled": (files("tensorboard"), UP),
    f"{TRACK}.track_policy_entropy": (rows("entropy_policy"), DOWN),
    f"{TRACK}.track_value_function_variance": (rows("value_var"), DOWN),
    f"{TRACK}.track_action_distribution": (rows("action_replica_0"), DOWN),
    f"{TRACK}.track_kl_divergence": (rows("first_kl"), DOWN),
    f"{TRACK}.track_advantage_statistics": (rows("raw_advantage_mean"), DOWN),
    f"{TAIL}.enable": (rows("latency_p99"), DOWN),
    f"{TAIL}.percentiles": (rows("latency_p90"), DOWN),
    f"{TAIL}.alert_threshold_p99": (events_of("tail_latency"), UP),
}  # fmt: skip
PROGRAM = {"training", "warm_start", "statistics_stabilization", "evaluation", "checkpointing",
           "monitoring"}  # fmt: skip
ECHOES = ("[PPO:init]", "[PPO:end]", "[PPO:preset]")  # settings and paths: no effect of them
KEYS = {key.name: key for key in schema.keys(Config)}


def other(key):
    """Another value than the default."""
    if key.choices:
        return next(one for one in key.choices if one != key.default)
    if isinstance(key.default, bool):
        return not key.default
    if isinstance(key.default, int):
        return key.default + 1
    return key.default * 2 or 0.5


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """What a run with some settings leaves, once for each."""
    known = {}

    def make(said):
        name = json.dumps(said, sort_keys=True)
        if name not in known:
            known[name] = trained(tmp_path_factory.mktemp("run"), said)
        return known[name]

    return make


def trained(folder, said):
    made = programs.training(folder, said)
    logged = []
    record = made.recorder.log
    made.recorder.log = lambda step, told: (logged.append((step, told)), record(step, told))
    made.run()
    logged = [row for row in logged if not any(name.startswith("machine/") for name in row[1])]
    tables = (folder / "metrics").glob("metrics-*.csv")
    held = events.read(folder / "events.jsonl").events
    skipped = ("time", "pid", "attempt")
    return {
        "weights": [weight.detach().numpy().tobytes() for weight in made.ppo.policy.parameters()],
        "rows": [
            (step, {name: repr(float(v)) for name, v in told.items() if name not in programs.CLOCK})
            for step, told in logged
        ],
        "lines": [line for line in programs.log(folder) if not line.startswith(ECHOES)],
        "events": [
            (one.kind, {k: repr(v) for k, v in one.facts.items() if k not in skipped})
            for one in held
            if one.kind in {"temperature_pulse", "adjustment", "tail_latency", "warm_start"}
        ],
        "files": sorted(path.name for path in folder.iterdir() if path.name != "metrics"),
        "csv": sorted(path.read_text().count("\n") for path in tables),
    }


@pytest.mark.soak
@pytest.mark.parametrize("name", sampled(sorted(KEYS.keys() - APART), 20))
def test_a_setting_changes_something(name, left):
    value, beside = CASES.get(name, (None, {}))
    value = other(KEYS[name]) if value is None else value
    before, after = {**BASE, **beside}, {**BASE, **beside, name: value}
    assert before != after
    was, now = left(before), left(after)
    assert [part for part in was if was[part] != now[part]] != []
    if name in NUMBERS:
        number, sign = NUMBERS[name]
        before, after = number(was), number(now)
        assert before != after if sign == OTHER else sign * (after - before) > 0, (before, after)


def test_every_setting_of_the_program_has_its_number():
    assert NUMBERS.keys() == {name for name in KEYS if name.split(".")[0] in PROGRAM} - APART


def test_nothing_is_said_of_settings_that_there_are_not():
    assert (CASES.keys() | APART) - KEYS.keys() == set()


def test_two_runs_of_the_same_settings_leave_the_same(tmp_path):
    one, two = (trained(tmp_path / name, BASE) for name in ("one", "two"))
    assert one == two


# -- those apart ----------------------------------------------------------------------------------


def config(**said):
    return schema.load(Config, None, {name.replace("__", "."): v for name, v in said.items()})


def test_threads_processes_and_backends_are_what_was_said(tmp_path):
    made = programs.training(tmp_path, **{"training.threads": 2, "training.processes": True})
    assert torch.get_num_threads() == 2
    assert len(made.ppo.envs.vector.processes) == 4
    made.end("failed", "", "not run")
    assert (resolve_backend("numpy"), resolve_backend("numba")) == ("numpy", "numba")


def test_a_trace_is_played(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text("time,prompt,output\n" + "".join(f"{i / 50},900,40\n" for i in range(200)))
    said = {**BASE, "cluster.arrivals": "trace", "cluster.trace": str(file)}
    one, two = trained(tmp_path / "trace", said), trained(tmp_path / "none", BASE)
    assert one["weights"] != two["weights"]


def test_demonstrations_of_a_file_are_cloned(tmp_path):
    cluster = schema.load(Config, None, BASE).environment
    held = demonstrations.collect(cluster, policies=["random"], steps=5, envs=4)
    demonstrations.save(held, tmp_path / "demos.npz")
    said = {**BASE, "warm_start.demo_path": str(tmp_path / "demos.npz")}
    lines = trained(tmp_path / "run", said)["lines"]
    assert "[PPO:warmstart] 20 decisions of random" in lines
    assert isinstance(cluster, ClusterConfig)


def test_a_run_records_every_setting_but_its_folder():
    settings = factory.flat(config(ppo_config__learning_rate=0.02, cluster__load=0.7))
    assert len(settings) == len(KEYS) - 1
    assert "output_dir" not in settings
    assert (settings["learning_rate"], settings["cluster.load"]) == (0.02, 0.7)


def test_what_is_kept_is_said_to_the_checkpoints(tmp_path):
    made = programs.training(tmp_path, **{"checkpointing.keep_healthy": False})
    assert made.checkpoints.policy.healthy is False
    made.end("failed", "", "not run")


def test_sinks_get_their_options(tmp_path, capsys):
    found = factory.sinks(
        config(
            monitoring__metrics_export_interval=7, monitoring__tensorboard_port=6123,
            monitoring__wandb=True, monitoring__wandb_project="trams",
        ).monitoring
    )  # fmt: skip
    assert found["csv"]["interval"] == 7
    assert found["tensorboard"]["port"] == 6123
    assert found["wandb"] == {"project": "trams"}
    said = {"monitoring.tensorboard_enabled": True, "monitoring.tensorboard_port": 6123}
    programs.run(tmp_path, **said)
    assert "--port 6123" in capsys.readouterr().err


def test_a_bar_is_drawn_where_it_is_wanted(monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert console.Bar(1, enabled=True).drawn
    assert not console.Bar(
        1, enabled=config(monitoring__progress_bar=False).monitoring.progress_bar
    ).drawn


def test_numbers_of_a_setting_are_checked():
    assert np.isfinite([key.default for key in KEYS.values() if type(key.default) is float]).all()

"""What a training tells: its lines, TensorBoard's tags, CSV columns, names, events, diagnosis."""

import logging
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import programs
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import rlvitals
from rlvitals.metrics.frameworks import rlvitals_ppo
from rlvitals.rules import CATALOGUE
from rlvitals.storage import events
from rlvitals.trainers import health_monitor
from rlvitals.trainers.ppo import console, telemetry

TOLD = {
    **programs.ALL, "monitoring.tensorboard_enabled": True, "cluster.queue_limit": 4,
    "reward_config.kappa": 0.5, "reward_config.tail_penalty": 0.1,
    "training.total_steps": 3000, "training.chunk_size": 1500, "ppo_config.learning_rate": 0.01,
}  # fmt: skip
# What is logged and has no meaning beyond this trainer: no metric of the catalogue.
UNNAMED = {
    "compression", "curriculum_stage",
    "entropy_min", "entropy_policy",
    "failed", "finished", "lost", "replicas_up", "sent_again",
    "grad_norm_usual", "gradient_spike", "kl_ref_coef", "latency_ema", "lr_factor",
    "minibatch_size", "minibatch_size_next", "obs_norm_mean", "obs_norm_std", "overridden",
    "ratio_max", "rejected", "return_std", "reward_norm_count", "reward_norm_std",
    "selected_replica", "skipped_minibatches", "stopped_early", "target_qps",
    "temp_current_temperature", "throughput_ema", "raw_advantage_mean",
}  # fmt: skip


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "told"
    programs.run(folder, TOLD)
    return folder


@pytest.fixture(scope="module")
def table(recorded):
    """What is logged of updates and evaluations: one file."""
    (file,) = (recorded / "metrics").glob("metrics-*.csv")
    return pd.read_csv(file)


@pytest.fixture(scope="module")
def updates(table):
    """The rows of updates."""
    return table.dropna(subset=["update"])


NUMBER = r"-?(?:\d+(?:\.\d+)?(?:e[-+]\d+)?|nan)"
LINES = {
    "[PPO:init]": r"\[PPO:init\] env=rlvitals/Cluster-v0 x4 mode=hybrid \| h=8 \| lr=#e gamma=#3 "
    r"lam=#3 clip=#2 ent=#3 vf=#3 epochs=2 roll=32 mb=64 gnorm=#2 \| lat_w=#2 bal_w=#2",
    "[PPO:update]": r"\[PPO:update\] step=\d+ pi=#6 vf=#6 ent=#4 kl=#5 clip=#3 ev=(?:#3|nan) "
    r"gnorm=#3 lr=#e R\(#3/#3/#3/#3\) Adv_std=#3 V/Ret=#3/#3(?: ep_return=#1)? "
    r"act=\[#2(?:, #2){3}\] \| \w+=#4(?: \w+=#4)*",
    "[PPO:rollout]": r"\[PPO:rollout\] step=\d+ buf_ptr=\d+/\d+ current_r=#4",
    "[PPO:checkpoint]": r"\[PPO:checkpoint\] (?:step=\d+ saved \([a-z ]+\)|no checkpoint to .*)",
    "[PPO:warmstart]": r"\[PPO:warmstart\] (?:\d+ decisions of lor/speed|"
    r"epoch=\d/2 loss=#4 accuracy=#3 \(the commonest action: #3\)|the warm start "
    r"(?:took|did NOT take): agreement with the demonstrations .*)",
    "[STATS_STABILIZATION]": r"\[STATS_STABILIZATION\] (?:step=6/6 - collecting baseline statistics"
    r"|Completed! Normalizer statistics collected over 6 steps|Final normalizer stats - "
    r"mean_magnitude=#4, std_magnitude=#4|Transitioning to PPO training mode)",
}  # fmt: skip


@pytest.mark.parametrize("word", LINES)
def test_lines_are_written_as_they_were_promised(recorded, word):
    pattern = LINES[word].replace("#e", r"-?\d\.\d\de[-+]\d\d")
    pattern = re.sub(r"#(\d)", r"-?\\d+\\.\\d{\1}", pattern)
    lines = [line for line in programs.log(recorded) if line.startswith(word)]
    assert lines
    for line in lines:
        assert re.fullmatch(pattern, line), line


def test_the_ends_of_the_advantages_are_told(table):
    updates = table.dropna(subset=["raw_advantage_mean"])
    assert (updates["raw_advantage_min"] < updates["raw_advantage_mean"]).all()
    assert (updates["raw_advantage_mean"] < updates["raw_advantage_max"]).all()


def test_an_update_line_names_the_rewards_parts(recorded):
    line = next(x for x in programs.log(recorded) if x.startswith("[PPO:update]"))
    for part in ("absolute_score", "delta_score", "balance_penalty", "load_balance_penalty"):
        assert f" {part}=" in line


def test_a_resume_is_a_line(tmp_path):
    programs.run(tmp_path)
    programs.run(tmp_path, **{"training.total_steps": 900})
    line = next(x for x in programs.log(tmp_path) if x.startswith("[Resume]"))
    assert re.fullmatch(r"\[Resume\] resumed at step \d+ from checkpoint-\d+: .*", line)


def test_every_line_is_in_the_file_and_a_crash_too(tmp_path):
    made = programs.training(tmp_path)

    def fail(*_):
        raise RuntimeError("out of the blue")

    made.ppo.update = fail
    with pytest.raises(RuntimeError, match="out of the blue"):
        made.run()
    assert "[PPO:failed] out of the blue" in programs.log(tmp_path)
    assert "RuntimeError: out of the blue" in (tmp_path / "ppo_training.log").read_text()


GUIDE = {
    "approx_kl", "approx_kl_k1", "clipfrac", "entropy", "entropy_policy", "temperature",
    "temp_current_temperature", "temp_qps_pressure_ema", "temp_latency_pressure_ema",
    "temp_is_pulsing", "temp_base_temperature", "temp_pulse_remaining", "temp_step_count",
    "temp_stagnation_level", "reward", "reward_mean", "reward_std", "absolute_score", "delta_score",
    "balance_penalty", "action_replica_0", "action_replica_3", "action_count_0", "pi_loss",
    "vf_loss", "explained_var", "pg_grad_norm", "lr", "obs_norm_count", "reward_norm_count",
    "kl_ref",
}  # fmt: skip


def test_each_kind_of_row_has_one_file_that_is_rectangular(recorded, table):
    files = sorted(path.name for path in (recorded / "metrics").glob("*.csv"))
    assert [name for name in files if not name.startswith("machine-")] == [
        "baseline-1.csv", "metrics-1.csv",
    ]  # fmt: skip
    lines = (recorded / "metrics" / "metrics-1.csv").read_text().splitlines()
    assert len({line.count(",") for line in lines}) == 1
    assert table["update"].isna().sum() == 1  # the evaluation before the first update
    # Each column is logged by some row: none is declared that this training never has.
    assert [name for name in table.columns if table[name].isna().all()] == []


@pytest.mark.parametrize("said", [programs.CARTPOLE, programs.CLUSTER], ids=["cartpole", "cluster"])
def test_a_plain_training_writes_one_file_of_its_updates_too(tmp_path, said):
    programs.run(tmp_path, said)
    (file,) = (tmp_path / "metrics").glob("metrics-*.csv")
    frame = pd.read_csv(file)
    assert [name for name in frame.columns if frame[name].isna().all()] == []


def test_every_column_of_the_guide_is_in_the_csv(updates):
    frame = updates
    assert len(frame) >= 4
    assert GUIDE - set(frame.columns) == set()
    numbers = frame.select_dtypes("number")
    assert list(numbers.columns) == list(frame.columns)
    shares = frame[[f"action_replica_{i}" for i in range(4)]]
    counts = frame[[f"action_count_{i}" for i in range(4)]]
    assert np.allclose(shares.sum(axis=1), 1.0)
    assert np.allclose(counts.div(counts.sum(axis=1), axis=0), shares)
    assert (frame["approx_kl"] >= -1e-7).all()
    assert (frame["temp_current_temperature"] > 0).all()


def test_action_shares_by_hand():
    actions = np.array([[0, 1], [2, 2], [2, 3]])
    held = SimpleNamespace(
        actions=actions, valid=np.array([[True, True], [True, True], [True, False]])
    )
    found = telemetry.action_shares(held, 4)
    assert [found[f"action_count_{i}"] for i in range(4)] == [1, 1, 3, 0]
    assert [found[f"action_replica_{i}"] for i in range(4)] == [0.2, 0.2, 0.6, 0.0]
    assert found["selected_replica"] == 2
    by_environment = telemetry.shares_by_environment(held, 4)
    assert by_environment[0] == pytest.approx([1 / 3, 0, 2 / 3, 0])
    assert by_environment[1] == pytest.approx([0, 0.5, 0.5, 0])  # its last step is no decision


def test_only_whole_episodes_are_told(recorded):
    frame = pd.concat(map(pd.read_csv, (recorded / "metrics").glob("metrics-*.csv")))
    assert len(frame["ep_length"].dropna()) > 3
    assert set(frame["ep_length"].dropna()) == {64.0}


def test_the_parts_of_the_reward_sum_to_it(updates):
    frame = updates
    parts = [c for c in frame.columns if c.endswith(telemetry.REWARD_SUFFIXES)] + ["compression"]
    assert np.allclose(frame[parts].sum(axis=1), frame["reward"], atol=1e-9)


def test_what_lies_behind_a_number_is_told_with_it(recorded, updates):
    frame = updates
    assert np.allclose(frame["raw_reward"] + frame["compression"], frame["reward"])
    late, samples = frame["tail_latency_violations"], frame["tail_latency_samples"]
    assert np.allclose(frame["tail_latency_violation_rate"], late / samples)
    assert (frame["tail_latency_alerts"] == 0).all()
    counts = frame[[f"action_count_{i}" for i in range(4)]].to_numpy()
    assert (frame["selected_replica"] == counts.argmax(1)).all()
    # Chunks of 1,500 steps are cut into shorter rollouts; one of 64 decisions' episodes ends.
    assert set(frame["buffer_progress"]) <= {i / 32 for i in range(1, 33)}
    assert frame["buffer_progress"].min() < 1
    assert ((frame["episode_mask"] > 0.9) & (frame["episode_mask"] <= 1)).all()
    assert frame["episode_mask"].min() < 1
    assert rlvitals.diagnose(recorded).trace.get("scheduler/delta_latency") is not None


def test_the_entropy_of_the_policy_stands_beside_that_of_what_was_drawn_from(tmp_path):
    said = {
        **programs.CLUSTER, "temperature_control.base_temperature": 2.0, "warm_start.bc_epochs": 9,
        "ppo_config.learning_rate": 0.0, "warm_start.bc_learning_rate": 0.05,
    }  # fmt: skip
    programs.run(tmp_path, said)
    frame = pd.concat(map(pd.read_csv, (tmp_path / "metrics").glob("metrics-*.csv")))
    frame = frame.dropna(subset=["temperature"])  # not those that are evaluated alone
    assert (frame["temperature"] == 2.0).all()
    assert (frame["entropy_policy"] < frame["entropy"] - 0.01).all()


def test_tensorboard_reads_every_tag(recorded):
    read = EventAccumulator(str(recorded / "tensorboard"), size_guidance={"histograms": 0})
    read.Reload()
    tags = read.Tags()
    wanted = set(telemetry.TENSORBOARD_TAGS.values()) | {f"Actions/Share_{i}" for i in range(4)}
    wanted |= {f"Actions/Replica_{i}" for i in range(4)}
    assert wanted - set(tags["scalars"]) == set()
    assert not set(telemetry.TENSORBOARD_TAGS) & set(tags["scalars"])
    assert {f"Actions/replica_{i}" for i in range(4)} == set(tags["histograms"])
    histogram = read.Histograms("Actions/replica_0")[0].histogram_value
    assert histogram.num == 4  # a share of each environment
    entropy = [one.value for one in read.Scalars("Training/Entropy")]
    assert entropy == pytest.approx(
        pd.concat([pd.read_csv(p) for p in (recorded / "metrics").glob("metrics-*.csv")])
        .sort_values("step")["entropy"].dropna().tolist(), rel=1e-6,
    )  # fmt: skip


def test_every_number_has_a_name_or_is_said_to_have_none(table):
    known = rlvitals_ppo.NAMES
    patterns = [re.compile(family.pattern) for family in known.families]
    logged = set(table.columns) - {"step", "time"}
    logged |= {"entropy_policy", "ep_return", "ep_length", "episodes"}
    unnamed = {
        name
        for name in logged
        if name not in known.keys
        and not name.startswith(("baseline/", "action_replica_"))
        and not any(pattern.fullmatch(name) for pattern in patterns)
    }
    assert unnamed == UNNAMED


def test_a_run_reads_as_ours_and_nothing_is_wrong_with_a_good_one(recorded, tmp_path):
    assert rlvitals.diagnose(recorded).trace.profile == "scheduler-ppo"
    said = {
        **programs.CARTPOLE, "training.total_steps": 15_000, "training.num_envs": 8,
        "ppo_config.learning_rate": 1e-3, "ppo_config.epochs": 4, "ppo_config.rollout_length": 128,
        "ppo_config.minibatch_size": 256, "network.hidden_sizes": [64, 64],
    }  # fmt: skip
    programs.run(tmp_path, said)
    found = rlvitals.diagnose(tmp_path)
    assert found.trace.profile == "control-ppo"
    assert found.verdict.word is rlvitals.Word.LEARNING
    clock = {"updates-slow", "throughput-drop"}  # of the machine that tests
    assert {rule.name for rule, _ in found.findings} - clock == set()


def test_the_monitoring_keys_choose_the_sinks(tmp_path):
    off = {"monitoring.metrics_export_enabled": False, "monitoring.tensorboard_enabled": False}
    programs.run(tmp_path / "off", **off)
    assert not (tmp_path / "off" / "metrics").exists()
    assert not (tmp_path / "off" / "tensorboard").exists()
    on = {"monitoring.tensorboard_enabled": True, "monitoring.metrics_export_format": "parquet"}
    programs.run(tmp_path / "on", **on)
    frames = [pd.read_parquet(p) for p in (tmp_path / "on" / "metrics").glob("metrics-*")]
    assert sum(len(frame) for frame in frames) >= 6
    assert list((tmp_path / "on" / "tensorboard").glob("events.out.tfevents.*"))


# -- events ---------------------------------------------------------------------------------------


def test_pulses_and_adjustments_are_events_with_their_cause(recorded):
    held = events.read(recorded / "events.jsonl").events
    pulses = [one.facts for one in held if one.kind == "temperature_pulse"]
    assert pulses
    assert {one["cause"] for one in pulses} <= {"stagnation", "interval"}
    moved = [one.facts for one in held if one.kind == "adjustment"]
    assert moved
    for one in moved:
        if one["cause"] == "gradient spike":
            assert one["lr_factor"] < one["lr_factor_before"]
        assert (one["lr_factor"], one["minibatch_size"]) != (
            one["lr_factor_before"], one["minibatch_size_before"],
        )  # fmt: skip


def test_every_spike_is_an_event(recorded):
    held = events.read(recorded / "events.jsonl").events
    spikes = sum(one.facts.get("cause") == "gradient spike" for one in held)
    frames = pd.concat([pd.read_csv(p) for p in (recorded / "metrics").glob("metrics-*.csv")])
    assert spikes == frames["gradient_spike"].sum() > 0


def test_a_slow_tail_is_a_warning_once(tmp_path):
    said = {"monitoring.tail_latency_tracking.alert_threshold_p99": 0.01}
    programs.run(tmp_path, programs.CLUSTER, **said)
    assert sum(line.startswith("[PPO:tail]") for line in programs.log(tmp_path)) == 1
    frames = [pd.read_csv(path) for path in (tmp_path / "metrics").glob("metrics-*.csv")]
    assert pd.concat(frames)["tail_latency_alerts"].max() == 1
    held = events.read(tmp_path / "events.jsonl").events
    assert sum(one.kind == "tail_latency" for one in held) == 1


# -- the console ----------------------------------------------------------------------------------


def records(total, every):
    for step in range(every, total + 1, every):
        record = logging.LogRecord("x", logging.INFO, "", 0, "", (), None)
        record.step = step
        yield record


def test_a_long_run_shows_few_updates_and_a_short_one_all():
    long = console.UpdateFilter(1_000_000)
    shown = [one.step for one in records(1_000_000, 100) if long.filter(one)]
    assert 100 <= len(shown) <= 110
    assert shown[:5] == [100, 200, 300, 400, 500]
    assert shown[-1] >= 990_000
    short = console.UpdateFilter(1000)
    assert all(short.filter(one) for one in records(1000, 100))
    plain = logging.LogRecord("x", logging.INFO, "", 0, "", (), None)
    assert long.filter(plain)


def test_no_bar_where_nobody_looks(capsys):
    bar = console.Bar(100, enabled=True)
    bar.update(50, {"reward": 1.0})
    bar.print("a line")
    bar.close()
    assert capsys.readouterr().out == "a line\n"


def test_a_bar_in_a_terminal_is_one_line_and_prints_above_itself(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    bar = console.Bar(1000, enabled=True)
    assert bar.drawn
    bar.update(500, {"reward": -1.25, "sps": 12_345.0, "approx_kl": 0.01, "latency": 3.0})
    bar.print("[PPO:checkpoint] step=5 [x]")
    bar.update(900, {"reward": -1.0, "sps": 12_345.0, "approx_kl": 0.01, "latency": 3.0})
    bar.close()
    text = capsys.readouterr().out
    assert "[PPO:checkpoint] step=5 [x]\n" in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace(
        "\r", ""
    )
    assert not console.Bar(1000, enabled=False).drawn


# -- live diagnosis -------------------------------------------------------------------------------


def test_a_diagnosis_waits_for_time_and_steps(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(health_monitor.time, "monotonic", lambda: now[0])
    told = []
    held = health_monitor.HealthMonitor(
        tmp_path, every=30.0, total_steps=1000, tell=lambda *x: told.append(x)
    )
    held.begin(0)
    now[0] = 31.0
    assert not held.is_due(40)
    assert held.is_due(50)
    held.diagnose(50)
    assert "no diagnosis" in told[0][0]
    now[0] += 29.0
    assert not held.is_due(500)
    now[0] += 1.0
    assert held.is_due(500)
    held._cost = 3.0  # a slow one waits until it is 2 % of the time
    now[0] += 100.0
    assert not held.is_due(500)
    now[0] += 21.0
    assert held.is_due(500)
    assert not health_monitor.HealthMonitor(tmp_path, every=0.0, total_steps=1, tell=print).is_due(
        10
    )


def test_a_warning_behind_a_note_is_told(tmp_path):
    told = []
    monitor = health_monitor.HealthMonitor(
        tmp_path, every=1.0, total_steps=10, tell=lambda *line: told.append(line)
    )
    by_name = {rule.name: rule for rule in CATALOGUE}
    note, warning = (
        SimpleNamespace(severity=severity, began=7, summary="as it is")
        for severity in (rlvitals.Severity.NOTE, rlvitals.Severity.WARNING)
    )
    findings = ((by_name["kl-spike"], note), (by_name["no-learning"], warning))
    verdict = SimpleNamespace(word=rlvitals.Word.STALLED)
    monitor._compare(SimpleNamespace(findings=findings, verdict=verdict))
    assert told[0] == ("no-learning since step 7: as it is", True)


def test_findings_are_lines_while_it_trains(tmp_path, monkeypatch):
    monkeypatch.setattr(health_monitor, "MAX_TIME_SHARE", 1e9)
    said = {
        **programs.CARTPOLE, "training.total_steps": 3000, "training.diagnose_seconds": 0.001,
        "ppo_config.learning_rate": 0.3, "ppo_config.epochs": 10, "ppo_config.target_kl": 0.0001,
    }  # fmt: skip
    made = programs.run(tmp_path, said)
    lines = [line for line in programs.log(tmp_path) if line.startswith("[diagnosis]")]
    assert any(re.match(r"\[diagnosis\] the run is [a-z]+", line) for line in lines)
    assert any(re.match(r"\[diagnosis\] [a-z-]+ since step \d+: \S", line) for line in lines)
    firsts = [line.split()[1] for line in lines if " since step " in line]
    assert len(firsts) == len(set(firsts))  # one that comes back is told shortly
    assert made.monitor.health(0) != "healthy"


def test_no_setting_of_ours_is_taken_for_another(recorded):
    trace = rlvitals.diagnose(recorded).trace
    assert trace.settings["kl_coef_target"] == 0.01
    assert trace.number("n_actions") == 4
    assert trace.number("kl_target") is None  # a language model's, to its reference
    assert trace["policy/kl_to_warm_start"].values[0] >= 0
    assert "policy/kl_to_reference" not in trace

"""What a person would be told about logs of other people's runs."""

import numpy as np
import pytest

from rlvitals import api
from rlvitals.cli import main
from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.verdict import Word
from rlvitals.rules.rule import Severity
from rlvitals.views import terminal

pytestmark = pytest.mark.real_logs

HEALTHY = (
    "sb3-monitor/a2c__Acrobot-v1_1",
    "sb3-monitor/a2c__AntBulletEnv-v0_1",
    "sb3-monitor/dqn__LunarLander-v2_1",
    "sb3-monitor/dqn__MountainCar-v0_1",
    "sb3-monitor/ppo__Acrobot-v1_1",
    "rllib/a2c-breakout-cut",
    "rllib/a2c-qbert",
    "rllib/impala-breakout",
    "rllib/sac-halfcheetah",
)


@pytest.fixture(scope="module")
def collapsed(real_logs):
    return diagnose(api.trace(real_logs / "vidurrl-20250917_201326"))


@pytest.fixture(scope="module")
def over_target(real_logs):
    run = real_logs / "vidurrl-20250918_232535"
    return diagnose(api.trace(run, settings={"target_kl": 0.02}))


def found(diagnosis):
    return {rule.name: finding for rule, finding in diagnosis.findings}


def test_the_collapse_onto_one_replica_comes_first(collapsed):
    rule, first = collapsed.findings[0]
    assert rule.name == "action-collapse"
    assert first.severity is Severity.ERROR
    assert "onto replica 3" in first.summary
    assert ".30 .44 .62 .70 .76 .85 .86 .94 .93 .96" in " ".join(first.evidence)
    assert "entropy goes 1.39 to 0.203 nats" in first.evidence
    assert first.began == 200
    assert 1000 < first.known < 1500
    assert collapsed.verdict.word is Word.COLLAPSED


def test_the_collapsed_run_falls_instead_of_learning(collapsed):
    assert "does not improve, it falls" in found(collapsed)["no-learning"].summary


def test_its_critic_explains_nothing_while_the_outcome_is_stalled(collapsed):
    critic = found(collapsed)["critic-explains-nothing"]
    assert critic.severity is Severity.WARNING
    assert any("falling" in line for line in critic.evidence)


def test_its_updates_hardly_clip(collapsed):
    assert "never above 0.00781" in found(collapsed)["updates-hardly-move"].summary


def test_its_clamped_zeros_are_named(collapsed):
    assert "19 of 62 KL values are exactly 0" in found(collapsed)["kl-clamped"].summary


def test_its_symptoms_stand_under_their_cause(collapsed):
    symptoms = {case.rule.name for case in collapsed.cases[0].symptoms}
    assert {"no-learning", "entropy-collapse"} <= symptoms


def test_kl_above_the_target_that_was_given(over_target):
    finding = found(over_target)["kl-above-target"]
    assert finding.severity is Severity.WARNING
    assert finding.bound.value == 0.02
    assert finding.bound.origin == "the run's target_kl"
    assert "clip-fraction-high" in found(over_target)


def test_throughput_under_a_shifted_header_is_never_a_temperature(over_target):
    temperature = over_target.trace["exploration/temperature"].values
    assert np.nanmax(temperature) < 3.7
    assert "4.7" not in terminal.diagnosis(over_target)


@pytest.mark.parametrize("name", HEALTHY)
def test_no_warning_on_a_healthy_run(real_logs, name):
    diagnosis = diagnose(api.trace(real_logs / name))
    warned = [r.name for r, f in diagnosis.findings if f.severity > Severity.NOTE]
    assert not warned
    assert diagnosis.verdict.word in (Word.LEARNING, Word.CONVERGED)


def test_a_dip_is_not_a_collapse(real_logs):
    diagnosis = diagnose(api.trace(real_logs / "sb3-monitor/dqn__LunarLander-v2_1"))
    assert "return-collapse" in {rule.name for rule in diagnosis.clear}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["vidurrl-20250917_201326"], 1),
        (["vidurrl-20250918_232535", "--set", "target_kl=0.02"], 1),
        (["sb3-monitor"], 0),
        (["rllib"], 0),
        (["wandb"], 4),
    ],
)
def test_exit_codes(real_logs, arguments, code, capsys):
    name, *options = arguments
    assert main(["diagnose", str(real_logs / name), *options]) == code
    assert capsys.readouterr().out


def test_a_folder_of_runs_is_a_line_each_worst_first(real_logs, capsys):
    assert main(["diagnose", str(real_logs)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("collapsed")
    assert len([line for line in lines if line.startswith(("collapsed", "learning"))]) >= 8

"""The peers' benchmark: the ports say what the published formulas say, and all are scored alike."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from rlvitals.faults import folder, run_diagnosis
from rlvitals.faults import score as our_score
from rlvitals.faults.catalogue import FAULTS
from rlvitals.faults.fault import FAILED_VERDICT
from rlvitals.faults.ground_truth import Label
from rlvitals.rules import CATALOGUE as RULES
from rlvitals.types import Profile

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "benchmarks"))

import diagnosing_peers  # noqa: E402 - a script, not installed
from peers import ask_rlvitals, meanings, port_rlexplorer, port_sagemaker_debugger, runs  # noqa: E402
from peers.exchange import ERROR, WARNING, Alarm, Given, numbers, read  # noqa: E402
from peers.scoring import Share, rate, score  # noqa: E402

EXPLORER, DEBUGGER = port_rlexplorer, port_sagemaker_debugger
CONTROL = (Profile.CONTROL_PPO, Profile.ON_POLICY, Profile.OFF_POLICY)
RLEXPLORER, SAGEMAKER = "RLExplorer (port)", "SageMaker Debugger (port)"


def of(*values):
    return np.array(values, float)


# RLExplorer


def test_a_line_and_what_is_left_of_it():
    assert EXPLORER.line(of(1, 3, 5)) == pytest.approx((2, 1))
    assert EXPLORER.residual(of(0, 3, 0), (0, 1)) == pytest.approx(2**0.5)  # off by -1, 2, -1
    assert EXPLORER.residual(of(0, 3, 0), (0, 1), last=1) == pytest.approx(1)


def test_deviations_are_of_full_windows_of_three():
    assert EXPLORER.deviations(of(1, 2, 3, 5, 5, 5, 9)) == pytest.approx([1, 0])


@pytest.mark.parametrize(
    ("rewards", "done", "solved", "said"),
    [
        ([20] * 15, 0.1, 475, "reward-low-variability"),
        # The windows' deviations are 0, 10, 0, 10, 0: 4.9 off their line.
        ([0, 0, 0, 0, 10, 20] * 2 + [0] * 3, 0.1, 475, ""),
        ([20] * 15, 0.5, 475, ""),
        ([20] * 15, 0.9, 475, "reward-stagnates"),
        ([471] * 15, 0.9, 475, ""),  # within 1 % of 475, which is 470.25
        ([470] * 15, 0.9, 475, "reward-stagnates"),
        # Deviations 0, 1, 2, 3, 4: a slope of 1 over a threshold of 3.9, then of 4.1.
        ([x * k for k in range(5) for x in (-1, 0, 1)], 0.9, 3.9, "reward-not-settling"),
        ([4.2 + x * k for k in range(5) for x in (-1, 0, 1)], 0.9, 4.1, ""),
        # As published, a negative threshold is never met by less than 1 %.
        ([-100] * 15, 0.9, -100, "reward-stagnates"),
        ([-98] * 15, 0.9, -100, ""),
    ],
)
def test_rewards_vary_at_first_and_settle_at_the_threshold(rewards, done, solved, said):
    assert EXPLORER.reward(of(*rewards), done, solved) == said


@pytest.mark.parametrize(
    ("values", "done", "said"),
    [
        ([0.29] * 3, 0.05, ["entropy-starts-low"]),
        ([0.31] * 3, 0.05, []),
        ([0.6] * 10, 0.2, ["entropy-stagnates"]),
        ([0.6] * 10, 0.3, []),
        ([0.11 * t for t in range(10)], 0.2, ["entropy-rises"]),
        ([0.09 * t for t in range(10)], 0.2, []),
        ([1 - 0.06 * t**2 for t in range(10)], 0.2, ["entropy-falls-fast", "entropy-fluctuates"]),
        ([0.5, 0.8] * 5, 0.9, ["entropy-fluctuates"]),  # 0.15 off its middle
        ([0.5, 0.6] * 5, 0.9, []),
    ],
)
def test_entropy_starts_high_and_falls_steadily(values, done, said):
    assert EXPLORER.entropy(of(*values), done) == said


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.0, 0.9, 0.8, 0.7], []),
        ([0.0, 0.02, 0.04, 0.06], ["exploration-rises"]),
        ([0.0, 0.005, 0.01, 0.015], []),
        ([1, 1, 1, 0, 0, 0], ["exploration-changes-fast"]),  # second differences of 0.25
        ([1, 1, 1, 0.2, 0.2, 0.2], []),  # of 0.2
    ],
)
def test_exploration_falls_steadily(values, said):
    assert EXPLORER.exploration(of(*values)) == said


def test_smoothness_counts_turns():
    assert EXPLORER.smoothness(of(1, 2, 1, 2)) == 0.5  # up, down, up: 2 turns in 4 values
    assert EXPLORER.smoothness(of(1, 2, 3, 4)) == 1


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([16, 8, 4, 2, 1], []),
        ([100, 96, 92, 88.5, 85], ["loss-stagnates"]),  # 4 % a time
        ([100, 94, 88, 82, 77], []),  # 6 %
        ([1, 2, 4, 8, 16], ["loss-stagnates", "loss-diverges"]),
        ([1, 2, 4, 8, 15], ["loss-stagnates"]),
        ([100, 10, 100, 10, 100, 10], ["loss-fluctuates"]),
    ],
)
def test_a_loss_falls_and_does_not_turn_all_the_time(values, said):
    assert EXPLORER.loss(of(*values)) == said


def test_episodes_that_end_at_the_limit_far_from_the_threshold():
    assert EXPLORER.capped(of(*[500] * 10), of(*[47] * 10), 500, 475)
    assert not EXPLORER.capped(of(*[500] * 10), of(*[48] * 10), 500, 475)
    assert not EXPLORER.capped(of(*[500] * 9, 499), of(*[47] * 10), 500, 475)


# SageMaker Debugger


def test_a_loss_is_compared_with_that_of_ten_rows_before_every_ten_rows():
    assert DEBUGGER.not_decreasing([-t for t in range(31)]) == []
    assert DEBUGGER.not_decreasing([1] * 31) == [10, 20, 30]
    assert DEBUGGER.not_decreasing([3, 2, 1, 2, 5], num_steps=2) == [4]


def test_values_that_explode_vanish_and_are_zero():
    assert DEBUGGER.exploding([1, np.inf, np.nan, 0]) == [1, 2]
    assert DEBUGGER.vanishing([1e-7, 0.9e-7, 0]) == [1, 2]
    assert DEBUGGER.all_zero([1, 0.0, -0.0, 1e-300]) == [1, 2]


def test_three_values_close_to_each_other_are_unchanged():
    assert DEBUGGER.unchanged([1, 1, 1, 2]) == [2]
    assert DEBUGGER.unchanged([1, 1.000009, 1.000018]) == [2]
    assert DEBUGGER.unchanged([1, 1.000011, 1.000022]) == []
    assert DEBUGGER.unchanged([1, 1]) == []


def test_half_an_hour_without_a_row_is_a_stall():
    assert DEBUGGER.stalled([0, 1800, 3601]) == [2]


def given(*rows, **more):
    facts = {"algorithm": "ppo", "settings": {}, "budget": 100, "ended": "finished", "actions": 2}
    facts |= {"solved": 475.0, "horizon": 500, "folder": Path("run-0000")}
    return Given(rows=rows, **facts | more)


def test_a2c_minimises_the_sum_of_its_losses():
    row = {"train/policy_loss": 1.0, "train/value_loss": 10.0, "train/entropy_loss": -2.0}
    run = given(row, algorithm="a2c", settings={"vf_coef": 0.25, "ent_coef": 0.5})
    assert DEBUGGER.minimised(run) == [(0, 1 + 2.5 - 1)]


def test_a_row_logs_what_its_cells_hold():
    assert numbers({"a": "1.5", "b": "", "c": None}) == {"a": 1.5}
    assert np.isnan(numbers({"a": "nan"})["a"])


# Scores


def test_wilson_intervals():
    assert Share(0, 10).interval == pytest.approx((0, 0.2775), abs=1e-4)
    assert Share(5, 10).interval == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert str(Share(0, 0)) == "-"


def test_runs_of_one_task_are_drawn_together():
    alone = rate({"task": [0, 1, 1, 2]})
    assert (alone.mean, alone.low, alone.high) == (1, 1, 1)
    apart = rate({str(at): [at % 2] for at in range(40)})
    assert apart.mean == 0.5
    assert (apart.low, apart.high) == pytest.approx((0.35, 0.65), abs=0.05)


def run(name, fault="", **more):
    facts = {"task": "ppo-cartpole", "csv": "", "settings": {}, "steps": 100}
    label = {"healthy": not fault, "broken": bool(fault)}
    return runs.Run(name=name, fault=fault, **facts | label | more)


def test_every_part_of_a_score():
    healthy = [run(f"h{at}") for at in range(10)]
    found = [run("a", "bad", onset=40), run("b", "bad"), run("c", "worse"), run("d", "worse")]
    hidden = run("e", "bad", visible=False)
    others = [run("f", "bad", broken=False), run("g", healthy=False)]  # benign; failed on its own
    everything = [*healthy, *found, hidden, *others]
    alarms = {one.name: [] for one in everything}
    alarms["h0"] = [Alarm("often", WARNING, 5), Alarm("often", ERROR, 9), Alarm("rare", WARNING)]
    alarms["h1"] = [Alarm("often", WARNING)]
    alarms["a"] = [Alarm("rare", WARNING, 10), Alarm("often", WARNING, 60)]  # 10: before it began
    alarms["b"] = [Alarm("rare", WARNING, 30), Alarm("rare", WARNING, 10)]
    alarms["c"] = [Alarm("other", WARNING)]
    for name in "efg":
        alarms[name] = [Alarm("rare", WARNING, 100)]
    got = score(everything, alarms, lambda _, alarm: alarm in {"rare", "often"})
    assert (got.healthy, got.any) == (Share(2, 10), Share(4, 5))
    assert (got.named, got.informative) == (Share(2, 4), Share(1, 4))  # "often" rings on 2 of 10
    assert got.named_of_all == Share(3, 5)
    assert (got.warnings.mean, got.errors.mean) == (0.2, 0.1)  # an id is one alarm of a run
    assert got.delay == pytest.approx(0.15)  # of 20 and 10 steps in 100
    assert got.rings == {"often": Share(2, 10), "other": Share(0, 10), "rare": Share(1, 10)}
    assert got.found == {"bad": Share(3, 3), "worse": Share(0, 2)}


def test_our_own_alarms_are_held_to_what_a_fault_expects():
    ours = diagnosing_peers.right("rlvitals")
    assert ours(run("a", "lr-x300"), "kl-spike") is None
    assert ours(run("a", "lr-x300", expects=("kl-spike",)), "kl-spike")
    assert not ours(run("a", "lr-x300", expects=("kl-spike",)), "no-learning")


# Meanings


def test_every_fault_of_the_benchmark_means_something():
    assert {fault.name for fault in FAULTS} == meanings.BENCHMARK.keys()


def test_every_fault_of_the_recordings_means_something():
    script = (ROOT / "scripts" / "control_runs.py").read_text()
    assert [name for name in meanings.RECORDED if name not in script] == []


def test_every_rule_of_ours_that_these_runs_can_ring_means_something():
    single = [rule for rule in RULES if not rule.many_ranks]
    asked = {rule.name for rule in single if any(map(rule.applies, CONTROL))}
    expected = {name for fault in FAULTS for name in fault.expects}
    assert asked | expected | {FAILED_VERDICT} == meanings.ALARMS["rlvitals"].keys()


def test_what_is_right_of_us_is_right_of_a_peer():
    """A peer that says what a rule says, of which we take credit for a fault, gets it as well."""
    theirs = diagnosing_peers.right("rlvitals", strict=False)
    expected = [(fault.name, name) for fault in FAULTS for name in fault.expects]
    assert [pair for pair in expected if not theirs(run("a", pair[0]), pair[1])] == []


def test_every_alarm_of_the_ports_means_something():
    source = Path(port_rlexplorer.__file__).read_text()
    kinds = "entropy|episodes|exploration|kl|loss|reward"
    said = set(re.findall(rf'"((?:{kinds})-[a-z-]+)"', source))
    assert said == meanings.ALARMS[RLEXPLORER].keys()
    source = Path(port_sagemaker_debugger.__file__).read_text()
    said = set(re.findall(r'\("(\w+)", \w+, ', source))
    assert said == meanings.ALARMS[SAGEMAKER].keys()


def test_a_peer_names_a_fault_by_a_meaning_they_share():
    zen = diagnosing_peers.right("zen-rl")
    assert zen(run("a", "lr-x300"), "LR_TOO_HIGH")
    assert not zen(run("a", "reward-zero"), "LR_TOO_HIGH")
    with pytest.raises(KeyError, match="unheard of"):
        zen(run("a", "unheard of"), "LR_TOO_HIGH")
    with pytest.raises(KeyError, match="NEW_ALARM"):
        zen(run("a", "lr-x300"), "NEW_ALARM")


# The whole way


def trace(rows):
    head = "time/total_timesteps,rollout/ep_rew_mean,rollout/ep_len_mean,train/approx_kl,train/loss"
    lines = [f"{10 * at},20,20,{'' if not at else kl},{9 - 0.1 * at}" for at, kl in enumerate(rows)]
    return "\n".join([head, *lines, ""])


@pytest.fixture
def recordings(tmp_path):
    place = tmp_path / "recordings"
    for name, fault, kls in (
        ("ppo-cartpole-s0", None, [0.01] * 30),
        ("ppo-cartpole-lr-spike-s0", "lr-spike", [0.01] * 15 + [9] * 15),
    ):
        (place / name).mkdir(parents=True)
        (place / name / "progress.csv").write_text(trace(kls))
        settings = {"algorithm": "PPO", "env_id": "CartPole-v1", "total_timesteps": 300}
        told = {**settings, "fault": fault, "ended": "finished", "made_by": f"script {name}"}
        (place / name / "settings.json").write_text(json.dumps(told))
    return place


def test_tools_are_given_runs_without_what_was_done_to_them(recordings, tmp_path):
    recorded = runs.read(recordings)
    assert [(one.name, one.task) for one in recorded] == [
        ("ppo-cartpole-lr-spike-s0", "ppo-cartpole"),
        ("ppo-cartpole-s0", "ppo-cartpole"),
    ]
    told = runs.give(recorded, tmp_path / "given")
    assert [one.fault for one in told.values()] == ["lr-spike", ""]
    everything = b"".join(p.read_bytes() for p in (tmp_path / "given").rglob("*") if p.is_file())
    assert b"spike" not in everything
    first = read(tmp_path / "given")[0]
    assert (first.algorithm, first.solved, first.horizon, first.actions) == ("ppo", 475, 500, 2)
    assert first.column("train/approx_kl")[:1] == [(10, 0.01)]


def test_tools_are_asked_and_scored(recordings, tmp_path, capsys):
    out = tmp_path / "out.json"
    only = ["--only", "rlexplorer", "sagemaker-debugger", "rlvitals", "--out", str(out)]
    rows = diagnosing_peers.main([str(recordings), *only])
    assert rows[0] == "All runs: 1 healthy; 1 broken by a fault, of which the log can show 1."
    assert "| RLExplorer (port) | 2024 | 1/1 " in capsys.readouterr().out
    found = json.loads(out.read_text())
    explorer, debugger = found[RLEXPLORER], found[SAGEMAKER]
    assert ["kl-high", WARNING, 150] in explorer["alarms"]["ppo-cartpole-lr-spike-s0"]
    assert explorer["score"]["informative"] == {"hits": 1, "of": 1}
    assert explorer["score"]["delay"] == pytest.approx(0.5)
    assert explorer["alarms"]["ppo-cartpole-s0"] == [["reward-stagnates", WARNING, 290]]
    assert debugger["alarms"]["ppo-cartpole-s0"] == []
    ours = found["rlvitals"]["alarms"]["ppo-cartpole-lr-spike-s0"]
    # The KL stays up there: one case, of which the jump is the first symptom.
    assert ["kl-above-target", WARNING, 190] in ours
    assert "kl-spike" not in {name for name, _, _ in ours}


@pytest.fixture
def benchmark(tmp_path):
    facts = {"task": "ppo-CartPole-v1", "algorithm": "PPO", "env_id": "CartPole-v1", "about": ""}
    facts |= {"variant": "", "steps": 300, "settings": {"gamma": 0.99}, "ended": "finished"}
    facts |= {"first": 20.0, "best": 400.0}
    for seed in range(21):  # the last one forgets
        outcome = {"onset": None, "seed": seed, "outcome": 20.0 if seed == 20 else 380.0 + seed}
        run = folder.Recorded(name=f"healthy-s{seed}", fault="", **facts | outcome)
        folder.write(tmp_path, run, trace([0.01] * 30))
    for fault, outcome in (
        ("learning-rate-x300", 20.0),
        ("action-swapped", 400.0),
        ("critic-frozen", 250.0),  # learned, but less
        ("critic-frozen", 20.0),
    ):
        more = {"onset": 150, "seed": int(outcome > 200), "outcome": outcome}
        name = f"{fault}-mid-s{more['seed']}"
        run = folder.Recorded(name=name, fault=fault, **facts | more)
        head, *lines = trace([0.01] * 15 + [9] * 15).split()
        explained = [f"{head},train/explained_variance", *(f"{line},0" for line in lines)]
        folder.write(tmp_path, run, "\n".join([*explained, ""]))
    return tmp_path


def test_the_benchmark_says_which_runs_are_broken(benchmark):
    found = {one.name.split("/")[1]: one for one in runs.read(benchmark)}
    assert len(found) == 25
    assert sum(one.healthy for one in found.values()) == 20
    assert not found["healthy-s20"].healthy
    broken = found["learning-rate-x300-mid-s0"]
    assert (broken.broken, broken.visible, broken.onset) == (True, True, 150)
    assert "kl-spike" in broken.expects
    assert not found["action-swapped-mid-s1"].broken
    assert found["critic-frozen-mid-s0"].visible
    assert found["critic-frozen-mid-s1"].broken
    assert not found["critic-frozen-mid-s1"].visible  # healthy critics explain nothing either
    assert broken.csv.splitlines()[1] == "0,20,20,,9.0,0"
    assert [found[f"healthy-s{seed}"].split for seed in (1, 2)] == ["tuning", "seen"]
    only = ["--only", "sagemaker-debugger", "--split", "tuning"]
    rows = diagnosing_peers.main([str(benchmark), *only])
    assert rows[0].startswith(
        "All runs: 2 healthy; 3 broken by a fault, of which the log can show 2"
    )


def test_runs_have_the_labels_and_we_the_answers_that_our_own_score_has(benchmark, tmp_path):
    recorded = folder.read(benchmark)
    judged = run_diagnosis.diagnose_runs(benchmark, recorded, jobs=1)
    ours = {f"{r.judged.run.task}/{r.judged.run.name}": r for r in our_score.label_runs(judged)}
    theirs = {one.name: one for one in runs.read(benchmark)}
    assert ours.keys() == theirs.keys()
    for name, one in theirs.items():
        label = ours[name].label
        assert (one.healthy, one.broken) == (label is Label.HEALTHY, label is Label.BROKEN)
        assert one.visible == ours[name].visible, name
    told = runs.give(theirs.values(), tmp_path / "given")
    asked = {told[one.folder.name].name: ask_rlvitals.ask(one) for one in read(tmp_path / "given")}
    for name, alarms in asked.items():
        same = [(said.rule, said.known) for said in ours[name].alarms]
        assert [(a.id, a.step) for a in alarms if a.id != FAILED_VERDICT] == same
    assert any(asked.values())


def test_a_folder_that_is_not_there_is_said(tmp_path, capsys):
    assert diagnosing_peers.main([str(tmp_path / "nowhere")]) == []
    assert "no recorded runs" in capsys.readouterr().out

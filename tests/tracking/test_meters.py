"""What a loop measures itself, against values computed by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from recording_checks import points

import rlvitals


def test_an_ema_is_unbiased_from_its_first_value():
    ema = rlvitals.lab.Ema("win_rate", alpha=0.1)
    assert math.isnan(ema.value)
    assert ema.update(0.5) == {"win_rate_ema": pytest.approx(0.5)}
    # (0.9 * 0.1 * 0.5 + 0.1 * 1.0) / (1 - 0.81)
    assert ema.update(1.0)["win_rate_ema"] == pytest.approx(0.145 / 0.19)


@given(
    some.lists(some.floats(-1e6, 1e6), min_size=1, max_size=60),
    some.floats(1e-3, 1),
)
def test_an_ema_is_the_weighted_mean_of_its_values(values, alpha):
    ema = rlvitals.lab.Ema("x", alpha)
    for value in values:
        ema.update(value)
    weights = (1 - alpha) ** np.arange(len(values))[::-1]
    assert ema.value == pytest.approx(np.average(values, weights=weights), rel=1e-6, abs=1e-6)


def test_an_ema_goes_on_from_a_checkpoint():
    whole, first, second = (rlvitals.lab.Ema("x", 0.2) for _ in range(3))
    values = [1.0, 4.0, math.nan, None, 2.0, 8.0]
    for value in values:
        whole.update(value)
    for value in values[:3]:
        first.update(value)
    second.load_state_dict(first.state_dict())
    for value in values[3:]:
        second.update(value)
    assert second.value == whole.value
    with pytest.raises(rlvitals.UsageError):
        second.load_state_dict({"alpha": 0.1})


@pytest.mark.parametrize("alpha", [0, -1, 1.5, math.nan])
def test_an_ema_of_no_alpha(alpha):
    with pytest.raises(rlvitals.UsageError):
        rlvitals.lab.Ema("x", alpha)


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Spent:
    overhead = 0.0


def test_speeds_over_a_window():
    clock, spent = Clock(), Spent()
    meter = rlvitals.lab.SpeedMeter(10, run=spent, clock=clock)
    assert meter.read() == {}
    for _ in range(4):
        with meter.collecting():
            clock.now += 3
            meter.step(600)
            meter.episode(3)
        with meter.learning():
            clock.now += 1
            meter.update(10)
        spent.overhead += 0.02
        found = meter.read()
    assert found == pytest.approx({
        "throughput/steps_per_second": 150.0,
        "throughput/updates_per_second": 2.5,
        "throughput/episodes_per_second": 0.75,
        "throughput/collect_share": 0.75,
        "throughput/learn_share": 0.25,
        "throughput/sampler_rate": 200.0,
        "throughput/recorder_share": 0.005,
    })  # fmt: skip
    clock.now += 50
    meter.read()
    clock.now += 10
    assert meter.read()["throughput/steps_per_second"] == 0, "the window is over"


def test_what_is_never_counted_is_not_told():
    clock = Clock()
    meter = rlvitals.lab.SpeedMeter(clock=clock)
    meter.step()
    clock.now += 2
    assert meter.read() == {"throughput/steps_per_second": 0.5}


def test_the_recorder_tells_its_own_share(tmp_path):
    with rlvitals.start(tmp_path) as run:
        meter = rlvitals.lab.SpeedMeter(run=run)
        for step in range(1000):
            run.log(step, {"x": 1.0})
        run.flush()
        assert 0 < meter.read()["throughput/recorder_share"] < 1
        assert run.overhead > 0


def test_the_parts_of_a_reward_add_up():
    found = rlvitals.lab.reward_parts({"speed": 0.5, "effort": -0.2}, 0.3)
    assert found == pytest.approx({
        "reward/component/speed": 0.5, "reward/component/effort": -0.2, "outcome/reward": 0.3,
    })  # fmt: skip
    assert rlvitals.lab.reward_parts({"a": 1, "b": 2})["outcome/reward"] == 3
    nan = rlvitals.lab.reward_parts({"a": math.nan, "b": 2})
    assert math.isnan(nan["outcome/reward"])


@pytest.mark.parametrize("total", [0.7, -0.3, 0.3 + 1e-4])
def test_the_parts_of_a_reward_that_do_not_add_up(total):
    with pytest.raises(rlvitals.UsageError, match="the parts of the reward add up to"):
        rlvitals.lab.reward_parts({"speed": 0.5, "effort": -0.2}, total)


@pytest.mark.parametrize(
    ("numbers", "total"),
    [
        ((math.nan, 2.0), 3.0), ((math.nan, 2.0), math.inf), ((math.inf, 2.0), 3.0),
        ((math.inf, 2.0), -math.inf), ((math.inf, 2.0), math.nan),
        ((math.inf, -math.inf), math.inf), ((1.0, 2.0), math.nan),
        ((1.0, 2.0), math.inf), ((1e308, 1e308), 1.0),
    ],
)  # fmt: skip
def test_a_reward_that_is_finite_where_its_parts_are_not_or_they_where_it_is_not(numbers, total):
    parts = dict(zip(("speed", "effort"), numbers, strict=True))
    with pytest.raises(rlvitals.UsageError, match="the parts of the reward add up to") as error:
        rlvitals.lab.reward_parts(parts, total)
    assert ("check speed" in error.value.hint) is not math.isfinite(numbers[0])


@pytest.mark.parametrize(
    ("numbers", "total"),
    [
        ((math.nan, 2.0), math.nan), ((math.inf, 2.0), math.inf), ((-math.inf, 2.0), -math.inf),
        ((math.inf, -math.inf), math.nan), ((1e308, 1e308), math.inf),
    ],
)  # fmt: skip
def test_parts_that_are_not_finite_agree_with_a_total_that_is_what_they_add_up_to(numbers, total):
    parts = dict(zip(("speed", "effort"), numbers, strict=True))
    for row in (rlvitals.lab.reward_parts(parts, total), rlvitals.lab.reward_parts(parts)):
        assert row["outcome/reward"] == pytest.approx(total, nan_ok=True)


@pytest.mark.parametrize("size", [1e-30, 1e-9, 1e-3, 1.0, 1e9])
def test_the_tolerance_is_a_share_of_the_size_of_the_parts(size):
    parts = {"speed": 0.5 * size, "effort": -0.2 * size}
    rlvitals.lab.reward_parts(parts, (0.3 + 4e-7) * size)
    rlvitals.lab.reward_parts(parts, 0.31 * size, tolerance=0.03)
    rlvitals.lab.reward_parts({"speed": size, "effort": -size}, 1e-7 * size)  # float32 cancels
    for total in (0.3 + 6e-7, 0.0, 500):
        with pytest.raises(rlvitals.UsageError, match="the parts of the reward add up to"):
            rlvitals.lab.reward_parts(parts, total * size)


def test_parts_of_nothing_add_up():
    assert rlvitals.lab.reward_parts({}, 0.0) == {"outcome/reward": 0.0}
    assert rlvitals.lab.reward_parts({"speed": 0.0}, -0.0)["outcome/reward"] == 0
    tiny = float(np.float32(1e-40))  # what a device that knows no smaller numbers takes for 0
    assert rlvitals.lab.reward_parts({"speed": tiny}, 0.0)["outcome/reward"] == 0


def test_action_shares():
    found = rlvitals.lab.action_shares(np.array([[0, 2], [2, 2]]), names=["left", "stay", "right"])
    assert found == {
        "policy/action_count/left": 1.0, "policy/action_count/stay": 0.0,
        "policy/action_count/right": 3.0, "policy/action_share/left": 0.25,
        "policy/action_share/stay": 0.0, "policy/action_share/right": 0.75,
        "policy/action_share_max": 0.75,
    }  # fmt: skip
    assert rlvitals.lab.action_histogram([1, 1], 3) == ([-0.5, 0.5, 1.5, 2.5], [0.0, 2.0, 0.0])
    assert rlvitals.lab.action_shares([], 2)["policy/action_share_max"] == 0


@pytest.mark.parametrize("actions", [[0.5], [-1], ["left"]])
def test_actions_that_are_not_discrete(actions):
    with pytest.raises(rlvitals.UsageError):
        rlvitals.lab.action_shares(actions)


def test_what_meters_return_is_what_a_run_takes(tmp_path):
    edges, counts = rlvitals.lab.action_histogram([0, 1, 1])
    with rlvitals.start(tmp_path) as run:
        run.log(1, rlvitals.lab.action_shares([0, 1, 1]) | rlvitals.lab.Ema("win_rate").update(1.0))
        run.log_histogram(1, "actions", edges=edges, counts=counts)
    assert points(tmp_path)["policy/action_count/1"] == [(1, 2.0)]


def test_every_key_of_the_meters_has_a_meaning(tmp_path):
    run = rlvitals.start(tmp_path)
    speed, wins = rlvitals.lab.SpeedMeter(run=run), rlvitals.lab.Ema("win_rate")
    score = rlvitals.observe(lambda words: [1.0 if w else None for w in words], run, name="exact")
    for step in range(1, 11):
        with speed.collecting():
            score(["4", ""])
            speed.step()
            speed.episode()
        with speed.learning():
            speed.update()
        row = speed.read() | wins.update(0.5) | rlvitals.lab.reward_parts({"a": 0.5, "b": 0.1})
        run.log(step, row | rlvitals.lab.action_shares([0, 1, 1]))
    run.finish()
    trace = rlvitals.trace(tmp_path)
    assert set(trace.unmapped) <= {"observed/exact/calls"}  # a count says nothing by itself
    shares = trace.family("throughput/phase_share")
    assert set(shares) == {"collect", "learn"}
    assert trace["exploration/action_share_max"].values[-1] == pytest.approx(2 / 3)
    assert trace["reward/none_share/exact"].values[-1] == 0.5
    assert "throughput/recorder_share" in trace


def test_a_loop_that_comes_to_wait_for_its_data_is_told_so_by_the_speed_meter_alone(tmp_path):
    now = [0.0]
    speed = rlvitals.lab.SpeedMeter(clock=lambda: now[0])
    with rlvitals.start(tmp_path) as run:
        for step in range(1, 41):
            with speed.collecting():
                now[0] += 8.0 if step > 20 else 2.0
            with speed.learning():
                now[0] += 2.0
            run.log(step, speed.read())
    found = {rule.name: one for rule, one in rlvitals.diagnose(tmp_path).findings}
    assert found["updates-slow"].observed == pytest.approx(0.8)
    assert found["updates-slow"].metric == "throughput/phase_share/collect"

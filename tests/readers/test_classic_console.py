"""Console output of classic trainers: PyMARL, Keras-RL, pytorch-a2c-ppo-acktr, hand-made lines.

The lines follow the format strings of pymarl's `utils/logging.py`, keras-rl's `rl/callbacks.py`,
Tianshou's `trainer/base.py`, ikostrikov's `main.py` and rlgym-ppo's `util/reporting.py`.
"""

import pytest

from rlvitals.metrics import canonicalize
from rlvitals.readers import console, plain_csv
from rlvitals.readers.formats.lines import read_head
from rlvitals.readers.select import claim

READER = console.READER
PYMARL = (
    "[INFO 21:12:20] my_main t_env: {step} / 10000\n"
    "[INFO 21:12:20] my_main Recent Stats | t_env: {step:>10} | Episode: {n:>8}\n"
    "advantage_mean:           -0.1491\tattention_regularization:-10.0000\t"
    "ep_length_mean:          885.7500\tepsilon:                   0.5000\n"
    "return_mean: {n:>20}.5000\ttest_return_mean: {n:>18}.2500\t\n"
)
KERAS_RL = (
    "  {step:>4}/5000: episode: {n}, duration: 0.123s, episode steps:  20, steps per second: 25, "
    "episode reward: {n:6.3f}, mean reward:  1.000 [ 1.000,  1.000], "
    "mean action: 0.391 [0.000, 1.000],  loss: --, mae: --, mean_q: --\n"
)
INTERVAL = (
    "Interval {n} ({before} steps performed)\n"
    "1000/1000 [==============================] - 64s 6ms/step - reward: 1.0000\n"
    "50 episodes - episode_reward: {n}.500 [8.000, 60.000] - loss: 0.512 - mae: 1.250\n\n"
)
UPDATES = (
    "Updates {n}, num timesteps {step}, FPS 712 \n"
    " Last 10 training episodes: mean/median reward {n}.5/19.5, min/max reward 9.0/41.0\n\n"
)
LOGS = {
    "pymarl": "".join(PYMARL.format(n=n, step=500 * n) for n in range(1, 5)).encode(),
    "keras-rl": "".join(KERAS_RL.format(n=n, step=20 * n) for n in range(1, 9)).encode(),
    "a2c-ppo-acktr": "".join(UPDATES.format(n=n, step=128 * n) for n in range(1, 9)).encode(),
}


def read(path, text):
    path.write_text(text)
    assert claim(path) is READER
    return READER.read(path, None)[0]


def points(log, key):
    series = log.series[key]
    return list(zip(series.steps.tolist(), series.values.tolist(), strict=True))


def test_pymarl_prints_four_metrics_a_line(tmp_path):
    log = read(tmp_path / "cout.txt", LOGS["pymarl"].decode())
    assert points(log, "return_mean") == [(500 * n, n + 0.5) for n in range(1, 5)]
    assert points(log, "epsilon") == [(500 * n, 0.5) for n in range(1, 5)]
    assert log.settings["total_steps"] == 10000
    trace = canonicalize.trace([log])
    assert trace.step_unit == "environment steps"
    assert trace["outcome/eval_return"].values.tolist() == [n + 0.25 for n in range(1, 5)]


def test_keras_rl_prints_a_line_an_episode(tmp_path):
    log = read(tmp_path / "train.log", LOGS["keras-rl"].decode())
    assert points(log, "episode_reward") == [(20 * n, float(n)) for n in range(1, 9)]
    assert "loss" not in log.series
    trace = canonicalize.trace([log])
    assert trace["outcome/return"].values.tolist() == list(range(1, 9))
    assert trace["reward/mean"].values.tolist() == [1.0] * 8, "within an episode, not its return"


def test_keras_rl_prints_an_interval(tmp_path):
    text = "".join(INTERVAL.format(n=n, before=1000 * (n - 1)) for n in range(1, 5))
    log = read(tmp_path / "train.log", text)
    assert points(log, "episode_reward") == [(1000 * n, n + 0.5) for n in range(1, 5)]


def test_two_lines_of_an_update(tmp_path):
    log = read(tmp_path / "train.log", LOGS["a2c-ppo-acktr"].decode())
    assert points(log, "mean_episode_reward") == [(128 * n, n + 0.5) for n in range(1, 9)]
    assert points(log, "min_reward")[0] == (128, 9.0)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Epoch #{n}: test_reward: {v} ± 6.4, best_reward: 9.5 ± 1.2 in #1", {"test_reward": "v"}),
        ("Ep {n} -> reward {v} (avg 11.0)", {"episode_reward": "v", "avg": 11.0}),
        ("Iteration {n}: mean return {v} (std 3.0)", {"mean_return": "v", "std": 3.0}),
        ("Episode {n} finished after 25 timesteps with reward {v}", {"episode_reward": "v"}),
        ("--- Episode {n} --- Total Reward: {v}", {"episode_reward": "v"}),
        ("Episode {n}, Reward: {v}, Loss: tensor(0.5, grad_fn=<MseLossBackward0>)", {"loss": 0.5}),
        ("Episode={n}, reward={v}, loss=None", {"episode_reward": "v"}),
        ("Episode {n} | Reward: {v} | Win: True", {"episode_reward": "v", "win": 1.0}),
        ("Episode: {n}, Reward: {v} \N{PARTY POPPER} NEW BEST", {"episode_reward": "v"}),
        ("Iter {n}: reward={v}, best=-100.5", {"reward": "v", "best": -100.5}),
        ("Epoch {n}: mean loss={v} | mean entropy loss=-3.5", {"mean_entropy_loss": -3.5}),
        ("Episode {n}: Total Reward = {v}", {"episode_reward": "v"}),
        ("Game {n} Score {v} Record: 5", {"score": "v", "record": 5.0}),
        ("[{n}/1000] reward: {v} loss: 0.1", {"reward": "v"}),
        ("Iter {n}, Reward: {v}, Steps: 200", {"reward": "v", "steps": 200.0}),
        ("I0501 12:00:00.1 123 run.py:12] Episode {n} reward {v}", {"episode_reward": "v"}),
        (
            "2020-01-02 10:00:00,001 INFO Result for episode {n}  of 40: Sum: {v}, Length: 3.5",
            {"episode_reward": "v", "length": 3.5},
        ),
        ("Episode {n} of 400: Sum: {v}", {"episode_reward": "v"}),
        ("Ep: {n} | Ep_r: {v}", {"episode_reward": "v"}),
        ("Episode {n} | Rewards: [ 1.5 -0.5]", {"rewards_mean": 0.5}),
        ("Episode {n} EpisodeReward={v}", {"episode_reward": "v"}),
    ],
)
def test_hand_made_lines(tmp_path, line, expected):
    values = [0.5, 0.25, 1e-3, 4.0]
    rows = [line.format(n=n, v=v) for n, v in enumerate(values, 1)]
    log = read(tmp_path / "train.log", "\n".join([*rows, ""]))
    for key, value in expected.items():
        numbers = values if value == "v" else [value] * 4
        assert points(log, key) == list(zip((1, 2, 3, 4), numbers, strict=True))


def test_a_loss_that_is_nan_at_the_end_of_a_line_is_read(tmp_path):
    log = read(tmp_path / "train.log", "Episode 1, reward: 2, loss: nan\n" * 4)
    assert len(log.series["loss"]) == 4


@pytest.mark.parametrize(
    "line",
    [
        "[{n}/9] last_reward=1.5 kind=other",
        "Run: {n}, exploration: 0.9, score: 20",
        "Trial {n}, 0.5 seconds, reward 3",
    ],
)
def test_lines_with_texts_are_no_rows(tmp_path, line):
    path = tmp_path / "train.log"
    path.write_text("".join(line.format(n=n) + "\n" for n in range(20)))
    assert not plain_csv.claims(path, read_head(path))


RLGYM = """
--------BEGIN ITERATION REPORT--------
Policy Reward: {reward}
Policy Entropy: 4.{entropy}00
Value Function Loss: {loss}

Mean KL Divergence: {kl}
SB3 Clip Fraction: 0.01200
Policy Update Magnitude: 0.21100
Value Function Update Magnitude: 0.19000

Collected Steps per Second: 5,510.12345
Overall Steps per Second: 4,321.50000

Timestep Collection Time: 9.07400
Timestep Consumption Time: 2.49700
PPO Batch Consumption Time: 0.24970
Total Iteration Time: 11.57100

Cumulative Model Updates: {updates}
Cumulative Timesteps: {step}

Timesteps Collected: 50,002
--------END ITERATION REPORT--------

"""


def rlgym_reports(mark=","):
    text = "Press (p) to pause (c) to checkpoint, (q) to checkpoint and quit\n"
    for n in range(1, 5):
        reward, loss = (f"{n - 1}.50000", f"0.{n}0000") if n > 1 else ("nan", "nan")
        text += RLGYM.format(
            reward=reward,
            loss=loss,
            kl="" if n == 3 else "0.00101",
            entropy=900 - n,
            updates=f"{10 * n}",
            step=f"{50_002 * n:,}",
        )
    return text if mark == "," else text.translate(str.maketrans(",.", ".,"))


@pytest.mark.parametrize("mark", [",", "."])
def test_reports_of_rlgym_stand_at_their_timesteps(tmp_path, mark):
    log = read(tmp_path / "train.log", rlgym_reports(mark))
    trace = canonicalize.trace([log])
    steps = [50_002 * n for n in range(1, 5)]
    assert trace.step_unit == "agent steps"
    assert trace.measured["outcome/return"].framework == "rlgym-ppo"
    assert trace["outcome/return"].steps.tolist() == steps
    assert trace["outcome/return"].values[1:].tolist() == [1.5, 2.5, 3.5]
    assert trace["value/loss"].values[1:].tolist() == [0.2, 0.3, 0.4]
    assert trace["exploration/entropy"].values.tolist() == [4.899, 4.898, 4.897, 4.896]
    assert trace["policy/approx_kl"].steps.tolist() == [steps[0], steps[1], steps[3]]
    assert trace["throughput/steps_per_second"].values[0] == 4321.5
    assert trace.unmapped == ("Policy Update Magnitude", "Value Function Update Magnitude")


def test_a_report_of_rlgym_that_was_cut_is_left_out(tmp_path):
    text = rlgym_reports()
    log = read(tmp_path / "train.log", text[: text.rindex("Cumulative Timesteps")])
    assert log.series["Policy Entropy"].steps.tolist() == [50_002, 100_004, 150_006]

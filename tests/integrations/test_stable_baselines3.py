"""Stable-Baselines3, the real one: what is recorded of a training, and that it stays the same."""

import math
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest
import torch
from held import events, log, notes, rows, settings, trace, unmapped
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import Figure, HParam, Logger
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from torch.nn import utils

import rlvitals
from rlvitals.integrations.guard import Guard
from rlvitals.integrations.stable_baselines3 import Preflight, Record, Writer
from rlvitals.integrations.stable_baselines3.gradients import Gradients
from rlvitals.integrations.stable_baselines3.record import DEFAULT_LOOK_STEPS
from rlvitals.tracking import requests
from rlvitals.types import Profile

SMALL = {"net_arch": [16]}
STEPS = 250  # one episode of Pendulum and more
MADE = {
    "ppo": (PPO, "CartPole-v1", {"n_steps": 64, "batch_size": 32, "n_epochs": 2}),
    "a2c": (A2C, "CartPole-v1", {}),
    "dqn": (DQN, "CartPole-v1", {"learning_starts": 50}),
    "sac": (SAC, "Pendulum-v1", {"learning_starts": 50, "batch_size": 16}),
    "td3": (TD3, "Pendulum-v1", {"learning_starts": 50, "batch_size": 16}),
}


def make(name, env=None, **more):
    algorithm, known, own = MADE[name]
    if name == "td3":
        own = own | {"action_noise": NormalActionNoise(np.zeros(1), np.full(1, 0.1))}
    env = known if env is None else env
    return algorithm(
        "MlpPolicy", env, seed=3, device="cpu", policy_kwargs=dict(SMALL), **(own | more)
    )


ON_POLICY_AND_DQN = ("ppo", "a2c", "dqn")
OTHERS = [pytest.param(name, marks=pytest.mark.soak) for name in ("sac", "td3")]


@pytest.fixture(scope="module", params=[*ON_POLICY_AND_DQN, *OTHERS])
def trained(request, tmp_path_factory):
    """A training that is recorded, and its twin that is not."""
    folder = tmp_path_factory.mktemp(request.param) / "run"
    plain = make(request.param)
    plain.learn(STEPS)
    model, run = make(request.param), rlvitals.start(folder)
    preflight = Preflight(run)
    model.learn(STEPS, callback=[Record(run, every=100), preflight])
    run.finish()
    return request.param, folder, plain, model, preflight.report


def test_training_is_the_same_bit_for_bit(trained):
    _, _, plain, model, _ = trained
    ours = model.policy.state_dict()
    for name, weight in plain.policy.state_dict().items():
        assert torch.equal(weight, ours[name]), name
    assert plain.num_timesteps == model.num_timesteps


def test_nothing_stays_behind(trained, tmp_path):
    _, _, _, model, _ = trained
    assert utils.clip_grad_norm_.__module__ == "torch.nn.utils.clip_grad"
    assert not any(isinstance(one, Writer) for one in model.logger.output_formats)
    model.save(tmp_path / "model")  # pickles all attributes of the model


def test_every_key_has_a_meaning(trained):
    name, folder, _, _, _ = trained
    assert unmapped(folder) == set()
    read = trace(folder)
    profile = {"ppo": Profile.CONTROL_PPO, "a2c": Profile.ON_POLICY}
    assert read.profile is profile.get(name, Profile.OFF_POLICY)
    own = [m for m in read.measured.values() if "machine/" not in m.key]
    assert {m.framework for m in own} == {"sb3"}
    assert read.budget.steps == STEPS
    assert notes(folder) == []


def test_what_a_person_would_ask_of_a_run_is_there(trained):
    name, folder, _, _, _ = trained
    read = trace(folder)
    always = {"outcome/return", "outcome/episode_length", "reward/mean", "optimiser/grad_norm"}
    always |= {f"throughput/{x}" for x in ("steps_per_second", "phase_time/collect")}
    always |= {"throughput/phase_time/learn", "observation/varying_share"}
    own = {
        "ppo": {"policy/approx_kl", "policy/action_count/0", "value/mean", "policy/advantage_std"},
        "a2c": {"policy/loss", "policy/action_count/1", "value/explained_variance"},
        "dqn": {"exploration/epsilon", "value/q_mean", "optimiser/loss"},
        "sac": {"exploration/entropy", "exploration/std", "optimiser/critic_grad_norm"},
        "td3": {"exploration/std", "optimiser/critic_grad_norm", "policy/action_at_bound_share"},
    }
    assert always | own[name] <= set(read.series)


def test_settings_are_canonical_and_whole(trained):
    name, folder, _, model, _ = trained
    found = settings(folder)
    expected = {"algorithm": name, "env_id": MADE[name][1], "total_steps": STEPS}
    expected |= {"seed": 3, "n_envs": 1, "gamma": 0.99}
    assert expected.items() <= found.items()
    held = {name: p.numel() for name, p in model.policy.named_parameters()}
    assert found["n_parameters_held"] == sum(held.values())
    assert found["n_parameters"] == sum(n for name, n in held.items() if "target" not in name)
    if name == "ppo":
        ppo = {"clip_range": 0.2, "minibatch_size": 32, "n_steps": 64, "n_actions": 2,
               "entropy_coef": 0.0, "max_grad_norm": 0.5}  # fmt: skip
        assert ppo.items() <= found.items()
    if name == "dqn":
        assert {"epsilon_final": 0.05, "buffer_size": 1_000_000}.items() <= found.items()
        assert found["n_step_returns"] == 1
        assert "n_steps" not in found


def test_the_preflight_of_a_sound_training_passes(trained):
    name, folder, _, _, report = trained
    assert report.ok, str(report)
    names = {check.name for check in report.passed}
    assert {"check-env", "observations-finite", "observations-vary", "weights-moved"} <= names
    if name == "ppo":
        assert {"ratio-is-one", "advantages-vary", "advantages-centred"} <= names
    (event,) = events(folder, "preflight")
    assert event["failed"] == []


def test_episodes_one_by_one_and_the_interval_s_own_speed(tmp_path):
    run = rlvitals.start(tmp_path / "run")
    env = make_vec_env("CartPole-v1", 3, seed=0)
    model = make("ppo", env)
    model.learn(600, callback=Record(run, every=64))
    run.finish()
    found = [values for _, values in rows(run.folder) if "rollout/episode_return" in values]
    own = [m for e in env.envs for m in e.get_episode_rewards()]
    assert sorted(v["rollout/episode_return"] for v in found) == sorted(own)
    assert [v["axis/episode"] for v in found] == list(range(1, len(own) + 1))
    speeds = log(run.folder).series["time/steps_per_second"]
    assert len(speeds) == model.num_timesteps / (3 * 64)
    spent = [log(run.folder).series[f"time/phase/{x}"].values for x in ("collect", "learn")]
    # Steps over the seconds that were spent on them: both phases of the interval together.
    assert (3 * 64 / speeds.values)[1:] == pytest.approx(sum(spent)[1:], rel=0.2)


class Unmonitored(gym.Wrapper):
    """Hides nothing, and is no monitor."""


def test_without_a_monitor_episodes_are_counted_here_unscaled(tmp_path):
    run = rlvitals.start(tmp_path / "run")
    venv = VecNormalize(DummyVecEnv([lambda: Unmonitored(gym.make("CartPole-v1"))] * 2))
    make("ppo", venv).learn(500, callback=Record(run))
    run.finish()
    read = log(run.folder).series
    returns, lengths = read["rollout/episode_return"], read["rollout/episode_length"]
    assert len(returns) > 5
    np.testing.assert_array_equal(returns.values, lengths.values)  # one for each step survived
    assert "rollout/ep_rew_mean" not in read  # without a monitor SB3 knows none


class Named(gym.ObservationWrapper):
    """Observations as a dictionary of two parts."""

    def __init__(self, env):
        super().__init__(env)
        low, high = env.observation_space.low, env.observation_space.high
        parts = {
            "where": gym.spaces.Box(low[:2], high[:2]),
            "pole": gym.spaces.Box(low[2:], high[2:]),
        }
        self.observation_space = gym.spaces.Dict(parts)

    def observation(self, observation):
        return {"where": observation[:2], "pole": observation[2:]}


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_observations_in_a_dictionary(tmp_path, name):
    algorithm, _, own = MADE[name]
    run, env = rlvitals.start(tmp_path / "run"), Named(gym.make("CartPole-v1"))
    check = Preflight(run)
    model = algorithm("MultiInputPolicy", env, seed=0, device="cpu", **own)
    model.learn(200, callback=[Record(run, every=100), check])
    run.finish()
    assert check.report.failed == ()
    assert notes(run.folder) == []
    read = log(run.folder).series
    assert set(read["rollout/observation_varying_share"].values) == {1.0}
    if name == "dqn":
        assert "rollout/q_mean" in read
    else:
        assert "ratio-is-one" in {one.name for one in check.report.passed}


def test_action_counts_of_each_interval_add_up(tmp_path):
    run = rlvitals.start(tmp_path / "run")
    make("dqn").learn(300, callback=Record(run, every=100))
    run.finish()
    counts = [log(run.folder).series[f"rollout/action_count/{i}"].values for i in (0, 1)]
    assert sum(counts).sum() in {299.0, 300.0}  # the last transition is stored after the look


def test_gradient_norms_are_those_before_clipping(tmp_path):
    run = rlvitals.start(tmp_path / "run")
    make("ppo", max_grad_norm=1e-3).learn(256, callback=Record(run, every=64))
    run.finish()
    norms = log(run.folder).series["train/grad_norm"].values
    largest = log(run.folder).series["train/grad_norm_max"].values
    assert len(norms) == 4
    assert (norms > 1e-2).all()
    assert (largest >= norms).all()


def test_clipping_watched_is_clipping(tmp_path):
    model, run = make("ppo"), rlvitals.start(tmp_path / "run")
    own = [torch.nn.Parameter(torch.randn(5, 3)), torch.nn.Parameter(torch.randn(2))]
    for p in own:
        p.grad = torch.randn_like(p) * 3
    twins = [torch.nn.Parameter(p.detach().clone()) for p in own]
    for p, twin in zip(own, twins, strict=True):
        twin.grad = p.grad.clone()
    plain = utils.clip_grad_norm_(twins, 0.5)
    watch = Gradients(model, lambda *_: None, Guard(run))
    watch.begin()
    watched = utils.clip_grad_norm_((p for p in own), 0.5)
    watch.end()
    assert torch.equal(plain, watched)
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(own, twins, strict=True))
    assert watch.take() == {
        "train/grad_norm": pytest.approx(plain.item()),
        "train/grad_norm_max": pytest.approx(plain.item()),
    }
    assert watch.take() == {}
    run.finish()


class Breaking(gym.Wrapper):
    """Breaks a number in its hundredth step."""

    def __init__(self, env, what):
        super().__init__(env)
        self.what, self.steps = what, 0

    def step(self, action):
        observation, reward, *rest = self.env.step(action)
        self.steps += 1
        if self.steps == 100 and self.what == "observation":
            observation = observation.copy()
            observation[2] = np.inf
        if self.steps == 100 and self.what == "reward":
            reward = math.nan
        return observation, reward, *rest


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_a_reward_that_is_no_number_is_named_with_its_step(tmp_path, name):
    run = rlvitals.start(tmp_path / "run")
    model = make(name, Breaking(gym.make("CartPole-v1"), "reward"), **_surviving(name))
    with pytest.raises(ValueError, match="nan") if name == "ppo" else _quiet():
        model.learn(300, callback=Record(run, every=50))
    run.finish()
    found = {one["variable"]: one for one in events(run.folder, "not-a-number")}
    assert found["rewards"]["step"] == 100
    assert found["rewards"]["value"] == "nan"
    if name == "ppo":
        gradient = next(key for key in found if key.startswith("gradient of "))
        assert gradient.removeprefix("gradient of ") in dict(model.policy.named_parameters())
    assert any("rewards is nan at step 100" in one for one in notes(run.folder))


def _surviving(name):
    return {"learning_starts": 1000} if name == "dqn" else {}


def _quiet():
    from contextlib import nullcontext

    return nullcontext()


def test_the_learning_rate_is_lowered_where_it_is_asked_for(tmp_path):
    class Lowers(BaseCallback):
        def _on_step(self):
            if self.num_timesteps == 128:
                requests.ask(run.folder, "lower-rate", factor=0.1)
                run.flush()
            return True

    run = rlvitals.start(tmp_path / "run")
    model = make("ppo", n_steps=64, learning_rate=lambda left: 1e-3 * left)
    model.learn(320, callback=[Lowers(), Record(run, every=64)])
    run.finish()
    assert model.policy.optimizer.param_groups[0]["lr"] == pytest.approx(0.0)
    assert model.lr_schedule(0.5) == pytest.approx(5e-5)
    model.save(tmp_path / "model.zip")
    assert PPO.load(tmp_path / "model.zip", device="cpu").lr_schedule(0.5) == pytest.approx(5e-5)
    assert [event["factor"] for event in events(run.folder, "asked")] == [0.1]


def test_a_run_that_is_asked_to_stop_stops_and_saves(tmp_path):
    run = rlvitals.start(tmp_path / "run")
    model = make("dqn", learning_starts=10_000)
    (run.folder / "requests").mkdir(exist_ok=True)
    for kind in ("save", "stop"):
        requests.ask(run.folder, kind)
    model.learn(20_000, callback=Record(run))
    run.finish()
    assert model.num_timesteps < 20_000
    (saved,) = events(run.folder, "checkpoint")
    assert DQN.load(run.folder / saved["file"], device="cpu").num_timesteps == saved["step"]


def test_a_hook_that_fails_is_noted_once_and_training_goes_on(tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("no such thing")

    monkeypatch.setattr("rlvitals.integrations.stable_baselines3.rollouts.numbers", fail)
    run = rlvitals.start(tmp_path / "run")
    model = make("ppo")
    model.learn(256, callback=Record(run))
    run.finish()
    assert model.num_timesteps == 256
    said = [one for one in notes(run.folder) if "RuntimeError: no such thing" in one]
    assert len(said) == 1
    assert "train/grad_norm" in log(run.folder).series  # the other parts go on


def test_without_a_run_one_is_started_and_finished(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make("ppo").learn(64, callback=Record())
    (folder,) = (tmp_path / "runs").iterdir()
    assert events(folder, "finish")[0]["status"] == "finished"
    assert settings(folder)["algorithm"] == "ppo"


def test_two_trainings_in_a_row_are_one_record(tmp_path):
    run = rlvitals.start(tmp_path / "run")
    model, record = make("ppo"), Record(run, every=64)
    model.learn(128, callback=record)
    model.learn(128, callback=record, reset_num_timesteps=False)
    run.finish()
    steps = log(run.folder).series["rollout/reward_mean"].steps
    assert list(steps) == [64, 128, 192, 256]
    assert all(a <= b for a, b in pairwise(log(run.folder).series["time/fps"].steps))


def test_the_writer_alone_takes_what_the_logger_dumps(tmp_path):
    run = rlvitals.start(tmp_path / "run")
    logger = Logger(None, [Writer(run)])
    logger.record("a", np.float32(1.5))
    logger.record("b", torch.tensor([2.0]))
    logger.record("c", 3, exclude="rlvitals")
    logger.record("d", 4, exclude="tensorboard")
    logger.record("said", "a word")
    logger.record("picture", Figure(None, close=False))
    logger.record("settings", HParam({"gamma": 0.9, "nothing": None}, {"a": 0}))
    logger.dump(7)
    logger.close()
    run.finish()
    assert rows(run.folder) == [(7, {"a": 1.5, "b": 2.0, "d": 4.0})]
    assert log(run.folder).texts["said"][0].text == "a word"
    assert settings(run.folder)["gamma"] == 0.9
    assert any("picture: a Figure is not recorded" in one for one in notes(run.folder))


@pytest.mark.soak
def test_short_rollouts_are_looked_at_together(tmp_path):
    run = rlvitals.start(tmp_path / "run")
    make("a2c").learn(DEFAULT_LOOK_STEPS + 50, callback=Record(run))
    run.finish()
    read = log(run.folder).series
    assert list(read["rollout/reward_mean"].steps) == [DEFAULT_LOOK_STEPS, DEFAULT_LOOK_STEPS + 50]
    counts = sum(read[f"rollout/action_count/{i}"].values for i in (0, 1))
    assert list(counts) == [DEFAULT_LOOK_STEPS, 50]
    assert list(read["train/grad_norm"].steps) == [DEFAULT_LOOK_STEPS, DEFAULT_LOOK_STEPS + 50]


def test_short_rollouts_are_kept_as_they_were(tmp_path):
    class Kept(BaseCallback):
        def _on_training_start(self):
            self.kept = []

        def _on_step(self):
            return True

        def _on_rollout_end(self):
            buffer = self.model.rollout_buffer
            self.kept.append((buffer.advantages.copy(), buffer.observations.copy()))

    run, kept = rlvitals.start(tmp_path / "run"), Kept()
    make("a2c").learn(100, callback=[Record(run), kept])
    run.finish()
    read = log(run.folder).series
    advantages, seen = (np.concatenate(parts) for parts in zip(*kept.kept, strict=True))
    assert read["rollout/advantage_mean"].values[-1] == pytest.approx(advantages.mean())
    assert read["rollout/observation_largest"].values[-1] == pytest.approx(np.abs(seen).max())


def test_the_run_says_whose_names_its_keys_are(tmp_path):
    with rlvitals.start(tmp_path / "run") as run:
        make("ppo").learn(64, callback=Record(run))
    assert log(run.folder).framework == "sb3"
    with rlvitals.start(tmp_path / "writer") as run:
        Logger(None, [Writer(run)]).dump(1)
    assert log(run.folder).framework == "sb3"


def test_what_a_person_said_of_the_names_stays(tmp_path):
    with rlvitals.start(tmp_path / "run", framework="generic") as run:
        make("ppo").learn(64, callback=Record(run))
    assert log(run.folder).framework == "generic"

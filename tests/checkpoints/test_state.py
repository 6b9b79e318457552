"""The state of a program: written without pickle, put back to the bit."""

import json
import math
import random
from collections import deque
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, from_dtype

from rlvitals.checkpoints.manager import Checkpoints
from rlvitals.checkpoints.manifest import BadCheckpoint
from rlvitals.checkpoints.state.serialize import Unsaveable
from rlvitals.checkpoints.state.training_state import State


def back(folder, value, into):
    """What `value` is, once saved and read into another."""
    State(it=value).save(folder)
    state = State(it=into)
    state.load(folder)
    return state["it"]


def same(one, other):
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple | deque):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    return type(one) is type(other) and one == other


DTYPES = ("<f4", "<f8", "<f2", "<i8", "<i4", "<u1", "?", "<c8", "<c16")
numbers = st.sampled_from(DTYPES).flatmap(
    lambda kind: arrays(kind, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
                        elements=from_dtype(np.dtype(kind)))
)  # fmt: skip
plain = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5)
)
values = st.recursive(
    plain | numbers,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
        | st.lists(inner, max_size=3).map(lambda items: deque(items, 7))
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(value=values)
def test_what_is_plain_comes_back_the_same(tmp_path_factory, value):
    assert same(value, back(tmp_path_factory.mktemp("s"), value, None))


@pytest.mark.parametrize(
    "make",
    [
        np.random.default_rng,
        lambda seed: np.random.Generator(np.random.Philox(seed)),
        lambda seed: np.random.Generator(np.random.MT19937(seed)),
        np.random.RandomState,
        random.Random,
    ],
)
def test_generators_go_on_where_they_were(tmp_path, make):
    one, other = make(1), make(2)
    draw = one.random_sample if isinstance(one, np.random.RandomState) else one.random
    for _ in range(7):
        draw()
    assert back(tmp_path, one, other) is other
    again = other.random_sample if isinstance(one, np.random.RandomState) else other.random
    assert [draw() for _ in range(5)] == [again() for _ in range(5)]


def test_the_global_streams_go_on(tmp_path):
    torch = pytest.importorskip("torch")
    state = State()
    state.save(tmp_path)
    first = random.random(), np.random.rand(), torch.rand(3).tolist()
    State().load(tmp_path)
    assert (random.random(), np.random.rand(), torch.rand(3).tolist()) == first


def play(env, steps, dice):
    seen = []
    for _ in range(steps):
        env.action_space.seed(int(dice.integers(1 << 30)))
        observation, reward, *_ = env.step(env.action_space.sample())
        seen.append((np.asarray(observation).tobytes(), np.asarray(reward).tobytes()))
        ended = np.asarray(_[0]) | np.asarray(_[1])
        if ended.ndim == 0 and ended:
            env.reset()
    return seen


def cartpoles(mode="next"):
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    modes = {"next": AutoresetMode.NEXT_STEP, "same": AutoresetMode.SAME_STEP}
    return SyncVectorEnv(
        [lambda: gym.make("CartPole-v1") for _ in range(3)], autoreset_mode=modes[mode]
    )


def normalised():
    from gymnasium.wrappers import NormalizeObservation, NormalizeReward, RecordEpisodeStatistics

    return NormalizeReward(
        NormalizeObservation(RecordEpisodeStatistics(gym.make("CartPole-v1"))), gamma=0.9
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: gym.make("CartPole-v1"),
        lambda: gym.make("Acrobot-v1"),
        lambda: gym.make("MountainCarContinuous-v0"),
        lambda: gym.make("Pendulum-v1"),
        lambda: gym.make("FrozenLake-v1"),
        lambda: gym.make("Taxi-v4"),
        normalised,
        cartpoles,
        lambda: cartpoles("same"),
        lambda: gym.wrappers.vector.NormalizeObservation(cartpoles()),
    ],
)
def test_environments_go_on_in_the_middle_of_an_episode(tmp_path, make):
    one, other = make(), make()
    one.reset(seed=1)
    other.reset(seed=99)
    play(one, 37, np.random.default_rng(0))
    play(other, 11, np.random.default_rng(5))
    state = State(env=one)
    assert state.save(tmp_path) == {"not_saved": []}
    State(env=other).load(tmp_path)
    ahead = play(one, 120, np.random.default_rng(3))
    assert play(other, 120, np.random.default_rng(3)) == ahead


def test_a_fresh_environment_takes_the_state_too(tmp_path):
    one = gym.make("CartPole-v1")
    one.reset(seed=1)
    play(one, 5, np.random.default_rng(0))
    State(env=one).save(tmp_path)
    other = gym.make("CartPole-v1")
    State(env=other).load(tmp_path)
    ahead = play(one, 60, np.random.default_rng(3))
    assert play(other, 60, np.random.default_rng(3)) == ahead


@dataclass(slots=True)
class Ema:
    """A slotted one."""

    value: float = 0.0
    count: int = 0


class Own:
    """What a user may have written."""

    def __init__(self):
        self.mean = np.zeros(3)
        self.ema = Ema()
        self.past = deque([1.0], maxlen=3)
        self.parent = self
        self.shape = lambda: 3
        self.file = None


def test_objects_of_ones_own_are_filled_in_place(tmp_path):
    one, other = Own(), Own()
    one.mean += 2
    one.ema.value, one.ema.count = 0.25, 7
    one.past.extend([2.0, 3.0, 4.0])
    mean = other.mean
    found = back(tmp_path, one, other)
    assert found is other
    assert found.mean is mean
    assert mean.tolist() == [2, 2, 2]
    assert (found.ema.value, found.ema.count) == (0.25, 7)
    assert list(found.past) == [2.0, 3.0, 4.0]
    assert found.past.maxlen == 3
    assert found.parent is found


def test_what_cannot_be_saved_is_named(tmp_path):
    one = Own()
    one.file = (tmp_path / "x").open("w")
    with one.file:
        state = State(own=one)
        facts = state.save(tmp_path)
    assert facts == {"not_saved": ["own.file (TextIOWrapper)"]}
    with pytest.raises(Unsaveable, match="TextIOWrapper"):
        State(own=one.file).save(tmp_path)


def test_what_was_not_saved_breaks_the_promise_however_it_was_saved(tmp_path):
    for how in ("block", "call"):
        one, said = Own(), []
        one.file = (tmp_path / "x").open("w")
        checkpoints = Checkpoints(tmp_path / how, tell=said.append)
        with one.file:
            if how == "call":
                checkpoints.save_state(1, State(own=one))
            else:
                with checkpoints.save(1) as folder:
                    State(own=one).save(folder)
        resumed = checkpoints.restore_state(State(own=Own()))
        assert resumed.differs == ("own.file (TextIOWrapper) was not saved",)
        assert "not bit-exact because own.file" in said[0]


def net(seed):
    import torch

    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)
    return model, optimizer, schedule


class Training:
    """A small actor on three CartPoles: every stream of randomness there is."""

    def __init__(self, seed):
        self.model, self.optimizer, self.schedule = net(seed)
        self.envs = cartpoles()
        self.observation, _ = self.envs.reset(seed=seed)
        self.dice = np.random.default_rng(seed)
        self.state = State(
            model=self.model, optimizer=self.optimizer, schedule=self.schedule, envs=self.envs,
            observation=self.observation, dice=self.dice, step=0,
        )  # fmt: skip

    def run(self, steps):
        import torch

        for _ in range(steps):
            logits = self.model(torch.as_tensor(self.state["observation"], dtype=torch.float32))
            policy = torch.distributions.Categorical(logits=logits)
            action = policy.sample()
            weight = torch.as_tensor(self.dice.normal(size=3) + random.random() + np.random.rand())
            loss = -(policy.log_prob(action) * weight).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            self.state["observation"], *_ = self.envs.step(action.numpy())
            self.state["step"] += 1
        return self

    def bits(self):
        parts = [p.detach().numpy().tobytes() for p in self.model.parameters()]
        parts += [v.numpy().tobytes() for s in self.optimizer.state.values() for v in s.values()]
        parts += [self.state["observation"].tobytes(), self.state["step"]]
        return [*parts, random.random(), np.random.rand(), self.dice.random()]


def seed_all():
    random.seed(3)
    np.random.seed(3)


def test_a_training_that_was_cut_goes_on_bit_for_bit(tmp_path):
    seed_all()
    whole = Training(1).run(60).bits()
    seed_all()
    first = Training(1).run(25)
    checkpoints = Checkpoints(tmp_path, tell=lambda _: None)
    with checkpoints.save(25) as folder:
        first.state.save(folder)
    again = Training(77).run(3)
    resumed = Checkpoints(tmp_path, tell=lambda _: None).restore(again.state.load)
    assert resumed.differs == ()
    assert again.state["step"] == 25
    assert again.run(35).bits() == whole


def test_a_shape_that_does_not_fit_fails_loudly(tmp_path):
    import torch

    State(model=torch.nn.Linear(3, 4)).save(tmp_path)
    with pytest.raises(BadCheckpoint, match="does not fit"):
        State(model=torch.nn.Linear(4, 4)).load(tmp_path)
    State(mean=np.zeros(3)).save(tmp_path)
    with pytest.raises(BadCheckpoint, match=r"mean: shape \(3,\) does not fit \(4,\)"):
        State(mean=np.zeros(4)).load(tmp_path)


def test_parts_of_other_names_are_refused(tmp_path):
    State(model=1, optimizer=2).save(tmp_path)
    with pytest.raises(BadCheckpoint, match="optimizer is only in one"):
        State(model=1).load(tmp_path)


def test_a_tree_cannot_make_objects(tmp_path):
    """A hostile file names a type: nothing is imported or built, it is refused."""
    State(it=Ema()).save(tmp_path)
    tree = json.loads((tmp_path / "state.json").read_text())
    tree["it"]["type"] = "os.system"
    (tmp_path / "state.json").write_text(json.dumps(tree))
    with pytest.raises(BadCheckpoint, match=r"a Ema stands where a os\.system was"):
        State(it=Ema()).load(tmp_path)
    with pytest.raises(BadCheckpoint, match="no object to put its state into"):
        State(it=None).load(tmp_path)


def test_half_precision_and_many_kinds_of_tensors(tmp_path):
    import torch

    values = {
        "half": torch.randn(3).bfloat16(), "bool": torch.tensor([True, False]),
        "none": torch.empty(0), "scalar": torch.tensor(2**40), "turned": torch.randn(3, 4).T,
    }  # fmt: skip
    found = back(tmp_path, values, None)
    for key, tensor in values.items():
        assert found[key].dtype == tensor.dtype
        assert torch.equal(found[key], tensor)

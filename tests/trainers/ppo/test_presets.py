"""What an environment's name alone starts from, and what comes of it."""

import pytest

import rlvitals
from rlvitals import UsageError
from rlvitals.cli import train
from rlvitals.trainers import schema
from rlvitals.trainers.ppo import evaluate, presets
from rlvitals.trainers.ppo.cluster import ID as CLUSTER
from rlvitals.trainers.ppo.config import Config
from rlvitals.trainers.ppo.program import Training


def config_of(*options):
    ppo, chosen = train.read("ppo", list(options))
    return ppo.configure("ppo", chosen)


def trained(folder, env, **said):
    said |= {"training.env": env, "training.output_dir": str(folder)}
    config = schema.load(Config, None, said, below=presets.preset(env))
    assert Training(config).run() == "finished"
    return evaluate.load(folder)


def mean_return(made):
    played = evaluate.on_episodes(made, seed=10_000, episodes=100)
    assert len(played.returns) == 100
    return sum(played.returns) / 100


def test_the_cluster_starts_from_the_defaults():
    assert presets.preset(CLUSTER) == {}
    assert config_of() == config_of("--env", CLUSTER) == Config()


def test_a_known_environment_starts_from_its_preset():
    own = config_of("--env", "CartPole-v1")
    assert own.ppo_config.gae_lambda == 0.98
    assert own.training.total_steps == 120_000
    assert config_of("--env", "Acrobot-v1").ppo_config.gae_lambda == 0.94
    other = config_of("--env", "MountainCar-v0")
    assert other.ppo_config.gamma == 0.99 != Config().ppo_config.gamma


def test_a_flag_is_above_a_file_and_both_above_the_preset(tmp_path):
    file = tmp_path / "own.json"
    file.write_text('{"training": {"env": "CartPole-v1"}, "ppo_config": {"epochs": 3}}')
    own = config_of("--config", str(file), "--rollout-length", "99")
    assert (own.ppo_config.epochs, own.ppo_config.rollout_length) == (3, 99)
    assert own.training.total_steps == 120_000


@pytest.mark.parametrize("env", [*presets.ENV_PRESETS, "any other"])
def test_every_preset_names_settings_and_says_where_it_is_from(env, capsys):
    known = {key.name: key for key in schema.keys(Config)}
    for name, value in presets.preset(env).items():
        assert type(value) is type(known[name].default), name
    with pytest.raises(SystemExit):
        train.read("ppo", ["--env", env, "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert f", {presets.source(env)})" in told


def test_a_section_that_is_no_table_is_still_refused(tmp_path):
    file = tmp_path / "own.json"
    file.write_text('{"training": {"env": "CartPole-v1"}, "ppo_config": 3}')
    with pytest.raises(UsageError, match="ppo_config is no table"):
        config_of("--config", str(file))


@pytest.mark.soak
def test_cartpole_is_solved_and_said_to_be(tmp_path):
    # A third of the preset's steps: `make soak` makes all.
    made = trained(tmp_path, "CartPole-v1", **{"training.seed": 1, "training.total_steps": 40_000})
    assert mean_return(made) >= 475
    log = (tmp_path / "ppo_training.log").read_text()
    assert log.count("no scheduler plays CartPole-v1") == 1
    assert log.count("preset of CartPole-v1: num_envs=16 learning_rate=0.001") == 1
    found = rlvitals.diagnose(tmp_path)
    assert found.verdict.word.value == "converged"
    assert not [rule for rule, one in found.findings if one.severity > rlvitals.Severity.NOTE]


def test_a_simulation_in_c_is_saved_but_for_itself(tmp_path):
    pytest.importorskip("Box2D")
    small = {"training.num_envs": 2, "training.total_steps": 1500}
    trained(tmp_path, "LunarLander-v3", **small)
    trained(tmp_path, "LunarLander-v3", **small | {"training.total_steps": 3000})
    log = (tmp_path / "ppo_training.log").read_text()
    assert "resumed at step 2,048" in log
    assert "more like these were not saved" in log


@pytest.mark.soak
@pytest.mark.parametrize(
    ("env", "least"),
    [("CartPole-v1", 475), ("Acrobot-v1", -90), ("Pendulum-v1", -190), ("LunarLander-v3", 200)],
)
def test_a_control_task_is_learned(tmp_path, env, least):
    if env.startswith("Lunar"):
        pytest.importorskip("Box2D")
    made = trained(tmp_path, env)
    assert mean_return(made) >= least
    found = rlvitals.diagnose(tmp_path)
    assert not [rule for rule, one in found.findings if one.severity > rlvitals.Severity.NOTE]


@pytest.mark.soak
def test_the_cluster_is_learned(tmp_path):
    made = trained(tmp_path, CLUSTER, **{"training.total_steps": 1_500_000})
    found = evaluate.on_cluster(made, seeds=range(3), envs=32, steps=1200, baselines=True)
    means = {name: sum(one.mean for one in each) / len(each) for name, each in found.items()}
    assert means["ppo"] < 0.9 * means["lor"]

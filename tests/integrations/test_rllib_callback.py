"""RLlib's PPO, trained by hand and by Tune: in `make soak`, whose packages have Ray."""

import json

import pytest
from recorded import Recorded

from rlvitals.cli import main

pytest.importorskip("ray", reason="needs Ray: pip install 'rlvitals[soak]'")
pytest.importorskip("ray.rllib", reason="needs RLlib: pip install 'rlvitals[soak]'")
pytestmark = [pytest.mark.soak, pytest.mark.filterwarnings("ignore", "error:::rlvitals")]


@pytest.fixture(scope="module")
def config():
    import ray
    from ray.rllib.algorithms.ppo import PPOConfig

    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")
    yield (
        lambda: (
            PPOConfig()
            .environment("CartPole-v1")
            .env_runners(num_env_runners=0)
            .training(train_batch_size_per_learner=200, minibatch_size=50, num_epochs=1, lr=1e-3)
            .debugging(seed=0)
        )
    )
    ray.shutdown()


def test_an_algorithm_trained_by_hand_is_recorded(config, tmp_path):
    from rlvitals.integrations import rllib as vitals

    algorithm = config().callbacks(vitals.record(tmp_path, name="cartpole")).build_algo()
    results = [algorithm.train() for _ in range(3)]
    algorithm.callbacks[0].run.finish()
    algorithm.stop()
    found = Recorded.read(tmp_path)
    returns = [
        (int(r["env_runners"]["num_env_steps_sampled_lifetime"]),
         r["env_runners"]["episode_return_mean"]) for r in results
    ]  # fmt: skip
    assert found.series("env_runners/episode_return_mean") == returns
    assert returns[-1][0] >= 600
    assert len(found.series("learners/default_policy/policy_loss")) == 3
    assert found.about.settings["lr"] == 1e-3
    assert found.about.framework == "rllib"
    assert not [key for row in found.rows() for key in row if key.startswith("config")]


@pytest.mark.parametrize("options", [{}, {"group": "rates"}])
def test_tune_leaves_a_run_in_each_trial_s_folder(config, tmp_path, capsys, options):
    from ray import tune
    from ray.rllib.algorithms.ppo import PPO

    from rlvitals.integrations import rllib as vitals

    space = config().training(lr=tune.grid_search([1e-3, 1e-4])).to_dict()
    tune.Tuner(
        PPO,
        param_space=space,
        run_config=tune.RunConfig(
            storage_path=str(tmp_path), name="two", stop={"training_iteration": 2}, verbose=0,
            callbacks=[vitals.TuneRecord(**options)],
        ),
    ).fit()  # fmt: skip
    trials = sorted(path.parent for path in tmp_path.glob("two/*/run.json"))
    assert len(trials) == 2
    for trial in trials:
        run = Recorded.read(trial)
        told = [json.loads(line) for line in (trial / "result.json").read_text().splitlines()]
        assert [value for _, value in run.series("env_runners/episode_return_mean")] == [
            row["env_runners"]["episode_return_mean"] for row in told
        ]
        assert run.about.group == options.get("group", "two")
        assert run.of("finish")[0].facts["status"] == "finished"
    assert {Recorded.read(trial).about.settings["lr"] for trial in trials} == {1e-3, 1e-4}
    capsys.readouterr()  # what Tune prints
    assert main(["triage", str(tmp_path), "--json"]) in {0, 1, 4}
    rows = json.loads(capsys.readouterr().out)["runs"]
    assert [row["group"] for row in rows] == [options.get("group", "two")] * 2

"""Trials of the real Ray Tune: recorded by ours, and read from the files that Tune writes."""

import json

import pytest

import rlvitals
from rlvitals.cli import main

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'rlvitals[soak]'")
tune = pytest.importorskip("ray.tune", reason="Ray Tune is not installed")
pytestmark = [pytest.mark.soak, pytest.mark.filterwarnings("default")]  # Ray's own warnings


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    """Train four trials; return the folder of ours and that of Tune's."""
    folder = tmp_path_factory.mktemp("tune")
    ours = folder / "ours"

    def train(config):
        from ray import tune

        import rlvitals

        with rlvitals.start(ours / tune.get_context().get_trial_id(), settings=config) as run:
            for step in range(1, 61):
                value = 20.0 + 400.0 * config["lr"] * step
                run.log(1000 * step, {"return": value})
                tune.report({"episode_reward_mean": value, "timesteps_total": 1000 * step})

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AIR_NEW_OUTPUT", "0")
        _tune(train, folder / "ray")
    return ours, folder / "ray"


def _tune(train, folder):
    ray.init(
        num_cpus=1, include_dashboard=False, logging_level="error", log_to_driver=False,
        object_store_memory=100_000_000,
    )  # fmt: skip
    try:
        config = tune.RunConfig(name="sweep", storage_path=str(folder), verbose=0)
        space = {"lr": tune.grid_search([0.0, 1e-3, 1e-2, 2e-2])}
        tune.Tuner(train, param_space=space, run_config=config).fit()
    finally:
        ray.shutdown()


def test_trials_are_one_group_in_our_runs_and_in_tune_s_own_files(experiment, capsys):
    for root in experiment:
        assert main(["triage", str(root), "--json"]) in {0, 1, 4}
        rows = json.loads(capsys.readouterr().out)["runs"]
        assert [row["group"] for row in rows] == ["sweep"] * 4
        assert main(["compare", str(root), "--by", "group", "--json"]) == 0
        groups = json.loads(capsys.readouterr().out)["groups"]
        assert len(groups) == 1
    ours, _ = experiment
    assert main(["runs", str(ours), "--quick", "--search", "group:sweep", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(listed) == 4
    assert all(run["job"].startswith("Ray job") for run in listed)


def test_tune_s_files_have_the_numbers_of_ours(experiment):
    ours, theirs = experiment
    series = [
        sorted(
            (log.series[key].values.tolist(), log.series[key].steps.tolist())
            for folder in sorted(root.rglob(name))
            for log in rlvitals.read(folder.parent)
            if (key := next((k for k in keys if k in log.series), None))
        )
        for root, name, keys in (
            (ours, "run.json", ("return",)),
            (theirs, "result.json", ("episode_reward_mean",)),
        )
    ]
    assert series[0] == series[1]
    assert len(series[0]) == 4


def test_a_run_outside_of_a_trial_starts_no_ray(tmp_path):
    """Ray starts itself where its context is asked for."""
    ray.shutdown()
    with rlvitals.start(tmp_path / "run") as run:
        run.log(1, {"return": 1.0})
    assert not ray.is_initialized()

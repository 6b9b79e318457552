"""What a training measures on a fixed set while it goes: and that it is none of the training's."""

import json
from dataclasses import replace

import numpy as np
import programs
import pytest
from effort import sampled

import rlvitals
from rlvitals.cli import main
from rlvitals.trainers import schema
from rlvitals.trainers.ppo import cluster, evaluate, held_out_evaluation
from rlvitals.trainers.ppo.cluster.config import SCHEDULERS
from rlvitals.trainers.ppo.config import Config

EVAL = {
    "evaluation.held_out_clusters": 4,
    "evaluation.held_out_decisions": 24,
    "evaluation.interval": 200,
}
SERVED = {**programs.CLUSTER, **EVAL}
PLAYED = {**programs.CARTPOLE, "evaluation.held_out_episodes": 5, "evaluation.interval": 200}


def numbers(folder):
    """Every evaluated number of a run, by name and step."""
    series = rlvitals.diagnose(folder).trace.series
    return {
        name: dict(zip(held.steps.tolist(), held.values.tolist(), strict=True))
        for name, held in series.items()
        if name.startswith(("outcome/eval_", "outcome/baseline_"))
    }


@pytest.mark.parametrize("said", sampled([SERVED, PLAYED], 2), ids=["cluster", "episodes"])
def test_the_training_is_bit_for_bit_what_it_is_without(tmp_path, said):
    programs.run(tmp_path / "with", said)
    programs.run(tmp_path / "without", {**said, "evaluation.enable": False})
    one, two = (programs.last(tmp_path / name) for name in ("with", "without"))
    assert numbers(tmp_path / "with")
    assert not numbers(tmp_path / "without")
    assert one == two


@pytest.mark.soak
@pytest.mark.parametrize("said", sampled([SERVED, PLAYED], 2), ids=["cluster", "episodes"])
def test_killed_and_resumed_it_says_what_it_says_of_a_run_that_never_stopped(tmp_path, said):
    programs.run(tmp_path / "whole", said)
    made = programs.training(tmp_path / "cut", said)
    before, made.ppo.on_step = made.ppo.on_step, lambda done, step: stop(made, done, step)

    def stop(made, done, step):
        before(done, step)
        if made.ppo.global_step > 500:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.run()
    programs.run(tmp_path / "cut", said)
    assert numbers(tmp_path / "cut") == numbers(tmp_path / "whole")


def test_it_is_measured_before_the_first_update_and_at_the_end(tmp_path):
    made = programs.run(tmp_path, SERVED)
    steps = [*numbers(tmp_path)["outcome/eval_return"]]
    assert steps[0] == 0
    assert steps[-1] == made.ppo.global_step
    passed = [step // 200 for step in steps]
    assert passed == [0, 1, 2, 3, 4]


@pytest.mark.soak
def test_the_numbers_are_those_of_the_policy_and_of_the_baseline_on_the_same_arrivals(tmp_path):
    programs.run(tmp_path, SERVED)
    trained = evaluate.load(tmp_path)
    config, known = trained.config.environment, cluster.baselines()
    busy = cluster.busy(known["lor/speed"], config, seed=held_out_evaluation.HELD_OUT_SEED, envs=4)
    mine, theirs = (
        cluster.evaluate(one, config, envs=4, steps=24, begin=busy)
        for one in (trained.schedule, known["lor"])
    )
    told = {name: [*values.values()] for name, values in numbers(tmp_path).items()}
    assert told["outcome/eval_return"][-1] == mine.reward * config.horizon
    assert told["outcome/eval_latency"][-1] == mine.mean
    assert told["outcome/eval_tail_latency/p95"][-1] == mine.p95
    assert told["outcome/baseline_return"] == [theirs.reward * config.horizon]
    assert told["outcome/baseline_latency"] == [theirs.mean]
    assert told["outcome/baseline_tail_latency/p99"] == [theirs.p99]


def test_the_reward_is_that_of_the_decisions_that_count():
    config = cluster.ClusterConfig(window=16, load=2.0)
    found = cluster.evaluate(cluster.baselines()["lor"], config, seed=3, envs=2, steps=40)
    ran = cluster.Cluster(replace(config, horizon=2**20), 2)
    generator = np.random.default_rng([cluster.evaluation.EVALUATION_STREAM, 3])
    ran.reset(generator)
    paid = [
        ran.step(cluster.baselines()["lor"](ran.observe(), ran), generator).reward
        for _ in range(40)
    ]
    assert found.reward == pytest.approx(np.mean(paid[10:]))
    assert found.reward < 0


def test_episodes_are_the_same_every_time(tmp_path):
    still = {"ppo_config.learning_rate": 0.0, "ppo_config.normalise_observations": False}
    programs.run(tmp_path, {**PLAYED, **still})
    found = numbers(tmp_path)
    assert found["outcome/eval_return"] == found["outcome/eval_episode_length"]  # 1 for a step
    assert len({*found["outcome/eval_return"].values()}) == 1  # the policy never moved


def test_sizes_that_show_nothing_are_refused():
    for said in ({"evaluation.held_out_clusters": 0}, {"evaluation.held_out_decisions": 4}):
        with pytest.raises(rlvitals.UsageError, match="show nothing"):
            schema.load(Config, None, said)


def test_every_baseline_can_be_asked_for():
    assert tuple(cluster.baselines()) == SCHEDULERS


# -- the best checkpoint --------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize(("ranked", "metric"), [("auto", "latency"), ("eval_return", "return")])
def test_the_best_checkpoint_is_the_one_that_was_evaluated_best(tmp_path, capsys, ranked, metric):
    """However seldom a checkpoint is due: what was evaluated is there to be kept."""
    rare = {**SERVED, "checkpointing.interval": 10_000, "checkpointing.keep": 1}
    said = {"checkpointing.keep_best": ranked, "ppo_config.learning_rate": 0.05}
    programs.run(tmp_path, {**rare, **said})
    found = numbers(tmp_path)[f"outcome/eval_{metric}"]
    del found[0]  # before the first update there is nothing to save
    sign = -1 if metric == "latency" else 1
    best = max(found, key=lambda step: (sign * found[step], step))
    kept = {one.step: one for one in rlvitals.Checkpoints(tmp_path).all()}
    assert kept.keys() == {best, max(found)}
    assert kept[best].manifest.metrics[f"eval_{metric}"] == found[best]
    assert evaluate.load(tmp_path, best=True).step == best
    assert evaluate.load(tmp_path, step=max(found)).step == max(found)
    capsys.readouterr()
    play = ["--seeds", "1", "--envs", "2", "--steps", "16", "--json"]
    assert main(["evaluate", str(tmp_path), "--checkpoint", "best", *play]) == 0
    assert json.loads(capsys.readouterr().out)["step"] == best


def test_without_evaluations_the_best_is_by_the_return(tmp_path):
    programs.run(tmp_path, {**programs.CARTPOLE, "checkpointing.keep": 1})
    found = rlvitals.Checkpoints(tmp_path).best()
    assert found.manifest.facts["kept"]["best"] == ["ep_return", "max"]
    programs.run(tmp_path / "none", **{"checkpointing.keep_best": ""})
    with pytest.raises(rlvitals.UsageError, match=r"no whole checkpoint that was measured"):
        evaluate.load(tmp_path / "none", best=True)
    with pytest.raises(rlvitals.UsageError, match=r"by eval_return: nothing is evaluated"):
        programs.run(tmp_path / "odd", **{"checkpointing.keep_best": "eval_return"})
    assert not (tmp_path / "odd").exists()

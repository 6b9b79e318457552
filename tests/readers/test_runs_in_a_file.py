"""Several runs in one table or one document: by names, by columns, by restarts."""

import json

import pytest
from loading import read_log

import rlvitals
from rlvitals.readers import table_runs
from rlvitals.readers.discovery import sources
from rlvitals.readers.formats import document_runs, run_labels

RISING = [float(n) for n in range(30)]
FALLING = RISING[::-1]
ROWS = [{"episode": n + 1, "reward": v, "epsilon": 0.1} for n, v in enumerate(RISING)]


def values(path, key):
    """Return the values of a key, by run."""
    runs = sources.find(path)
    return {run.name: sources.read(run)[0].series[key].values.tolist() for run in runs}


def document(tmp_path, content, name="results.json"):
    path = tmp_path / name
    path.write_text(json.dumps(content, indent=2))
    return path


def table(tmp_path, head, rows, name="results.csv"):
    path = tmp_path / name
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows), ""]))
    return path


@pytest.mark.parametrize(
    ("content", "key"),
    [
        ({"DQN": {"rewards": RISING, "lr": 0.1}, "PPO": {"rewards": FALLING}}, "rewards"),
        ({"results": {"DQN": {"rewards": RISING}, "PPO": {"rewards": FALLING}}}, "rewards"),
        (
            {
                "DQN": [{"episode": n, "score": v} for n, v in enumerate(RISING)],
                "PPO": [{"episode": n, "score": v} for n, v in enumerate(FALLING)],
            },
            "score",
        ),
    ],
)
def test_a_document_of_algorithms(tmp_path, content, key):
    by_run = values(document(tmp_path, content), key)
    assert by_run == {"DQN": RISING, "PPO": FALLING}


def test_lists_named_for_their_algorithm_or_seed(tmp_path):
    path = document(tmp_path, {"dqn_rewards": RISING, "ppo_rewards": FALLING, "gamma": 0.9})
    assert values(path, "rewards") == {"dqn": RISING, "ppo": FALLING}
    assert sources.read(sources.find(path)[1])[0].settings["gamma"] == 0.9
    path = document(tmp_path, {"seed_0": {"returns": RISING}, "seed_1": {"returns": FALLING}})
    assert values(path, "returns") == {"seed_0": RISING, "seed_1": FALLING}


def test_lists_whose_file_names_their_measure(tmp_path):
    path = document(tmp_path, {"dqn": RISING, "sarsa": FALLING}, "episode_rewards.json")
    assert values(path, "episode_rewards") == {"dqn": RISING, "sarsa": FALLING}


def test_a_policy_that_does_not_learn_is_no_run(tmp_path):
    content = {
        "dqn": {"rewards": RISING},
        "ppo": {"rewards": FALLING},
        "random": {"rewards": [1, 2]},
    }
    path = document(tmp_path, content)
    assert set(values(path, "rewards")) == {"dqn", "ppo"}
    notes = sources.read(sources.find(path)[0])[0].notes
    assert "not judged, it does not learn: random" in notes


def test_parts_of_one_run_stay_together(tmp_path):
    content = {"train": {"reward": RISING}, "eval": {"reward": FALLING}}
    log = read_log(document(tmp_path, content))
    assert set(log.series) == {"train/reward", "eval/reward"}


def test_evaluations_after_training_are_no_curve(tmp_path):
    compared = {"deterministic": {"rewards": [9.0] * 10}, "stochastic": {"rewards": [8.0] * 10}}
    content = {"rewards": RISING, "evaluation": {"rewards": [9.0] * 5}, "eval_comparison": compared}
    log = read_log(document(tmp_path, content))
    assert set(log.series) == {"rewards"}
    assert any("evaluations without steps are not read" in note for note in log.notes)


def test_rows_under_a_key(tmp_path):
    path = document(tmp_path, {"q_learning": ROWS, "round_robin": [], "lr": 0.1})
    log = read_log(path)
    assert log.series["reward"].steps.tolist() == list(range(1, 31))
    assert log.series["reward"].values.tolist() == RISING
    assert (log.step_unit, log.settings["lr"]) == ("episodes", 0.1)


def test_rows_of_evaluations(tmp_path):
    evaluations = [{"episode": 10 * n, "mean_reward": v} for n, v in enumerate(FALLING)]
    losses = [{"episode": 10 * n, "loss": 0.5} for n in range(30)]
    path = document(tmp_path, {"eval_history": evaluations, "loss_history": losses})
    (trace,) = rlvitals.runs(path)
    assert trace["outcome/eval_return"].values.tolist() == FALLING
    assert len(trace["optimiser/loss"]) == 30


def test_rows_that_count_other_steps_are_left_out_and_said(tmp_path):
    evaluations = [{"timesteps": 1000 * n, "mean_reward": v} for n, v in enumerate(FALLING)]
    log = read_log(document(tmp_path, {"history": ROWS, "eval_history": evaluations}))
    assert "eval/mean_reward" not in log.series
    assert any("`eval_history` is not read" in note for note in log.notes)


def test_a_document_that_is_cut_short(tmp_path):
    path = document(tmp_path, {"episodes": ROWS, "lr": 0.1, "eval": ROWS})
    path.write_text(path.read_text()[:-40])
    log = read_log(path)
    assert log.series["reward"].values.tolist() == RISING
    assert any("cut short" in note for note in log.notes)


def test_a_table_of_algorithms_and_seeds(tmp_path):
    rows = [(a, s, n, v + s) for a in ("dqn", "ppo") for s in (0, 1) for n, v in enumerate(RISING)]
    by_run = values(table(tmp_path, "algorithm,seed,episode,reward", rows), "reward")
    assert list(by_run) == ["dqn, seed 0", "dqn, seed 1", "ppo, seed 0", "ppo, seed 1"]
    assert by_run["ppo, seed 1"] == [v + 1 for v in RISING]


def test_a_table_with_a_column_an_algorithm(tmp_path):
    rows = [(n, up, down) for n, (up, down) in enumerate(zip(RISING, FALLING, strict=True))]
    by_run = values(table(tmp_path, "episode,dqn_reward,ppo_reward", rows), "reward")
    assert by_run == {"dqn": RISING, "ppo": FALLING}


def test_a_counter_that_starts_again_is_another_attempt(tmp_path):
    rows = [*enumerate(RISING), *enumerate(FALLING[:12])]
    path = table(tmp_path, "episode,reward", rows)
    assert values(path, "reward") == {"attempt 1": RISING, "attempt 2": FALLING[:12]}
    first, second = rlvitals.runs(path)
    assert first.lifecycle.attempts == second.lifecycle.attempts == 1


def test_an_attempt_that_grows(tmp_path):
    path = table(tmp_path, "episode,reward", [*enumerate(RISING), *enumerate(FALLING[:12])])
    _, run = sources.find(path)
    ((_, reader),) = run.files
    _, cursor = reader.read(path, None)
    with path.open("a") as file:
        file.write("12,7.5\n")
    log, _ = reader.read(path, cursor)
    assert log.series["reward"].values.tolist() == [7.5]


def test_a_run_that_was_resumed_is_one(tmp_path):
    rows = [*enumerate(RISING), *((n, 1.0) for n in range(20, 40))]
    assert len(sources.find(table(tmp_path, "episode,reward", rows))) == 1


def test_a_count_that_starts_again_is_not_called_resumed(tmp_path):
    path = tmp_path / "metrics.jsonl"
    rows = [{"step": n, "reward": v} for values in (RISING, FALLING) for n, v in enumerate(values)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (trace,) = rlvitals.runs(path)
    assert "the count starts again at step 0: the later attempt is judged" in trace.notes


def test_players_of_one_run_are_no_runs(tmp_path):
    rows = [(n, agent, v) for n, v in enumerate(RISING) for agent in ("left", "right")]
    assert len(sources.find(table(tmp_path, "episode,agent,reward", rows))) == 1


def test_steps_within_an_episode_are_not_the_axis(tmp_path):
    rows = [(episode, step, 1.0) for episode in range(1, 9) for step in range(1, 21)]
    log = read_log(table(tmp_path, "Episode,Step,Reward", rows))
    assert log.step_unit == "episodes"
    assert log.series["Reward"].steps.tolist() == [episode for episode, _, _ in rows]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("dqn_rewards", ("dqn", "rewards")),
        ("returns/seed_3", ("seed_3", "returns")),
        ("Double DQN", ("double_dqn", "")),
        ("Q-Learning", ("qlearning", "")),
        ("actor_loss", ("", "actor_loss")),
        ("expected_return", ("", "expected_return")),
        ("episode_rewards", ("", "episode_rewards")),
    ],
)
def test_labels(key, expected):
    assert run_labels.split_label(key) == expected


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("vanilla_dqn_scores", "scores"),
        ("rewards_cartpole_v1_seed_3", "rewards"),
        ("episode_rewards", "episode_rewards"),
        ("reward_std_ppo", "reward_std"),
        ("pendulum_2021", ""),
    ],
)
def test_measures_of_file_names(stem, name):
    assert run_labels.measure_name(stem) == name


MANY = 4000  # of each kind: work that grows with their product takes minutes, or all the memory


def test_settings_and_steps_of_thousands_of_runs_are_not_tried_on_each(tmp_path):
    content = {f"run{n}": {"rewards": [n, n + 1], "lr": n} for n in range(MANY)}
    content |= {f"counter{n}": {"step": [1, 2]} for n in range(MANY)}
    runs = sources.find(document(tmp_path, content))
    assert len(runs) == 200


def test_settings_are_those_of_the_run_s_own_name_and_of_none():
    leaves = {"a/b/rewards": RISING, "a/c/rewards": FALLING, "a/b/lr": 1, "a/x": 2, "a/c/d/lr": 3}
    runs = document_runs.contents(leaves, "values", [])
    assert {name: run.settings for name, run in runs.items()} == {
        "b": {"lr": 1, "a/x": 2},
        "c": {"d/lr": 3, "a/x": 2},
    }


def test_thousands_of_counters_beside_thousands_of_rows():
    first = {f"part{n}/step": n for n in range(MANY)}
    rows = [{**first, "episode": 1, "reward": 0.0}]
    rows += [{"episode": n, "reward": n / 2} for n in range(2, 5 * MANY)]
    (run,) = document_runs.contents({"history": rows}, "values", []).values()
    assert run.columns.series()["reward"].steps[-1] == 5 * MANY - 1


def test_a_table_of_thousands_of_labelled_columns_is_cut_to_the_first_runs():
    names = ["episode", *(f"dqn_seed{n}_reward" for n in range(MANY))]
    runs = table_runs.selections(names, ["episode"], "", ",")
    assert len(runs) == table_runs.MAX_TABLE_RUNS


def test_columns_that_are_algorithms_are_runs_of_what_the_file_is_named_for(tmp_path):
    rows = list(zip(range(30), RISING, FALLING, FALLING, strict=True))
    path = table(tmp_path, "Episode,D-PER-DQN,MS-DDQN,Random", rows, "training_rewards.csv")
    by_run = values(path, "training_rewards")
    assert [*by_run.values()] == [RISING, FALLING]
    assert {name.rpartition("/")[2] for name in by_run} == {"D-PER-DQN", "MS-DDQN"}


@pytest.mark.parametrize("head", ["Episode,DQN,width", "Episode,DQN,loss", "Episode,width,height"])
def test_columns_of_which_one_is_no_algorithm_are_no_runs(head):
    names = head.split(",")
    assert not table_runs.selections(names, names[:1], "0,1,2\n" * 9, ",", "training_rewards")

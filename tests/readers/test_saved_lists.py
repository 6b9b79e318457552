"""What scripts save at the end of training: arrays, documents of lists, tables without names."""

import json
import pickle
from collections import defaultdict, deque
from pathlib import Path

import numpy as np
import pytest
from loading import read_log

import rlvitals
from rlvitals.errors import UnreadableLog
from rlvitals.readers import json_lists
from rlvitals.readers.discovery import sources
from rlvitals.readers.formats import plain_pickle
from rlvitals.readers.select import claim, reader_of

RISING = np.linspace(-20.0, 20.0, 200)


def jsonpickled(value):
    return {"dtype": "float64", "py/object": "numpy.float64", "value": value}


def info(values):
    """Return `info.json` as Sacred writes what PyMARL's logger appends."""
    steps = [n * 500 for n in range(len(values))]
    tensor = {"py/reduce": [{"py/function": "torch._utils._rebuild_tensor_v2"}]}
    return {
        "ep_length_mean": [40.0] * len(values), "ep_length_mean_T": steps,
        "grad_norm": [tensor] * len(values), "grad_norm_T": steps,
        "return_mean": [jsonpickled(v) for v in values], "return_mean_T": steps,
        "test_return_mean": list(values), "test_return_mean_T": steps,
    }  # fmt: skip


def test_the_info_of_a_sacred_run(tmp_path):
    path = tmp_path / "4" / "info.json"
    path.parent.mkdir()
    path.write_text(json.dumps(info(RISING), sort_keys=True, indent=2))
    log = read_log(path)
    assert log.source == "sacred"
    assert log.series["return_mean"].values.tolist() == RISING.tolist()
    assert log.series["return_mean"].steps[:3].tolist() == [0, 500, 1000]
    assert "return_mean_T" not in log.series
    assert "grad_norm" not in log.series
    assert any("grad_norm" in note for note in log.notes)
    (trace,) = rlvitals.runs(tmp_path)
    assert {"outcome/return", "outcome/eval_return", "outcome/episode_length"} <= set(trace.series)
    assert trace.step_unit == "environment steps"


def test_the_times_of_a_sacred_run(tmp_path):
    path = tmp_path / "metrics.json"
    held = {"steps": [5, 10], "timestamps": ["2026-01-01T10:00:00", None], "values": [1.5, 2.5]}
    path.write_text(json.dumps({"return_mean": held}))
    series = read_log(path).series["return_mean"]
    assert series.times[0] == 1767261600.0
    assert np.isnan(series.times[1])
    assert series.values.tolist() == [1.5, 2.5]


def test_evaluations_are_means_over_their_episodes(tmp_path):
    results = np.array([[1.0, 3.0], [5.0, 7.0]])
    np.savez(
        tmp_path / "evaluations.npz",
        timesteps=[1000, 2000],
        results=results,
        ep_lengths=results.astype(int),
        successes=results > 2,
    )
    log = read_log(tmp_path / "evaluations.npz")
    assert log.series["eval/mean_reward"].values.tolist() == [2.0, 6.0]
    assert log.series["eval/mean_reward"].steps.tolist() == [1000, 2000]
    assert log.series["eval/success_rate"].values.tolist() == [0.5, 1.0]
    (trace,) = rlvitals.runs(tmp_path)
    assert "outcome/eval_return" in trace.series


def test_evaluations_belong_to_the_run_beside_them(tmp_path):
    np.savez(tmp_path / "evaluations.npz", timesteps=[1000], results=[[1.0]], ep_lengths=[[5]])
    rows = "time/total_timesteps,train/loss\n1000,0.5\n2000,0.25\n"
    (tmp_path / "progress.csv").write_text(rows)
    (run,) = sources.find(tmp_path)
    assert {file.name for file, _ in run.files} == {"progress.csv", "evaluations.npz"}


@pytest.mark.parametrize(
    ("name", "key"), [("episode_rewards", "episode_rewards"), ("td3", "values")]
)
def test_an_array_is_one_number_a_row(tmp_path, name, key):
    path = tmp_path / f"{name}.npy"
    np.save(path, RISING)
    series = read_log(path).series[key]
    assert series.values.tolist() == RISING.tolist()
    assert series.steps.tolist() == list(range(1, 201))
    (trace,) = rlvitals.runs(path)
    assert "outcome/return" in trace.series


def test_the_shorter_axis_of_an_array_is_averaged(tmp_path):
    path = tmp_path / "rewards.npy"
    np.save(path, np.stack([RISING, RISING + 2.0]))
    log = read_log(path)
    np.testing.assert_allclose(log.series["rewards"].values, RISING + 1.0)
    assert any("mean over its axis 0 of 2" in note for note in log.notes)


def test_an_array_of_objects_gives_what_is_plain_and_calls_nothing(tmp_path):
    path = tmp_path / "rewards.npy"
    np.save(path, np.array(RISING.tolist(), dtype=object), allow_pickle=True)
    assert read_log(path).series["rewards"].values.tolist() == RISING.tolist()
    history = {"score": RISING.tolist(), "lengths": [[1], [2, 3]], "model": Call(tmp_path / "x")}
    np.save(path, history, allow_pickle=True)
    assert list(read_log(path).series) == ["score"]
    np.save(path, np.array([{"a": 1}, None], dtype=object), allow_pickle=True)
    with pytest.raises(UnreadableLog, match="no array that is a curve"):
        read_log(path)
    assert not (tmp_path / "x").exists()


def test_a_header_that_claims_more_than_there_is(tmp_path):
    path = tmp_path / "rewards.npy"
    np.save(path, RISING)
    path.write_bytes(path.read_bytes().replace(b"(200,)", b"(9**9,)"[:6].replace(b"**", b"99")))
    with pytest.raises(UnreadableLog):
        read_log(path)


def test_arrays_of_a_folder_need_a_measures_name(tmp_path):
    np.save(tmp_path / "observations.npy", RISING)
    assert claim(tmp_path / "observations.npy") is None


def test_lists_with_settings_beside_them(tmp_path):
    path = tmp_path / "training_rewards.json"
    held = {"gamma": 0.99, "algorithm": "dqn", "training_rewards": list(RISING)}
    path.write_text(json.dumps(held, indent=2))
    log = read_log(path)
    assert log.settings["gamma"] == 0.99
    assert log.series["training_rewards"].values.tolist() == RISING.tolist()


def test_numbers_under_their_steps_are_a_curve(tmp_path):
    path = tmp_path / "grpo_metrics.json"
    scores = {str(n): 36.0 + n / 10 for n in (10, 20, 30)}
    others = {"step": [*range(1, 31)], "loss": [0.1] * 30, "chosen": {"0": 1.0, "1": 2.0}}
    path.write_text(json.dumps({**others, "dev_chrf": scores}))
    log = read_log(path)
    curve = log.series["eval/dev_chrf"]
    assert (curve.steps.tolist(), curve.values.tolist()) == ([10, 20, 30], [37.0, 38.0, 39.0])
    assert log.settings == {"chosen/0": 1.0, "chosen/1": 2.0}
    assert "outcome/eval_return" in rlvitals.runs(path)[0].series


def test_numbers_in_lists_of_their_own_are_numbers(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"episode_returns": [[n / 4] for n in range(12)]}))
    assert read_log(path).series["episode_returns"].values.tolist() == [n / 4 for n in range(12)]


def test_a_list_in_a_text_file_is_one_number_an_episode(tmp_path):
    path = tmp_path / "rewards.txt"
    path.write_text("[" + ",\n ".join(map(repr, RISING.tolist())) + "]\n")
    trace = rlvitals.open(path)
    (name,) = trace.series
    assert trace[name].values.tolist() == RISING.tolist()


def test_objects_under_their_steps_are_rows(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps({str(n): {"reward": n / 4, "loss": 0.5} for n in range(1, 13)}))
    reward = read_log(path).series["reward"]
    assert (reward.steps.tolist(), reward.values[-1]) == ([*range(1, 13)], 3.0)


def test_a_list_that_counts_is_the_axis(tmp_path):
    path = tmp_path / "history.json"
    held = {"episode": [10, 20, 30], "reward": [1.0, float("nan"), 3.0], "loss": [0.5, 0.25]}
    path.write_text(json.dumps({"train": held}))
    log = read_log(path)
    assert log.series["train/reward"].steps.tolist() == [10, 20, 30]
    assert log.series["train/loss"].steps.tolist() == [1, 2]
    assert np.isnan(log.series["train/reward"].values[1])


def test_a_curve_that_tensorboard_downloaded(tmp_path):
    path = tmp_path / "run-id53-tag-Epoch_reward.json"
    path.write_text(json.dumps([[1575580452.08, 1, 83.9], [1575580829.43, 2, -575.2]]))
    series = read_log(path).series["Epoch_reward"]
    assert series.steps.tolist() == [1, 2]
    assert series.times[0] == 1575580452.08


def test_one_column_without_a_name(tmp_path):
    path = tmp_path / "scores.csv"
    np.savetxt(path, RISING)
    assert claim(path).name == "headerless-csv"
    assert read_log(path).series["scores"].values.tolist() == pytest.approx(RISING.tolist())


def test_one_column_with_a_name(tmp_path):
    path = tmp_path / "rewards4.csv"
    path.write_text("Total Reward\n" + "".join(f"{v}\n" for v in RISING))
    (trace,) = rlvitals.runs(path)
    assert "outcome/return" in trace.series
    assert read_log(path).series["Total Reward"].values.tolist() == RISING.tolist()


def test_the_first_of_several_columns_may_be_the_step(tmp_path):
    path = tmp_path / "rewards.csv"
    path.write_text("".join(f"{n * 10},{n / 2}\n" for n in range(9)))
    series = read_log(path).series["rewards"]
    assert series.steps.tolist() == [n * 10 for n in range(9)]


def test_rows_that_end_with_a_comma(tmp_path):
    text = "".join(f"{n % 5 / 5}, {v - 100},\n" for n, v in enumerate(RISING))
    (tmp_path / "ddpg_log.txt").write_text(text)
    log = read_log(tmp_path / "ddpg_log.txt")
    assert log.series["reward"].values.tolist() == (RISING - 100).tolist()
    assert any("negative numbers is taken for the reward" in note for note in log.notes)
    (tmp_path / "track.txt").write_text(text)
    assert set(read_log(tmp_path / "track.txt").series) == {"values (1)", "values (2)"}


@pytest.mark.parametrize("form", ["{},{}\n", "[{}, {}]"])
def test_one_row_of_numbers(tmp_path, form):
    path = tmp_path / "rewards.txt"
    half = len(RISING) // 2
    pieces = [", ".join(map(str, values.tolist())) for values in (RISING[:half], RISING[half:])]
    path.write_text(form.format(*pieces))
    assert claim(path).name == "headerless-csv"
    assert read_log(path).series["rewards"].values.tolist() == RISING.tolist()


def test_a_row_without_an_end_may_end_within_a_number(tmp_path):
    path = tmp_path / "rewards.csv"
    path.write_text(",".join(map(str, RISING.tolist())))
    log = read_log(path)
    assert log.series["rewards"].values.tolist() == RISING[:-1].tolist()
    assert "no end of the row: the last number is left out" in log.notes


def test_columns_that_numpy_aligned(tmp_path):
    path = tmp_path / "rewards.txt"
    np.savetxt(path, np.column_stack([np.arange(200), 1000 * np.arange(200), RISING]))
    assert claim(path).name == "headerless-csv"
    series = read_log(path).series["rewards"]
    assert series.steps.tolist() == list(range(0, 200_000, 1000))
    assert series.values.tolist() == RISING.tolist()


def test_a_wide_table_without_names_is_data(tmp_path):
    np.savetxt(tmp_path / "rewards.csv", np.ones((20, 30)), delimiter=",")
    assert claim(tmp_path / "rewards.csv") is None


def test_a_frame_without_column_names(tmp_path):
    path = tmp_path / "rewards.csv"
    path.write_text(",0\n" + "".join(f"{n},{v}\n" for n, v in enumerate(RISING)))
    series = read_log(path).series["rewards"]
    assert series.steps.tolist() == list(range(200))
    assert series.values.tolist() == RISING.tolist()


@pytest.mark.parametrize("rows", [RISING.tolist(), [RISING.tolist()] * 3])
def test_a_document_that_is_a_list_of_numbers(tmp_path, rows):
    path = tmp_path / "rewards.json"
    path.write_text(json.dumps(rows))
    assert claim(path).name == "json-lists"
    assert read_log(path).series["rewards"].values.tolist() == pytest.approx(RISING.tolist())


def test_a_document_of_steps_and_values(tmp_path):
    path = tmp_path / "reward_history.json"
    path.write_text(json.dumps([[10 * n, v] for n, v in enumerate(RISING.tolist())]))
    assert read_log(path).series["reward_history"].steps.tolist() == list(range(0, 2000, 10))


def test_an_array_whose_file_names_the_algorithm(tmp_path):
    np.save(tmp_path / "vanilla_dqn_scores.npy", RISING)
    (trace,) = rlvitals.runs(tmp_path / "vanilla_dqn_scores.npy")
    assert trace["outcome/score"].values.tolist() == RISING.tolist()


def test_a_table_of_results_is_read_only_where_it_is_named(tmp_path):
    path = tmp_path / "final_comparison.csv"
    path.write_text("Method,Reward\ndqn,12.5\nppo,13.5\nrandom,1.5\n")
    assert claim(path) is None
    assert read_log(path).series["Reward"].values.tolist() == [12.5, 13.5, 1.5]


def test_cells_that_are_printed_tensors(tmp_path):
    path = tmp_path / "metrics.csv"
    cells = ('"tensor(0.5, grad_fn=<MseLossBackward0>)"', "[1.5]", "2.5", '"tensor([[3.5]])"')
    rows = "".join(f"{n},{cell}\n" for n, cell in enumerate(cells))
    path.write_text(f"episode,loss\n{rows}")
    assert read_log(path).series["loss"].values.tolist() == [0.5, 1.5, 2.5, 3.5]


class Call:
    """A pickle of it writes a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.write_text, (self.path, "called")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "kind", [list, np.asarray, np.float32, deque, lambda v: [float(n) for n in v]]
)
def test_a_pickle_of_numbers_in_every_protocol(tmp_path, protocol, kind):
    path = tmp_path / "rewards.pkl"
    path.write_bytes(pickle.dumps(kind(RISING), protocol))
    values = read_log(path).series["rewards"].values
    np.testing.assert_allclose(values, np.asarray(kind(RISING), dtype=float))


def test_results_beside_a_history_are_no_training(tmp_path):
    path = tmp_path / "training_results.json"
    history = {"train_rewards": RISING.tolist(), "losses": (1 - RISING).tolist()}
    results = {"random_rewards": [1.0] * 30, "trained_rewards": [9.0] * 5, "history": history}
    path.write_text(json.dumps({"task_hard": results}))
    series = read_log(path).series
    assert series.keys() == {"train_rewards", "losses"}
    assert series["train_rewards"].values.tolist() == RISING.tolist()


def test_a_pickle_of_a_history(tmp_path):
    history = defaultdict(list, rewards=list(RISING), epsilon=np.ones((200, 1)), gamma=0.9)
    path = tmp_path / "run.pkl"
    path.write_bytes(pickle.dumps(history))
    log = reader_of(path).read(path)[0]
    assert set(log.series) == {"rewards", "epsilon"}
    assert log.settings["gamma"] == 0.9
    path.write_bytes(pickle.dumps([{"episode": n, "reward": r} for n, r in enumerate(RISING)]))
    log = reader_of(path).read(path)[0]
    assert log.series["reward"].steps.tolist() == list(range(200))
    assert log.step_unit == "episodes"


def test_a_pickle_by_column_and_by_rows_has_the_same_array(tmp_path):
    path, two = tmp_path / "rewards.pkl", np.stack([RISING, RISING + 2.0])
    for array in (two, np.asfortranarray(two), two.astype(">f8")):
        path.write_bytes(pickle.dumps(array))
        np.testing.assert_allclose(read_log(path).series["rewards"].values, RISING + 1.0)


def test_a_log_of_dopamine(tmp_path):
    rows = {
        f"iteration_{n}": {
            "train_episode_returns": [n, n + 2.0],
            "train_average_steps_per_second": 9,
        }
        for n in range(12)
    }
    (tmp_path / "log_11").write_bytes(pickle.dumps(rows))
    log = read_log(tmp_path / "log_11")
    assert log.series["train_episode_returns"].values.tolist() == [n + 1.0 for n in range(12)]
    assert log.step_unit == "iterations"


def test_nothing_that_a_pickle_names_is_called(tmp_path):
    path = tmp_path / "rewards.pkl"
    history = {"rewards": RISING.tolist(), "model": Call(tmp_path / "x"), "more": [Call(tmp_path)]}
    path.write_bytes(pickle.dumps(history))
    assert list(read_log(path).series) == ["rewards"]
    assert not (tmp_path / "x").exists()


def bomb():
    value = [1.0] * 100
    for _ in range(9):
        value = [value] * 100
    return value


def loop():
    value = [1.0, 2.0]
    value.append(value)
    return value


@pytest.mark.parametrize(
    "pickled",
    [
        pickle.dumps(bomb()),
        pickle.dumps(loop()),
        pickle.dumps({"rewards": [1.0, 2.0]})[:-6],
        b"\x80\x04no pickle",
        pickle.dumps(np.arange(9.0)).replace(b"f8", b"f4"),  # a size that is not there
        pickle.dumps([Path("x")]),
    ],
    ids=["bomb", "loop", "cut", "text", "size", "object"],
)
def test_a_pickle_without_numbers_is_an_error_that_says_why(tmp_path, pickled, monkeypatch):
    monkeypatch.setattr(plain_pickle, "MAX_PICKLE_ITEMS", 1000)
    path = tmp_path / "rewards.pkl"
    path.write_bytes(pickled)
    with pytest.raises(UnreadableLog, match=r"pickle|no list of numbers") as error:
        read_log(path)
    assert "json.dump" in error.value.hint


def test_a_folder_with_a_pickle_alone_names_it(tmp_path):
    (tmp_path / "policy.pkl").write_bytes(pickle.dumps([1.0, 2.0]))
    with pytest.raises(UnreadableLog, match="name the pickle"):
        sources.find(tmp_path)


def test_numbers_of_a_folder_that_are_no_measures(tmp_path):
    np.savetxt(tmp_path / "weights.csv", RISING)
    assert claim(tmp_path / "weights.csv") is None


@pytest.mark.parametrize("name", ["eval_rewards.npy", "test_rewards.csv", "eval-scores.json"])
def test_tables_of_results_are_read_only_where_they_are_named(tmp_path, name):
    path = tmp_path / name
    if path.suffix == ".npy":
        np.save(path, RISING)
    elif path.suffix == ".csv":
        np.savetxt(path, RISING)
    else:
        path.write_text(json.dumps({"scores": list(RISING)}))
    assert claim(path) is None
    assert len(read_log(path).series) == 1


def test_a_counter_that_is_none_does_not_order_the_rows(tmp_path):
    chance = np.random.default_rng(1)
    lengths = chance.integers(10, 300, size=60)
    path = tmp_path / "train.csv"
    rows = "".join(f"{length},{n}\n" for n, length in enumerate(lengths))
    path.write_text(f"Total_Steps,Reward\n{rows}")
    log = read_log(path)
    assert log.series["Reward"].values.tolist() == list(range(60))
    assert log.series["Reward"].steps.tolist() == list(range(1, 61))
    assert log.series["Total_Steps"].values.tolist() == lengths.tolist()
    assert any("`Total_Steps` counts no steps" in note for note in log.notes)


def test_a_log_that_holds_only_how_it_crashed(tmp_path):
    path = tmp_path / "train_42.txt"
    raised = (
        'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\n'
    )
    path.write_text(f"PyTorch 2.3\nseed 1\n{raised}ZeroDivisionError: division by zero\n")
    (trace,) = rlvitals.runs(path)
    found = rlvitals.diagnose(trace, live=False)
    assert found.verdict.word.value == "failed"
    assert "ZeroDivisionError" in trace.lifecycle.traceback
    assert claim(path) is None, "in a folder other files say more of the run"


def test_a_log_pasted_into_markdown(tmp_path):
    path = tmp_path / "issue.md"
    rows = "\n".join(f"Episode {n} Reward {n / 2}" for n in range(30))
    path.write_text(f"# It does not learn\n\n```\n{rows}\n```\n\nWhat is wrong?\n")
    assert read_log(path).series["episode_reward"].values.tolist() == [n / 2 for n in range(30)]


def test_a_monitor_that_was_downloaded_twice(tmp_path):
    path = tmp_path / "monitor (1).csv"
    path.write_text('#{"t_start": 1.7e9, "env_id": "CartPole-v1"}\nr,l,t\n9.0,9,0.1\n12.0,12,0.2\n')
    assert claim(path).name == "sb3-monitor"


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("step={n} | reward={v} | loss=0.5", "reward"),
        ("Epoch:[1/1]({n}/4292), Reward: {v}, KL: 0.01, lr: 1e-5", "reward"),
        ("GRPO step {n}/500 | loss: 0.0000 | mean_reward: {v} | KL: 0.0004", "avg_reward"),
        ("Generation {n}: best fitness 9.0, mean fitness {v}", "mean_fitness"),
    ],
)
def test_printed_lines(tmp_path, line, key):
    path = tmp_path / "run.log"
    path.write_text("".join(line.format(n=n, v=n / 2) + "\n" for n in range(1, 31)))
    series = read_log(path).series[key]
    assert series.values.tolist() == [n / 2 for n in range(1, 31)]
    assert series.steps.tolist() == list(range(1, 31))


def test_stages_of_training_are_a_run_each(tmp_path):
    path = tmp_path / "metrics.json"
    pairs = [{"step": 5 * n, "loss": 0.7 - n / 30, "acc": 0.5 + n / 40} for n in range(1, 16)]
    rewards = [{"epoch": n / 60, "reward": 0.5 + n / 120, "kl": 0.001} for n in range(1, 61)]
    path.write_text(
        json.dumps({"eval": {"dpo": {"n": 9}}, "curves": {"dpo": pairs, "grpo": rewards}})
    )
    stages = rlvitals.runs(path)
    assert [stage.name for stage in stages] == ["dpo", "grpo"]
    assert len(stages[0]["optimiser/loss"]) == 15
    assert len(stages[1]["outcome/reward"]) == 60
    assert "outcome/reward" not in stages[0]


@pytest.mark.parametrize("suffix", ["csv", "npy"])
def test_lists_of_one_training_are_one_run(tmp_path, suffix):
    """What a loop saves after it: a file for each list, without a word on which run it is."""
    rise = np.linspace(0, 200, 300) + np.random.default_rng(0).normal(0, 5, 300)
    for name, values in (("rewards", rise), ("losses", 1 / (1 + rise**2))):
        if suffix == "npy":
            np.save(tmp_path / f"{name}.npy", values)
        else:
            rows = (name, *(f"{value:.4f}" for value in values))
            (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
    (run,) = sources.find(tmp_path)
    assert {file.stem for file, _ in run.files} == {"rewards", "losses"}
    assert rlvitals.trace(tmp_path).series.keys() == {"outcome/reward", "optimiser/loss"}


@pytest.mark.parametrize("tag", ["rollout_ep_rew_mean", "train_approx_kl"])
def test_a_curve_of_tensorboard_is_called_after_its_tag(tmp_path, tag):
    path = tmp_path / f"run-PPO_1-tag-{tag}.csv"
    rows = (f"{1.7e9 + i},{100 * i},{0.01 * i}" for i in range(50))
    path.write_text("\n".join(("Wall time,Step,Value", *rows)) + "\n")
    assert list(read_log(path).series) == [tag.replace("_", "/", 1)]


def points(values):
    return [{"step": 10 * n, "value": v, "epoch": n / 8} for n, v in enumerate(values)]


def test_lists_of_points_are_the_columns_of_one_run(tmp_path):
    path = tmp_path / "training_metrics.json"
    document = {
        "metrics": {"loss": points([3.0, 2.0, 1.0]), "eval/reward": points([0.1, 0.2, 0.3])}
    }
    path.write_text(json.dumps({"metadata": {"seed": 3}, **document}))
    log = reader_of(path).read(path, None)[0]
    assert log.series["loss"].steps.tolist() == [0, 10, 20]
    assert log.series["eval/reward"].values.tolist() == [0.1, 0.2, 0.3]
    assert log.settings["metadata/seed"] == 3


def test_lists_of_points_whose_names_repeat_are_a_run_each(tmp_path):
    path = tmp_path / "training_metrics.json"
    measures = {"loss": points([3.0, 2.0, 1.0]), "rewards/chosen": points([0.1, 0.2, 0.3])}
    document = {f"{name}/{key}": p for name in ("short", "long") for key, p in measures.items()}
    path.write_text(json.dumps({"metrics": document}))
    readers = json_lists.split(path, b"")
    assert set(readers) == {"short", "long"}
    log = readers["long"].read(path, None)[0]
    assert log.series["rewards/chosen"].values.tolist() == [0.1, 0.2, 0.3]

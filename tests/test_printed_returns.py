"""A program prints some episodes' rewards, and writes each to a table: the table is judged."""

import csv

import numpy as np

import rlvitals


def write(folder, printed):
    rewards = np.random.default_rng(0).integers(0, 2, 400)
    with (folder / "results.csv").open("w") as file:
        rows = csv.writer(file)
        rows.writerow(["episode", "reward", "loss"])
        rows.writerows([i, reward, 0.1] for i, reward in enumerate(rewards))
    lines = [f"Episode {i}, Reward {printed(rewards[i]):.2f}" for i in range(0, 400, 20)]
    (folder / "out.txt").write_text("\n".join(lines) + "\n")
    return rewards


def test_printed_returns_are_completed_from_a_table_that_holds_every_episode(tmp_path):
    rewards = write(tmp_path, lambda reward: reward)
    (run,) = rlvitals.runs(tmp_path)
    np.testing.assert_array_equal(run["outcome/return"].values, rewards)
    assert "outcome/reward" not in run


def test_a_table_may_round_large_rewards_where_a_program_prints_two_decimals(tmp_path):
    rewards = -1000.0 - 300.0 * np.random.default_rng(1).random(400)
    rows = "".join(f"{i},{reward:.4g}\n" for i, reward in enumerate(rewards))
    (tmp_path / "results.csv").write_text(f"episode,reward\n{rows}")
    lines = [f"Episode {i}, Reward {rewards[i]:.2f}" for i in range(0, 400, 20)]
    (tmp_path / "out.txt").write_text("\n".join(lines) + "\n")
    (run,) = rlvitals.runs(tmp_path)
    assert len(run["outcome/return"]) == 400
    assert "outcome/reward" not in run


def test_printed_returns_that_are_another_quantity_are_kept(tmp_path):
    write(tmp_path, lambda reward: 10 * reward + 3)
    (run,) = rlvitals.runs(tmp_path)
    assert len(run["outcome/return"]) == 20
    assert len(run["outcome/reward"]) == 400

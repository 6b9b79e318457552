"""Rows that loops print in words of their own, and lines of evaluations between them."""

import pytest

from rlvitals.metrics import canonicalize
from rlvitals.readers import console
from rlvitals.readers.select import reader_of

REWARDS = [-120.5, -80.25, -31.0, 12.5, 40.0]
FORMS = {
    "Episode {n}/600 | Avg Reward (last 50): {r} | eps 0.9": "outcome/reward",
    "Episode {n}, Average Reward (Last 100 Episodes): {r}": "outcome/reward",
    "Ep {n}: {r}": "outcome/return",
    "Episode {n}/600: {r}": "outcome/return",
    "[{n}/500] reward={r}": "outcome/reward",
    "Episode {n} finished with reward {r}": "outcome/return",
    "Episode {n} ended. Total reward: {r}": "outcome/return",
    "Episode {n} │ Reward: {r} │ ε: 0.50": "outcome/return",
    "Step {n}k, avg return {r}": "outcome/return",
    "Total T: {n} Episode Num: {n} Episode T: 200 Reward: {r}": "outcome/return",
    "[TEST] Episode {n} - Reward: {r}": "outcome/eval_return",
    "Eval num_timesteps={n}, episode_reward={r} +/- 4.50": "outcome/eval_return",
    "Evaluation over {n} episodes: {r}": "outcome/eval_return",
    "[ {n}/600] reward={r}": "outcome/reward",
    "[{n}] Total Reward: {r}, Avg Value: 0.5": "outcome/return",
    "[EP    {n}] reward={r} buffer=100": "outcome/return",
    "Episode {n} : total reward = {r}": "outcome/return",
    "Episode Number: {n} Reward {r}": "outcome/return",
    "Episode {n} completed with score: {r}": "outcome/score",
    "Episode {n} Completed! Total Reward: {r}": "outcome/return",
    "Iter[{n}/50]  n_iter mean : 6.5 reward mean : {r}": "outcome/reward",
    "Episode {n}, Profit: {r} $, Orders: 4": "outcome/return",
    "DATA @ {n}-th Episode : Reward {r}": "outcome/return",
    "Episode {n}, 120 steps, return {r}": "outcome/return",
    "{n} episodes | 4000 steps | reward {r} | 300 fps": "outcome/return",
    "Score at episode {n}: {r}, average: 1.0": "outcome/score",
    "Total reward for episode {n} is {r}": "outcome/return",
    "After {n} games: average reward {r}, epsilon 0.1": "outcome/reward",
    "Mean return {r} at {n} steps": "outcome/return",
    "Average reward over the last 10 episodes at episode {n}: {r}": "outcome/reward",
    "Game {n}/600: WIN | Mean reward: {r}": "outcome/reward",
    "Trial {n} | Winner: red | Mean return: {r}": "outcome/return",
    "Training: Episode {n} of 600, Mean reward: {r}": "outcome/reward",
    "[train] [info] episode {n} mean reward {r} steps 20": "outcome/reward",
    "Ep {n}/600, Avg: {r}, eps: 0.5": "outcome/reward",
    "epoch={n} phase=dense reward={r} critic_loss=2056.5": "outcome/reward",
    "Generation {n}: best={r}": "outcome/reward",
    "Episode {n} - Total Assets: {r}": "outcome/return",
    "E000{n} R={r} eps=0.5": "outcome/return",
    "ep{n} mean reward {r}": "outcome/reward",
    "episode_{n}: reward={r}, length=20": "outcome/return",
    "<Episode {n}> reward: {r} / length: 20": "outcome/return",
    "Eval after {n} episodes | Reward: {r}": "outcome/eval_return",
    "Evaluation at {n}: {r}": "outcome/eval_return",
    "[NONE] Epoch {n} | Reward={r} | Rate=7665.7/s | Compile=None": "outcome/reward",
    "Test return at {n}: {r}": "outcome/eval_return",
    "Evaluation at step {n}: {r}": "outcome/eval_return",
    "Eval reward at {n} steps: {r}": "outcome/eval_return",
    "Mean reward after {n} steps: {r}": "outcome/reward",
    "Reward after {n} episodes: {r}": "outcome/reward",
    "Step {n}: mean reward over 10 episodes: {r}": "outcome/reward",
    "Step {n}: mean reward over 10 episodes = {r} +/- 3.20": "outcome/reward",
    "Iteration {n}: mean return over 16 rollouts {r}": "outcome/return",
    "iter {n} avg reward of 20 episodes {r}": "outcome/reward",
    "ep {n} mean reward (avg of 10 episodes) = {r}": "outcome/reward",
    "Training step {n}/600. Loss: 0.5. Mean reward (10 eps): {r}. Eps: 0.9": "outcome/reward",
    "Total reward for this episode ({n}): {r}": "outcome/return",
    "Agent got {r} reward in episode {n}": "outcome/return",
    "Episode {n} took 20 steps and received {r} reward": "outcome/return",
    "Saving model at step 1{n} with mean reward {r}": "outcome/reward",
    "Played {n} games. Avg reward: {r}": "outcome/reward",
    "Episode {n}: {r} (avg 3.5)": "outcome/return",
    "Episode {n}: {r} (100-ep mean 3.5)": "outcome/return",
    "Eps:{n} Rwd:{r} Eps-greedy:0.9": "outcome/reward",
    "Iter: {n}, Avg. return: {r} (+/- 3.20), Best: 50.0": "outcome/return",
    "[{n}] ep_rew_mean: {r}, ep_len_mean: 20": "outcome/return",
    "Ep.{n} R={r}": "outcome/return",
}


@pytest.fixture
def read(tmp_path):
    def make(text):
        path = tmp_path / "a.log"
        path.write_text(text)
        assert reader_of(path).name == console.READER.name
        log = console.READER.read(path, None)[0]
        return canonicalize.trace([log])

    return make


def values(trace, name):
    return trace[name].values.tolist()


@pytest.mark.parametrize(("form", "name"), FORMS.items())
def test_a_reward_in_words_of_its_own_is_read(read, form, name):
    lines = [form.format(n=n, r=r) for n, r in enumerate(REWARDS, 1)]
    assert values(read("Using cpu device\n" + "\n".join(lines) + "\n"), name) == REWARDS


def test_thousands_and_dollars_are_numbers(read):
    text = "".join(f"Episode {n} | Net Worth: ${n},250.50 | Cash: $1\n" for n in range(1, 7))
    assert values(read(text), "outcome/return") == [n * 1000 + 250.5 for n in range(1, 7)]


def test_words_among_two_pairs_are_passed_over_where_the_step_grows(tmp_path):
    path = tmp_path / "a.log"
    path.write_text("".join(f"Step 3 of the plan: nobody knows, score {n}\n" for n in range(9)))
    assert not console.claims(path, path.read_bytes())


@pytest.mark.parametrize(
    "line", ["t={n} avg_reward={r} regret=1.0", "Eps: {n} | Reward: {r} | a b"]
)
def test_a_first_number_that_grows_is_the_step(read, line):
    text = "".join(line.format(n=n, r=r) + "\n" for n, r in enumerate(REWARDS, 7))
    trace = read(text)
    assert values(trace, "outcome/reward") == REWARDS
    assert trace["outcome/reward"].steps.tolist() == [7, 8, 9, 10, 11]


def test_the_length_of_an_episode_is_no_step_though_it_grows_at_first(read):
    lengths = [10, 20, 30, 25, 22, 40]
    text = "".join(
        f"Update {n} | Steps: {length} | Avg Reward: {n}.5\n" for n, length in enumerate(lengths, 1)
    )
    assert read(text)["outcome/reward"].steps.tolist() == [1, 2, 3, 4, 5, 6]


def test_the_reward_of_an_episode_on_a_line_of_its_own_belongs_to_the_row_before(read):
    text = "".join(
        f"Epoch {n}, policy loss: 0.1, value loss: 0.2\nEpisode reward: {n}.5\n"
        for n in range(1, 7)
    )
    assert values(read(text), "outcome/return") == [n + 0.5 for n in range(1, 7)]


def test_the_numbers_after_a_bar_may_follow_a_colon(read):
    text = "".join(
        f" {n}%|█         | {n}/100 [00:0{n}<01:35, 1.20it/s, Avg reward: {r}, loss=0.{n}]\r"
        for n, r in enumerate([*REWARDS, 50.0], 1)
    )
    assert values(read(text), "outcome/reward") == REWARDS


def test_thousands_of_steps_are_written_out(read):
    text = "".join(f"Step {n}.5k, avg return {n}\n" for n in range(1, 6))
    assert read(text)["outcome/return"].steps.tolist() == [1500, 2500, 3500, 4500, 5500]


def test_evaluations_of_td3_stand_at_the_step_of_the_episode_before(read):
    text = "Evaluation over 10 episodes: 5.0\n" + "".join(
        f"Total T: {n}000 Episode Num: {n} Episode T: 1000 Reward: {n}.5\n"
        + ("-" * 39 + f"\nEvaluation over 10 episodes: {n}0.0\n" if n % 2 == 0 else "")
        for n in range(1, 7)
    )
    trace = read(text)
    evaluated = trace["outcome/eval_return"]
    assert evaluated.steps.tolist() == [0, 2000, 4000, 6000]
    assert evaluated.values.tolist() == [5.0, 20.0, 40.0, 60.0]
    assert values(trace, "outcome/return") == [1.5, 2.5, 3.5, 4.5, 5.5, 6.5]


def test_the_title_of_trlx_holds_what_an_evaluation_measured(read):
    text = "".join(
        f"[RANK 0] Evaluating model\n  Evaluation #{n} reward/mean: {r} metrics/sentiments: 0.{n}\n"
        "| prompt | output |\n[RANK 0] Collecting rollouts\n"
        for n, r in enumerate(REWARDS)
    )
    trace = read(text)
    assert values(trace, "reward/mean") == REWARDS
    assert trace["reward/mean"].steps.tolist() == [0, 1, 2, 3, 4]


def test_a_line_and_a_box_of_one_evaluation_count_once(read):
    box = (
        "Eval num_timesteps={n}, episode_reward={r} +/- 0.00\nEpisode length: 9.00 +/- 0.00\n"
        "------------------------------\n| eval/            |          |\n"
        "|    mean_reward   | {r} |\n| time/            |          |\n"
        "|    total_timesteps | {n} |\n------------------------------\n"
    )
    text = "".join(box.format(n=n * 1000, r=r) for n, r in enumerate(REWARDS, 1))
    assert values(read(text), "outcome/eval_return") == REWARDS


def test_rows_of_a_test_do_not_end_the_training_before_them(read):
    train = "".join(f"Episode {n} | Rewards: [{n} {n + 2}]\n" for n in range(20))
    test = "".join(f"[TEST] Episode {n} - Rewards: [90 {n}]\n" for n in range(5))
    assert len(read(train + test)["reward/mean"]) == 20


def test_a_number_after_an_epoch_is_no_reward(tmp_path):
    path = tmp_path / "a.log"
    path.write_text("".join(f"Epoch {n}: 0.{n}\n" for n in range(1, 9)))
    assert not console.claims(path, path.read_bytes())


def table(tmp_path, name, rows):
    path = tmp_path / name
    path.write_text("".join(f"{','.join(map(str, row))}\n" for row in rows))
    return canonicalize.trace([reader_of(path).read(path, None)[0]])


def test_columns_that_number_the_agents_are_names(tmp_path):
    head = ("Episode", "Reward 1", "Reward 2", "Critic Loss 1")
    trace = table(tmp_path, "training_log.csv", [head, *((n, n, n + 2.0, 0.5) for n in range(12))])
    assert values(trace, "outcome/reward") == [n + 1.0 for n in range(12)]


def test_the_only_column_without_a_name_that_falls_below_zero_is_the_reward(tmp_path):
    rows = [(n, n - 6.5, 90 + n % 3, 1755339958 + n // 4) for n in range(12)]
    assert values(table(tmp_path, "results.csv", rows), "outcome/reward") == [
        n - 6.5 for n in range(12)
    ]


def test_a_second_column_below_zero_leaves_the_reward_open(tmp_path):
    rows = [(n, n - 6.5, 2.5 - n, 7) for n in range(12)]
    assert "outcome/reward" not in table(tmp_path, "results.csv", rows)


def test_the_first_column_beside_a_step_is_what_the_file_is_named_for(tmp_path):
    path = tmp_path / "rewards.txt"
    path.write_text("".join(f"{n} {n - 6.5} {90 + n % 3}\n" for n in range(12)))
    trace = canonicalize.trace([reader_of(path).read(path, None)[0]])
    assert values(trace, "outcome/reward") == [n - 6.5 for n in range(12)]

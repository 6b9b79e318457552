"""Jupyter notebooks: transformers' tables, printed rows, errors, settings, damage.

The tables are those of transformers' own tracker; the documents follow nbformat's schema.
"""

import json

import log_checks
import numpy as np
import pandas as pd
import pytest
from loading import read_log
from transformers.utils.notebook import NotebookTrainingTracker

import rlvitals
from rlvitals.cli import standard_input
from rlvitals.errors import UnreadableLog
from rlvitals.readers import notebook_outputs
from rlvitals.readers.discovery import sources
from rlvitals.readers.formats.notebook_cells import read_cells
from rlvitals.readers.select import claim
from rlvitals.rules.rule import Clear
from rlvitals.rules.throughput import ended_early
from rlvitals.views import phrases

REWARDS = np.linspace(0.1, 2.0, 40).round(6)
GRPO = (
    "%%time\n!pip install trl\nfrom trl import GRPOConfig\nRATE = 1e-5\n"
    "args = GRPOConfig(learning_rate=5e-6, beta=-0.5, num_generations=8, max_steps=40,\n"
    "    max_completion_length=n * 2, weight_decay=RATE, bf16=True, report_to='none')\n"
    "trainer = GRPOTrainer(model=model, args=args)\ntrainer.train()"
)
SB3 = "model = DQN('MlpPolicy', 'CartPole-v1', gamma=0.98)\nmodel.learn(total_timesteps=50_000)"

DAMAGED_NOTE = "the notebook is damaged or cut short: what can be read of its cells was read"


def shown(html, **more):
    return {"output_type": "display_data", "metadata": {}, **more,
            "data": {"text/html": html.splitlines(keepends=True),
                     "text/plain": ["<IPython.core.display.HTML object>"]}}  # fmt: skip


def printed(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": text.splitlines(keepends=True)}


def failed(name, value):
    frames = [
        "\x1b[0;31m----------\x1b[0m",
        f"\x1b[0;31m{name}\x1b[0m     Traceback (most recent call last)",
        "Cell \x1b[0;32mIn[3], line 8\x1b[0m\n----> 8 trainer.train()",
        f"\x1b[0;31m{name}\x1b[0m: {value}",
    ]
    return {"output_type": "error", "ename": name, "evalue": value, "traceback": frames}


def code(source, *outputs):
    return {"cell_type": "code", "execution_count": 1, "metadata": {}, "source": source,
            "outputs": list(outputs)}  # fmt: skip


def document(*cells):
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def save(path, *cells, indent=1):
    path.write_text(json.dumps(document(*cells), indent=indent))
    return path


def tracker(rows, total, done=None):
    """Return the HTML that transformers shows after `rows`, the names first."""
    table = NotebookTrainingTracker(total, list(rows[0]))
    for row in rows:
        table.write_line(dict(row))
    table.update(total if done is None else done, comment="Epoch 1/1")
    return table.html_code


def grpo_rows(count=40):
    """Return rows with the columns that Unsloth's patch of the callback shows."""
    return [
        {"Step": step, "Training Loss": 0.001 * step, "reward": float(REWARDS[step - 1]),
         "reward_std": 0.5, "completions / mean_length": 100.0 + step, "kl": 0.01,
         "rewards / correct / mean": 0.5}
        for step in range(1, count + 1)
    ]  # fmt: skip


def sft_rows():
    return [{"Step": step, "Training Loss": 2.0 / step} for step in range(5, 65, 5)]


def boxes(count=30):
    """Return what Stable-Baselines3 prints, one box for 1,000 steps."""
    edge = "-" * 34
    rows = (
        f"{edge}\n| rollout/            |          |\n|    ep_rew_mean      | {n * 1.5:<8} |\n"
        f"| time/               |          |\n|    total_timesteps  | {n * 1000:<8} |\n{edge}\n"
        for n in range(1, count + 1)
    )
    return "".join(rows)


def bar(step):
    return f"\r{step * 100 // 40:3}%|#   | {step}/40 [00:01<00:01,  1.00it/s]"


def test_the_table_of_a_trainer_and_the_settings_of_its_source(tmp_path):
    path = save(tmp_path / "train.ipynb", code(GRPO, shown(tracker(grpo_rows(), 40))))
    log = read_log(path)
    assert log.series["reward"].values.tolist() == REWARDS.tolist()
    assert log.series["reward"].steps.tolist() == list(range(1, 41))
    assert {"loss", "completions/mean_length", "kl", "rewards/correct/mean"} <= log.series.keys()
    assert log.settings == {
        "algorithm": "grpo", "learning_rate": 5e-6, "beta": -0.5, "num_generations": 8,
        "max_steps": 40, "bf16": True, "report_to": "none", "total_steps": 40,
    }  # fmt: skip
    assert log.ending is None


def test_states_of_one_table_are_one_training(tmp_path):
    states = [shown(tracker(grpo_rows(count), 40, count)) for count in (10, 40, 25)]
    path = save(tmp_path / "train.ipynb", code(GRPO, *states))
    assert len(read_log(path).series["reward"]) == 40


def test_two_trainings_are_two_runs(tmp_path):
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": "# Train"},
        code("SFTTrainer(model, learning_rate=2e-4).train()", shown(tracker(sft_rows(), 60))),
        code("GRPOTrainer(model).train()", shown(tracker(grpo_rows(), 40))),
        code("evaluate(train_set)", printed("".join(f"step {n} reward 1.5\n" for n in range(9)))),
    ]
    path = save(tmp_path / "train.ipynb", *cells)
    runs = sources.find(path)
    assert [run.name for run in runs] == ["cell-2", "cell-3"]
    (sft,), (grpo,) = (sources.read(run) for run in runs)
    assert (len(sft.series["loss"]), len(grpo.series["reward"])) == (12, 40)
    assert sft.settings["learning_rate"] == 2e-4
    (one,) = sources.find(path / "cell-3")
    assert one.name == "cell-3"
    with pytest.raises(UnreadableLog, match="2 runs"):
        notebook_outputs.READER.read(path, None)


def test_two_trainings_in_one_cell(tmp_path):
    tables = [shown(tracker(rows, len(rows))) for rows in (grpo_rows(20), grpo_rows(40))]
    path = save(tmp_path / "train.ipynb", code(GRPO, *tables))
    assert [run.name for run in sources.find(path)] == ["cell-1", "cell-1-2"]


def test_trainings_of_the_same_length_in_one_cell(tmp_path):
    tables = [
        shown(tracker([{"Step": n, "Training Loss": n / scale} for n in range(1, 4)], 3))
        for scale in (7, 9)
    ]
    path = save(tmp_path / "train.ipynb", code("for agent in agents: agent.train()", *tables))
    assert [run.name for run in sources.find(path)] == ["cell-1", "cell-1-2"]


def test_an_evaluation_table_counts_epochs(tmp_path):
    rows = [
        {"Epoch": n, "Training Loss": 1 / n, "Validation Loss": 2 / n, "Rewards/margins": n / 10}
        for n in range(1, 6)
    ]
    path = save(tmp_path / "train.ipynb", code("DPOTrainer().train()", shown(tracker(rows, 500))))
    log = read_log(path)
    assert log.step_unit == "epochs"
    assert {"loss", "eval_loss", "eval_rewards/margins"} == log.series.keys()
    assert "total_steps" not in log.settings


def test_a_column_that_a_later_row_adds(tmp_path):
    rows = [{"Step": n, "Training Loss": 0.5} for n in range(1, 9)]
    rows[5]["kl"] = 0.25
    path = save(tmp_path / "a.ipynb", code("trainer.train()", shown(tracker(rows, 8))))
    log = read_log(path)
    assert len(log.series["loss"]) == 8
    assert log.series["kl"].steps.tolist() == [6]
    assert log.notes == ()


def test_no_log_is_a_missing_value(tmp_path):
    rows = [{"Step": n, "Training Loss": "No log" if n < 3 else 0.5} for n in range(1, 6)]
    path = save(tmp_path / "a.ipynb", code("trainer.train()", shown(tracker(rows, 5))))
    assert read_log(path).series["loss"].steps.tolist() == [3, 4, 5]


def test_printed_rows_are_read_as_console_output(tmp_path):
    path = save(tmp_path / "train.ipynb", code("import gymnasium"), code(SB3, printed(boxes())))
    log = read_log(path)
    assert log.source == "console"
    assert log.series["rollout/ep_rew_mean"].steps[-1] == 30000
    assert log.settings["env_id"] == "CartPole-v1"
    assert (log.settings["gamma"], log.settings["total_timesteps"]) == (0.98, 50_000)


def test_streams_are_joined_and_carriage_returns_are_lines(tmp_path):
    outputs = [printed("".join(map(bar, range(5))), "stderr")]
    for step in range(5, 45, 5):
        outputs.append(printed(f"{{'loss': 0.5, 'reward': {step / 10}, 'epoch': 0.1}}\n"))
        outputs.append(printed("".join(map(bar, range(step, min(step + 5, 41)))), "stderr"))
    log = read_log(save(tmp_path / "a.ipynb", code("trainer.train()", *outputs)))
    assert log.series["reward"].values.tolist() == [step / 10 for step in range(5, 45, 5)]
    assert log.series["reward"].steps.tolist() == list(range(5, 45, 5))


def test_printed_rewards_win_over_a_table_of_the_loss(tmp_path):
    losses = [{"Step": n, "Training Loss": 0.0} for n in range(1, 9)]
    rows = "".join(f"{{'loss': 0.0, 'reward': 1.{n}, 'epoch': 0.1}}\n" for n in range(1, 9))
    cell = code("trainer.train()", printed(rows), shown(tracker(losses, 8)))
    assert len(read_log(save(tmp_path / "a.ipynb", cell)).series["reward"]) == 8
    means = "".join(f"  Batch: mean_reward={n / 20}\n" for n in range(20))
    cell = code("trainer.train()", printed(means), shown(tracker(losses, 8)))
    log = read_log(save(tmp_path / "b.ipynb", cell))
    assert log.series["mean_reward"].values.tolist() == [n / 20 for n in range(20)]
    lists = "".join(f"accuracy rewards: [{n / 20}]\n" for n in range(20))
    cell = code("trainer.train()", printed(lists), shown(tracker(losses, 8)))
    log = read_log(save(tmp_path / "c.ipynb", cell))
    assert len(log.series["rewards/accuracy_reward/mean"]) == 19


def test_an_error_ends_the_run(tmp_path):
    cell = code(GRPO, shown(tracker(grpo_rows(20), 40, 20)), failed("OutOfMemoryError", "CUDA"))
    log = read_log(save(tmp_path / "a.ipynb", cell))
    assert log.ending.traceback.endswith("\nOutOfMemoryError: CUDA")
    assert "\x1b" not in log.ending.traceback
    cell = code(GRPO, shown(tracker(grpo_rows(20), 40, 20)), failed("KeyboardInterrupt", ""))
    log = read_log(save(tmp_path / "b.ipynb", cell))
    assert log.ending.traceback == ""
    assert "stopped by hand" in log.notes
    (run,) = rlvitals.runs(tmp_path / "b.ipynb")
    assert isinstance(ended_early.RULE.ask(run), Clear), "a person's choice is no failure"


def test_an_error_after_the_last_step_is_no_failure_of_the_training(tmp_path):
    cell = code(GRPO, shown(tracker(grpo_rows(), 40)), failed("NameError", "no plt"))
    log = read_log(save(tmp_path / "a.ipynb", cell))
    assert log.ending is None
    assert "after training the cell failed: NameError: no plt" in log.notes


def test_a_training_that_failed_before_its_first_row(tmp_path):
    path = save(tmp_path / "a.ipynb", code(GRPO, failed("ValueError", "bad batch size")))
    assert read_log(path).ending.traceback.endswith("ValueError: bad batch size")
    assert claim(path) is None, "in a folder it is no run"


def test_a_training_that_a_person_stopped_before_its_first_row(tmp_path):
    table = shown(tracker([{"Step": 1}], 40, 0).partition("<tbody>")[0] + "</table>")
    path = save(tmp_path / "a.ipynb", code(GRPO, table, failed("KeyboardInterrupt", "")))
    (run,) = rlvitals.runs(path)
    assert run.lifecycle.reason == "stopped by hand"
    diagnosis = rlvitals.diagnose(run)
    assert diagnosis.verdict.word.value == "unknown"
    assert diagnosis.verdict.why.startswith("stopped by hand; whether the outcome improves")
    assert not any(sentence.topic == "reward" for sentence in phrases.short_summary(diagnosis)), (
        "it repeats the verdict"
    )
    not_begun = save(tmp_path / "b.ipynb", code(GRPO, failed("KeyboardInterrupt", "")))
    with pytest.raises(UnreadableLog):
        rlvitals.runs(not_begun)


SFT = "from trl import SFTConfig\nargs = SFTConfig(max_steps=5)\nSFTTrainer(args=args).train()"
PPO = "from trl import PPOConfig\nconfig = PPOConfig(steps=100, learning_rate=1e-5)"


def test_a_training_whose_configuration_raised_below_a_supervised_stage(tmp_path):
    losses = shown(tracker([{"Step": n, "Training Loss": 1 / n} for n in range(1, 6)], 5))
    error = failed("TypeError", "unexpected keyword argument 'steps'")
    path = save(tmp_path / "a.ipynb", code(SFT, losses), code(PPO, error))
    stage, run = rlvitals.runs(path)
    assert (stage.lifecycle.failed, run.lifecycle.failed) == (False, True)
    assert run.settings["algorithm"] == "ppo"
    assert rlvitals.diagnose(run).verdict.word.value == "failed"


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (PPO, PPO),  # configured again, without an error
        (PPO, None),
        (SFT, None),  # of the algorithm above
    ],
)
def test_trap_an_error_that_left_no_training_out(tmp_path, first, last):
    losses = shown(tracker([{"Step": n, "Training Loss": 1 / n} for n in range(1, 6)], 5))
    cells = [code(SFT, losses), code(first, failed("TypeError", "no"))]
    if last:
        cells.append(code(last))
    elif first == PPO:
        cells = [code(PPO + "\ntrainer.train()", losses), cells[1]]
    assert len(rlvitals.runs(save(tmp_path / "a.ipynb", *cells))) == 1


def test_a_loop_whose_lines_are_repeated_ends_as_its_cell_does(tmp_path):
    lines = "".join(f"loss/total {(-1) ** n * 0.1 * n}\nmini-batch over\n" for n in range(60))
    loop = "for batch in loader:\n    loss.backward()\n    print('loss/total', loss.item())"
    stop = failed("KeyboardInterrupt", "")
    log = read_log(save(tmp_path / "a.ipynb", code(loop, printed(lines), stop)))
    assert log.ending.reason == "stopped by hand"
    crash = failed("RuntimeError", "CUDA")
    log = read_log(save(tmp_path / "b.ipynb", code(loop, printed(lines), crash)))
    assert log.ending.traceback.endswith("RuntimeError: CUDA")


@pytest.mark.parametrize("call", ["loss.backward()", "optimizer.step()", "ppo_trainer.step(q, r)"])
def test_a_loop_of_one_s_own_that_failed_before_its_first_row(tmp_path, call):
    cell = code(f"for batch in data:\n    loss = f(batch)\n    {call}", failed("RuntimeError", "x"))
    log, _ = notebook_outputs.read(save(tmp_path / "a.ipynb", cell))
    assert log.ending.traceback.endswith("RuntimeError: x")
    other = code("model.load(path)", failed("RuntimeError", "x"))
    with pytest.raises(UnreadableLog):
        notebook_outputs.read(save(tmp_path / "b.ipynb", other))


def test_what_rich_shows_as_html_is_printed_text(tmp_path):
    titles = [
        {
            "output_type": "display_data",
            "data": {
                "text/html": "<pre style='font-family:Menlo'>a table</pre>",
                "text/plain": f"   Evaluation #{n} reward/mean: {n / 4}   \n| prompt |\n",
            },
        }
        for n in range(6)
    ]
    path = save(tmp_path / "a.ipynb", code("trlx.train(reward_fn=score)", *titles))
    log, _ = notebook_outputs.read(path)
    assert log.series["reward/mean"].values.tolist() == [n / 4 for n in range(6)]


def test_rows_of_times_alone_are_no_training_beside_one_with_a_loss(tmp_path):
    done = code(GRPO, shown(tracker(grpo_rows(), 40)))
    times = "".join(f"Step {n} time {0.1 + n / 1e4:.4f}\n" for n in range(100, 1000, 100))
    path = save(tmp_path / "a.ipynb", done, code("trainer.train()", printed(times)))
    assert len(rlvitals.runs(path)) == 1


def episodes(method, scores, every=50):
    return "".join(f"{method} Episode {n * every}: Score = {s}\n" for n, s in enumerate(scores, 1))


def test_methods_below_one_another_in_one_output_are_a_run_each(tmp_path):
    text = "Training Monte Carlo...\n" + episodes("MC", range(8))
    text += "done in 3 s\n\nTraining Q-learning...\n" + episodes("QL", range(20, 30))
    path = save(tmp_path / "a.ipynb", code("agent.learn()", printed(text)))
    runs = rlvitals.runs(path)
    assert [run.name for run in runs] == ["cell-1", "cell-1-2"]
    values = [run.series["outcome/score"].values.tolist() for run in runs]
    assert values == [[*range(8)], [*range(20, 30)]]
    assert "training 2 of 2 in one output: 'Training Q-learning...'" in runs[1].notes[0]


def test_a_method_whose_first_row_comes_later_is_a_run_of_its_own(tmp_path):
    later = boxes(40).partition("total_timesteps  | 2000")[2].partition("\n")[2]
    text = f"{boxes()}Using cpu device\n{later.partition(chr(10))[2]}{boxes(6)}"
    path = save(tmp_path / "a.ipynb", code(SB3, printed(text)))
    steps = [run.series["outcome/return"].steps.tolist() for run in rlvitals.runs(path)]
    assert [(of_run[0], of_run[-1]) for of_run in steps] == [
        (1000, 30_000),
        (3000, 40_000),
        (1000, 6000),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"Epoch {n}\n" + episodes("", range(n, n + 9)) for n in range(1, 4)),
        "".join(episodes(f"Epoch {n},", range(n, n + 9)) for n in range(1, 4)),
        episodes("", range(9)) + "Evaluating the agent\n" + episodes("", range(7)),
        episodes("", range(9)) + episodes("Test", range(7)),
        episodes("", range(9)) + episodes("", range(3)),
    ],
)
def test_epochs_and_a_test_are_no_trainings_of_their_own(tmp_path, text):
    path = save(tmp_path / "a.ipynb", code("agent.learn()", printed(text)))
    assert len(rlvitals.runs(path)) == 1


def test_a_later_training_that_failed_before_its_first_row_is_a_run(tmp_path):
    done = code(GRPO, shown(tracker(grpo_rows(), 40)))
    table = shown(tracker([{"Step": 1}], 40, 0).partition("<tbody>")[0] + "</table>")
    path = save(tmp_path / "a.ipynb", done, code(GRPO, table, failed("OutOfMemoryError", "CUDA")))
    words = [rlvitals.diagnose(run).verdict.word.value for run in rlvitals.runs(path)]
    assert words[1:] == ["failed"]
    for second in (
        code(GRPO, table, failed("KeyboardInterrupt", "")),
        code(GRPO, failed("NameError", "no data")),
        code("model.push()", table, failed("ValueError", "no token")),
    ):
        assert len(sources.find(save(tmp_path / "b.ipynb", done, second))) == 1
    assert len(sources.find(save(tmp_path / "c.ipynb", code(GRPO, table), done))) == 1


def test_a_loop_that_failed_in_its_first_rows(tmp_path):
    text = "Step 1\n  rewards: [0.1, 0.2]\nStep 2\n  rewards: [0.1, 0.3]\nStep 3\n"
    loop = "for batch in data:\n    loss.backward()\n    optimizer.step()"
    path = save(tmp_path / "a.ipynb", code(loop, printed(text), failed("RuntimeError", "nan")))
    assert read_log(path).ending.traceback.endswith("RuntimeError: nan")
    assert len(read_log(path).series["rewards_mean"]) == 2
    for source, error in ((loop, "KeyboardInterrupt"), ("show(samples)", "RuntimeError")):
        path = save(tmp_path / "b.ipynb", code(source, printed(text), failed(error, "")))
        assert claim(path) is None


@pytest.mark.parametrize(
    ("argument", "key"),
    [("np.mean(total_rewards[-10:])", "mean_total_rewards"), ("episode_reward", "episode_reward"),
     ("round(total_reward, 2)", "episode_reward")],
)  # fmt: skip
def test_numbers_alone_on_their_lines_are_named_by_the_source(tmp_path, argument, key):
    text = "".join(f"{n / 2}\nq loss: {9 / (n + 1)}\nalpha is [1 2]\n" for n in range(40))
    source = f"agent.learn()\nprint('start')\nprint({argument})  # each"
    log = read_log(save(tmp_path / "a.ipynb", code(source, printed(text))))
    assert log.series[key].values.tolist() == [n / 2 for n in range(40)]


@pytest.mark.parametrize(
    "source",
    ["print(episode_reward)\nprint(i)", "print(reward)", "print(i)", "print(total_loss)",
     "# print(total_reward)", "print(total_reward - score)", "print('total_reward', 3)"],
)  # fmt: skip
def test_numbers_alone_on_their_lines_stay_without_a_name(tmp_path, source):
    text = "".join(f"{n / 2}\n" for n in range(40))
    assert (
        claim(save(tmp_path / "a.ipynb", code(f"agent.learn()\n{source}", printed(text)))) is None
    )


def test_a_data_frame_counts_where_nothing_else_does(tmp_path):
    frame = pd.DataFrame({"step": range(0, 80, 10), "reward": REWARDS[:8], "note": ["x"] * 8})
    path = save(tmp_path / "a.ipynb", code("frame", shown(frame.to_html())))
    log = read_log(path)
    assert log.series["reward"].values.tolist() == REWARDS[:8].tolist()
    text = {"output_type": "execute_result", "data": {"text/plain": frame.to_string()}}
    path = save(tmp_path / "b.ipynb", code("train()", text))
    assert read_log(path).series["reward"].steps.tolist() == list(range(0, 80, 10))


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ([code(GRPO)], "without outputs"),
        ([code("print(1)", printed("Reward of a policy: 1.0\n"))], "no training"),
        ([code("play(env)", printed(boxes()))], "no training"),
    ],
)
def test_a_notebook_without_a_training_is_no_run(tmp_path, cells, problem):
    path = save(tmp_path / "a.ipynb", *cells)
    assert claim(path) is None
    with pytest.raises(UnreadableLog, match=problem):
        read_log(path)


EPISODES = "".join(f"Episode {n} reward {n * 1.5}\n" for n in range(20))
LOSSES = "".join(f"Episode {n} reward {n * 1.5} loss {2.5 / (n + 1):.3f}\n" for n in range(20))


@pytest.mark.parametrize(
    ("source", "text", "count"),
    [
        ("from_pretrained('x')\nevaluate_policy(model, env)", EPISODES, 0),
        ("model.predict(observation)", EPISODES, 0),
        ("loss.backward()\nevaluate(policy)", EPISODES, 1),
        ("train_dqn(env)", EPISODES, 1),
        ("test = 1\nstats = ppo_trainer.step(queries, responses, rewards)", EPISODES, 1),
        ("table[state] += learning_rate * random()", EPISODES, 1),
        ("!python -m verl.trainer.main_ppo data.test=1", LOSSES, 1),
        ("", EPISODES, 1),
    ],
)
def test_episodes_of_a_trained_policy_are_no_training(tmp_path, source, text, count):
    path = save(tmp_path / "a.ipynb", code(source, printed(text)))
    assert (claim(path) is not None) == bool(count)
    path = save(tmp_path / "b.ipynb", code(source, printed(text)), code(SB3, printed(boxes())))
    assert len(sources.find(path)) == count + 1 - (not source)


def test_a_folder_of_notebooks(tmp_path):
    save(tmp_path / "a.ipynb", code(GRPO, shown(tracker(grpo_rows(), 40))))
    save(tmp_path / "b.ipynb", code(SB3, printed(boxes())))
    save(tmp_path / "c.ipynb", code("import numpy"))
    assert [run.name for run in sources.find(tmp_path)] == ["a", "b"]


def test_version_3_of_the_format(tmp_path):
    error = {"output_type": "pyerr", "ename": "ValueError", "evalue": "no", "traceback": []}
    stream = {"output_type": "stream", "stream": "stdout", "text": boxes()}
    cell = {"cell_type": "code", "input": SB3.splitlines(keepends=True), "outputs": [stream, error]}
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"nbformat": 3, "worksheets": [{"cells": [cell]}]}))
    log = read_log(path)
    assert len(log.series["rollout/ep_rew_mean"]) == 30
    assert log.ending.traceback == "ValueError: no"


def test_images_and_pages_are_passed_over(tmp_path):
    image = {"output_type": "display_data", "data": {"image/png": "!" * 2**20}}
    page = shown("<div>" + "<b>x</b>" * 1000)
    path = save(tmp_path / "a.ipynb", code(SB3, image, printed(boxes()), page))
    assert len(read_log(path).series["rollout/ep_rew_mean"]) == 30


@pytest.mark.parametrize("indent", [None, 1])
def test_a_cut_notebook_reads_as_what_stands_before_the_cut(tmp_path, indent):
    path = tmp_path / "a.ipynb"
    save(path, code(GRPO, shown(tracker(grpo_rows(), 40))), indent=indent)
    data = path.read_bytes()
    full = log_checks.points(notebook_outputs.READER.read(path, None)[0])
    lengths = []
    for size in range(len(data) // 4, len(data), len(data) // 40):
        path.write_bytes(data[:size])
        log, _ = notebook_outputs.READER.read(path, None)
        assert DAMAGED_NOTE in log.notes
        part = log_checks.points(log)
        for key, columns in part.items():
            np.testing.assert_array_equal(columns, full[key][:, : columns.shape[1]])
        lengths.append(part["reward"].shape[1])
    assert lengths == sorted(lengths)
    assert lengths[0] < 15
    assert lengths[-1] > 35


def test_damage_in_one_cell_leaves_the_others(tmp_path):
    cells = (code("x = 1", printed("one\n" * 9)), code(SB3, printed("0\n"), printed(boxes())))
    text = json.dumps(document(*cells))
    for broken in (text.replace("one\\n", 'on"e', 1), text.replace('"0\\n"', "#", 1)):
        path = tmp_path / "a.ipynb"
        path.write_text(broken)
        log = read_log(path)
        assert len(log.series["rollout/ep_rew_mean"]) == 30
        assert DAMAGED_NOTE in log.notes


def test_damaged_bytes_never_raise_anything_else(tmp_path):
    path = tmp_path / "a.ipynb"
    save(path, code(GRPO, shown(tracker(grpo_rows(), 40))), code(SB3, printed(boxes(5))))
    log_checks.check_damage(notebook_outputs.READER, path, path.read_bytes(), rounds=90)


@pytest.mark.parametrize(
    "value", [None, 7, "x", [], {}, [None], [[1]], {"text/html": 3}, ["<table>" * 9], [{"a": 1}]]
)
def test_fields_of_another_type(tmp_path, value):
    table = shown(tracker(grpo_rows(), 40))
    for field in ("cell_type", "source", "outputs", "metadata"):
        read_all(tmp_path, document({**code(GRPO, table), field: value}))
    for field in ("output_type", "data", "metadata"):
        read_all(tmp_path, document(code(GRPO, {**table, field: value})))
    for field in ("ename", "evalue", "traceback"):
        read_all(tmp_path, document(code(GRPO, {**failed("ValueError", "no"), field: value})))
    for field in ("cells", "nbformat", "worksheets"):
        read_all(tmp_path, {**document(code(GRPO, table)), field: value})


def read_all(folder, content):
    path = folder / "a.ipynb"
    path.write_text(json.dumps(content))
    try:
        for run in sources.find(path):
            sources.read(run)
    except UnreadableLog as error:
        assert str(path) in error.where  # noqa: PT017 - both outcomes are allowed


def test_hostile_nesting_ends(tmp_path):
    cells, is_damaged = read_cells(b'{"cells": [' + b'{"id": ' * 200_000)
    assert (cells, is_damaged) == ([], True)
    path = tmp_path / "a.ipynb"
    path.write_bytes(b"[" * 100_000)
    with pytest.raises(UnreadableLog):
        read_log(path)


def test_nothing_in_the_source_is_executed(tmp_path):
    mark = tmp_path / "executed"
    source = f"args = GRPOConfig(seed=open({str(mark)!r}, 'w').write('x'), beta=0.1)"
    path = save(tmp_path / "a.ipynb", code(source, shown(tracker(grpo_rows(), 40))))
    assert read_log(path).settings["beta"] == 0.1
    assert not mark.exists()


def test_a_pasted_notebook(tmp_path, monkeypatch):
    path = save(tmp_path / "a.ipynb", code(GRPO, shown(tracker(grpo_rows(), 40))))
    (tmp_path / "pasted").mkdir()
    with path.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        copy = standard_input.save(tmp_path / "pasted")
    assert len(read_log(copy).series["reward"]) == 40


def test_a_token_in_the_source_is_no_setting(tmp_path):
    source = (
        "GRPOConfig(hub_token='hf_abcdefghijklmnopqrstuvwxyz012345', beta=0.1)\ntrainer.train()"
    )
    path = save(tmp_path / "a.ipynb", code(source, shown(tracker(grpo_rows(), 40))))
    (log,) = sources.read(sources.find(path)[0])
    assert log.settings["beta"] == 0.1
    assert "hf_" not in str(log)

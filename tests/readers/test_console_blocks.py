"""Console output with a key a line, tables of text, and dicts over several lines.

Formats: rich's `table.py`, `panel.py` (tinker-cookbook 0.6 `ml_log.py`, PrettyPrintLogger); verl
1dda039 `aggregate_logger.py` (LocalLogger), its line broken by a paste; OpenRLHF v0.7.5
`ppo_trainer.py` (the bar's short words); Ray 2.60 `exceptions.py`, `node_manager.cc`; DeepSpeed
`launcher/launch.py`.
"""

import json

import pytest

import rlvitals
from rlvitals.metrics import canonicalize
from rlvitals.readers import console
from rlvitals.readers.formats.lines import read_head

STEPS = range(1, 6)
BLOCKS = {
    "heading and indent": "Step {n}:\n  reward: 0.{n}\n  kl: 0.01\n  note: fine\n\n",
    "ruled heading": "=== Iteration {n}/9 ===\nreward = 0.{n}\nkl = 0.01\n",
    "panel": "╭──── Step {n} ────╮\n│ reward    0.{n} │\n│ kl        0.01 │\n╰────────────────╯\n",
    "texts between": "Sanity check @ step {n}\nPrompt: Why 2 and 3?\n\nReward:  0.{n}\nKL:  0.01\n",
    "results": "Episode {n} Results:\n   reward: 0.{n} (avg10: 0.1)\n   kl: 0.01\n",
    "a box with its step": "======\n  episode  |  {n}\n  reward   |  0.{n}\n  kl  |  0.01\n",
    "a tree": "Episode {n}\n├─ reward: 0.{n}\n└─ kl: 0.01\n",
    "dots": ">>> Game {n}\n   reward ..... 0.{n}\n   kl ..... 0.01\n",
    "json over lines": '{{\n  "step": {n},\n  "reward": 0.{n},\n  "kl": 0.01\n}}\n',
    "dict over lines": "INFO start\n{{'step': {n},\n 'reward': 0.{n},\n 'kl': 0.01}}\n",
}
TABLES = {
    "markdown": ("| Step | reward | `kl` |\n|---:|---|---|\n", "| {n} | **0.{n}** | 0.01 |\n"),
    "quoted": ("> | step | reward | kl |\n> |---|---|---|\n", "> | {n} | 0.{n} | 0.01 |\n"),
    "spaces": ("Step   reward   kl\n", "{n}      0.{n}      0.01\n"),
    "of a total": ("Episode   reward   kl\n", "{n}/500      0.{n}      0.01\n"),
    "lines between": ("Step   reward   kl\n", "{n}      0.{n}      0.01\nSaving model...\n"),
    "ranges": ("| steps | reward | kl |\n|--|--|--|\n", "| 0-{n} | 0.{n} | 0.01 |\n"),
}
TEXTS = {name: "".join(block.format(n=n) for n in STEPS) for name, block in BLOCKS.items()} | {
    name: "What I see:\n\n" + head + "".join(row.format(n=n) for n in STEPS)
    for name, (head, row) in TABLES.items()
}


def read(tmp_path, text, name="a.log"):
    path = tmp_path / name
    path.write_text(text)
    assert console.claims(path, read_head(path)) or console.claims_single(path, read_head(path))
    return console.READER.read(path, None)[0]


@pytest.mark.parametrize("name", TEXTS)
def test_rows_that_stand_over_lines_or_in_tables_are_read(tmp_path, name):
    # A log that starts with a brace is a document: the console reader takes it where text precedes.
    log = read(tmp_path, f"Training starts\n{TEXTS[name]}")
    assert log.series["reward"].steps.tolist() == list(STEPS)
    assert log.series["reward"].values.tolist() == [n / 10 for n in STEPS]
    assert log.series["kl"].values.tolist() == [0.01] * 5


def test_one_pair_right_below_its_heading_is_a_row(tmp_path):
    text = "".join(f"Training episode {n} / 500\nreward_sum: 0.{n}\n" for n in STEPS)
    log = read(tmp_path, f"Training starts\n{text}")
    assert log.series["reward_sum"].steps.tolist() == list(STEPS)


def test_a_window_is_no_part_of_a_key(tmp_path):
    row = "\nTimestep: {n}\nMean Reward (last 100 episodes): 0.{n}\nMean Length: 20.0\n"
    log = read(tmp_path, "Training starts\n" + "".join(row.format(n=n) for n in STEPS))
    assert log.series["mean_reward"].steps.tolist() == list(STEPS)


def test_reading_goes_on_where_it_stopped_within_a_block(tmp_path):
    text = TEXTS["heading and indent"]
    cut = text.index("kl: 0.01", text.index("Step 4"))
    path = tmp_path / "a.log"
    path.write_text(text[:cut])
    first, cursor = console.READER.read(path, None)
    path.write_text(text)
    second = console.READER.read(path, cursor)[0]
    kl = [*first.series["kl"].steps.tolist(), *second.series["kl"].steps.tolist()]
    assert kl == list(STEPS)


def test_one_table_of_a_framework_is_a_row(tmp_path):
    table = (
        "                Step 7\n┏━━━━━━━━━┳━━━━━━━┓\n┃ Metric  ┃ Value ┃\n┡━━━━━━━━━╇━━━━━━━┩\n"
        "│ env/all/reward/total │ 0.25 │\n│ optim/entropy        │ nan  │\n└───────────┴───────┘\n"
    )
    log = read(tmp_path, table)
    assert log.series["env/all/reward/total"].steps.tolist() == [7]
    assert str(log.series["optim/entropy"].values[0]) == "nan"


def test_keys_pasted_without_a_step_are_one_row(tmp_path):
    text = "actor/entropy: 0.31\nactor/grad_norm: nan\ncritic/score/mean: 0.0\nactor/pg_loss: nan\n"
    log = read(tmp_path, text)
    assert {key: len(series) for key, series in log.series.items()} == dict.fromkeys(
        ("actor/entropy", "actor/grad_norm", "critic/score/mean", "actor/pg_loss"), 1
    )


@pytest.mark.parametrize(
    "text",
    [
        "Step 1:\n  open: 3\n  click: 4\nStep 2:\n  see: 5\n  wait: 6\nStep 3:\n  a: 1\n  b: 2\n",
        "Epoch 3\nsome prose about rewards\nand more of it\n",
        "| Step | what to do |\n|---|---|\n| 1 | install |\n| 2 | run |\n| 3 | read |\n",
        "start\n" + json.dumps({"learning_rate": 1e-5, "max_grad_norm": 1.0, "epoch": 3}, indent=1),
    ],
    ids=["a guide", "prose", "a table of steps to take", "settings"],
)
def test_guides_and_settings_are_no_rows(tmp_path, text):
    path = tmp_path / "a.txt"
    path.write_text(text)
    assert not console.claims(path, read_head(path))
    assert not console.READER.read(path, None)[0].series


def test_verls_line_goes_on_below_where_a_paste_breaks_it(tmp_path):
    row = "step:{n} - actor/entropy:0.{n} - actor/kl_loss:0.01 -\nactor/grad_norm:np.float64(nan)\n"
    row += "- critic/score/mean:0.5 - actor/pg_loss:0.1\nINFO saved to a:7\n"
    log = read(tmp_path, "".join(row.format(n=n) for n in STEPS))
    assert {key: len(series) for key, series in log.series.items()} == dict.fromkeys(
        (
            *("actor/entropy", "actor/kl_loss", "actor/grad_norm"),
            *("critic/score/mean", "actor/pg_loss"),
        ),
        5,
    )


def test_openrlhfs_bar_is_read_by_its_short_words(tmp_path):
    bar = "Train epoch [1/1]:  {n}0%|#  | {n}/10 [00:10<01:00, 5.00s/it, pg=0.1, rm=0.{n}, ret=1,"
    bar += " glen=300, tlen=400, kl=0.01, act_lr=1e-6]\r"
    trace = canonicalize.trace([read(tmp_path, "".join(bar.format(n=n) for n in STEPS) + "\n")])
    assert trace["outcome/reward"].values.tolist() == [n / 10 for n in range(1, 5)]
    assert trace["language/length_mean"].values.tolist() == [300.0] * 4


ENDINGS = {
    "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.": 137,
    "(raylet) node_manager.cc:3064: 2 Workers (tasks / actors) killed due to memory pressure (OOM),"
    " 0 Workers crashed due to other reasons at node (ID: 3)": 137,
    "[rank3]:[E502 10:00:00.1 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective"
    " operation timeout: WorkNCCL(SeqNum=5) ran for 600023 milliseconds before timing out.": 134,
    "E0101 10:00:00 1 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9)"
    " local_rank: 0 (pid: 12) of binary: /usr/bin/python": -9,
    "[2025-01-01 10:00:00,107] [ERROR] [launch.py:325:sigkill_handler] ['python', '-u', 'a.py']"
    " exits with return code = 1": 1,
}


@pytest.mark.parametrize("line", ENDINGS)
def test_what_ends_a_distributed_run_is_told(tmp_path, line):
    rows = "".join(f"{{'loss': 0.1, 'reward': 0.{n}, 'epoch': 0.1}}\n" for n in STEPS)
    ending = read(tmp_path, f"{rows}{line}\n").ending
    assert ending is not None
    assert ending.exit_code == ENDINGS[line]


def test_no_worker_killed_is_no_end(tmp_path):
    rows = "".join(f"{{'loss': 0.1, 'reward': 0.{n}, 'epoch': 0.1}}\n" for n in STEPS)
    line = "(raylet) 0 Workers (tasks / actors) killed due to memory pressure (OOM)"
    assert read(tmp_path, f"{rows}{line}\n").ending is None


def test_a_table_divided_by_tabs_is_a_csv_file_whatever_its_name(tmp_path):
    """Spinning Up's `progress.txt`: its keys are spelled as its own table knows them."""
    rows = "".join(f"{n}\t{-60.0 + n}\t{50.0}\n" for n in range(30))
    (tmp_path / "progress.txt").write_text(f"Epoch\tAverageEpRet\tEpLen\n{rows}")
    trace = rlvitals.trace(tmp_path)
    assert len(trace["outcome/return"]) == 30

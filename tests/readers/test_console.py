"""Console output: each dialect, how a run ended, what is no training log, growth and damage.

`console/*.log` were printed by Stable-Baselines3 2.9.2 (PPO) and by TRL 1.16 on transformers 5.23
(GRPOTrainer, SFTTrainer with evaluation); the other lines follow their writers' format strings.
"""

import time
from pathlib import Path

import numpy as np
import pytest
from waiting import HANG_CPU_SECONDS

import rlvitals
from rlvitals.diagnosis.verdict import Word, verdict
from rlvitals.errors import UnreadableLog
from rlvitals.metrics import canonicalize
from rlvitals.readers import console
from rlvitals.readers.discovery import sources
from rlvitals.readers.formats.lines import REPLACED_NOTE, read_head
from rlvitals.readers.select import claim
from rlvitals.types import Profile

READER = console.READER
RECORDED = Path(__file__).parent / "console"


@pytest.fixture
def write(tmp_path):
    def make(text, name="train.log"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


@pytest.fixture
def read(write):
    def make(text, name="train.log"):
        path = write(text, name)
        reader = claim(path)
        assert reader.name == READER.name
        return reader.read(path, None)[0]

    return make


def points(log, key):
    series = log.series[key]
    return list(zip(series.steps.tolist(), series.values.tolist(), strict=True))


NSR = """\
NSR TRAINING CONFIGURATION:
  Training mode: nsr
  Training samples: 100
  Epochs: 1
  Reward threshold: 0.5

✓ NSR reward filtering enabled
  → Training only on NEGATIVE samples

Training:
NSR [Step 0]: 2/4 negative samples | Avg reward: -2.145
NSR [Step 10]: 3/4 negative samples | Avg reward: -1.892
Format rewards: [2.0, 0.0, 2.0, 0.0]
Rewards Accuracy: [1.0, 0.0, 1.0, 1.0]
NSR [Step 20]: 0/4 negative samples | Avg reward: -0.845
Training progress: 100% 50/50 [30:00<00:00, 36.00s/it]
✓ Training completed successfully
✓ Model saved to grpo-start-ckpts/nsr-2025/
"""


def test_negative_samples_and_the_block_of_settings(read):
    log = read(NSR, "logs/debug.log")
    assert points(log, "nsr/negative_samples") == [(0, 2.0), (10, 3.0), (20, 0.0)]
    assert points(log, "nsr/negative_ratio") == [(0, 0.5), (10, 0.75), (20, 0.0)]
    assert points(log, "nsr/avg_reward") == [(0, -2.145), (10, -1.892), (20, -0.845)]
    assert points(log, "rewards/format_reward/mean") == [(10, 1.0)]
    assert points(log, "rewards/accuracy_reward/mean") == [(10, 0.75)]
    assert points(log, "time_per_step") == [(50, 36.0)]
    assert log.settings == {
        "mode": "nsr",
        "train_samples": 100,
        "num_train_epochs": 1,
        "reward_threshold": 0.5,
        "total_steps": 50,
    }
    assert log.ending.exit_code == 0
    trace = canonicalize.trace([log])
    assert trace.profile is Profile.NSR
    assert trace.budget.steps == 50
    assert "language/negative_share" in trace


def test_positive_and_weighted_samples(read):
    log = read(
        "INFO:train:PSR [Step 0]: 3/4 positive samples | Avg reward: 5.234\n"
        "W-REINFORCE [Step 1]: 3 pos (λ=0.1) + 1 neg (λ=1.0) | Avg reward: nan\n"
    )
    assert points(log, "psr/positive_ratio") == [(0, 0.75)]
    assert points(log, "w_reinforce/positive_samples") == [(1, 3.0)]
    assert points(log, "w_reinforce/pos_neg_ratio") == [(1, 3 / (1 + 1e-6))]
    assert np.isnan(log.series["w_reinforce/avg_reward"].values[0])
    assert log.settings == {"lambda_psr": 0.1}


def test_rewards_that_lead_their_step(read):
    batches = [
        f"Format rewards: [{n}.0, 0.0]\nPSR [Step {n}]: 1/2 positive samples | Avg reward: 1\n"
        for n in (1, 2, 3)
    ]
    log = read("".join(batches))
    assert points(log, "rewards/format_reward/mean") == [(1, 0.5), (2, 1.0), (3, 1.5)]


def test_rewards_without_any_step_are_counted(read):
    lines = "".join(f"Format rewards: [{n}.0]\nLength Rewards: [0.5]\n" for n in (1, 2, 3))
    log = read(lines)
    assert points(log, "rewards/format_reward/mean") == [(1, 1.0), (2, 2.0)]  # the last waits
    assert log.notes == ("rewards without a step: counted by batch",)


UPDATE = (
    "2025-09-18 10:00:0{n},123 - vidur - INFO - [PPO:update] step={step} len=128 pi=-0.001000"
    " vf=0.020000 ent=1.2000 kl=0.00400 clip=0.100 ev=0.300 gnorm=0.500 lr=3.00e-04"
    " R(mean/std/min/max)=0.1000/0.2000/-0.3000/nan Adv_std=1.0000 V/Ret=0.1000/0.2000"
    " mask=1.000 act=[30, 98]\n"
)


def test_the_schedulers_lines(read):
    log = read(
        "[PPO:init] mode=hybrid | h=320 L=2 GRU=2 | lr=3.00e-04 gamma=0.950 lam=0.900 clip=0.15"
        " ent=0.020 vf=0.500 epochs=8 roll=128 mb=64 gnorm=1.00 | lat_w=0.050 bal_w=0.200\n"
        "[PPO:rollout] step=64 buf_ptr=64/128 current_r=0.25\n"
        + "".join(UPDATE.format(n=n, step=128 * n) for n in (1, 2))
    )
    assert points(log, "buffer_progress") == [(64, 0.5)]
    assert points(log, "reward") == [(64, 0.25)]
    assert points(log, "approx_kl") == [(128, 0.004), (256, 0.004)]
    assert points(log, "reward_min") == [(128, -0.3), (256, -0.3)]
    assert np.isnan(log.series["reward_max"].values).all()
    assert points(log, "return_mean")[0] == (128, 0.2)
    assert points(log, "action_replica_1") == [(128, 98.0), (256, 98.0)]
    assert np.diff(log.series["entropy"].times).tolist() == [1.0]
    assert log.settings["epochs"] == 8
    trace = canonicalize.trace([log])
    assert trace.profile is Profile.SCHEDULER_PPO
    assert trace.settings["clip_range"] == 0.15
    assert trace.settings["batch_size"] == 128


def test_stable_baselines3(read):
    log = read((RECORDED / "sb3.log").read_text(), "nohup.out")
    assert points(log, "rollout/ep_rew_mean") == [
        (128, 30.0),
        (256, 22.3),
        (384, 26.7),
        (512, 27.5),
    ]
    assert points(log, "train/approx_kl")[0] == (256, 2.1502376e-05)
    assert "time/total_timesteps" not in log.series
    assert log.step_unit == "environment steps"
    assert canonicalize.trace([log]).profile is Profile.CONTROL_PPO


def box(rows, width=8):
    """Print a table as Spinning Up and Baselines do."""
    lines = [f"| {key:>15} | {cell:>{width}} |" for key, cell in rows]
    return "\n".join(["-" * 30, *lines, "-" * 30, ""])


def test_older_tables(read):
    log = read(
        box([("AverageEpRet", "12.3"), ("Epoch", "3"), ("TotalEnvInteracts", "1.2e+04")])
        + "between\n"
        + box([("AverageEpRet", "nan"), ("Epoch", "4"), ("TotalEnvInteracts", "1.6e+04")])
    )
    assert log.step_unit == "epochs"
    assert log.series["AverageEpRet"].steps.tolist() == [3, 4]
    np.testing.assert_array_equal(log.series["AverageEpRet"].values, [12.3, np.nan])
    old = read(box([("EpRewMean", "7"), ("EpLenMean", "9"), ("TimestepsSoFar", "2048")]))
    assert points(old, "EpRewMean") == [(2048, 7.0)]


def test_a_key_cut_to_fit_the_box_is_completed(read):
    log = read(
        "-----------------------------\n| train/         |    |\n|    policy_gradient... | 1 |\n"
        "|    lost_of_mine... | 2 |\n| time/ | |\n|    total_timesteps | 64 |\n----------------\n"
    )
    assert points(log, "train/policy_gradient_loss") == [(64, 1.0)]
    assert points(log, "train/lost_of_mine") == [(64, 2.0)]


def test_areals_grid(read):
    log = read(
        "20260131-10:00:00.123 StatsLogger INFO: Epoch 1/2 Step 3/10 Train step 3/20 done.\n"
        "╒═══════╤══════╤═══════╤═════╕\n"
        "│ ppo_actor/loss/avg │ 1.2500e-01 │ reward │ 5.0000e-01 │\n"
        "╘═══════╧══════╧═══════╧═════╛\n"
    )
    assert points(log, "ppo_actor/loss/avg") == [(3, 0.125)]
    assert points(log, "reward") == [(3, 0.5)]
    assert log.settings == {"total_steps": 20}


RSL = """\
################################################################################
                      \x1b[1m Learning iteration {n}/1500 \x1b[0m

                            Total steps: 100000
                       Steps per second: 45000
                        Collection time: 1.200s
                        Mean value loss: 0.0123
                            Mean reward: {reward}
                 Mean episode rew_track: 0.5000
--------------------------------------------------------------------------------
                         Iteration time: 1.50s
                           Time elapsed: 0:00:12
                                    ETA: 0:40:00
"""


def test_rsl_rl(read):
    log = read(RSL.format(n=12, reward="12.34") + RSL.format(n=13, reward="nan"))
    np.testing.assert_array_equal(log.series["Train/mean_reward"].values, [12.34, np.nan])
    assert points(log, "Loss/value") == [(12, 0.0123), (13, 0.0123)]
    assert points(log, "Episode/rew_track")[0] == (12, 0.5)
    assert points(log, "Perf/collection_time")[0] == (12, 1.2)
    assert log.step_unit == "iterations"
    assert log.settings == {"total_steps": 1500}


def test_a_trainers_rows_take_their_steps_from_the_bar(read):
    log = read((RECORDED / "grpo.log").read_text())
    assert log.series["reward"].steps.tolist() == list(range(2, 21, 2))
    assert log.series["reward"].values[:3].tolist() == [0.125, 0.25, 0.0]
    assert points(log, "train_runtime") == [(20, 0.3845)]
    assert log.settings == {"total_steps": 20}
    assert log.step_unit == "steps"
    assert canonicalize.trace([log]).profile is Profile.GRPO


def test_evaluations_between_rows(read):
    log = read((RECORDED / "sft.log").read_text())
    assert log.series["loss"].steps.tolist() == list(range(3, 31, 3))[: len(log.series["loss"])]
    assert points(log, "eval_loss") == [(10, 3.859), (20, 3.82), (30, 3.807)]
    assert log.settings == {"total_steps": 30}


def test_a_row_waits_for_its_bar_whatever_is_printed_between(read):
    rows = [f"{{'loss': '{n}', 'epoch': '1'}}\nSaving a checkpoint\n" for n in (1, 2)]
    log = read(
        bar(1, 9, description="")
        + "\r"
        + rows[0]
        + bar(2, 9, description="")
        + "\r"
        + rows[1]
        + bar(5, 9, description="")
        + "\n"
    )
    assert points(log, "loss") == [(2, 1.0), (5, 2.0)]


def test_rows_held_back_in_a_buffer_are_counted(read):
    rows = "".join(f"{{'loss': '{n}', 'epoch': '1'}}\n" for n in (1, 2, 3))
    bars = "".join(bar(n, 90, description="") for n in range(30))
    log = read(bars + "\r" + rows + bars + "\n")
    assert points(log, "loss") == [(1, 1.0), (2, 2.0), (3, 3.0)]
    assert (log.step_unit, log.notes) == ("rows", ("rows without a step: counted",))
    assert "total_steps" not in log.settings


def test_a_trainers_rows_without_a_bar_are_counted(read):
    log = read(
        "{'loss': 0.5, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.5}\n"
        "{'eval_loss': 0.4, 'epoch': 0.5}\n"
        "{'loss': 0.25, 'grad_norm': np.float64(2.0), 'learning_rate': 0.0, 'epoch': 1.0}\n"
        "{'train_runtime': 12.5, 'train_loss': 0.375, 'epoch': 1.0}\n"
    )
    assert points(log, "loss") == [(1, 0.5), (2, 0.25)]
    assert points(log, "eval_loss") == [(1, 0.4)]
    assert points(log, "train_runtime") == [(2, 12.5)]
    assert points(log, "grad_norm")[1] == (2, 2.0)
    assert log.step_unit == "rows"
    assert log.notes == ("rows without a step: counted",)


@pytest.mark.parametrize(
    "head",
    ["step {n}: ", "[2026-01-31 10:00:00] model.py:918 - step {n}: ", "✨ Global step {n}: "],
)
def test_dicts_with_a_step(read, head):
    rows = [head.format(n=n) + f"{{'train/loss': {n / 2}, 'x': 'text'}}\n" for n in (1, 2)]
    assert points(read("".join(rows)), "train/loss") == [(1, 0.5), (2, 1.0)]


def test_rows_of_the_reference_implementation_of_dpo(tmp_path):
    rows = [
        f"train stats after {32 * n} examples: {{'rewards_train/chosen': '{n}', 'rewards_train/"
        f"rejected': '{-n}', 'rewards_train/accuracies': '0.75', 'rewards_train/margins': "
        f"'{2 * n}',"
        f" 'loss/train': '0.6', 'counters/examples': {32 * n}, 'counters/updates': {n}}}\n"
        for n in range(1, 9)
    ]
    evaluation = "eval after 128: {'rewards_eval/accuracies': '0.5', 'loss/eval': '0.7'}\n"
    path = tmp_path / "train.log"
    path.write_text("".join((*rows[:4], evaluation, *rows[4:])))
    trace = rlvitals.open(path)
    assert trace["preference/margin"].values.tolist() == [2.0 * n for n in range(1, 9)]
    assert trace["preference/margin"].steps.tolist() == [32 * n for n in range(1, 9)]
    assert trace["preference/eval_accuracy"].steps.tolist() == [128]
    assert trace.step_unit == "samples"
    assert trace.profile is Profile.SUPERVISED


def bar(n, total, postfix="", description="Training: "):
    share = 100 * n // total
    return f"\r{description}{share:3d}%|███   | {n}/{total} [00:10<00:12, 2.00it/s{postfix}]"


def test_a_bars_history_on_one_line(read):
    states = [bar(n, 4, f", loss={loss}") for n, loss in ((0, 9), (1, 9), (1, 1), (2, 1), (2, 0.5))]
    log = read("".join(states) + bar(4, 4, ", loss=0.25, v_num=3") + "\n")
    assert points(log, "loss") == [(1, 1.0), (2, 0.5), (4, 0.25)]
    assert points(log, "time_per_step") == [(1, 0.5), (2, 0.5), (4, 0.5)]
    assert log.settings == {"total_steps": 4}


def test_a_bar_an_epoch_counts_on(read):
    states = [
        bar(n, 2, f", train_loss={epoch}.{n}", f"Epoch {epoch}: ")
        for epoch in (0, 1, 2)
        for n in (1, 2)
    ]
    log = read("".join(states) + "\n")
    assert points(log, "train_loss")[2:4] == [(3, 1.1), (4, 1.2)]
    assert "total_steps" not in log.settings


def test_bars_of_other_work_count_nothing(read):
    lines = [
        bar(n, 5, "", f"{what}: ")
        for what in ("Map", "Loading weights", "Evaluating")
        for n in (1, 5)
    ]
    log = read("".join(lines) + "\n" + NSR)
    assert log.settings["total_steps"] == 50
    assert points(log, "time_per_step") == [(50, 36.0)]


def test_cleanrl(read):
    log = read(
        "global_step=22, episodic_return=[22.]\nSPS: 1234\n"
        "global_step=47, episodic_return=25.5\nglobal_step=59, episodic_return=[np.float32(12.0)]\n"
    )
    assert points(log, "charts/episodic_return") == [(22, 22.0), (47, 25.5), (59, 12.0)]
    assert log.step_unit == "environment steps"


def test_verl_behind_ray(read):
    log = read(
        "\x1b[36m(TaskRunner pid=123)\x1b[0m step:1 - actor/pg_loss:0.1 - critic/score/mean:"
        "np.float64(0.5)\n(TaskRunner pid=123, ip=10.0.0.1) step:2 - actor/pg_loss:-2e-05\n"
    )
    assert points(log, "actor/pg_loss") == [(1, 0.1), (2, -2e-05)]
    assert points(log, "critic/score/mean") == [(1, 0.5)]


def test_prime_rl(read):
    line = (
        "10:00:0{n} SUCCESS Step {n} |    1.2s | Loss 0.{n} | Entropy 0.5 | Grad. Norm 0.3000 |"
        " LR 1.00e-06 | Throughput 123 tokens/s | MFU 12.5% | Peak Mem. 10.0 GiB\n"
    )
    log = read("".join(line.format(n=n) for n in (1, 2, 3)))
    assert points(log, "loss/mean") == [(1, 0.1), (2, 0.2), (3, 0.3)]
    assert points(log, "optim/grad_norm")[0] == (1, 0.3)
    assert points(log, "perf/mfu")[0] == (1, 12.5)


def test_two_rows_of_prime_rl_are_enough(read):
    line = (
        "[default0]:15:41:3{n} SUCCESS Step {n} | Time: 4.29s | Loss: 0.0000 | Entropy: 0.3571 |"
        " Mismatch KL: 0.0007 | Grad. Norm: 0.0000 | LR: 3.00e-06 | Throughput: 3964 tokens/s |"
        " MFU: 5.4% | Peak Mem.: 17.4 GiB\n"
    )
    log = read("".join(line.format(n=n) for n in (8, 9)))
    assert points(log, "mismatch_kl/all/mean") == [(8, 0.0007), (9, 0.0007)]
    assert points(log, "time/step") == [(8, 4.29), (9, 4.29)]


def test_a_paste_that_lost_the_return_after_a_bar(read):
    log = read(
        "{'loss': 0.3290, 'reward': -2.0304, 'learning_rate': 5e-05}\n"
        "  0%|          | 1/13000 [00:10<36:34:36, 10.13s/it]{'loss': nan, 'reward': 5.7}\n"
        "  0%|          | 2/13000 [00:28<54:33:11, 15.11s/it{'loss': 0.2527, 'reward': 1.2}\n"
    )
    assert [v for _, v in points(log, "reward")] == [-2.0304, 5.7, 1.2]
    assert len(points(log, "loss")) == 3


def test_a_table_pasted_without_its_outer_bars(read):
    log = read(
        "Step | Training Loss | reward | kl | rewards / match_format\n"
        "-- | -- | -- | -- | --\n"
        "1 | 0.000000 | -17.250000 | 0.000000 | 0.500000\n"
        "2 | 0.000100 | -10.500000 | 0.000010 | 0.250000\n"
        "3 | 0.000100 | 0.000000 | 0.000028 | 0.250000\n"
    )
    assert points(log, "reward") == [(1, -17.25), (2, -10.5), (3, 0.0)]
    assert points(log, "rewards/match_format")[0] == (1, 0.5)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("step: {n} loss: {v} reward=1.2", {"loss": "v", "reward": 1.2}),
        ("Episode {n}, reward {v}", {"episode_reward": "v"}),
        ("Episode {n}/9 | Average Reward: {v} | Epsilon: 0.5", {"avg_reward": "v", "epsilon": 0.5}),
        ("Episode    {n} | avg reward:   {v} | epsilon: 0.5", {"avg_reward": "v", "epsilon": 0.5}),
        ("Episode {n}    Reward  {v}", {"episode_reward": "v"}),
        ("step {n} -- mean_reward: ({v}) -- samples:", {"avg_reward": "v"}),
        ("[rank0]:[Step {n}] loss: {v}, lr: 1e-05", {"loss": "v", "lr": 1e-05}),
        ("Iter {n}:  Loss:   {v}   Policy Loss: -0.5", {"loss": "v", "policy_loss": -0.5}),
        ("2026-01-31 10:00:00,1 - a.b - INFO - step={n}, loss={v} (2.5s)", {"loss": "v"}),
        ("2026-01-31 10:00:00.123 | INFO | train:run:7 - step {n} | loss {v}", {"loss": "v"}),
        ("[2026-01-31 10:00:00] [INFO] trainer: step {n}, loss {v}", {"loss": "v"}),
    ],
)
def test_regular_lines(read, line, expected):
    values = [0.5, 0.25, 1e-3]
    log = read("".join(line.format(n=n, v=v) + "\n" for n, v in enumerate(values, 1)))
    for key, value in expected.items():
        found = values if value == "v" else [value] * 3
        assert points(log, key) == list(zip((1, 2, 3), found, strict=True))
    assert len(log.series) == len([k for k in log.series if k in expected])


def test_a_count_without_a_word_is_the_step(read):
    rows = [f"[my run_2]  {n}/50 | loss={n / 10:.4f} | reward={n / 50:.3f} | acc={2 * n}.0%"
            for n in range(1, 9)]  # fmt: skip
    log = read("\n".join(["[my run_2] Loading 3/4 | of it", *rows, ""]))
    assert log.series["reward"].steps.tolist() == list(range(1, 9))
    assert log.series["acc"].values[-1] == pytest.approx(0.16)
    assert log.settings["total_steps"] == 50


def test_lists_of_rewards_are_batches_that_are_counted(read):
    lines = "".join(
        f"answers: no\ntime: 7.{n}s   rewards: tensor([-1.,  {n}., -1., -1.], device='cuda:0')\n"
        for n in range(1, 5)
    )
    log = read(lines)
    assert points(log, "rewards_mean") == [(n, (n - 3) / 4) for n in range(1, 5)]
    assert log.series["reward/std"].values[0] == pytest.approx(1.0)
    assert log.notes == ("lists of rewards without a step: counted",)


def test_lists_of_two_reward_functions_are_not_mixed(read):
    log = read("Accuracy rewards: [1.0, 0.0]\n----\nFormat rewards: [0.0, 0.0]\n" * 4)
    assert points(log, "rewards/accuracy_reward/mean") == [(n, 0.5) for n in range(1, 4)]
    assert points(log, "rewards/format_reward/mean") == [(n, 0.0) for n in range(1, 4)]
    assert "rewards_mean" not in log.series


def test_lists_of_rewards_beside_a_trainers_rows_are_left_out(read):
    rows = "".join(
        f"{{'loss': 0.{n}, 'reward': 0.{n}, 'epoch': {n}}}\nrewards: [0.0, 1.0]\n"
        for n in range(1, 5)
    )
    log = read(rows)
    assert "rewards_mean" not in log.series
    assert len(log.series["reward"]) == 4


def test_dates_give_times(read):
    lines = [f"2026-01-31T10:00:0{n}+00:00 INFO step: {n} loss: 1.0\n" for n in (1, 2, 3)]
    log = read("".join(lines))
    assert log.series["loss"].times.tolist() == [1769853601.0, 1769853602.0, 1769853603.0]


def test_steps_that_start_anew_with_each_epoch(read):
    lines = [f"Epoch: {e}, Step: {n}/3, Loss: 0.5\n" for e in (1, 2) for n in (1, 2, 3)]
    assert read("".join(lines)).series["loss"].steps.tolist() == [1, 2, 3, 4, 5, 6]


def test_rows_that_count_other_steps_are_left_out_and_said(read):
    lines = [f"Episode {n}, reward {n}.5\n" for n in (1, 2, 3)]
    lines += [f"step: {n * 100} loss: 0.5\n" for n in (1, 2, 3)]
    log = read("".join(lines))
    assert list(log.series) == ["episode_reward"]
    assert log.notes == ("3 rows left out: they count other steps",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\nworld\n",
        "step,loss\n1,0.5\n2,0.4\n3,0.3\n",
        '{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.4}\n{"step": 3, "loss": 0.4}\n',
        "127.0.0.1 - - [31/Jan/2026:10:00:00] GET /step/12 200 13\n" * 9,
        "2026-01-31 10:00:00 INFO worker step 12 took 3 ms\n" * 9,
        "Downloading:  10%|█ | 5/50 [00:01<00:12, 2.00it/s]\n" * 9,
        "config: {'learning_rate': 0.1, 'epoch': 3}\n" * 9,
        "| name | loss |\n|------|------|\n| a | 1 |\n| b | 2 |\n" * 3,
        "Step 1: install. Step 2: run, loss of time 5.\n" * 9,
        "Traceback (most recent call last):\n  File 'a'\nKeyError: 3\n",
        "The reward of step 3 was 5.\n" * 9,
        "step: 1 total: 5\nstep: 2 total: 6\nstep: 3 total: 7\n",
        b"\x00\x01step: 1 loss: 2\n" * 9,
    ],
)
def test_what_is_no_trainers_output_is_not_claimed(write, text):
    for name in ("a.log", "a.txt", "a.out", "a.err"):
        path = write(text, name)
        assert not READER.claims(path, read_head(path))


def test_numbers_after_a_long_start_are_found(read):
    assert len(read("loading a library\n" * 10_000 + NSR).series["nsr/avg_reward"]) == 3


TRACEBACK = """\
Traceback (most recent call last):
  File "train.py", line 5, in <module>
    main()
    ~~~~^^
RuntimeError: CUDA out of memory. Tried to allocate 2 GiB
"""
ROWS = "".join(f"global_step={n}, episodic_return={n}.0\n" for n in range(5))


def judged(log):
    trace = canonicalize.trace([log])
    return verdict(trace, ())


POWERSHELL = """\
loading
python : Traceback (most recent call last):
At line:1 char:1
+ python train.py > output.log 2>&1
+ ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    + CategoryInfo          : NotSpecified: (Traceback (most recent call last)::String) [], Error
    + FullyQualifiedErrorId : NativeCommandError
{blank}
  File "C:\\Python39\\lib\\asyncio\\base_events.py", line 642, in{blank}
run_until_complete
    return future.result()
ValueError: ndarray is not C-contiguous
"""


@pytest.mark.parametrize("place", ["At line:1 char:1", "Au caractère Ligne:1 : 1"])
def test_output_that_powershell_redirected_is_read(read, place):
    """In UTF-16, with a remark after the first line of stderr and long lines broken."""
    text = (
        (ROWS + POWERSHELL.format(blank=" "))
        .replace("At line:1 char:1", place)
        .replace("\n", "\r\n")
    )
    log = read(text.encode("utf-16"))
    assert log.series["charts/episodic_return"].values.tolist() == [0, 1, 2, 3, 4]
    assert log.ending.traceback.splitlines()[-1] == "ValueError: ndarray is not C-contiguous"
    assert "line 642, in run_until_complete" in log.ending.traceback
    assert judged(log).word is Word.FAILED


def test_lines_that_look_like_powershell_s_are_kept_among_the_frames(read):
    frames = '  File "train.py", line 5, in <module>\n    return (a\n      + b)\n'
    log = read(f"{ROWS}Traceback (most recent call last):\n{frames}TypeError: no sum\n")
    assert "      + b)" in log.ending.traceback
    assert log.ending.traceback.endswith("TypeError: no sum")


@pytest.mark.parametrize(
    "noise",
    [
        "",
        "\n\nwandb: Run history:\nwandb: loss █▁\n" + "wandb: more\n" * 100,
        "/usr/lib/python3/resource_tracker.py:216: UserWarning: leaked semaphore\n",
        "[rank0]:[W1121 ProcessGroupNCCL.cpp:1496] Warning: destroy_process_group() was not\n",
        "srun: error: n1: task 0: Exited with exit code 1\n",
    ],
)
def test_a_traceback_at_the_end_is_what_ended_the_run(read, noise):
    log = read(ROWS + TRACEBACK + noise)
    assert log.ending.traceback == TRACEBACK.strip()
    assert judged(log).word is Word.FAILED
    assert judged(log).why.startswith(
        "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB (usually: "
    )


def test_of_many_processes_the_first_traceback_tells_and_the_launcher_the_code(read):
    rank = "".join(f"[rank0]: {line}\n" for line in TRACEBACK.splitlines())
    other = TRACEBACK.replace("CUDA out of memory", "NCCL connection lost")
    launcher = (
        "E1121 10:00:00 torch/distributed/elastic/multiprocessing/api.py:874] failed\n"
        + TRACEBACK.replace("RuntimeError: CUDA", "ChildFailedError: CUDA")
        + "====================\ntrain.py FAILED\n--------------------\nRoot Cause:\n"
        "  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 123)\n====================\n"
    )
    log = read(ROWS + rank + other + launcher)
    assert log.ending.traceback == TRACEBACK.strip()
    assert log.ending.exit_code == 1


def test_chained_tracebacks_are_one(read):
    chained = (
        TRACEBACK
        + "\nDuring handling of the above exception, another exception occurred:\n\n"
        + TRACEBACK.replace("RuntimeError", "ValueError")
    )
    log = read(ROWS + chained)
    assert log.ending.traceback.count("Traceback") == 2
    assert judged(log).why.startswith("ValueError")


def test_a_chain_whose_last_link_is_cut_off_says_what_came_before(read):
    link = "\nDuring handling of the above exception, another exception occurred:\n\n"
    log = read(ROWS + TRACEBACK + link + "(pid=1, repr=<Worker>)\n       ^^^^^\n")
    assert log.ending.traceback == TRACEBACK.strip()
    assert judged(log).why.startswith("RuntimeError")


@pytest.mark.parametrize("prefix", ["ERROR:2026-03-26 21:59:41,526:", "2026-03-26 ERROR - "])
def test_a_traceback_that_a_logger_printed_was_caught(read, prefix):
    worker = (
        "(Worker pid=7) " + prefix + TRACEBACK.replace("\n", " [repeated 60x across cluster]\n")
    )
    assert read(ROWS + worker).ending is None
    assert read(ROWS + worker + TRACEBACK).ending.traceback == TRACEBACK.strip()


def test_a_task_that_failed_under_ray_tells_what_it_raised(read):
    quoted = (
        "Traceback (most recent call last):\n"
        '  File "main.py", line 3, in main\n'
        "    ray.get(run.remote())\n"
        "ray.exceptions.RayTaskError(OSError): ray::Runner.run() (pid=1, ip=10.0.0.1)\n"
        "           ^^^^^^\n"
        '  File "trainer.py", line 9, in fit\n'
        "ray.exceptions.RayTaskError(OSError): ray::Worker.save() (pid=2, ip=10.0.0.1)\n"
        '  File "save.py", line 4, in save\n'
    ) + "    more\n" * 30
    log = read(ROWS + quoted + "OSError: [Errno 28] No space left on device\n\nSet HYDRA\n")
    assert judged(log).why.startswith("OSError: [Errno 28] No space left on device (usually: ")


def test_lines_that_ray_prints_once_for_many_workers(read):
    repeated = TRACEBACK.replace("\n", " [repeated 60x across cluster]\n")
    assert read(ROWS + repeated).ending.traceback == TRACEBACK.strip()


def test_a_failure_that_training_outlived_is_a_note(read):
    log = read(ROWS + TRACEBACK + ROWS)
    assert log.ending is None
    assert log.notes == ("a failure was printed, and training went on: line 6",)
    log = read(ROWS + TRACEBACK + "the server goes on\n" * 50)
    assert log.ending is None


def test_the_persons_own_stop_is_no_failure(read):
    stop = TRACEBACK.replace("RuntimeError: CUDA out of memory. Tried", "KeyboardInterrupt")
    log = read(ROWS + stop.replace("KeyboardInterrupt to allocate 2 GiB", "KeyboardInterrupt"))
    assert log.ending is not None
    assert (log.ending.exit_code, log.ending.traceback) == (None, "")
    assert log.notes == ("stopped by hand",)
    assert log.ending.reason == "stopped by hand"
    assert judged(log).word is not Word.FAILED
    launcher = "[2025-02-20 20:27:14,902] [INFO] Main process received SIGINT, exiting\n"
    assert read(ROWS + launcher).ending.reason == "stopped by hand"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("Killed", 137),
        ("python3: can't open file '/home/me/train.py': [Errno 2] No such file or directory", 2),
        ("run.sh: line 3: 12345 Killed                  python train.py", 137),
        ("[1]+  Killed                  nohup python train.py", 137),
        ("Segmentation fault (core dumped)", 139),
        ("Fatal Python error: Segmentation fault", 139),
        ("Aborted (core dumped)", 134),
        ("slurmstepd: error: Detected 1 oom-kill event(s) in step 12.batch cgroup.", 137),
        ("slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-01-31 DUE TO TIME LIMIT ***", None),
        ("srun: error: n1: task 0: Exited with exit code 9", 9),
        ("  exitcode  : -9 (pid: 123)", -9),
        ("make: process exited with code 2", 2),
        ("CUDA out of memory. Tried to allocate 2 GiB", None),
    ],
)
def test_what_else_ends_a_run(read, line, code):
    log = read(ROWS + line + "\n")
    assert log.ending.exit_code == code
    assert judged(log).word is Word.FAILED
    assert line.strip() in judged(log).why or str(code) in judged(log).why


def test_workers_that_stop_with_their_parent_do_not_make_it_a_persons_stop(read):
    worker = "Traceback (most recent call last):\n  File 'w'\nKeyboardInterrupt\n"
    assert read(ROWS + TRACEBACK + worker).ending.traceback == TRACEBACK.strip()
    assert read(ROWS + worker).ending.traceback == ""


def test_a_traceback_is_kept_within_bounds(read):
    frames = '  File "a.py", line 1, in f\n    f()\n' * 20_000
    log = read(ROWS + "Traceback (most recent call last):\n" + frames + "RecursionError: deep\n")
    assert len(log.ending.traceback) < 20_000
    assert log.ending.traceback.endswith("RecursionError: deep")


def test_beside_a_fuller_log_of_the_same_steps_it_adds_what_that_lacks(write):
    write((RECORDED / "sb3.log").read_text() + TRACEBACK, "run/nohup.out")
    write("time/total_timesteps,rollout/ep_rew_mean\n128,30.125\n512,27.5625\n", "run/progress.csv")
    (run,) = sources.find(write("", "run/notes.md").parent)
    trace = canonicalize.trace(sources.read(run))
    assert trace.measured["value/loss"].where == "nohup.out"
    assert trace.lifecycle.traceback == TRACEBACK.strip()
    assert trace.step_unit == "environment steps"


def test_beside_a_log_of_equally_many_points_that_one_is_read(write):
    write((RECORDED / "sb3.log").read_text(), "run/nohup.out")
    rows = "".join(f"{n},30.125\n" for n in (128, 256, 384, 512))
    write(f"time/total_timesteps,rollout/ep_rew_mean\n{rows}", "run/progress.csv")
    (run,) = sources.find(write("", "run/notes.md").parent)
    trace = canonicalize.trace(sources.read(run))
    assert trace.measured["outcome/return"].where == "progress.csv"


def test_beside_a_log_of_other_steps_only_its_end_counts(write):
    lines = "".join(f"global_step={n * 100}, episodic_return={n}.0\n" for n in range(500))
    write(lines + TRACEBACK, "run/output.log")
    write("update,episode_return\n" + "".join(f"{n},{n}\n" for n in range(50)), "run/metrics.csv")
    (run,) = sources.find(write("", "run/notes.md").parent)
    trace = canonicalize.trace(sources.read(run))
    assert (trace.step_unit, trace.last_step) == ("updates", 49)
    assert trace.measured["outcome/return"].where == "metrics.csv"
    assert trace.lifecycle.traceback == TRACEBACK.strip()
    assert any("its numbers are not read" in note for note in trace.notes)


def test_errors_in_a_file_of_their_own(write):
    write(ROWS, "run/job.out")
    write(TRACEBACK, "run/job.err")
    (run,) = sources.find(write(TRACEBACK, "run/other.err").parent)
    assert [file.name for file, _ in run.files] == ["job.err", "job.out"]
    assert canonicalize.trace(sources.read(run)).lifecycle.traceback == TRACEBACK.strip()


def test_what_a_process_printed_beside_the_only_run_of_a_folder_tells_how_it_ended(write):
    write(ROWS, "run/log.txt")
    write(TRACEBACK, "run/console.txt")
    (run,) = sources.find(write("", "run/notes.md").parent)
    assert [file.name for file, _ in run.files] == ["console.txt", "log.txt"]
    assert canonicalize.trace(sources.read(run)).lifecycle.traceback == TRACEBACK.strip()


def test_what_a_process_printed_beside_several_runs_is_of_none(write):
    write(ROWS, "runs/first.log")
    write(ROWS, "runs/second.log")
    runs = sources.find(write(TRACEBACK, "runs/stderr.txt").parent)
    assert [run.name for run in runs] == ["first", "second"]


LOGS = {
    "sample modes": NSR.encode(),
    "scheduler": "".join(UPDATE.format(n=n, step=128 * n) for n in range(4)).encode(),
    "sb3": (RECORDED / "sb3.log").read_bytes()[-2000:],
    "rsl_rl": (RSL.format(n=1, reward=2) + RSL.format(n=2, reward=3)).encode(),
    "sft": (RECORDED / "sft.log").read_bytes()[-3000:],
    "bars": "".join(bar(n, 30, f", loss={n / 7}") for n in range(30)).encode(),
    "pairs": (ROWS + TRACEBACK + ROWS).encode(),
    "regular": "".join(f"step: {n} loss: {n / 7}\r\n" for n in range(30)).encode(),
}


def test_how_it_ended_is_kept_over_readings(write):
    _, cursor = READER.read(write(ROWS + TRACEBACK[:60]), None)
    log, cursor = READER.read(write(ROWS + TRACEBACK), cursor)
    assert log.ending.traceback == TRACEBACK.strip()
    log, _ = READER.read(write(ROWS + TRACEBACK + ROWS), cursor)
    assert log.ending is None


def test_a_file_written_anew_is_read_from_its_start(write):
    _, cursor = READER.read(write(ROWS), None)
    log, _ = READER.read(write(ROWS.replace("=0,", "=7,")), cursor)
    assert REPLACED_NOTE in log.notes
    assert len(log.series["charts/episodic_return"]) == 5


@pytest.mark.parametrize(
    "long",
    [
        b"x" * 100_000_000,
        b"step " * 50_000,
        b"{'a': 1" * 30_000,
        b"-" * 200_000,
        b"\x1b[0;" * 50_000,
        b" " * 200_000,
        b"step:1 - " + b"a:" * 100_000,
        b"| " * 100_000,
    ],
    ids=lambda text: repr(text[:8]),
)
def test_long_lines_take_no_time(write, long):
    path = write(ROWS.encode() + long + b"\n" + ROWS.encode())
    before = time.process_time()
    log, _ = READER.read(path, None)
    assert time.process_time() - before < HANG_CPU_SECONDS
    assert len(log.series["charts/episodic_return"]) == 10


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UnreadableLog):
        READER.read(tmp_path / "none.log", None)


def test_an_exception_pasted_without_its_traceback_ended_the_run(write):
    path = write("ValueError: 4 prompts do not divide by 3 devices\n")
    assert READER.claims_single(path, read_head(path))
    log = READER.read(path, None)[0]
    assert log.ending.traceback == "ValueError: 4 prompts do not divide by 3 devices"


def test_an_exception_in_the_midst_of_a_text_ended_nothing(read):
    rows = "".join(f"step: {i} reward: 0.{i}\n" for i in range(1, 9))
    log = read(f"{rows}ValueError: was handled\nstep: 9 reward: 0.9\n")
    assert log.ending is None


def test_a_named_file_without_a_suffix_is_read_by_its_lines(tmp_path):
    path = tmp_path / "output"
    path.write_text("".join(f"Episode {n}\tReward: {n / 2}\tLoss: 0.{n}\n" for n in range(20)))
    assert READER.claims_single(path, read_head(path))
    assert not READER.claims(path, read_head(path))  # of a folder such files are no runs
    path.write_text("all that was printed is prose\n" * 20)
    assert not READER.claims_single(path, read_head(path))

"""Console output of language models' trainers: NeMo-RL's reports, notebooks, reward functions.

The lines follow the format strings of NeMo-RL's `algorithms/grpo.py`, Kaggle's notebook logs and
R1-V's reward functions.
"""

import json

import numpy as np
import pytest

from rlvitals.metrics import canonicalize
from rlvitals.readers import console
from rlvitals.readers.discovery import sources
from rlvitals.readers.formats.lines import read_head
from rlvitals.readers.select import claim
from rlvitals.types import Profile

READER = console.READER
STEP = """\
========================= Step {n}/50 =========================
\x1b[36m(VllmGenerationWorker pid=5, ip=10.0.0.1)\x1b[0m INFO It took 0.07 seconds to wake up
▶ Training policy...

📊 Training Results:
  • Loss: {loss}
  • Generation KL Error: 0.0006
  • Avg Reward: {reward}
  • Mean Generation Length: 616.4766

⏱️  Timing:
  • Total step time: 44.74s
  • generation: 32.82s (73.4%)

🔍 Performance Metrics:
    - E2E (Tokens/sec): 8262.34
"""
VALIDATION = """\
📊 Validation Results:
    • Accuracy: {accuracy}
    • Average response length: 722.7 tokens
    • Samples processed: 256
"""
ROW = "{{'loss': '0.1', 'grad_norm': '0.2', 'reward': '{reward}', 'epoch': '0.1'}}\r\n"


def nemo(count):
    return "".join(
        STEP.format(n=n, loss=n / 7, reward=n / 10)
        + (VALIDATION.format(accuracy=n / 20) if n % 2 == 0 else "")
        for n in range(1, count + 1)
    )


def stream(count):
    records = [{"stream_name": "stderr", "time": 7.3, "data": "0.00s - Debugger warning\n"}]
    records += [
        {"stream_name": "stdout", "time": 60.0 + n, "data": ROW.format(reward=n / 10)
         + f"\r 3%|█| {n}/9 [00:01<00:02, 1.00s/it]\r"}
        for n in range(1, count + 1)
    ]  # fmt: skip
    first, *rest = map(json.dumps, records)
    return "\n".join([f"[{first}", *(f",{record}" for record in rest), "]"])


LOGS = {"nemo-rl": nemo(6).encode(), "stream": stream(6).encode()}


def points(log, key):
    series = log.series[key]
    return list(zip(series.steps.tolist(), series.values.tolist(), strict=True))


def write(tmp_path, name):
    path = tmp_path / "a.log"
    path.write_bytes(LOGS[name])
    return path


def test_nemo_rl_prints_its_steps_and_validations(tmp_path):
    path = write(tmp_path, "nemo-rl")
    assert claim(path) is READER
    log = READER.read(path, None)[0]
    assert points(log, "train/reward") == [(n, n / 10) for n in range(1, 7)]
    assert points(log, "validation/accuracy") == [(n, n / 20) for n in (2, 4, 6)]
    assert points(log, "performance/tokens_per_sec")[0] == (1, 8262.34)
    assert log.settings == {"total_steps": 50}
    trace = canonicalize.trace([log])
    assert trace.profile is Profile.GRPO
    assert trace["policy/sampler_kl"].values.tolist() == [0.0006] * 6


def test_a_notebooks_stream_records_hold_a_trainers_rows(tmp_path):
    path = write(tmp_path, "stream")
    assert claim(path) is READER
    log = READER.read(path, None)[0]
    assert log.series["reward"].values.tolist() == [n / 10 for n in range(1, 7)]


def test_a_json_list_of_rows_is_no_stream(tmp_path):
    path = tmp_path / "rows.log"
    path.write_text('[{"step": 1, "reward": 0.5}]')
    assert not console.claims(path, read_head(path))


def test_rows_that_come_after_the_whole_bar_are_counted(tmp_path):
    path = tmp_path / "a.log"
    bar = "".join(f"\r 3%|█| {n}/9 [00:01<00:02, 1.00s/it]" for n in range(1, 10))
    path.write_text(bar + "\n" + "".join(ROW.format(reward=n / 10) for n in range(1, 10)))
    log = READER.read(path, None)[0]
    assert log.series["reward"].steps.tolist() == list(range(1, 10))


def accuracy_call(stamp, rewards):
    head = "------------- 22-21-00-{stamp:02d}-161451 Accuracy reward: {reward} -------------"
    return "".join(
        f"{head.format(stamp=stamp, reward=reward)}\nContent: <answer>\n3</answer>\nSolution: 30\n"
        for reward in rewards
    )


def format_call(stamp, matches):
    head = f"------------- 22-21-00-{stamp:02d}-161451 Format reward -------------\n"
    return head + "".join(f"Content: <think>\nHas format: {match}\n" for match in matches)


def test_completions_of_one_call_of_a_reward_function_are_a_row(tmp_path):
    path = tmp_path / "debug_log_2b.txt"
    path.write_text("".join(accuracy_call(n, [0.0, n / 10, n / 10]) for n in range(8)))
    assert claim(path) is READER
    log = READER.read(path, None)[0]
    means = [(n + 1, pytest.approx(n / 15)) for n in range(7)]  # the last call may go on
    assert points(log, "rewards/accuracy_reward/mean") == means
    assert points(log, "rewards/accuracy_reward/std")[6] == (7, pytest.approx(0.34641, abs=1e-5))
    assert log.step_unit == "calls"
    trace = canonicalize.trace([log])
    assert trace.profile is Profile.GRPO
    assert "reward/component/accuracy_reward" in trace


def test_a_call_that_grows_is_read_once(tmp_path):
    path = tmp_path / "debug.txt"
    path.write_text(accuracy_call(1, [1.0, 0.0]) + accuracy_call(2, [1.0]))
    log, cursor = READER.read(path, None)
    assert points(log, "rewards/accuracy_reward/mean") == [(1, 0.5)]
    with path.open("a") as file:
        file.write(accuracy_call(2, [0.0, 0.0, 0.0]) + accuracy_call(3, [1.0]))
    log, _ = READER.read(path, cursor)
    assert points(log, "rewards/accuracy_reward/mean") == [(2, 0.25)]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (accuracy_call(1, ["nan", 1.0]) + accuracy_call(2, [1.0]), "rewards/accuracy_reward/std"),
        ("Accuracy rewards: [nan, 1.0]\nPSR [Step 10]: 3/4 positive samples | Avg reward: 5.2\n",
         "rewards/accuracy_reward/std"),
    ],
    ids=["call", "list"],
)  # fmt: skip
def test_a_reward_that_is_no_number_leaves_no_spread(tmp_path, text, key):
    path = tmp_path / "debug.txt"
    path.write_text(text)
    assert np.isnan(READER.read(path, None)[0].series[key].values).all()


def test_matches_of_a_format_are_its_reward(tmp_path):
    path = tmp_path / "debug_format.txt"
    path.write_text("".join(format_call(n, [True, n > 1, False]) for n in range(4)))
    log = READER.read(path, None)[0]
    assert points(log, "rewards/format_reward/mean") == [
        (1, pytest.approx(1 / 3)), (2, pytest.approx(1 / 3)), (3, pytest.approx(2 / 3))
    ]  # fmt: skip


BAR = "  1%|          | {n}/1000 [00:31<1:43:23,  6.23s/it]"
DICT = "{{'loss': 0.0, 'grad_norm': 1656.2,\n 'completion_length': 212.4, 'reward': {reward}}}\n"


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (BAR.format(n=5) + "\n" + DICT.format(reward=0.5), [5]),
        (BAR.format(n=5) + DICT.format(reward=0.5), [5]),
        (
            "".join(BAR.format(n=n) + DICT.format(reward=n / 10) for n in (5, 6))
            + "Sending completions to the judge...\n",
            [6, 7],
        ),
    ],
)
def test_a_paste_ends_with_rows_that_wait_for_their_bar(tmp_path, text, steps):
    """Wrapped behind a bar or below it, each row is read once, with all that it holds."""
    path = tmp_path / "paste.md"
    path.write_text(f"My run does not learn:\n```\n{text}```\n")
    (run,) = sources.find(path)
    series = sources.read(run)[0].series
    for key in ("grad_norm", "completion_length", "reward"):
        assert series[key].steps.tolist() == steps

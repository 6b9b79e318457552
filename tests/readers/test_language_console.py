"""Console output of language models' trainers: NeMo-RL's reports, notebooks' stream records.

The lines follow the format strings of NeMo-RL's `algorithms/grpo.py` and Kaggle's notebook logs.
"""

import json

from rlvitals.metrics import canonicalize
from rlvitals.readers import console
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

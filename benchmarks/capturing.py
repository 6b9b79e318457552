"""Measure the CPU time that `rlvitals run` adds to the program it records.

The program is PPO on CartPole in CleanRL's style with torch's SummaryWriter. Two measures: the
whole program alone and recorded at the same time, on two cores that are exchanged after each pair,
so that neither a core nor the hour favours one of them, a ratio of the CPU time of all threads; and
`add_scalar` itself, recorded and not, in blocks that take turns in one process, the least of each.
The second leaves out what else the machine does; times the calls of a CPU second of the program it
is the share that following the calls adds.

    python benchmarks/capturing.py [STEPS [PAIRS]]
"""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rlvitals.capture import command

PAIRS, WANTED = 10, 0.02  # runs at the same time; a share of the CPU time, at most
TOTAL_STEPS = 20_480  # environment steps
BLOCKS, CALLS = 30, 200  # of `add_scalar`
TESTS = Path(__file__).resolve().parents[1] / "tests"
END = "\n    import json\n    print(json.dumps([time.process_time(), calls]))\n"
COUNTER = """
calls = 0
class SummaryWriter(SummaryWriter):
    def add_scalar(self, *args):
        global calls
        calls += 1
        super().add_scalar(*args)
"""
CALL_PROGRAM = f"""
import json, time
from torch.utils.tensorboard import SummaryWriter
writer, recorded = SummaryWriter("tb"), SummaryWriter.add_scalar
alone = recorded.__wrapped__
def block(add, step):
    start = time.thread_time()
    for i in range({CALLS}):
        add(writer, "losses/value_loss", 0.5, step + i)
    return (time.thread_time() - start) / {CALLS}
times = [[block(add, {CALLS} * i) for add in (alone, recorded)] for i in range({BLOCKS})]
print(json.dumps([min(seconds) for seconds in zip(*times)]))
"""


def program(steps: int) -> str:
    """Return the training, which prints its CPU seconds and its calls of `add_scalar`."""
    text = (TESTS / "integrations" / "cleanrl_style.py").read_text()
    text = text.replace("total_timesteps = 1024", f"total_timesteps = {steps}")
    line = "from torch.utils.tensorboard import SummaryWriter\n"
    return text.replace(line, line + COUNTER) + END


def start(text: str, folder: Path, *, records: bool, core: int) -> subprocess.Popen[bytes]:
    """Start a program in a new folder, on one core."""
    folder.mkdir()
    (folder / "ppo.py").write_text(text)
    settings = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONHASHSEED": "0"}
    environ = os.environ | settings
    if records:
        (folder / "claims").mkdir()
        environ = command.environment("beside", folder / "rec", folder / "claims", environ)
    words = ["taskset", "--cpu-list", str(core), sys.executable, "ppo.py", "run"]
    return subprocess.Popen(words, cwd=folder, env=environ, stdout=subprocess.PIPE)


def finish(program: subprocess.Popen[bytes], folder: Path, *, records: bool) -> list[float]:
    """Return the numbers that a program prints."""
    output = program.communicate()[0]
    if program.returncode:
        raise RuntimeError(f"the program ended with {program.returncode}")
    if records != (folder / "rec" / "run.json").exists():
        raise RuntimeError("recorded where it should not be, or the other way")
    return [float(number) for number in json.loads(output)]


def run_pair(text: str, core: int) -> tuple[float, float, float]:
    """Run a program alone on `core` of 0 and 1 and recorded on the other, at the same time.

    Return the CPU seconds of both and the calls of `add_scalar`.
    """
    with tempfile.TemporaryDirectory() as name:
        folders = (Path(name) / "alone", Path(name) / "recorded")
        alone = start(text, folders[0], records=False, core=core)
        recorded = start(text, folders[1], records=True, core=1 - core)
        seconds, _ = finish(alone, folders[0], records=False)
        recorded_seconds, call_count = finish(recorded, folders[1], records=True)
    return seconds, recorded_seconds, call_count


def measure_calls() -> list[float]:
    """Return the seconds of a call of `add_scalar`, alone and recorded."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "calls"
        return finish(start(CALL_PROGRAM, folder, records=True, core=0), folder, records=True)


def main(steps: int = TOTAL_STEPS, pairs: int = PAIRS) -> list[str]:
    """Run the pairs and the calls; return the table's rows."""
    logs, alone_seconds, call_count = [], [], 0.0
    for pair in range(pairs):
        seconds, recorded_seconds, call_count = run_pair(program(steps), pair % 2)
        logs.append(math.log(recorded_seconds / seconds))
        alone_seconds.append(seconds)
        print(f"{seconds:.2f} s alone, {recorded_seconds:.2f} s recorded", flush=True)
    alone, recorded = measure_calls()
    second = statistics.median(alone_seconds)
    share = (recorded - alone) * call_count / second
    error = statistics.stdev(logs) / math.sqrt(pairs) if pairs > 1 else math.nan
    ratio = f"{math.exp(statistics.fmean(logs)):.3f} (standard error {error:.3f})"
    call = f"{alone * 1e6:.1f} us | {recorded * 1e6:.1f} us | {share:.1%} for {call_count:,.0f}"
    rows = [
        "| PPO | CPU s alone | recorded, times | `add_scalar` | recorded | its share |",
        "| --- | --- | --- | --- | --- | --- |",
        f"| wanted | | < {1 + WANTED:.2f} | | | < {WANTED:.0%} |",
        f"| {steps:,} steps, {pairs} pairs | {second:.1f} | {ratio} | {call} |",
    ]
    print(*rows, sep="\n")
    return rows


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

"""Measure the CPU time that `rlvitals run` adds to the program it records.

The program is PPO on CartPole in CleanRL's style with torch's SummaryWriter. Two measures: the
whole program in turns alone and recorded, a ratio of the CPU time of all threads for each pair; and
`add_scalar` itself, recorded and not, in blocks that take turns in one process, the least of each.
The second leaves out what else the machine does; times the calls of a CPU second of the program it
is the share that following the calls adds.

    python benchmarks/capturing.py [STEPS [PAIRS]]
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rlvitals.capture import command

PAIRS, WANTED = 5, 0.02  # runs of each kind; a share of the CPU time, at most
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


def run(text: str, *, records: bool) -> list[float]:
    """Run a program; return the numbers that it prints."""

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "ppo.py").write_text(text)
        settings = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONHASHSEED": "0"}
        environ = os.environ | settings
        if records:
            (folder / "claims").mkdir()
            environ = command.environment("beside", folder / "rec", folder / "claims", environ)
        words = [sys.executable, "ppo.py", "run"]
        output = subprocess.run(words, cwd=folder, env=environ, check=True, capture_output=True)
        if records != (folder / "rec" / "run.json").exists():
            raise RuntimeError("recorded where it should not be, or the other way")
        return [float(number) for number in json.loads(output.stdout)]


def main(steps: int = TOTAL_STEPS, pairs: int = PAIRS) -> list[str]:
    """Run the pairs and the calls; return the table's rows."""
    ratios, alone_seconds, call_count = [], [], 0.0
    for pair in range(pairs):
        order = (False, True) if pair % 2 else (True, False)
        seconds = {}
        for records in order:
            seconds[records], call_count = run(program(steps), records=records)
        ratios.append(seconds[True] / seconds[False])
        alone_seconds.append(seconds[False])
        print(f"{seconds[False]:.2f} s alone, {seconds[True]:.2f} s recorded", flush=True)
    alone, recorded = run(CALL_PROGRAM, records=True)
    second = statistics.median(alone_seconds)
    share = (recorded - alone) * call_count / second
    ratio = f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
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

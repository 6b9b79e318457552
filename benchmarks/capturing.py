"""Measure the CPU time that `rlvitals run` adds to the program it records.

The program is PPO on CartPole in CleanRL's style with torch's SummaryWriter. It runs in turns alone
and recorded, each time in a process of its own. Of each pair are compared the CPU time of all
threads from the second update on, as a ratio, and that of the rest, imports and the start and end
of a run, as a difference. The verdict afterwards is not the program's and is left out.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rlvitals.capture import command

PAIRS, WANTED = 3, 0.02  # runs of each kind; a share of the CPU time, at most
TOTAL_STEPS = 61_440  # environment steps
SCRIPT = Path(__file__).resolve().parents[1] / "tests" / "integrations" / "cleanrl_style.py"
LOOP = "    for _iteration in range(args.total_timesteps // batch_size):\n"
MARK = "        start_seconds = time.process_time() if _iteration < 2 else start_seconds\n"
END = "\n    print(start_seconds, time.process_time())\n"


def program() -> str:
    """Return the program, which prints its CPU seconds at the second update and at its end."""
    text = SCRIPT.read_text().replace("total_timesteps = 1024", f"total_timesteps = {TOTAL_STEPS}")
    return text.replace(LOOP, LOOP + MARK) + END


def cpu_seconds(*, records: bool) -> tuple[float, float]:
    """Run the program; return the CPU seconds of its training, and of all else it took."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "ppo.py").write_text(program())
        environ = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        if records:
            (folder / "claims").mkdir()
            environ = command.environment("beside", folder / "recorded", folder / "claims", environ)
        child = subprocess.Popen(
            [sys.executable, "ppo.py", "run"], cwd=folder, env=environ, stdout=subprocess.PIPE
        )
        output = child.stdout.read() if child.stdout else b""
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode or records != (folder / "recorded" / "run.json").exists():
            raise RuntimeError(f"the program ended with {child.returncode}, or was not recorded")
    start, end = map(float, output.split())
    return end - start, usage.ru_utime + usage.ru_stime - (end - start)


def main() -> list[str]:
    """Run the pairs and return the table's rows."""
    ratios, starts, alone_seconds = [], [], []
    for pair in range(PAIRS):
        order = (False, True) if pair % 2 else (True, False)
        seconds = {records: cpu_seconds(records=records) for records in order}
        ratios.append(seconds[True][0] / seconds[False][0])
        starts.append(seconds[True][1] - seconds[False][1])
        alone_seconds.append(seconds[False][0])
        print(f"{ratios[-1]:.3f} times, {starts[-1]:+.2f} s at the start and end", flush=True)
    ratio = f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
    start = f"{statistics.median(starts):.2f} s"
    alone = f"{statistics.median(alone_seconds):.1f}"
    rows = [
        "| program | CPU s of training | recorded, times | start and end |",
        "| --- | --- | --- | --- |",
        f"| wanted | | < {1 + WANTED:.2f} | |",
        f"| PPO, {TOTAL_STEPS:,} steps, {PAIRS} pairs | {alone} | {ratio} | {start} |",
    ]
    print(*rows, sep="\n")
    return rows


if __name__ == "__main__":
    main()

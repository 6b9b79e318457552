"""Train under a scheduler that may stop the job: at SIGTERM save and exit, resume when requeued."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

import rlvitals

STEPS = int(os.environ.get("STEPS", "2000"))


def main(folder: Path) -> int:
    """Train, or go on with a training, and return the exit code."""
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stop.append(number))
    run = rlvitals.start(folder, seed=1)
    checkpoints = rlvitals.Checkpoints(run, every=50)
    state = rlvitals.State(weights=np.zeros(8), dice=np.random.default_rng(1), step=0)
    checkpoints.restore_state(state)
    print(f"from step {state['step']}", flush=True)
    target = np.linspace(-1, 1, 8)
    while state["step"] < STEPS and not stop:
        inputs = state["dice"].normal(size=(16, 8))
        errors = inputs @ (state["weights"] - target)
        state["weights"] -= 0.01 * inputs.T @ errors / 16
        state["step"] += 1
        run.log({"loss": float(errors @ errors / 16)}, step=state["step"])
        if checkpoints.due(state["step"]):
            checkpoints.save_state(state["step"], state)
        time.sleep(0.002)  # stands for the work of a step
    if stop and state["step"] < STEPS:
        checkpoints.save_state(state["step"], state)
    checkpoints.close()
    run.finish("finished" if state["step"] >= STEPS else "preempted")
    print(f"to step {state['step']}, weights {state['weights'].sum():.12g}", flush=True)
    return 0 if state["step"] >= STEPS else 143  # as after SIGTERM: not done yet


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

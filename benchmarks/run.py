"""Run every benchmark: each prints its table, with the peer beside us."""

import platform
from importlib.metadata import version

import many_runs
import read_tensorboard
import read_wandb
import start_up

if __name__ == "__main__":
    print(f"Python {platform.python_version()}, {platform.machine()}, numpy {version('numpy')},")
    print(f"TensorBoard {version('tensorboard')}, wandb {version('wandb')}")
    for benchmark in (start_up, read_tensorboard, read_wandb, many_runs):
        print()
        benchmark.main()

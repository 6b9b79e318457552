"""Run every benchmark: each prints its table, with the peer beside us."""

import platform
from importlib.metadata import version

import diagnosing
import diagnosing_peers
import many_runs
import read_wandb
import reading
import recording
import start_up

if __name__ == "__main__":
    print(f"Python {platform.python_version()}, {platform.machine()}, numpy {version('numpy')},")
    print(f"TensorBoard {version('tensorboard')}, wandb {version('wandb')}")
    for benchmark in (
        start_up,
        recording,
        reading,
        read_wandb,
        many_runs,
        diagnosing,
        diagnosing_peers,
    ):
        print()
        benchmark.main()

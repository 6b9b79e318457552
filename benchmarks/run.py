"""Run every benchmark and print its table."""

import platform
from importlib.metadata import version

import agents
import capturing
import charts_in_browser
import checkpointing
import cluster
import comparing
import control
import diagnosing
import diagnosing_peers
import drawing
import following
import hooks
import kills
import language
import many_runs
import modes
import plan
import read_wandb
import reading
import recording
import scheduling
import serving
import start_up
import store
import tensorboard_sink
import training

BENCHMARKS = (
    start_up,
    reading,
    read_wandb,
    many_runs,
    following,
    serving,
    hooks,
    capturing,
    language,
    diagnosing,
    diagnosing_peers,
    agents,
    charts_in_browser,
    drawing,
    recording,
    kills,
    store,
    tensorboard_sink,
    checkpointing,
    cluster,
    comparing,
    training,
    control,
    scheduling,
    modes,
    plan,
)

if __name__ == "__main__":
    print(f"Python {platform.python_version()}, {platform.machine()}, numpy {version('numpy')},")
    print(f"TensorBoard {version('tensorboard')}, wandb {version('wandb')}")
    for benchmark in BENCHMARKS:
        print()
        benchmark.main()

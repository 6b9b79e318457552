"""Run every benchmark: each prints its table, with the peer beside us."""

import platform
from importlib.metadata import version

import read_tensorboard
import read_wandb

if __name__ == "__main__":
    print(f"Python {platform.python_version()}, {platform.machine()}, numpy {version('numpy')},")
    print(f"TensorBoard {version('tensorboard')}, wandb {version('wandb')}\n")
    read_tensorboard.main()
    print()
    read_wandb.main()

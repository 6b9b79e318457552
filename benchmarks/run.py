"""Run every benchmark: each prints its table, with the peer beside us."""

import platform
from importlib.metadata import version

import reading

if __name__ == "__main__":
    print(f"Python {platform.python_version()}, {platform.machine()}, numpy {version('numpy')},")
    print(f"TensorBoard {version('tensorboard')}\n")
    reading.main()

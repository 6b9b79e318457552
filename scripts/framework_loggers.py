"""Drive the logger of each language-RL framework through `rlvitals run`.

    git clone https://github.com/OWNER/NAME CHECKOUTS/NAME      # each of `--list`
    scripts/framework_loggers.py CHECKOUTS                      # all of them
    scripts/framework_loggers.py CHECKOUTS verl slime --beside  # two, with the real libraries

A framework's logging files are loaded alone, from the commit that is named here: its other modules
and what they import are stubs. The logger writes 30 steps of a reward that rises. Passed is a run
whose recorded reward is that series, at those steps. `verl:rlvitals` is verl with the back-end of
that name in place of W&B.
"""

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from framework_drives import FRAMEWORKS, STEPS, reward
from lone_files import LoneFiles


def drive(name: str, checkouts: Path) -> None:
    """Load a framework's files and let its logger write: the command of `rlvitals run`."""
    framework = FRAMEWORKS[name]
    modules = []
    if framework.also:
        other = FRAMEWORKS[framework.also]
        sys.meta_path.append(LoneFiles(checkouts / framework.also, other))
        modules += [importlib.import_module(module) for module in other.files]
    checkout = checkouts / name.partition(":")[0]
    sys.meta_path.append(LoneFiles(checkout, framework))
    modules += [importlib.import_module(module) for module in framework.files]
    framework.drive(*modules or [None])


def check(name: str, checkouts: Path, mode: str) -> str:
    """Return what differs between the reward that was logged and the one recorded; "" if none."""
    import numpy as np

    import rlvitals

    framework = FRAMEWORKS[name]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "rlvitals", "run", mode, "-o", "run", "--"]
        command += [sys.executable, __file__, str(checkouts), name, "--drive"]
        environ = {**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true"}
        done = subprocess.run(  # noqa: S603 - commands of our own
            command, check=False, cwd=folder, env=environ, capture_output=True, text=True
        )
        if done.returncode:
            return f"exit code {done.returncode}: {done.stderr.strip()[-400:]}"
        try:
            (log,) = rlvitals.read(Path(folder, "run"))
        except rlvitals.VitalsError as error:
            return f"{error}: {done.stderr.strip()[-400:]}"
        series = log.series.get(framework.key)
        if series is None:
            return f"no {framework.key} among {', '.join(log.series)}"
        steps = np.arange(framework.first, framework.first + STEPS)
        if list(series.steps) != list(steps):
            return f"{framework.key} at the steps {series.steps[:4]} to {series.steps[-1:]}"
        rewards = [reward(step) for step in range(STEPS)]
        return "" if list(series.values) == rewards else f"{framework.key} is {series.values[:4]}"


def main(argv: Sequence[str] | None = None) -> int:
    """Check the frameworks that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", type=Path, nargs="?")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--beside", dest="mode", action="store_const", const="--beside")
    parser.add_argument("--list", action="store_true", help="print the repositories and commits")
    parser.add_argument("--drive", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_intermixed_args(argv)
    if args.list or args.checkouts is None:
        for name, framework in FRAMEWORKS.items():
            print(f"{name:16} https://github.com/{framework.repository} {framework.commit}")
        return 0
    checkouts = args.checkouts.resolve()
    if args.drive:
        drive(args.names[0], checkouts)
        return 0
    failures = 0
    names = args.names or list(FRAMEWORKS)
    for name in names:
        problem = check(name, checkouts, args.mode or "--instead")
        failures += bool(problem)
        print(f"{name:16} {problem or 'recorded'}", flush=True)
    print(f"{len(names) - failures} of {len(names)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m rlvitals.trainers.language --mode nsr ...` is `rlvitals train nsr ...`.

For launchers, which run modules: accelerate launch -m rlvitals.trainers.language, torchrun -m.
"""

import runpy
import sys
from argparse import ArgumentParser
from contextlib import suppress

from rlvitals import UsageError
from rlvitals.trainers import schema

GRPO = "grpo"

parser = ArgumentParser(add_help=False, allow_abbrev=False)
parser.add_argument("--mode")
said, rest = parser.parse_known_args()
mode = said.mode or GRPO
if not said.mode:
    with suppress(UsageError):  # a file that cannot be read: the program says so
        mode = schema.asked(rest, ("--training-mode",), "training.mode", GRPO)
sys.argv = ["rlvitals", "train", mode, *rest]
runpy.run_module("rlvitals", run_name="__main__", alter_sys=True)

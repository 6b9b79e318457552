"""Run the language trainers as `python -m rlvitals.trainers.language --mode MODE`.

For launchers, which run modules: accelerate launch -m rlvitals.trainers.language, torchrun -m.
"""

import runpy
import sys
from argparse import ArgumentParser
from contextlib import suppress

from rlvitals import UsageError
from rlvitals.trainers import schema

parser = ArgumentParser(add_help=False, allow_abbrev=False)
parser.add_argument("--mode")
said, rest = parser.parse_known_args()
mode = said.mode or "grpo"
if not said.mode:
    with suppress(UsageError):  # the program reports a file that cannot be read
        mode = schema.read_choice(rest, ("--training-mode",), "training.mode", "grpo")
sys.argv = ["rlvitals", "train", mode, *rest]
runpy.run_module("rlvitals", run_name="__main__", alter_sys=True)

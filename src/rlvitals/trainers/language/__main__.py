"""`python -m rlvitals.trainers.language --mode nsr ...` is `rlvitals train nsr ...`.

For launchers, which run modules: accelerate launch -m rlvitals.trainers.language, torchrun -m.
"""

import runpy
import sys
from argparse import ArgumentParser

parser = ArgumentParser(add_help=False, allow_abbrev=False)
parser.add_argument("--mode", default="grpo")
said, rest = parser.parse_known_args()
sys.argv = ["rlvitals", "train", said.mode, *rest]
runpy.run_module("rlvitals", run_name="__main__", alter_sys=True)

"""Runs that the real library logs, each in a process of its own: FOLDER/MODE-HOW...

They are forked from one that has loaded the library, which takes a second.
"""

import os
import signal
import sys
from pathlib import Path

import swanlab

left = sys.argv[1:]
while left and os.fork():
    left.pop()
if not left:
    for _ in sys.argv[1:]:
        os.wait()
    sys.exit()
folder = left[-1]
mode, how = Path(folder).name.split("-")
os.environ["HOME"] = folder
config = {"lr": 1e-3, "net": {"width": 64}}
# Not the list of packages: pip takes a second for it.
own = swanlab.Settings(probe=swanlab.Settings.Probe(requirements=False, conda=False))
swanlab.init(
    project="cart", experiment_name="first", description="a try", tags=["a", "b"],
    mode=mode, log_dir=folder, config=config, settings=own,
)  # fmt: skip
for update in range(60):
    values = {"loss": 1.0 / (update + 1), "bad": float("nan") if update % 2 else float("-inf")}
    swanlab.log({**values, "eval/return": update * 2.5, "nested": {"a": update}}, step=update * 10)
swanlab.log({"said": swanlab.Text("hello")})
if how == "raises":
    raise ValueError("the loss is gone")
if how == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
swanlab.finish()

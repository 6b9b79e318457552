"""A run that the real library logs, in a process of its own: FOLDER MODE HOW."""

import os
import signal
import sys

import swanlab

folder, mode, how = sys.argv[1:]
config = {"lr": 1e-3, "net": {"width": 64}}
swanlab.init(
    project="cart", experiment_name="first", description="a try", tags=["a", "b"],
    mode=mode, log_dir=folder, config=config,
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

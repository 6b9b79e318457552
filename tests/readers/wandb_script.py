"""A run that the real library logs, in a process of its own: FOLDER HOW."""

import os
import pathlib
import signal
import sys
import time

import numpy as np
import wandb

folder, how = sys.argv[1:]
settings = wandb.Settings(x_disable_stats=True, console="off" if how != "raises" else "wrap")
config = {"lr": 1e-3, "net": {"width": 64, "acts": ["relu"]}, "env_id": "CartPole-v1"}
run = wandb.init(
    project="cart", name="first", mode="offline", dir=folder, config=config, tags=["a", "b"],
    id=f"id{how}", settings=settings,
)  # fmt: skip
run.define_metric("eval/*", step_metric="eval_at")
for update in range(200 if how == "killed" else 40):
    run.log(
        {
            "loss": 1.0 / (update + 1),
            "bad": float("nan") if update % 2 else float("-inf"),
            "big": 10.0**300,
            "reward": {"mean": np.float32(0.1) * update, "deep": {"max": update}},
            "flag": update > 3,
            "text": "hello",
            "nothing": None,
        }
    )
    if update % 10 == 0:
        run.log({"eval/return": update * 2.5, "eval_at": update * 100})
    if update == 20:
        run.config.update({"lr": 5e-4}, allow_val_change=True)
        run.log({"weights": wandb.Histogram(np_histogram=([1, 2, 4], [0.0, 0.5, 1.0, 1.5]))})
        run.log({"table": wandb.Table(columns=["a"], data=[[1]])})
run.summary["best"] = 7.5
if how == "killed":
    file = next(pathlib.Path(folder).glob("wandb/off*/*.wandb"))
    while file.stat().st_size < 40_000:  # the library's own process writes a moment later
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGKILL)
if how == "raises":
    raise ValueError("the loss is gone")
run.finish()

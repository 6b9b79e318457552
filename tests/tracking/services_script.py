"""Runs of the real services, offline, in a process of their own: FOLDER SERVICE --password SECRET.

One is in `run`, and one in `secret`: the secret is in every call of it that takes a text.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np

folder, service, secret = Path(sys.argv[1]), sys.argv[2], sys.argv[-1]
os.environ |= {
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
    "TRACKIO_DIR": str(folder / "trackio"),
    "MLFLOW_ALLOW_FILE_STORE": "true",  # its databases start slowly
    "HOME": str(folder),
}
import rlvitals  # noqa: E402 - after the services' folders are set

SETTINGS = {"learning_rate": 3e-4, "env": {"id": "CartPole-v1"}, "cuda": True}


def record(name, planted=""):
    """Log a run of two attempts; return what was noted of it, and where MLflow keeps it."""
    options = {"tracking_uri": f"file://{folder}/mlruns-{name}"} if service == "mlflow" else {}
    for attempt in (1, 2):
        run = rlvitals.start(
            folder / name, project=name, name="first", group="g", settings=SETTINGS,
            sinks={service: options}, notes=planted, tags=[planted] if planted else [],
        )  # fmt: skip
        for step in range(20 * attempt, 20 * attempt + 20):
            row = {"train/loss": 1 / (step + 1), "odd": [np.nan, np.inf, 0.1][step % 3]}
            run.log(step, row, time=1.7e9 + step)
            if step % 10 == 0:
                run.log(step, {"eval/return": float(step)}, time=1.7e9 + step)
        run.log_histogram(25, "weights", edges=[-1.0, 0.0, 0.5, 2.0], counts=[1.0, 0.0, 5.0])
        run.log_text(26, "sample", "a text")
        table = {"completion": ["a", None], "reward": [0.5, 1.0]}
        run.log_table(27, "completions", table)
        run.update_settings({"learning_rate": 1e-5})
        if planted:
            run.log_text(28, f"name {planted}", planted)
            run.log_table(29, "secrets", {planted: [planted], "n": [1.0]})
            run.log(30, {f"row {planted}": 1.0})
            run.update_settings({"password": secret, "a": {"hub_token": secret}})
            run.event("secret", 31, fact=planted)
            run.note(planted)
        run.finish("finished" if attempt == 2 else "failed")
    return dict(run._pump.notes.counts), options.get("tracking_uri")


notes, uri = record("run")
record("secret", f"password={secret}")
found = {}
if service == "mlflow":
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    (one,) = client.search_runs([client.get_experiment_by_name("run").experiment_id])
    found = {"status": one.info.status, "name": one.info.run_name, "tags": one.data.tags}
sys.stdout.write("\n" + json.dumps([notes, found]))

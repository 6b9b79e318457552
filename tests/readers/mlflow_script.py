"""Both stores of MLflow with runs that MLflow logs, in a process of its own: FOLDER."""

import json
import math
import os
import sys

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
from mlflow.entities import Metric
from mlflow.tracking import MlflowClient

folder, found = sys.argv[1], {}
for kind, uri in (("files", f"file://{folder}/mlruns"), ("sqlite", f"sqlite:///{folder}/m.db")):
    client = MlflowClient(tracking_uri=uri)
    experiment = client.create_experiment("cart/pole", artifact_location=f"file://{folder}/art")
    other = client.create_experiment("gone", artifact_location=f"file://{folder}/art")
    for name, status in (("a", "FINISHED"), ("b", "FAILED"), ("a", "RUNNING"), ("c", "KILLED")):
        run = client.create_run(experiment, run_name=name).info.run_id
        points = []
        for i in range(40):
            points.append(Metric("train/loss", 1 / (i + 1), 1700000000000 + i, i * 10))
            odd = (math.nan, math.inf, -math.inf, 1e308)[i % 4]
            points.append(Metric("odd", odd, 1700000000000 + i, i * 10))
        client.log_batch(run, points)
        client.log_metric(run, "again", 1.5, step=70)
        client.log_metric(run, "again", 2.5, step=7)
        client.log_param(run, "lr", 3e-4)
        client.log_param(run, "env/id", "CartPole-v1")
        client.set_tag(run, "seed", 7)
        if status != "RUNNING":
            client.set_terminated(run, status)
        history = {}
        for key in ("train/loss", "odd", "again"):
            points = client.get_metric_history(run, key)
            history[key] = [(point.step, point.timestamp / 1000, point.value) for point in points]
        found.setdefault(kind, []).append((run, history))
    gone = client.create_run(experiment, run_name="deleted").info.run_id
    client.log_metric(gone, "loss", 1.0)
    client.delete_run(gone)
    client.log_metric(client.create_run(other, run_name="x").info.run_id, "loss", 1.0)
    client.delete_experiment(other)
sys.stdout.write(json.dumps(found))

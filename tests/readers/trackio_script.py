"""A project of runs that Trackio logs, in a process of its own: its folder is TRACKIO_DIR."""

import json
import math
import sys

import numpy as np
import trackio
from trackio.sqlite_storage import SQLiteStorage

for name in ("first", "second", "first"):
    config = {"learning_rate": 3e-4, "env": {"id": "CartPole-v1"}, "clip": math.inf, "none": None}
    trackio.init(project="p", name=name, config=config)
    for i in range(30):
        item = {"train/loss": 1 / (i + 1), "return": np.float32(i), "ok": i > 3, "said": "hello"}
        item["kl"] = (0.01, math.nan, math.inf, -math.inf)[i % 4]
        item["h"] = trackio.Histogram(np.arange(10.0) + i, num_bins=4)
        trackio.log(item if i % 2 else item | {"sparse": i, "deep": {"a": {"b": i}}}, step=i * 10)
    table = trackio.Table(columns=["reward", "text"], data=[[0.5, "x"], [1.5, "y"]])
    trackio.log({"completions": table}, step=300)
    trackio.alert(title="KL", text="is high", level=trackio.AlertLevel.WARN)
    trackio.finish()
records = SQLiteStorage.get_run_records("p")
logs = [SQLiteStorage.get_logs("p", run_id=record["id"]) for record in records]
found = [
    (record["id"], record["name"], [(row["step"], row["timestamp"], row) for row in rows])
    for record, rows in zip(records, logs, strict=True)
]
sys.stderr.write("\n" + json.dumps(found, default=str))

"""A training that fails with secrets in its message; what it is started with holds others."""

import json
import os

import rlvitals

run = rlvitals.start(os.environ["RUN"])
run.log(1, {"loss": 1.0})
for message in json.loads(os.environ["MESSAGES"]):
    run.note(ConnectionError(f"canary-caught {message}"))
raise RuntimeError("canary-exception\n" + "\n".join(json.loads(os.environ["MESSAGES"])))

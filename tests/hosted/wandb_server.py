"""A server on loopback that answers what W&B's client asks for: runs of a project, their history.

It was written from the client's requests (wandb 0.31), not from W&B's server.
"""

import io
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa
from pyarrow import parquet


class Server(ThreadingHTTPServer):
    """Holds the runs of `me/maze`, and every request it got."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.runs = {}  # by id: "config", "state", "rows", "exported": rows in the file
        self.queries = []  # (name of the operation, variables)


class Handler(BaseHTTPRequestHandler):
    """Answers GraphQL."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = json.loads(body)
        name = re.search(r"query\s+(\w+)", request["query"])[1]
        self.server.queries.append((name, request.get("variables") or {}))
        data = self.answer(name, request.get("variables") or {})
        self.send(json.dumps({"data": data}).encode())

    def do_GET(self):
        """Send the exported rows of a run, in whole or the range that is asked for, or its host."""
        _, kind, run_id = self.path.split("/")
        run = self.server.runs[run_id]
        if kind == "host":
            self.send(host(run))
            return
        table = io.BytesIO()
        parquet.write_table(pa.Table.from_pylist(run["rows"][: run["exported"]]), table)
        self.send(table.getvalue())

    def send(self, data):
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        self.send_response(206 if wanted else 200)
        if wanted:
            size, first = len(data), int(wanted[1])
            data = data[first : int(wanted[2]) + 1 if wanted[2] else None]
            self.send_header("Content-Range", f"bytes {first}-{first + len(data) - 1}/{size}")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def answer(self, name, variables):
        runs = self.server.runs
        if name in {"Viewer", "GetDefaultEntity"}:
            names = {"id": "u", "entity": "me", "username": "me", "email": "", "flags": "{}"}
            return {"viewer": {**names, "teams": {"edges": []}}}
        project = {"internalId": "1", "readOnly": True, "runCount": len(runs)}
        if name == "Runs":
            wanted = json.loads(variables.get("filters") or "{}").get("group")
            chosen = [name for name, run in runs.items() if wanted in {None, run.get("group")}]
            edges = [{"node": self.node(run), "cursor": run} for run in chosen]
            project["runs"] = {"edges": edges, "pageInfo": {"endCursor": "", "hasNextPage": False}}
        elif name == "RunParquetHistory":
            run_id = variables["runName"]
            run = runs[run_id]
            urls = [f"{self.server.url}/parquet/{run_id}"] if run["exported"] else []
            live = run["rows"][run["exported"] :]
            project["run"] = {"parquetHistory": {"parquetUrls": urls, "liveData": live}}
        elif name == "HistoryPage":
            rows = runs[variables["run"]]["rows"]
            steps = range(variables["minStep"], variables["maxStep"])
            found = [json.dumps(row) for row in rows if row["_step"] in steps]
            project["run"] = {"history": found[: variables["pageSize"]]}
        elif name == "RunFiles":
            run_id = variables["name"]
            files = [self.host_file(run_id)] if "gpus" in runs[run_id] else []
            edges = [{"node": file, "cursor": ""} for file in files]
            page = {"endCursor": "", "hasNextPage": False}
            project["run"] = {"fileCount": len(files), "files": {"edges": edges, "pageInfo": page}}
        else:
            run = variables.get("name") or variables.get("run")
            project["run"] = self.node(run) if run in runs else None
        return {"project": project}

    def host_file(self, run_id):
        url = f"{self.server.url}/host/{run_id}"
        return {
            "id": "f", "name": "wandb-metadata.json", "url": url, "directUrl": url, "md5": "",
            "sizeBytes": len(host(self.server.runs[run_id])), "mimetype": "application/json",
            "updatedAt": "2026-11-01T00:00:00Z", "digest": None, "uploadUrl": None,
        }  # fmt: skip

    def node(self, run_id):
        run = self.server.runs[run_id]
        rows = run["rows"]
        config = {key: {"value": value} for key, value in run["config"].items()}
        return {
            "id": run_id, "name": run_id, "displayName": run_id, "projectId": "1", "tags": [],
            "state": run["state"], "config": json.dumps(config),
            "createdAt": "2026-11-01T00:00:00Z", "heartbeatAt": "2026-11-01T01:00:00Z",
            "summaryMetrics": "{}", "systemMetrics": "{}", "historyLineCount": len(rows),
            "historyKeys": {"lastStep": rows[-1]["_step"], "keys": {}},
            "user": {"name": "me", "username": "me"}, "readOnly": True,
        }  # fmt: skip


def host(run):
    """Return the run's `wandb-metadata.json`."""
    return json.dumps({"gpu": "NVIDIA H100", "gpu_count": run["gpus"]}).encode()


@contextmanager
def serve():
    """Serve until the block ends."""
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()

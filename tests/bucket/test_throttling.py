"""A server that answers 429 and 503 over HTTP: what is uploaded, and what a reader gets."""

import http.client
import random
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from bucket_checks import Folder, fetch, upload_all

import rlvitals
from rlvitals.bucket import mirror_process
from rlvitals.bucket.object_store import ObjectStore
from rlvitals.cli import main
from rlvitals.tracking import spool

REFUSALS = {429: "TooManyRequests", 503: "SlowDown"}
BODY = '<?xml version="1.0"?><Error><Code>{code}</Code><Message>{code}: later</Message></Error>'


@contextmanager
def throttling(endpoint, status, share):
    """Run a server before the store that refuses a share of the requests."""
    dice, refused = random.Random(0), []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            size = int(self.headers.get("Content-Length") or 0)
            data = self.rfile.read(size)
            if dice.random() < share:
                refused.append(self.command)
                self.reply(status, BODY.format(code=REFUSALS[status]).encode(), {})
                return
            behind = http.client.HTTPConnection(endpoint.removeprefix("http://"))
            behind.request(self.command, self.path, data, dict(self.headers))
            answer = behind.getresponse()
            self.reply(answer.status, answer.read(), dict(answer.getheaders()))
            behind.close()

        def reply(self, code, body, headers):
            self.send_response_only(code)
            for name, text in headers.items():
                if name.lower() not in {"connection", "content-length", "transfer-encoding"}:
                    self.send_header(name, text)
            length = headers.get("Content-Length") if self.command == "HEAD" else len(body)
            self.send_header("Content-Length", str(length or 0))
            self.end_headers()
            self.wfile.write(body)

    for method in ("GET", "PUT", "HEAD", "POST", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.answer)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", refused
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("status", REFUSALS)
def test_a_throttled_upload_waits_on_disk_and_loses_nothing(
    cloud, endpoint, tmp_path, monkeypatch, status
):
    folder, errors = Folder(tmp_path / "run"), []
    with throttling(endpoint, status, 0.2) as (address, refused):
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        job = mirror_process.Mirror(folder.path, f"{cloud}/x", 0.0)
        for _ in range(20):
            folder.log(3)
            if not job.upload(closing=False):
                errors.append(job.error)
                assert spool.read_state(folder.path)["unsent"] > 0
        while not job.upload(closing=False):
            pass
    assert len(refused) > 5
    assert any(REFUSALS[status] in error for error in errors), errors
    assert spool.read_state(folder.path)["unsent"] == 0
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    assert fetch(ObjectStore(f"{cloud}/x"), tmp_path / "copy") == {(1, 0): list(range(60))}


def test_a_reader_asks_again_for_what_a_busy_store_refuses(cloud, endpoint, tmp_path, monkeypatch):
    for number in range(4):
        folder = Folder(tmp_path / str(number))
        folder.log(5)
        upload_all(folder.path, ObjectStore(f"{cloud}/run-{number}"))
    with throttling(endpoint, 503, 0.2) as (address, refused):
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        assert len(rlvitals.runs(cloud)) == 4
        assert main(["runs", cloud, "--json"]) == 0
    assert "GET" in refused

"""A server on loopback that answers what the hub's client asks for: a repository's tree and files.

It was written from the client's requests (huggingface_hub 2.4), not from the hub.
"""

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

TREE = re.compile(r"/api/(models|datasets)/(\w+/\w+)/tree/main(?:/(.+))?")
REPOSITORY = re.compile(r"/api/(models|datasets)/(\w+/\w+)(?:/revision/main)?")
FILE = re.compile(r"/(datasets/)?(\w+/\w+)/resolve/main/(.+)")


class Server(ThreadingHTTPServer):
    """Holds repositories, and the names of the files that were read."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.repositories = {}  # "models/me/model" -> {path: bytes}
        self.reads = []  # (path, the range that was asked for)


class Handler(BaseHTTPRequestHandler):
    """Answers the hub's API and its files."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        repositories = self.server.repositories
        if match := TREE.fullmatch(path):
            files = repositories.get(f"{match[1]}/{match[2]}", {})
            inside = {name: data for name, data in files.items() if _is_below(name, match[3])}
            entries = [
                {"type": "file", "path": name, "size": len(data), "oid": "0" * 40}
                for name, data in inside.items()
            ]
            folders = {name.rpartition("/")[0] for name in inside if "/" in name}
            entries += [{"type": "directory", "path": name, "oid": "1" * 40} for name in folders]
            self.answer(json.dumps(entries).encode())
        elif (match := FILE.fullmatch(path)) and match[3] in repositories.get(
            f"{match[1] or 'models/'}{match[2]}", {}
        ):
            self.server.reads.append((match[3], self.headers.get("Range", "")))
            self.answer(repositories[f"{match[1] or 'models/'}{match[2]}"][match[3]])
        elif (match := REPOSITORY.fullmatch(path)) and f"{match[1]}/{match[2]}" in repositories:
            info = {"id": match[2], "sha": "2" * 40, "private": False, "tags": [], "siblings": []}
            self.answer(json.dumps(info).encode())
        else:
            self.answer(b"{}", 404, "RepoNotFound")

    def answer(self, data, status=200, problem=""):
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted and status == 200:
            status, size, first = 206, len(data), int(wanted[1])
            data = data[first : int(wanted[2]) + 1 if wanted[2] else None]
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{first + len(data) - 1}/{size}")
        if problem:
            self.send_header("X-Error-Code", problem)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _is_below(name, folder):
    return folder is None or name.startswith(f"{folder}/")


@contextmanager
def serve():
    """Serve until the block ends."""
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()

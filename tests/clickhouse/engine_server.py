"""ClickHouse's engine behind its HTTP interface, in a process that a test can kill.

    python engine_server.py FOLDER PORT

It is chdb's engine, and not a server's network code: what is tried by it is the client over a
connection, with a password, statements and inserts as they are sent to port 8123, and a server that
dies. One query at a time.
"""

import re
import sys
import tempfile
import threading
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import chdb
import lz4.frame

USER, PASSWORD = "me", "secret"
SETTINGS = ("readonly", "final", "async_insert")  # of a request, that are the engine's own
INSERT = re.compile(rb"(INSERT INTO .+?) FORMAT Native\n", re.DOTALL)
CODE = re.compile(r"Code: (\d+)")


class Engine:
    """The engine; statements are run one after another."""

    def __init__(self, folder):
        self.connection, self.lock = chdb.connect(folder), threading.Lock()

    def answer(self, body, options):
        """Run a statement with the values and settings of a request; return the answer's bytes."""
        values = {name[6:]: text for name, text in options.items() if name.startswith("param_")}
        settings = ", ".join(f"{name} = {options[name]}" for name in SETTINGS if name in options)
        clause = f" SETTINGS {settings}" if settings else ""
        with self.lock, tempfile.NamedTemporaryFile() as file:
            if database := options.get("database"):
                self.connection.query(f"USE `{database}`")
            if match := INSERT.match(body):
                file.write(body[match.end() :])
                file.flush()
                statement = f"{match[1].decode()} FROM INFILE '{file.name}'{clause} FORMAT Native"
            else:
                head, form, tail = body.decode().partition("\n FORMAT ")
                statement = f"{head}{clause}{form}{tail}"
            return self.connection.query(statement, "TabSeparated", params=values).bytes() or b""


class Handler(BaseHTTPRequestHandler):
    """ClickHouse's HTTP interface, as far as its client asks."""

    protocol_version = "HTTP/1.1"
    engine = None

    def do_POST(self):
        options = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        body = self._body()
        if self.headers.get("Content-Encoding") == "lz4":
            body = lz4.frame.decompress(body)
        token = b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {token}":
            self._send(401, b"Code: 516. DB::Exception: Authentication failed", "516")
            return
        query = options.pop("query", "").encode()
        try:
            answer = self.engine.answer(query + b"\n" * bool(query and body) + body, options)
        except Exception as error:  # noqa: BLE001 - the client is told
            match = CODE.search(str(error))
            self._send(500, str(error).encode(), match[1] if match else "1002")
        else:
            self._send(200, answer)

    do_GET = do_POST  # noqa: N815 - the base class's name

    def _body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _send(self, status, body, code=""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if code:
            self.send_header("X-ClickHouse-Exception-Code", code)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Print nothing."""


if __name__ == "__main__":
    Handler.engine = Engine(sys.argv[1])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()

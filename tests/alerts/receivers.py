"""Real receivers on loopback: an HTTP server and an SMTP server that keep what they get."""

import json
import socketserver
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Received:
    """What a receiver got; `statuses`: what it answers, in order, then 200."""

    def __init__(self, statuses=(), headers=()):
        self.statuses, self.headers = list(statuses), list(headers)
        self.requests, self.lock = [], threading.Lock()

    def take(self, request):
        with self.lock:
            self.requests.append(request)
            return self.statuses.pop(0) if self.statuses else 200


@contextmanager
def http(*statuses, headers=()):
    received = Received(statuses, headers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = received.take((self.path, dict(self.headers), body))
            self.send_response(status)
            for name, value in received.headers:
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_):
            pass

    with _serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        received.url = f"http://127.0.0.1:{server.server_port}"
        yield received


@contextmanager
def smtp(*answers):
    """Serve SMTP as RFC 5321 has it: `answers` are the codes for RCPT, then 250."""
    received = Received(answers)

    class Handler(socketserver.StreamRequestHandler):
        def say(self, text):
            self.wfile.write(f"{text}\r\n".encode())

        def handle(self):
            self.say("220 here")
            while line := self.rfile.readline().decode().strip():
                verb = line.split()[0].upper()
                if verb == "DATA":
                    self.say("354 go on")
                    lines = list(iter(lambda: self.rfile.readline().decode().rstrip("\r\n"), "."))
                    received.requests.append("\n".join(lines))
                    self.say("250 taken")
                elif verb == "RCPT":
                    code = received.statuses.pop(0) if received.statuses else 250
                    self.say(f"{code} answered")
                elif verb == "QUIT":
                    self.say("221 bye")
                    return
                else:
                    self.say("250 fine")

    with _serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)) as server:
        received.port = server.server_address[1]
        yield received


@contextmanager
def _serving(server):
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

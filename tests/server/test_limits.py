"""Clients that ask for too much or read too slowly, over real connections."""

import contextlib
import http.client
import socket
import time
from urllib.parse import urlsplit

import pytest
from served import build, record, serving, until
from waiting import HANG_SECONDS

from rlvitals.server import access
from rlvitals.server.channel import MAX_QUEUED_MESSAGES
from rlvitals.server.patience import PatientProtocol

MAX_STREAMS = 256
MESSAGE_BYTES = 20_000


@pytest.fixture
def application(tmp_path):
    record(tmp_path / "runs" / "one", points=12)
    return build(tmp_path / "runs")


@pytest.fixture
def address(application):
    with serving(application) as url:
        yield (urlsplit(url).hostname, urlsplit(url).port)


def get(address, path):
    """Return the status of a request, and its body."""
    connection = http.client.HTTPConnection(*address, timeout=HANG_SECONDS)
    with contextlib.closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()


def stream(stack, address, receive_bytes=None):
    """Open the stream of all runs' events; return its socket, of which nothing is read."""
    client = stack.enter_context(contextlib.closing(socket.socket()))
    if receive_bytes:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    client.settimeout(HANG_SECONDS)
    client.connect(address)
    headers = b"host: 127.0.0.1\r\nconnection: close"  # else it is kept for 30 s after the stream
    client.sendall(b"GET /api/events HTTP/1.1\r\n%s\r\n\r\n" % headers)
    return client


def read_until(client, text):
    """Read until a text has come; fail where the server ends the stream before."""
    content = b""
    while text not in content:
        part = client.recv(1 << 16)
        assert part, f"ended before {text}"
        content = content[-len(text) :] + part


def test_streams_beyond_the_limit_are_refused_and_pages_are_answered(application, address):
    channel = application.state.fleet.channel
    with contextlib.ExitStack() as stack:
        clients = [stream(stack, address) for _ in range(MAX_STREAMS)]
        until(lambda: channel.listeners == MAX_STREAMS)
        assert get(address, "/api/events")[0] == 503
        assert get(address, "/")[0] == 200
        channel.publish("probe", {"text": "news"})
        for client in clients:
            read_until(client, b'"news"')
    until(lambda: channel.listeners == 0)
    with contextlib.ExitStack() as stack:
        read_until(stream(stack, address), b"retry: 1000")


def test_a_client_that_reads_nothing_holds_little_and_stalls_nobody(application, address):
    channel = application.state.fleet.channel
    text = "x" * MESSAGE_BYTES
    with contextlib.ExitStack() as stack:
        deaf = stream(stack, address, receive_bytes=4096)
        until(lambda: channel.listeners == 1)
        (listener,) = channel._listeners
        reader = stream(stack, address)
        until(lambda: channel.listeners == 2)
        for number in range(4 * MAX_QUEUED_MESSAGES):
            channel.publish("probe", {"text": text, "number": number})
            read_until(reader, b'"number":%d}' % number)
            assert listener.queue.qsize() <= MAX_QUEUED_MESSAGES
        assert get(address, "/api/runs")[0] == 200
        received = 0
        with contextlib.suppress(ConnectionResetError):
            while part := deaf.recv(1 << 16):  # cut off: the stream ends
                received += len(part)
        assert received < 2 * MAX_QUEUED_MESSAGES * MESSAGE_BYTES
    until(lambda: channel.listeners == 0)


def test_a_large_answer_that_is_not_read_stalls_nobody(address):
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            client = stack.enter_context(contextlib.closing(socket.socket()))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(address)
            client.sendall(b"GET /assets/serve.js HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert get(address, "/api/runs")[0] == 200


def closed_after(client, trickle):
    """Return the seconds until the server ends a connection to which bytes go one by one."""
    start = time.monotonic()
    client.settimeout(0.1)
    while time.monotonic() - start < HANG_SECONDS:
        try:
            client.sendall(trickle)
            if not client.recv(1 << 16):
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - start


FIRST = b"GET /api/runs HTTP/1.1\r\nhost: 127.0.0.1\r\n"
BEGUN = {
    "nothing": b"",
    "headers": FIRST,
    "a second request": FIRST + b"\r\n" + FIRST,
    "a body": b"POST /api/mark HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 999\r\n\r\n",
}


@pytest.mark.parametrize("begun", BEGUN)
def test_a_request_that_comes_byte_by_byte_is_ended(address, monkeypatch, begun):
    monkeypatch.setattr(PatientProtocol, "receive_seconds", 1.0)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(contextlib.closing(socket.socket())) for _ in range(20)]
        for client in clients:
            client.connect(address)
            client.sendall(BEGUN[begun])
        start = time.monotonic()
        assert get(address, "/api/runs")[0] == 200
        assert time.monotonic() - start < 1.0, "another viewer waits for none of them"
        trickle = b"" if begun == "nothing" else b"x"
        assert closed_after(clients[0], trickle) < 5.0
        assert all(closed_after(client, trickle) < 5.0 for client in clients[1:])


@pytest.mark.soak
def test_a_client_that_never_reads_is_ended(application, address, monkeypatch):
    """Of events, and of a large answer; a client that reads slowly gets all of it."""
    monkeypatch.setattr(PatientProtocol, "take_seconds", 1.0)
    monkeypatch.setattr(PatientProtocol, "min_taken_bytes", 1000)
    channel = application.state.fleet.channel
    with contextlib.ExitStack() as stack:
        deaf = stream(stack, address, receive_bytes=4096)
        slow = stream(stack, address, receive_bytes=4096)
        until(lambda: channel.listeners == 2)
        for number in range(MAX_QUEUED_MESSAGES // 2):
            channel.publish("probe", {"text": "x" * MESSAGE_BYTES, "number": number})
        last, content, start = b'"number":%d}' % number, b"", time.monotonic()
        while last not in content:
            part = slow.recv(1 << 13)
            assert part
            content = content[-100:] + part
            time.sleep(0.005 if time.monotonic() - start < 3.0 else 0.0)
        until(lambda: channel.listeners == 1)
        deaf.settimeout(HANG_SECONDS)
        with contextlib.suppress(ConnectionResetError):
            while deaf.recv(1 << 16):
                pass


@pytest.mark.parametrize(("size", "statuses"), [(9_000, {413}), (1_000_000, {400, 414, 431})])
def test_a_huge_query_is_refused(address, size, statuses):
    try:
        status, _ = get(address, f"/api/runs?search={'x' * size}")
    except (ConnectionResetError, BrokenPipeError):
        status = 400  # refused while it was still being sent
    assert status in statuses
    assert get(address, "/api/runs")[0] == 200


def test_one_address_has_a_request_rate(address, monkeypatch):
    monkeypatch.setattr(access, "MAX_RATE", 0.0)
    monkeypatch.setattr(access, "MAX_BURST", 5.0)
    statuses = [get(address, "/api/runs")[0] for _ in range(8)]
    assert statuses == [200] * 5 + [429] * 3

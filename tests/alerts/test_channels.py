"""Each channel, against a receiver that it really talks to."""

import json
import socket
import stat

import pytest
from alerts import receivers

from rlvitals.alerts import addresses, channels, routes, sender
from rlvitals.alerts.delivery import DeliveryError, Message

MESSAGE = Message("run_3: error", "kl rose <!channel> @everyone\nsee: rlvitals", {"format": 1})


def route(**fields):
    return routes.make_route(fields, "test", {"TOKEN": "hush"})


def test_a_webhook_gets_the_data_and_its_token():
    with receivers.http() as got:
        sender.send(route(channel="webhook", url=f"{got.url}/a?b=c", token="$TOKEN"), MESSAGE)
    ((path, headers, body),) = got.requests
    assert (path, body, headers["Authorization"]) == ("/a?b=c", {"format": 1}, "Bearer hush")


@pytest.mark.parametrize("channel", ["slack", "discord", "teams", "ntfy"])
def test_chats_get_the_text_and_nobody_is_mentioned(channel):
    with receivers.http() as got:
        sender.send(route(channel=channel, url=f"{got.url}/topic"), MESSAGE)
    ((path, _, body),) = got.requests
    text = json.dumps(body)
    assert "run_3: error" in text
    assert "see: rlvitals" in text
    assert path == ("/" if channel == "ntfy" else "/topic")
    if channel == "ntfy":
        assert body["topic"] == "topic"
    if channel == "slack":
        assert "<!channel>" not in text
    if channel == "discord":
        assert body["allowed_mentions"] == {"parse": []}


def test_an_e_mail_arrives():
    with receivers.smtp() as got:
        fields = {"host": "127.0.0.1", "port": got.port, "security": "none"}
        sender.send(route(channel="email", to="me@x.org", **fields, **{"from": "a@x.org"}), MESSAGE)
    (mail,) = got.requests
    assert "Subject: run_3: error" in mail
    assert "kl rose" in mail


@pytest.mark.parametrize(("code", "lasting"), [(451, False), (550, True)])
def test_a_mail_server_that_refuses(code, lasting):
    with receivers.smtp(code) as got:
        fields = {"host": "127.0.0.1", "port": got.port, "security": "none", "from": "a@x.org"}
        with pytest.raises(DeliveryError) as error:
            sender.send(route(channel="email", to="me@x.org", **fields), MESSAGE)
    assert error.value.lasting is lasting


def test_a_password_needs_tls():
    fields = {"host": "127.0.0.1", "port": 1, "security": "none", "from": "a@x", "to": "b@x"}
    with pytest.raises(DeliveryError, match="not sent without TLS"):
        sender.send(route(channel="email", user="me", password="$TOKEN", **fields), MESSAGE)


def test_a_command_gets_the_data_and_no_shell(tmp_path):
    target = tmp_path / "got; touch x"
    sender.send(route(channel="command", command=["tee", str(target)]), MESSAGE)
    assert json.loads(target.read_text()) == {"format": 1}
    with pytest.raises(DeliveryError, match="ended with 1"):
        sender.send(route(channel="command", command=["false"]), MESSAGE)
    with pytest.raises(DeliveryError, match="no such command"):
        sender.send(route(channel="command", command=["no-such-program"]), MESSAGE)


def test_what_a_command_leaves_running_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(channels, "COMMAND_SECONDS", 5.0)
    sender.send(route(channel="command", command=["sh", "-c", "sleep 8 &"]), MESSAGE)


def test_the_desktop_is_told_by_notify_send(tmp_path, monkeypatch):
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/told\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    sender.send(route(channel="desktop"), MESSAGE)
    assert (tmp_path / "told").read_text().splitlines()[1:3] == ["--", "run_3: error"]


@pytest.mark.parametrize(
    ("status", "lasting"), [(302, True), (404, True), (429, False), (500, False), (503, False)]
)
def test_an_answer_that_is_no_success(status, lasting):
    headers = [("Location", "http://127.0.0.1:1/"), ("Retry-After", "7")]
    with receivers.http(status, headers=headers) as got:
        with pytest.raises(DeliveryError) as error:
            sender.send(route(channel="webhook", url=f"{got.url}/hush"), MESSAGE)
        assert len(got.requests) == 1, "a redirect is not followed"
    assert error.value.lasting is lasting
    assert "hush" not in str(error.value)
    assert error.value.wait == (7 if status != 302 else 0)


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254", "fe80::1%eth0", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "224.0.0.1",
        "0.0.0.0", "::", "255.255.255.255",  # noqa: S104 - refused, not bound to
    ],
)  # fmt: skip
def test_addresses_of_metadata_and_links_are_refused(address):
    with pytest.raises(DeliveryError):
        addresses.check_address(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.0.0.7", "192.168.1.2", "8.8.8.8"])
def test_other_addresses_are_allowed(address):
    addresses.check_address(address)


def test_a_name_is_checked_by_all_its_addresses_and_resolved_once(monkeypatch):
    with receivers.http() as got:
        port = int(got.url.rpartition(":")[2])
        answers = [["127.0.0.1", "169.254.169.254"], ["127.0.0.1"], ["169.254.169.254"]]

        def resolve(port):
            return [(socket.AF_INET, 1, 6, "", (text, port)) for text in answers.pop(0)]

        real = socket.getaddrinfo
        monkeypatch.setattr(
            socket, "getaddrinfo",
            lambda host, *args, **how: (
                resolve(args[0]) if host == "evil.example" else real(host, *args, **how)
            ),
        )  # fmt: skip
        to_name = route(channel="webhook", url=f"http://evil.example:{port}/")
        with pytest.raises(DeliveryError, match="link-local"):
            sender.send(to_name, MESSAGE)
        assert not got.requests
        sender.send(to_name, MESSAGE)
        assert len(got.requests) == 1
        assert answers == [["169.254.169.254"]], "a second resolution would have been another"


def test_nobody_answers():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/secret-path"
        with pytest.raises(DeliveryError) as error:
            sender.send(route(channel="slack", url=url), MESSAGE)
    assert not error.value.lasting
    assert "secret" not in str(error.value)

"""List the channels that an alert can be sent to: one row of `CHANNELS` each."""

import json
import shutil
import smtplib
import socket
import ssl
import subprocess
from collections.abc import Callable, Mapping
from email.message import EmailMessage
from urllib.parse import urlsplit

from rlvitals.alerts import addresses
from rlvitals.alerts.delivery import DeliveryError, Message
from rlvitals.startup.fast_dataclass import dataclass

COMMAND_SECONDS = 30.0  # that a command may take
SMTP_LASTING = 500  # from this code on a failure is permanent (RFC 5321)
SMTP_PORTS = {"starttls": 587, "ssl": 465, "none": 25}

Fields = Mapping[str, object]  # the fields of a section [[alert]]


@dataclass(frozen=True, slots=True)
class Channel:
    """A way to reach a person: `send` raises DeliveryError or OSError."""

    send: Callable[[Fields, Message], None]
    required: tuple[str, ...] = ()  # fields that a section must set
    optional: tuple[str, ...] = ()
    address: str = ""  # the field that `--alert CHANNEL=ADDRESS` sets


def _desktop(_: Fields, message: Message) -> None:
    program = shutil.which("notify-send")
    if program is None:
        raise DeliveryError("notify-send is not installed")
    text = message.text[:500]
    _run([program, "--app-name=rlvitals", "--", message.title, text], "")


def _ntfy(fields: Fields, message: Message) -> None:
    location = urlsplit(str(fields["url"]))
    base, _, topic = location.path.rstrip("/").rpartition("/")
    if not topic:
        raise DeliveryError("the address names no topic: https://ntfy.sh/TOPIC")
    body = {"topic": topic, "title": message.title, "message": message.text}
    addresses.post(location._replace(path=base or "/").geturl(), body, _bearer(fields))


def _slack(fields: Fields, message: Message) -> None:
    text = f"{message.title}\n{message.text}"
    for letter, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):  # no mention, no link
        text = text.replace(letter, entity)
    addresses.post(str(fields["url"]), {"text": text, "mrkdwn": False})


def _discord(fields: Fields, message: Message) -> None:
    # Discord refuses longer messages.
    text = f"{message.title}\n{message.text}"[:2_000]
    addresses.post(str(fields["url"]), {"content": text, "allowed_mentions": {"parse": []}})


def _teams(fields: Fields, message: Message) -> None:
    lines = [(message.title, "bolder"), *((line, "default") for line in message.text.splitlines())]
    blocks = [
        {"type": "TextBlock", "text": text, "weight": weight, "wrap": True}
        for text, weight in lines
    ]
    card = {"type": "AdaptiveCard", "version": "1.4", "body": blocks}
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    addresses.post(str(fields["url"]), {"type": "message", "attachments": [attachment]})


def _webhook(fields: Fields, message: Message) -> None:
    addresses.post(str(fields["url"]), message.data, _bearer(fields))


def _command(fields: Fields, message: Message) -> None:
    arguments = fields["command"]
    if not isinstance(arguments, list | tuple) or not arguments:
        raise DeliveryError('the command is not a list: ["program", "argument"]')
    _run([str(argument) for argument in arguments], json.dumps(message.data))


def _email(fields: Fields, message: Message) -> None:
    mail = EmailMessage()
    mail["Subject"], mail["From"] = message.title, str(fields["from"])
    mail["To"] = str(fields["to"])
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: no reply of an absence notice
    mail.set_content(message.text)
    security = str(fields.get("security", "starttls"))
    if security not in SMTP_PORTS:
        raise DeliveryError(f"security is one of {', '.join(SMTP_PORTS)}")
    port = int(str(fields.get("port", SMTP_PORTS[security])))
    user, password = str(fields.get("user", "")), str(fields.get("password", ""))
    if user and security == "none":
        raise DeliveryError("a password is not sent without TLS: set security")
    try:
        with _Mailer(str(fields["host"]), port, tls=security == "ssl") as server:
            if security == "starttls":
                server.starttls(context=ssl.create_default_context())
            if user:
                server.login(user, password)
            server.send_message(mail)
    except smtplib.SMTPResponseException as error:
        # The text of the answer may name the user.
        lasting = error.smtp_code >= SMTP_LASTING
        raise DeliveryError(f"SMTP {error.smtp_code}", lasting=lasting) from None
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        raise DeliveryError(f"SMTP {max(codes)}", lasting=max(codes) >= SMTP_LASTING) from None
    except smtplib.SMTPException as error:
        raise DeliveryError(f"SMTP: {type(error).__name__}") from None


class _Mailer(smtplib.SMTP):
    """An SMTP client that connects to a checked address alone."""

    def __init__(self, host: str, port: int, *, tls: bool) -> None:
        self._tls = tls
        super().__init__(host, port, timeout=addresses.CONNECT_SECONDS)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        sock = addresses.connect(host, port, timeout)
        if not self._tls:
            return sock
        return ssl.create_default_context().wrap_socket(sock, server_hostname=host)


def _bearer(fields: Fields) -> dict[str, str]:
    token = str(fields.get("token", ""))
    return {"Authorization": f"Bearer {token}"} if token else {}


def _run(arguments: list[str], text: str) -> None:
    """Run a program without a shell; `text` is its standard input."""
    try:
        result = subprocess.run(  # noqa: S603 - the user's own command, no shell
            arguments,
            input=text,
            text=True,
            timeout=COMMAND_SECONDS,
            stdout=subprocess.DEVNULL,  # a pipe stays open as long as what it starts behind itself
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        reason = f"the command took more than {COMMAND_SECONDS:g} s"
        raise DeliveryError(reason, lasting=False) from None
    except FileNotFoundError:
        raise DeliveryError("there is no such command") from None
    if result.returncode:
        raise DeliveryError(f"the command ended with {result.returncode}", lasting=False)


CHANNELS: Mapping[str, Channel] = {
    "desktop": Channel(_desktop),
    "ntfy": Channel(_ntfy, ("url",), ("token",), "url"),
    "slack": Channel(_slack, ("url",), (), "url"),
    "discord": Channel(_discord, ("url",), (), "url"),
    "teams": Channel(_teams, ("url",), (), "url"),
    "webhook": Channel(_webhook, ("url",), ("token",), "url"),
    "email": Channel(_email, ("host", "from", "to"), ("port", "security", "user", "password")),
    "command": Channel(_command, ("command",)),
}

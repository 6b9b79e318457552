"""Connect to an address that was checked first, and post JSON over HTTP.

The name is resolved once, all its addresses are checked, and the connection goes to the checked
address. A second resolution, which an attacker's name server may answer otherwise, never happens.
"""

import contextlib
import ipaddress
import json
import socket
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from rlvitals.alerts.delivery import DeliveryError

CONNECT_SECONDS = 10.0  # for the connection, and for each answer
# Where clouds answer with a machine's credentials: AWS over IPv6, Alibaba, Azure, Oracle. That of
# AWS, Google and others over IPv4, 169.254.169.254, is link-local.
METADATA_ADDRESSES = frozenset(
    map(
        ipaddress.ip_address,
        ("fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd20:ce::254"),
    )
)


def check_address(text: str) -> None:
    """Raise DeliveryError for an address that no alert may be sent to.

    These are link-local, multicast, unspecified and reserved addresses and those of metadata
    services, also where an IPv6 address contains them. Loopback and private networks are allowed.
    """
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        embedded = address.ipv4_mapped or address.sixtofour
        # NAT64, RFC 6052: the IPv4 address is its last 32 bits.
        if address in ipaddress.IPv6Network("64:ff9b::/96"):
            embedded = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        if embedded is not None:
            check_address(str(embedded))
            return
    is_refused = address.is_link_local or address.is_multicast or address.is_unspecified
    if is_refused or address in METADATA_ADDRESSES:
        raise DeliveryError(f"{address} is a link-local, multicast or metadata address")
    if address.is_reserved and not address.is_loopback:
        raise DeliveryError(f"{address} is a reserved address")


def connect(host: str, port: int, timeout: float = CONNECT_SECONDS) -> socket.socket:
    """Return a connection to the first address of a host that answers.

    Raises DeliveryError where one of its addresses is refused, OSError where none answers.
    """
    candidates = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for *_, position in candidates:
        check_address(str(position[0]))
    failure: OSError | None = None
    for *_, position in candidates:
        try:
            return socket.create_connection((str(position[0]), port), timeout)
        except OSError as error:
            failure = error
    raise failure or OSError(f"{host} has no address")


def post(url: str, body: object, headers: Mapping[str, str] | None = None) -> None:
    """Post JSON. A redirect is refused. Raises DeliveryError; OSError where nothing answers."""
    location = urlsplit(url)
    if location.scheme not in {"http", "https"} or not location.hostname:
        raise DeliveryError("the address is not an http or https URL")
    is_secure = location.scheme == "https"
    port = location.port or (443 if is_secure else 80)
    kind = HTTPSConnection if is_secure else HTTPConnection
    connection = kind(location.hostname, port, timeout=CONNECT_SECONDS)
    content = {"Content-Type": "application/json", "User-Agent": "rlvitals", **(headers or {})}
    path = (location.path or "/") + (f"?{location.query}" if location.query else "")
    with contextlib.closing(connection):
        connection.sock = connect(location.hostname, port)
        if is_secure:
            context = ssl.create_default_context()
            connection.sock = context.wrap_socket(
                connection.sock, server_hostname=location.hostname
            )
        try:
            connection.request("POST", path, json.dumps(body).encode(), content)
            with connection.getresponse() as response:
                check_status(response.status, response.getheader("Retry-After"))
        except HTTPException as error:
            reason = f"the answer is no HTTP: {type(error).__name__}"
            raise DeliveryError(reason, lasting=False) from None


def check_status(status: int, retry_after: str | None) -> None:
    """Raise DeliveryError for a status that is no success; `retry_after`: the header."""
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        raise DeliveryError(f"HTTP {status}: redirects are not followed")
    # Timeout, too early and too many requests are tried again.
    lasting = status < HTTPStatus.INTERNAL_SERVER_ERROR and status not in (408, 425, 429)
    wait = float(retry_after) if retry_after and retry_after.isdecimal() else 0.0
    raise DeliveryError(f"HTTP {status}", lasting=lasting, wait=wait)

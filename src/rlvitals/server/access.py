"""Decide which requests are answered: host, origin, token, method, size and rate.

A page on the web can have the reader's browser send requests to a server on loopback. Such a
request names the web page as its origin, or, after DNS rebinding, the web page's host. What
changes a run also needs the control token, which only this server's own pages contain. Other users
of this machine can send requests to loopback as well: where runs can be changed, `rlvitals serve`
requires the token of its address there too.
"""

import hmac
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTROL_HEADER = "x-rlvitals-control"
MAX_BODY_BYTES = 4096  # of a request that changes something
MAX_RATE = 60.0  # requests a second of one address, on average
MAX_BURST = 300.0  # requests at once
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}


class AccessCheck:
    """ASGI middleware that refuses a request, or passes it on and adds the security headers."""

    def __init__(
        self, app: ASGIApp, hosts: Iterable[str], token: str, control_token: str = ""
    ) -> None:
        """Wrap an app.

        `hosts`: names it is reached by. `token`: empty where none is needed. `control_token`: of
        requests that change something; empty where there are none.
        """
        self.app, self.token, self.control_token = app, token, control_token
        self.hosts = frozenset(hosts)
        self._rates: OrderedDict[str, tuple[float, float]] = OrderedDict()  # allowance, time

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(k.encode(), v.encode()) for k, v in SECURITY_HEADERS.items()]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        refusal = self._refuse(scope, Headers(scope=scope))
        await (refusal or self.app)(scope, receive, send_with_headers)

    def _refuse(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the answer to a request that is not passed on; None for one that is."""
        return self._refuse_form(scope, headers) or self._refuse_sender(scope, headers)

    def _refuse_form(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse a request by its method, its size and, where it changes something, its token."""
        is_change = scope["method"] == "POST" and bool(self.control_token)
        if is_change and not self._is_from_own_page(headers):
            return PlainTextResponse("only this server's own pages may change something", 403)
        if scope["method"] not in {"GET", "HEAD"} and not is_change:
            text = "this server is read-only: `rlvitals serve --control` takes changes"
            return PlainTextResponse(text, 405, {"allow": "GET, HEAD"})
        if _is_too_large(scope, headers, MAX_BODY_BYTES if is_change else 0):
            return PlainTextResponse("the request is too large", 413)
        return None

    def _refuse_sender(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse a request by the name it uses for this server, its origin, rate and cookie."""
        host = headers.get("host", "")
        if not self._is_own_host(host):
            return PlainTextResponse(f"this server is not called {host[:100]!r}", 421)
        if not _is_own_origin(scope, headers):
            return PlainTextResponse("requests from other sites are refused", 403)
        if not self._has_allowance((scope.get("client") or ("", 0))[0]):
            return PlainTextResponse("too many requests", 429, {"retry-after": "1"})
        return self._check_cookie(scope, headers) if self.token else None

    def _is_own_host(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in {"localhost", "127.0.0.1", "::1"} or name in self.hosts:
            return True
        # Served elsewhere, with a token: an address is no name that rebinding could use.
        return bool(self.token) and _is_address(name)

    def _has_allowance(self, address: str) -> bool:
        """Count a request of an address, and return whether it is within the rate."""
        time_s = time.monotonic()
        allowance, last = self._rates.pop(address, (MAX_BURST, time_s))
        allowance = min(MAX_BURST, allowance + MAX_RATE * (time_s - last))
        self._rates[address] = max(allowance - 1.0, 0.0), time_s
        if len(self._rates) > 1024:
            self._rates.popitem(last=False)
        return allowance >= 1.0

    def _check_cookie(self, scope: Scope, headers: Headers) -> Response | None:
        port = (scope.get("server") or ("", 0))[1]
        name = f"rlvitals_token_{port}"  # a browser sends cookies to all ports
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for parameter, value in query if parameter == "token"]
        if tokens and self._matches(tokens[0]):
            remainder = urlencode([pair for pair in query if pair[0] != "token"])
            path = "/" + scope["path"].lstrip("/")
            answer = RedirectResponse(f"{path}?{remainder}" if remainder else path, 303)
            answer.set_cookie(name, self.token, httponly=True, samesite="strict")
            return answer
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(name)
        except CookieError:
            cookie = None
        if cookie is not None and self._matches(cookie.value):
            return None
        text = "a token is needed: open the address that `rlvitals serve` printed"
        return PlainTextResponse(text, 401)

    def _is_from_own_page(self, headers: Headers) -> bool:
        """Return whether a page of this server sends a change: it has an origin and the token."""
        token = headers.get(CONTROL_HEADER, "")
        return "origin" in headers and hmac.compare_digest(
            token.encode(), self.control_token.encode()
        )

    def _matches(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self.token.encode())


def _is_too_large(scope: Scope, headers: Headers, max_body_bytes: int) -> bool:
    """Return whether the query or the body is too long; a body without a length is."""
    length = headers.get("content-length", "0")
    is_long_body = not length.isdecimal() or int(length) > max_body_bytes
    is_long_query = len(scope["query_string"]) > 8192
    return is_long_body or is_long_query or "transfer-encoding" in headers


def _is_own_origin(scope: Scope, headers: Headers) -> bool:
    """Return whether a request comes from this server's own pages, or from no page."""
    origin = headers.get("origin")
    if origin is not None and origin != f"{scope['scheme']}://{headers.get('host', '')}":
        return False
    site, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode", "navigate")
    return site in {"same-origin", "none"} or mode == "navigate"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True

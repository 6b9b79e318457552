"""Read the runs that `rlvitals serve` shows, from its address."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import IO, Any, TypeVar
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlencode, urlsplit

from rlvitals.errors import UnreadableLog, UsageError, VitalsError
from rlvitals.hosted import trace_stream
from rlvitals.types import Trace

T = TypeVar("T")
LIST_PAGE_ROWS = 500  # lines of the list in one answer


def is_address(text: str) -> bool:
    """Return whether a text is the address of a server rather than a path."""
    return text.startswith(("http://", "https://"))


def open_address(address: str) -> "Trace | ServedRuns":
    """Return the run at the address of its page, or all runs at a server's address.

    `http://host:8265/run/KEY` and `http://host:8265/KEY` name a run. The token of a server that
    needs one is part of the address, as `rlvitals serve` prints it: `?token=...`.
    Raises UsageError, UnreadableLog where there is no such run, VitalsError.
    """
    url = urlsplit(address)
    if not url.hostname:
        raise UsageError("the address names no host", where=address, hint="http://localhost:8265")
    runs = ServedRuns(url)
    if url.path == "/run/":  # the served folder itself, whose key a browser drops
        return runs["."]
    key = unquote(url.path).strip("/")
    if key in {"", "run"}:
        return runs
    return runs[key.removeprefix("run/")]


class ServedRuns(Mapping[str, Trace]):
    """The runs of a server by key, the worst first; each is read when it is asked for."""

    def __init__(self, address: SplitResult) -> None:
        """Store the address of a server; its token is sent once, then as a cookie."""
        self.base = f"{address.scheme}://{address.netloc.rpartition('@')[2]}"
        self._token = parse_qs(address.query).get("token", [""])[0]
        handlers: list[urllib.request.BaseHandler] = [urllib.request.HTTPCookieProcessor()]
        if address.hostname in {
            "localhost",
            "127.0.0.1",
            "::1",
        }:  # no proxy sees it
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def __getitem__(self, key: str) -> Trace:
        """Read a run. Raises UnreadableLog where there is none, VitalsError."""
        return self._ask("/api/trace", {"key": key}, trace_stream.decode)

    def __iter__(self) -> Iterator[str]:
        """Yield the keys of all runs. Raises VitalsError."""
        offset, total = 0, 1
        while offset < total:
            query = {"offset": str(offset), "limit": str(LIST_PAGE_ROWS)}
            keys, total = self._ask("/api/runs", query, _read_keys)
            yield from keys
            offset += LIST_PAGE_ROWS

    def __len__(self) -> int:
        """Count the runs. Raises VitalsError."""
        return self._ask("/api/runs", {"limit": "1"}, _read_keys)[1]

    def _ask(self, path: str, query: Mapping[str, str], read: Callable[[IO[bytes]], T]) -> T:
        """Return what `read` makes of an answer. Raises UnreadableLog, VitalsError."""
        location = f"{self.base}/run/{quote(query['key'])}" if "key" in query else self.base
        token = {"token": self._token} if self._token else {}
        try:
            request_url = f"{self.base}{path}?{urlencode({**query, **token})}"
            # Seconds without a byte: a large run is read and judged before it is sent.
            with self._opener.open(request_url, timeout=60.0) as reply:
                answer = read(reply)
        except urllib.error.HTTPError as error:
            raise _problem(error, location) from None  # the error's own text has the token
        except OSError as error:
            reason = getattr(error, "reason", None) or error
            raise VitalsError(
                f"the server cannot be reached: {reason}",
                where=location,
                hint="is `rlvitals serve` running there?",
            ) from None
        except ValueError as error:
            raise UnreadableLog(
                f"not an answer of this version of `rlvitals serve`: {error}",
                where=location,
                hint="the same version of rlvitals on both machines",
            ) from None
        self._token = ""  # the server has set its cookie
        return answer


def _read_keys(file: IO[bytes]) -> tuple[list[str], int]:
    """Return the keys of a page of the list, and the number of all runs. Raises ValueError."""
    answer = json.load(file)
    try:
        return [str(row["key"]) for row in answer["rows"]], int(answer["total"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"no list of runs: {error}") from error


def _problem(error: urllib.error.HTTPError, location: str) -> VitalsError:
    """Return the error that a refusal of the server means."""
    if error.code == HTTPStatus.UNAUTHORIZED:
        return VitalsError(
            "the server needs its token",
            where=location,
            hint="the address that `rlvitals serve` printed, with ?token=...",
        )
    details: Mapping[str, Any] = {}
    with suppress(OSError, ValueError):
        content = json.loads(error.read(1 << 16))
        details = content if isinstance(content, dict) else {}
    if error.code == HTTPStatus.NOT_FOUND:
        return UnreadableLog(
            str(details.get("problem", "there is no such run")),
            where=location,
            hint="list(rlvitals.open(ADDRESS)) shows the runs of a server",
        )
    text = str(details.get("problem", error.reason))
    return VitalsError(f"the server refuses: {error.code} {text}", where=location)

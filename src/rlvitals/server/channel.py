"""Send messages from any thread to the browsers that listen, as server-sent events."""

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import field

from rlvitals.startup.fast_dataclass import dataclass

MAX_REPLAYED_MESSAGES = 64  # that a browser which comes back can catch up with
MAX_QUEUED_MESSAGES = 256  # of one listener; a slower one is cut off and comes back
PING_SECONDS = 15.0  # between comments that keep an idle connection open


@dataclass(eq=False, slots=True)
class _Listener:
    """A browser's queue in its event loop; None in the queue ends the stream."""

    loop: asyncio.AbstractEventLoop
    queue: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)
    timer: asyncio.TimerHandle | None = None

    def ping(self) -> None:
        """Keep the connection open, from now on until `timer` is cancelled."""
        self.put(b": ping\n\n")
        self.timer = self.loop.call_later(PING_SECONDS, self.ping)

    def put(self, message: bytes) -> None:
        if self.queue.qsize() >= MAX_QUEUED_MESSAGES:
            self.queue = asyncio.Queue()
            self.queue.put_nowait(None)
        else:
            self.queue.put_nowait(message)


class Channel:
    """Messages on one subject, encoded once for all listeners."""

    def __init__(self) -> None:
        """Start without listeners."""
        self.quiet_since = time.monotonic()  # when the last listener left
        self.has_readers = False  # since a page or a listener knows a position
        self._boot = f"{time.time_ns():x}"  # numbers of another start mean nothing
        self._count = 0
        self._recent: deque[tuple[int, bytes]] = deque(maxlen=MAX_REPLAYED_MESSAGES)
        self._listeners: set[_Listener] = set()
        self._lock = threading.Lock()

    @property
    def listeners(self) -> int:
        """Number of browsers that listen."""
        return len(self._listeners)

    def publish(self, kind: str, content: Mapping[str, object]) -> None:
        """Send a message to all listeners."""
        text = json.dumps(content, allow_nan=False, separators=(",", ":"))
        with self._lock:
            self._count += 1
            message = f"id: {self._boot}-{self._count}\nevent: {kind}\ndata: {text}\n\n".encode()
            self._recent.append((self._count, message))
            by_loop: dict[asyncio.AbstractEventLoop, list[_Listener]] = {}
            for listener in self._listeners:
                by_loop.setdefault(listener.loop, []).append(listener)
            for loop, listeners in by_loop.items():  # one wake-up for all of them
                loop.call_soon_threadsafe(_put_all, listeners, message)

    def close(self) -> None:
        """End the streams of all listeners."""
        with self._lock:
            for listener in self._listeners:
                listener.loop.call_soon_threadsafe(listener.queue.put_nowait, None)

    def position(self) -> str:
        """Return the id of the newest message: what a page that is made now contains."""
        with self._lock:
            self.has_readers = True
            return f"{self._boot}-{self._count}"

    async def listen(self, position: str) -> AsyncIterator[bytes]:
        """Yield the messages after a position; `reload` first where they are no longer kept."""
        listener = _Listener(asyncio.get_running_loop())
        with self._lock:
            self.has_readers = True
            missed = self._messages_after(position)
            self._listeners.add(listener)
        try:
            yield b"retry: 1000\n\n"
            for message in missed:
                yield message
            listener.timer = listener.loop.call_later(PING_SECONDS, listener.ping)
            while (queued := await listener.queue.get()) is not None:
                yield queued
        finally:
            if listener.timer is not None:
                listener.timer.cancel()
            with self._lock:
                self._listeners.discard(listener)
                self.quiet_since = time.monotonic()

    def _messages_after(self, position: str) -> list[bytes]:
        boot, _, number = position.partition("-")
        if not position:
            return []
        oldest = self._recent[0][0] if self._recent else self._count + 1
        if boot != self._boot or not number.isdecimal() or int(number) + 1 < oldest:
            return [f"id: {self._boot}-{self._count}\nevent: reload\ndata: {{}}\n\n".encode()]
        return [message for count, message in self._recent if count > int(number)]


def _put_all(listeners: list[_Listener], message: bytes) -> None:
    for listener in listeners:
        listener.put(message)

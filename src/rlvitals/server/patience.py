"""Bound the time that a slow client holds a connection: uvicorn waits for it without end.

A request has to come whole within `receive_seconds` of its first byte, or of the connection. A
client has to take what is sent to it: `min_taken_bytes` of what waits, or all of it, in
`take_seconds`.
"""

import asyncio
import socket

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class PatientProtocol(H11Protocol):
    """uvicorn's protocol, which ends a connection that is too slow."""

    receive_seconds = 15.0
    take_seconds = 60.0
    min_taken_bytes = 16 << 10
    # That the system holds of a connection: of more, a slow client's progress would not be seen.
    send_buffer_bytes = 128 << 10
    transport: asyncio.Transport
    _receiving: asyncio.TimerHandle | None = None
    _taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request. Each byte that a client does not take pauses writing."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)
        connection = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.send_buffer_bytes)
        self._receiving = self.loop.call_later(self.receive_seconds, transport.abort)

    def handle_events(self) -> None:
        """Handle what a client has sent, and stop the clock once a request is whole."""
        super().handle_events()
        state = self.conn.their_state
        is_partial = state is h11.SEND_BODY or (
            state is h11.IDLE and bool(self.conn.trailing_data[0])
        )
        if not is_partial:
            _cancel(self._receiving)
            self._receiving = None
        elif self._receiving is None:
            self._receiving = self.loop.call_later(self.receive_seconds, self.transport.abort)

    def pause_writing(self) -> None:
        """Watch what waits to be taken."""
        super().pause_writing()
        if self._taking is None:
            self._check_later()

    def resume_writing(self) -> None:
        """Stop watching: all is taken."""
        super().resume_writing()
        _cancel(self._taking)
        self._taking = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks."""
        super().connection_lost(exc)
        _cancel(self._receiving)
        _cancel(self._taking)
        self._receiving = self._taking = None

    def _check_later(self) -> None:
        waiting = self.transport.get_write_buffer_size()
        self._taking = self.loop.call_later(self.take_seconds, self._check_progress, waiting)

    def _check_progress(self, waiting: int) -> None:
        """End the connection if too little was taken; nothing is added while writing is paused."""
        if waiting - self.transport.get_write_buffer_size() < min(self.min_taken_bytes, waiting):
            self.transport.abort()
        else:
            self._check_later()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()

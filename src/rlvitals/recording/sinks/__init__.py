"""The sinks: one file each."""

from rlvitals.recording.sinks import native
from rlvitals.recording.sinks.sink import Sink

SINKS: tuple[Sink, ...] = (native.SINK,)


def find(name: str) -> Sink | None:
    """Return the sink of a name; None where there is none."""
    return next((sink for sink in SINKS if sink.name == name), None)

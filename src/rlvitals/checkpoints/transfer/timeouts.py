"""Run calls with a timeout, each on a thread that is abandoned when its time is up.

A silent connection raises nothing, and a thread that waits for it cannot be interrupted.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
STALL_SECONDS = (
    300.0  # seconds: a call moves at most 12 MB, which a link of 40 kB/s gets through with
)


class CallTimeout(Exception):  # noqa: N818 - as a link is
    """A call that did not return in time. Another try would take as long."""


def call_within(seconds: float, action: Callable[[], T]) -> T:
    """Return the result of `action`; raise its error, or CallTimeout after `seconds`."""
    results: list[T] = []
    errors: list[BaseException] = []

    def do() -> None:
        try:
            results.append(action())
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            errors.append(error)

    thread = threading.Thread(target=do, name="rlvitals-link", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise CallTimeout(f"the link hangs: a call has not returned for {seconds:,.0f} s")
    return results[0]


class TimeLimited:
    """A file system or an open file whose calls have a timeout."""

    def __init__(self, real: Any, seconds: float) -> None:  # noqa: ANN401 - fsspec's own
        """Wrap `real`; `seconds` is the timeout of a call."""
        self.real, self.seconds = real, seconds

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a method of it with a timeout."""
        method = getattr(self.real, name)

        def call(*args: object, **options: object) -> Any:  # noqa: ANN401 - the same
            return call_within(self.seconds, lambda: method(*args, **options))

        return call

    def in_passing(self, name: str, *args: object) -> None:
        """Call a clean-up method after an error; ignore its errors."""
        with suppress(Exception):
            # Done in passing, after something broke: a few seconds at most.
            call_within(min(5.0, self.seconds), lambda: getattr(self.real, name)(*args))

"""End a training when asked by a signal: after its update, so that what is saved can go on."""

import signal
from types import FrameType
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """SIGTERM asked for the end."""


class Stopping:
    """Between `with` and its end, notes the first signal; a second one raises at once.

    Until `patient` is set, the first raises too: there is nothing yet that could be saved. In
    another thread than the main one, signals stay what they were.
    """

    def __init__(self) -> None:
        """Note nothing yet."""
        self.patient = False
        self.asked: int | None = None  # the signal's number
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        """Take the signals over."""
        try:
            for number in SIGNALS:
                self._before[number] = signal.signal(number, self._noted)
        except ValueError:  # not the main thread
            self._before.clear()
        return self

    def __exit__(self, *_: object) -> None:
        """Give them back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._before.clear()

    def check(self) -> None:
        """Raise what was asked for, if anything was."""
        if self.asked is not None:
            raise _error(self.asked)

    def _noted(self, number: int, _: FrameType | None) -> None:
        again, self.asked = self.asked is not None, number
        if again or not self.patient:
            raise _error(number)


def _error(number: int) -> KeyboardInterrupt:
    return Terminated() if number == signal.SIGTERM else KeyboardInterrupt()

"""End a training when asked by a signal: after its update, so that what is saved can go on."""

import signal
from types import FrameType
from typing import Self

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP asked for the end."""

    def __init__(self, number: int) -> None:
        """Say which."""
        self.number = number
        super().__init__()


class Stopping:
    """Between `with` and its end, notes the first signal; a second one raises at once.

    Until `patient` is set, the first raises too: there is nothing yet that could be saved. What
    comes after one that raised is left out: how it ended is being written down. In another thread
    than the main one, signals stay what they were, and so do those that the program was started to
    ignore, as under nohup.
    """

    def __init__(self) -> None:
        """Note nothing yet."""
        self.patient = False
        self.asked: int | None = None  # the signal's number
        self._raised = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        """Take the signals over."""
        try:
            for number in SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
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
        if self._raised:
            return
        repeated, self.asked = self.asked is not None, number
        if repeated or not self.patient:
            self._raised = True
            raise _error(number)


def _error(number: int) -> KeyboardInterrupt:
    return KeyboardInterrupt() if number == signal.SIGINT else Terminated(number)

"""Stop a training on a signal, after the update in progress so that it can be saved."""

import signal
from types import FrameType
from typing import Self

HANDLED_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP asked for the end."""

    def __init__(self, number: int) -> None:
        """Say which."""
        self.number = number
        super().__init__()


class SignalHandler:
    """Between `with` and its end, notes the first signal; a second one raises at once.

    Until `patient` is set, the first raises too: there is nothing yet that could be saved. What
    comes after one that raised is ignored: the end is being recorded. In another thread
    than the main one, signals stay what they were, and so do those that the program was started to
    ignore, as under nohup.
    """

    def __init__(self) -> None:
        """Note nothing yet."""
        self.patient = False
        self.signal_number: int | None = None  # the signal's number
        self._raised = False
        self._previous_handlers: dict[int, object] = {}

    def __enter__(self) -> Self:
        """Take the signals over."""
        try:
            for number in HANDLED_SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._previous_handlers[number] = signal.signal(number, self._handle)
        except ValueError:  # not the main thread
            self._previous_handlers.clear()
        return self

    def __exit__(self, *_: object) -> None:
        """Give them back."""
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._previous_handlers.clear()

    def check(self) -> None:
        """Raise what was asked for, if anything was."""
        if self.signal_number is not None:
            raise _error(self.signal_number)

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self._raised:
            return
        repeated, self.signal_number = self.signal_number is not None, number
        if repeated or not self.patient:
            self._raised = True
            raise _error(number)


def _error(number: int) -> KeyboardInterrupt:
    return KeyboardInterrupt() if number == signal.SIGINT else Terminated(number)

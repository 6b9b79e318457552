"""The screen of `rlvitals watch PATH`, by textual: it draws frames and takes keys."""

import threading
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.widgets import Static

from rlvitals.views.watch_frame import WatchedRun, frame

Look = Callable[[], tuple[Sequence[WatchedRun], str, float]]  # runs, head line, pause in seconds


class WatchApp(App[None]):
    """Shows runs in the colours of the terminal; `look` is called on a separate thread."""

    CSS = "Screen { background: ansi_default; } #frame { width: 100%; height: 100%; }"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar = [
        ("q,escape", "quit", "Quit"),
        ("down,j", "move(1)", "Next run"),
        ("up,k", "move(-1)", "Previous run"),
    ]

    def __init__(self, look: Look) -> None:
        """Prepare to show what `look` returns."""
        super().__init__(ansi_color=True)
        self._look = look
        self._runs: Sequence[WatchedRun] = ()
        self._head = "reading"
        self._selected = ""  # name of the selected run: the order of the runs changes
        self._stop = threading.Event()

    def compose(self) -> ComposeResult:
        """Return the one widget."""
        yield Static(id="frame", markup=False)

    def on_mount(self) -> None:
        """Begin to look."""
        self._draw()
        self.run_worker(self._follow, thread=True, exit_on_error=True)

    def on_unmount(self) -> None:
        """End the thread."""
        self._stop.set()

    def on_resize(self) -> None:
        """Draw for the new size."""
        self._draw()

    def action_move(self, rows: int) -> None:
        """Select another run."""
        if self._runs:
            number = min(max(0, self._position() + rows), len(self._runs) - 1)
            self._selected = self._runs[number].name
            self._draw()

    def _follow(self) -> None:
        pause = 0.0
        while not self._stop.wait(pause):
            self._runs, self._head, pause = self._look()
            if not self._stop.is_set():
                self.call_from_thread(self._draw)

    def _position(self) -> int:
        """Return the place of the selected run in the list; the first if none is selected."""
        names = [run.name for run in self._runs]
        return names.index(self._selected) if self._selected in names else 0

    def _draw(self) -> None:
        text = frame(self._runs, self._position(), self.size.width, self.size.height, self._head)
        self.query_one("#frame", Static).update(text)

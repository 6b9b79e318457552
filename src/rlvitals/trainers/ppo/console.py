"""Log handlers of a training: all lines to a file, a few to the console."""

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvitals.trainers.console_io import say
from rlvitals.trainers.full_disk import LogFile
from rlvitals.trainers.ppo.telemetry import LOG_FORMAT

if TYPE_CHECKING:
    from rich.progress import Progress


class UpdateFilter(logging.Filter):
    """Lets an update's line through now and then; any other line always."""

    def __init__(self, total_steps: int) -> None:
        """Let about `LINES` through in `total_steps`."""
        super().__init__()
        self._total, self._seen, self._next = total_steps, 0, 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if a line is shown."""
        step = getattr(record, "step", None)
        if step is None:
            return True
        self._seen += 1
        # The first five updates are shown, then 100 of the run.
        if self._seen > 5 and step < min(self._next, self._total):
            return False
        self._next = step + self._total / 100
        return True


class Bar:
    """A progress bar in a terminal; nothing is drawn anywhere else."""

    def __init__(self, total_steps: int, *, enabled: bool) -> None:
        """Draw nothing yet."""
        self._total = total_steps
        self.drawn = enabled and sys.stdout.isatty()
        self._progress: Progress | None = None
        self._task: Any = None

    def update(self, step: int, metrics: Mapping[str, float]) -> None:
        """Show a step and the numbers of its update."""
        if not self.drawn:
            return
        if self._progress is None:
            from rich import progress  # noqa: PLC0415 - only in a terminal
            from rich.console import Console  # noqa: PLC0415

            self._progress = progress.Progress(
                progress.BarColumn(bar_width=20), progress.TaskProgressColumn(),
                progress.MofNCompleteColumn(), progress.TimeRemainingColumn(),
                progress.TextColumn("{task.fields[said]}", style="dim"),
                console=Console(file=sys.stdout), refresh_per_second=4, transient=True,
            )  # fmt: skip
            self._task = self._progress.add_task("", total=self._total, completed=step, said="")
            self._progress.start()
        # What the bar shows of an update, and how.
        formats = (
            ("ep_return", "return {:.1f}"), ("latency", "latency {:.2f} s"),
            ("reward", "reward {:.3f}"), ("approx_kl", "kl {:.4f}"), ("sps", "{:,.0f} steps/s"),
        )  # fmt: skip
        texts = [text.format(metrics[name]) for name, text in formats if name in metrics]
        self._progress.update(
            self._task, completed=min(step, self._total), said="  ".join(texts[:3])
        )

    def print(self, line: str) -> None:
        """Print a line above the bar."""
        if self._progress is None:
            say(f"{line}\n")
        else:
            self._progress.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


class Console(logging.Handler):
    """Prints lines, above the bar where there is one."""

    def __init__(self, bar: Bar) -> None:
        """Print through a bar."""
        super().__init__()
        self._bar = bar

    def emit(self, record: logging.LogRecord) -> None:
        """Print a line; a traceback is in the file."""
        self._bar.print(record.getMessage())


def logger(folder: Path, bar: Bar, total_steps: int, *, verbose: bool) -> logging.Logger:
    """Return what writes all lines to `ppo_training.log` in a folder, and few to the console."""
    # No logger of the process: two trainings in it share no lines.
    log = logging.Logger(f"rlvitals.ppo.{folder.name}", logging.DEBUG)  # noqa: LOG001
    console = Console(bar)
    console.setLevel(logging.DEBUG if verbose else logging.INFO)
    if not verbose:
        console.addFilter(_no_update if bar.drawn else UpdateFilter(total_steps))
    file = LogFile(folder / "ppo_training.log", encoding="utf-8")
    file.setFormatter(logging.Formatter(LOG_FORMAT))
    log.addHandler(console)
    log.addHandler(file)
    return log


def _no_update(record: logging.LogRecord) -> bool:
    return getattr(record, "step", None) is None


def close(log: logging.Logger) -> None:
    """Close what a logger writes to."""
    for handler in list(log.handlers):
        log.removeHandler(handler)
        handler.close()

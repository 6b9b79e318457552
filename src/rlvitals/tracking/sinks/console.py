"""Print one line per update: the step, its speed and the most important metrics.

At most one line a second, as wide as the terminal; none where nobody looks (no terminal), unless
`always` is set. `keys` chooses what is shown. A progress bar of tqdm or rich stays whole.
"""

import math
import shutil
import sys
import time as clock
from collections.abc import Mapping, Sequence

from rlvitals.errors import harmless
from rlvitals.tracking.sinks.sink import AXIS_PREFIX, Opening, Rows, Sink
from rlvitals.types import Histogram, Table, Text

# What is shown first, where keys are not chosen: parts of names, the most telling first.
KEY_ORDER = (
    *("return", "rew_mean", "reward_mean", "reward", "score", "success", "ep_len", "length"),
    *("kl", "entropy", "clip", "explained", "value_loss", "policy_loss", "loss", "grad", "lr"),
    *("learning_rate",),
)


class Lines:
    """Prints lines; remembers the last value of each metric."""

    def __init__(self, keys: Sequence[str], every: float, *, always: bool) -> None:
        """Show some keys, or those that matter most where none is given."""
        self._keys, self._every, self._always = tuple(keys), every, always
        self._last: dict[str, float] = {}
        self._step, self._last_print = 0, -math.inf
        self._since: tuple[int, float] | None = None
        self._news = False

    def scalars(self, rows: Rows) -> None:
        """Remember the last row, and print it if the interval has passed."""
        if not len(rows):
            return
        row = rows.values[-1].tolist()
        cells = zip(rows.keys, row, strict=True)
        self._last |= {key: value for key, value in cells if not key.startswith(AXIS_PREFIX)}
        self._step, self._news = int(rows.steps[-1]), True
        if clock.monotonic() - self._last_print >= self._every:
            self._print()

    def histogram(self, key: str, histogram: Histogram) -> None:
        """Leave histograms out."""

    def text(self, key: str, text: Text) -> None:
        """Leave texts out."""

    def table(self, key: str, table: Table) -> None:
        """Leave tables out."""

    def settings(self, step: int, changed: Mapping[str, object]) -> None:
        """Leave settings out."""

    def event(self, kind: str, step: int | None, facts: Mapping[str, object]) -> None:
        """Leave events out."""

    def flush(self) -> None:
        """Do nothing: lines come by their own clock."""

    def close(self, status: str) -> None:
        """Print the last row and how the run ended."""
        if self._news:
            self._print()
        if self._last_print > -math.inf:
            self._write(f"{status} at step {self._step:,}")

    def _print(self) -> None:
        if not (self._always or sys.stderr.isatty()):
            return
        self._last_print, self._news = clock.monotonic(), False
        width = shutil.get_terminal_size((100, 24)).columns - 1  # 100 without a terminal
        if self._keys:
            metrics = {key: self._last[key] for key in self._keys if key in self._last}
        else:
            metrics = dict(sorted(self._last.items(), key=lambda item: _rank(item[0])))
        previous, current = self._since, (self._step, clock.monotonic())
        self._since = current
        if previous is None or current[0] <= previous[0] or current[1] <= previous[1]:
            step_rate = None
        else:
            step_rate = (current[0] - previous[0]) / (current[1] - previous[1])
        self._write(line(self._step, step_rate, metrics, width))

    def _write(self, text: str) -> None:
        text = harmless(text)  # a metric's name must not move the cursor
        if "rich" in sys.modules and (console := _live_console()) is not None:
            console.print(text, markup=False, highlight=False, soft_wrap=True)  # type: ignore[attr-defined]
        elif tqdm := getattr(sys.modules.get("tqdm"), "tqdm", None):
            tqdm.write(text, file=sys.stderr)
        else:
            sys.stderr.write(f"{text}\n")


def line(step: int, speed: float | None, metrics: Mapping[str, float], width: int) -> str:
    """Return one line no wider than `width`, with as many complete metrics as fit."""
    texts = [f"step {step:,}"]
    if speed is not None:
        texts.append(f"{number(speed)}/s")
    for key, value in metrics.items():
        text = f"{key.rpartition('/')[2] or key} {number(value)}"
        if sum(map(len, texts)) + 2 * len(texts) + len(text) > width:
            break
        texts.append(text)
    return "  ".join(texts)[:width]


def number(value: float) -> str:
    """Return a number in four digits."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if value and not 1e-3 <= abs(value) < 1e6:  # what is read at a glance
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"  # the same


def _rank(key: str) -> int:
    name = key.rpartition("/")[2].lower()
    return next((i for i, pattern in enumerate(KEY_ORDER) if pattern in name), len(KEY_ORDER))


def _live_console() -> object | None:
    """Return rich's console where a progress bar of it is on the screen."""
    console = sys.modules["rich"].__dict__.get("_console")
    return console if getattr(console, "_live_stack", None) else None


def _open_sink(opening: Opening) -> Lines:
    options = opening.options
    keys, every = options.get("keys"), options.get("every")
    return Lines(
        [str(key) for key in keys] if isinstance(keys, Sequence) else (),
        float(every) if isinstance(every, int | float) else 1.0,
        always=bool(options.get("always")),
    )


SINK = Sink("console", "one line an update", "", _open_sink)

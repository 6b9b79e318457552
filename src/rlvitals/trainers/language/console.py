"""Console lines and `debug.log` of a language model's training."""

import logging
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Self, TextIO

import transformers
from tqdm import tqdm

from rlvitals import UsageError
from rlvitals.lab import quantity
from rlvitals.trainers.console_io import say
from rlvitals.trainers.full_disk import LogFile
from rlvitals.trainers.language import sample_weights
from rlvitals.trainers.language.config import Config
from rlvitals.trainers.language.modes import BatchResult

DEBUG_LOG = "debug.log"
LOGGED_LIBRARIES = (
    "transformers",
    "trl",
    "accelerate",
    "peft",
    "datasets",
    "py.warnings",
    "rlvitals",
)
RECORDER_LOGGER = logging.getLogger("rlvitals")  # warnings of the recorder
PROGRESS_LINES = 10  # of a training: a line of progress after each, where no bar can be drawn
MAX_CONSOLE_REWARDS = 16  # rewards of a list on the console; the file has all
SAMPLES_BY_MODE = MappingProxyType({
    sample_weights.PSR: "POSITIVE samples", sample_weights.NSR: "NEGATIVE samples",
    sample_weights.W_REINFORCE: "both, POSITIVE samples weighted by λ",
})  # fmt: skip


def heading(config: Config, samples: int) -> list[str]:
    """Return the lines that describe a training before it starts."""
    mode, signal = config.training.mode, config.signal
    lines = [f"{mode.upper()} TRAINING CONFIGURATION:", f"  Training mode: {mode}"]
    steps, epochs = config.training.max_steps, config.training.num_epochs
    length = f"  Steps: {steps}" if steps else f"  Epochs: {epochs:g}"
    lines += [f"  Training samples: {samples}", length]
    if mode in SAMPLES_BY_MODE:
        lines.append(f"  Reward threshold: {signal.reward_threshold:g}")
    if mode == sample_weights.W_REINFORCE:
        lines.append(f"  Lambda: {signal.lambda_psr:g}")
    if mode in SAMPLES_BY_MODE:
        lines += ["", f"✓ {mode.upper()} reward filtering enabled"]
        only = "" if mode == sample_weights.W_REINFORCE else "only "
        lines.append(f"  → Training {only}on {SAMPLES_BY_MODE[mode]}")
    return [*lines, "", "Training:"]


def batch_line(mode: str, result: BatchResult, lambda_psr: float, weights: Sequence[float]) -> str:
    """Return the summary line of a generation at its optimizer step.

    `weights`: of the reward functions. GRPO's mean is that of the weighted sums, as `reward` is.
    """
    begin = f"{mode.upper()} [Step {result.step}]:"
    signal = result.signal
    if signal is None:
        samples = list(zip(*result.rewards.values(), strict=True))
        sums = [total for sample in samples if (total := _total(sample, weights)) is not None]
        mean = sum(sums) / len(sums) if sums else float("nan")
        return f"{begin} {quantity(len(samples), 'sample')} | Avg reward: {mean:.3f}"
    positive, negative = signal.positives, signal.negatives
    count, mean = len(signal.positive), signal.mean
    counts = {
        sample_weights.PSR: f"{positive}/{count} positive samples",
        sample_weights.NSR: f"{negative}/{count} negative samples",
        sample_weights.W_REINFORCE: f"{positive} pos (λ={lambda_psr:g}) + {negative} neg (λ=1.0)",
    }[mode]
    return f"{begin} {counts} | Avg reward: {mean:.3f}"


def _total(paid: Sequence[float], weights: Sequence[float]) -> float | None:
    """Return the weighted sum of a sample's rewards; None if no function scored it."""
    terms = [w * p for p, w in zip(paid, weights, strict=True) if p == p]  # noqa: PLR0124 - no NaN
    return sum(terms) if terms else None


def reward_line(title: str, paid: Sequence[float], limit: int = 0) -> str:
    """Format a function's rewards; of more than `limit` samples the first, with their number."""
    head = paid[:limit] if limit else paid
    text = str([round(reward, 3) + 0.0 for reward in head]).replace("nan", "none")  # -0.0 is 0
    if len(head) < len(paid):
        text = f"{text[:-1]}, … {len(paid)} in all]"
    return f"{title}: {text}"


class Progress:
    """Progress of a training: one updated line in a terminal, else a line per tenth."""

    def __init__(
        self, *, wanted: bool, title: str = "Training progress", stream: TextIO | None = None
    ) -> None:
        """Draw nothing yet. `stream`: where to, in place of stdout."""
        self._title, self._stream = title, stream
        self.drawn = wanted and (stream or sys.stdout).isatty()
        self._wanted = wanted
        self._began = time.monotonic()
        self._from = self._total = self._last_tenth = 0
        self._line = ""  # the line in the terminal

    def begin(self, step: int, total: int) -> None:
        """Begin at a step, of a total."""
        self._from, self._total, self._began = step, total, time.monotonic()
        self._last_tenth = step * PROGRESS_LINES // max(total, 1)

    def update(self, step: int) -> str:
        """Go to a step; returns a line for the log where a tenth is over."""
        tenth = step * PROGRESS_LINES // max(self._total, 1)
        is_new_tenth, self._last_tenth = tenth > self._last_tenth and self._wanted, tenth
        if not (is_new_tenth or self.drawn):
            return ""
        line = tqdm.format_meter(
            step, self._total, time.monotonic() - self._began, initial=self._from,
            prefix=self._title,
            bar_format="{desc}: {percentage:.0f}% {n_fmt}/{total_fmt}"
            " [{elapsed}<{remaining}, {rate_fmt}]",
        )  # fmt: skip
        if self.drawn:
            self._draw(line)
        return str(line) if is_new_tenth else ""

    def print(self, text: str) -> None:
        """Print a line above it."""
        line = self._line
        self._draw("")
        say(f"{text}\n", self._stream)
        self._draw(line)

    def close(self) -> None:
        """Take it away."""
        self._draw("")
        self.drawn = False

    def _draw(self, line: str) -> None:
        if self.drawn and (line or self._line):
            say(f"\r\x1b[K{line}", self._stream)
            self._line = line


class _LinePrefixFormatter(logging.Formatter):
    """Puts the time before each line of a record: they are searched for one by one."""

    def __init__(self) -> None:
        """Format messages unchanged, with a prefix on each line."""
        super().__init__()
        self._second, self._stamp = -1, ""

    def begin(self, when: float, level: str, name: str) -> str:
        """Return the prefix of a line: time, level and logger."""
        if int(when) != self._second:
            self._second = int(when)
            self._stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(when))
        return f"{self._stamp},{int(when % 1 * 1000):03d} {level} {name}: "

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines; a traceback stays as it is."""
        text = super().format(record)
        begin = self.begin(record.created, record.levelname, record.name)
        return begin + text.replace("\n", f"\n{begin}", record.message.count("\n"))


class _Console(logging.Handler):
    """Prints lines above the line of progress."""

    def __init__(self, progress: Progress) -> None:
        """Print through it."""
        super().__init__(logging.INFO)
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        """Print a line, shortened where the file has a longer one; a traceback is in the file."""
        self._progress.print(getattr(record, "short", "") or record.getMessage())


class LogFiles:
    """Log handlers under `with`: all lines to a file, those for people to the console.

    What the libraries log goes into the file too. `quiet` processes write nothing.
    """

    def __init__(self, file: Path, progress: Progress, *, quiet: bool = False) -> None:
        """Open the file. Raises UsageError where it cannot be."""
        # No logger of the process: two trainings in it share no lines.
        self.log = logging.Logger("rlvitals", logging.DEBUG)  # noqa: LOG001
        self._path, self._quiet = file, quiet
        self._each_line = _LinePrefixFormatter()
        self._handler: logging.Handler = logging.NullHandler()
        self._file: LogFile | None = None  # while it is open
        self._console = _Console(progress)
        self._bars = False
        if quiet:
            return
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            LogFile(file, encoding="utf-8").close()  # now: a model may take minutes to load
        except OSError as error:
            raise UsageError(
                f"it cannot be written: {error.strerror}", where=str(file), hint="--output-dir DIR"
            ) from None

    def write(self, lines: Sequence[str]) -> None:
        """Put lines into the file alone, as `log.debug` would, for half its price."""
        file = self._file
        if file is None or file.stream is None:
            return
        begin = self._each_line.begin(time.time(), "DEBUG", self.log.name)
        with file.lock or nullcontext(), suppress(OSError):  # a full disk, as for LogFile
            file.stream.write("".join(f"{begin}{line}\n" for line in lines))
            file.stream.flush()

    def __enter__(self) -> Self:
        """Open the file to us and to the libraries; their bars reach nobody."""
        if not self._quiet:
            self._handler = self._file = LogFile(self._path, encoding="utf-8")
            self._file.setFormatter(self._each_line)
            self.log.addHandler(self._console)
            RECORDER_LOGGER.addHandler(
                self._console
            )  # a sink that fails, above the line of progress
        self.log.addHandler(self._handler)
        for name in LOGGED_LIBRARIES:
            logging.getLogger(name).addHandler(self._handler)
        logging.captureWarnings(capture=True)
        self._bars = transformers.utils.logging.is_progress_bar_enabled()
        transformers.utils.logging.disable_progress_bar()
        transformers.utils.logging.disable_default_handler()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file, and leave the libraries as they were."""
        logging.captureWarnings(capture=False)
        transformers.utils.logging.enable_default_handler()
        if self._bars:
            transformers.utils.logging.enable_progress_bar()
        for name in LOGGED_LIBRARIES:
            logging.getLogger(name).removeHandler(self._handler)
        RECORDER_LOGGER.removeHandler(self._console)
        for handler in list(self.log.handlers):
            self.log.removeHandler(handler)
        if self._file is not None:
            self._file.close()
            self._file = None

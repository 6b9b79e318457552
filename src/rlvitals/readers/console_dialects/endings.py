"""What a console log says of the end of its process: a traceback, a signal, an exit code.

It counts where nothing but the noise of a shutdown comes after it; what training outlived is a
note. A person's own stop (Ctrl-C, scancel) is no failure.
"""

import re
from dataclasses import field

from rlvitals.readers.console_dialects import text as console_text
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.startup.lazy_pattern import lazy_pattern
from rlvitals.types import STOPPED_BY_HAND, Ending

HEADER = "Traceback (most recent call last)"
CHAINED = ("During handling of the above", "The above exception was the direct cause")
# Ray's exception quotes the frames of the task that failed, then what that raised.
REMOTE = lazy_pattern(r"ray\.exceptions\.RayTaskError\b")
EXCEPTION = lazy_pattern(r"[\w.]+(?:Error|Exception|Exit|Interrupt|Warning|Timeout)\b\S*(?::|$)")
# Ray prints a line once for all that say it.
REPEATED = lazy_pattern(r" *\[repeated \d+x across cluster\]")
# Lines that stand between a failure and the end of the process, and mean nothing by themselves.
PROGRESS_NOISE = lazy_pattern(
    r"wandb:|swanlab:|\* Run |slurmstepd:|srun:|\[[WEI]\d{3,4} |[WEIF]\d{4} |\[rank|"
    r"Exception ignored|warnings?\.warn|.*(?:Warning|resource_tracker|destroy_process_group)|"
    r"[=\-*_~#]{3,}|\s+|[A-Za-z_]+ +: |Root Cause|Failures:|\[0\]:|\*{3}|\(.* pid=",
)
# What a logger puts before a message that is a traceback and no more: somebody caught it. It ended
# the run only where the log ends with it, before any row.
LOGGED_TRACEBACK = lazy_pattern(
    rf"(?:^|[\s\[|]){console_text.LEVEL_PATTERN}(?:[\s:\]|\[-]+[\d:.,\s/-]*)$"
)
CAUGHT = 3
MAX_TRACEBACK_LINES = 200  # of a traceback that is kept
MAX_MESSAGE = 20  # lines of an exception's message
# The last is of DeepSpeed's launcher, which passes Ctrl-C on to the ranks.
INTERRUPTED = lazy_pattern(
    r"(?:\w+\.)*KeyboardInterrupt\b|\^C|.*\bMain process received SIGINT, exiting"
)
# Pattern of a line, and the exit code that it implies (None: unknown).
KILLED, ABORTED = 137, 134  # 128 + the signal's number
SIGNALS = (
    (lazy_pattern(r"Killed|(?:.*: line \d+: +\d+|\[\d+\][+-]?(?: +\d+)?) +Killed\b.*"), KILLED),
    (lazy_pattern(r".*srun: error: .*: tasks? [\d,-]+: Killed"), KILLED),
    (lazy_pattern(r".*Segmentation fault(?: +\(core dumped\))?.*"), 139),
    (lazy_pattern(r"(?:.*: line \d+: +\d+ )?Aborted(?: +\(core dumped\).*)?"), ABORTED),
    (lazy_pattern(r"(?:.*: line \d+: +\d+ )?Bus error(?: +\(core dumped\).*)?"), 135),
    (lazy_pattern(r".*(?:oom[-_ ]kill|\bout of memory: kill).*", re.IGNORECASE), KILLED),
    # Ray's monitor of a node's memory, and the exception that the driver gets.
    (lazy_pattern(r".*\bray\.exceptions\.OutOfMemoryError\b.*"), KILLED),
    (lazy_pattern(r".*\b[1-9]\d{0,5} Workers? .{0,40}killed due to memory pressure.*"), KILLED),
    (lazy_pattern(r".*\bkilled due to the node running low on memory\b.*"), KILLED),
    (lazy_pattern(r".*\bhow to address the out of memory issue: .*"), KILLED),
    (lazy_pattern(r".*\bWatchdog caught collective operation timeout\b.*"), ABORTED),
    (lazy_pattern(r".*slurmstepd: error: .*CANCELLED.* DUE TO .*"), None),
    (lazy_pattern(r"(?:[\w.]+: )?CUDA (?:error: )?out of memory.*"), None),
    (lazy_pattern(r"terminate called after throwing .*"), ABORTED),
    (lazy_pattern(r"(?:\S*/)?python[\d.]*: can't open file .*"), 2),
)
EXITS = (
    lazy_pattern(r"srun: error: .*Exited with exit code (\d{1,3})\b"),
    lazy_pattern(r"\s*exitcode +: (-?\d{1,3}) \("),
    lazy_pattern(r".*\bfailed \(exitcode: (-?\d{1,3})\)"),  # torch.distributed.elastic
    lazy_pattern(r".*\bexits with return code = (-?\d{1,3})\b"),  # DeepSpeed's launcher
    lazy_pattern(r".*\bexit(?:ed with)?(?: exit)? (?:code|status):? (-?[1-9]\d{0,2})\b.*"),
    lazy_pattern(r".*Command exited with non-zero status (\d{1,3})"),
)
CANCELLED = lazy_pattern(r".*slurmstepd: error: .*CANCELLED (?!.* DUE TO )")
SUCCESS = lazy_pattern(
    r".*\bTraining completed successfully\b|rlvitals: the command ended with exit code 0$",
    re.IGNORECASE,
)
HINTS = (
    *("Traceback", "illed", "fault", "borted", "error", "Error", "xit", "emory", "Interrupt"),
    *(
        "CANCELLED",
        "completed",
        "terminate",
        "can't open file",
        "^C",
        "SIGINT",
        "oom",
        "OOM",
        "Watchdog",
    ),
)


@dataclass(slots=True)
class End:
    """Signs of an end in the log since the last row of training."""

    traceback: list[str] = field(default_factory=list)
    said: str = ""  # the line of a signal or of a scheduler
    exit_code: int | None = None
    interrupted: bool = False
    success: bool = False
    within: int = 0  # 1: in a traceback's frames, 2: in the exception's message, 3: of no account
    has_rows: bool = False
    caught: bool = False  # by a handler that logged it: it counts while nothing comes after it
    closed: bool = False  # a later traceback is another process's, or a consequence
    message: int = 0  # lines of the message so far
    after: int = 0  # lines after it that are not noise
    line: int = 0  # where it was said
    outlived: list[int] = field(default_factory=list)  # lines of failures that it went on after

    def trained(self) -> None:
        """A row of training came: what was said before did not end the run."""
        self.has_rows = True
        self._outlive()

    def _outlive(self) -> None:
        if self.failed and not self.caught and len(self.outlived) < MAX_MESSAGE:
            self.outlived.append(self.line)
        self._reset()

    @property
    def failed(self) -> bool:
        """Whether a failure was said."""
        return bool(self.traceback or self.said or self.exit_code)

    @property
    def busy(self) -> bool:
        """Whether each further line matters."""
        return self.failed or self.interrupted or self.success

    def _reset(self) -> None:
        self.traceback, self.said, self.exit_code = [], "", None
        self.interrupted = self.success = self.closed = self.caught = False
        self.within = self.message = self.after = 0

    def take(self, text: str, number: int) -> None:
        """Take a piece, without colours, on line `number` (from 1)."""
        line = REPEATED.sub("", console_text.without_speaker(text)[:1000]).rstrip()
        # What PowerShell puts between a traceback's first line and its frames.
        if (
            self.within == 1
            and len(self.traceback) == 1
            and (not line or re.fullmatch(r"\s*\+ .*|[^\W\d][^:]{0,40}:\d+ [^\W\d]*[: ]+\d+", line))
        ):
            return
        if HEADER in line:
            self._header(line, number)
        elif self.within:
            self._frame(line)
        elif not self._said(line, number) and self.busy and not PROGRESS_NOISE.match(line):
            self._goes_past()

    def _goes_past(self) -> None:
        """Count a line that came after a failure: after enough of them it ended nothing."""
        self.after += 1
        if self.caught or self.after > 40:  # the failure did not end the log
            self._outlive()

    def _header(self, line: str, number: int) -> None:
        start = line.index(HEADER)
        logged = LOGGED_TRACEBACK.search(line, 0, start) is not None
        if logged and (self.has_rows or (self.failed and not self.caught)):
            self.within = CAUGHT
            return
        chained = bool(self.traceback) and any(c in self.traceback[-1] for c in CHAINED)
        if logged or (self.caught and not chained):
            self._reset()
            self.caught = logged
        if self.traceback and not chained:
            self.closed = True
        self.within, self.message, self.after, self.success = 1, 0, 0, False
        self.line = self.line if self.traceback else number
        self._keep(line[start:])

    def _frame(self, line: str) -> None:
        """Take a line of a traceback: frames are indented, the exception is not."""
        indented = line.startswith((" ", "\t"))
        if self.within == CAUGHT:
            self.within = CAUGHT if indented else 0
            return
        if self.within == 1:
            if self.traceback and self.traceback[-1].endswith(", in"):
                self.traceback[-1] += f" {line}"
                return
            self._keep(line)
            if not indented:
                self.within = 2
                by_hand = not self.closed and INTERRUPTED.match(line) is not None
                self.interrupted = self.interrupted or by_hand
            return
        self.message += 1
        if any(line.startswith(words) for words in CHAINED):
            self._keep(line)
            self.within = 0
        elif self._goes_on(line, indented=indented):
            self._keep(line)
        else:
            self.within = 0
            if not self._said(line, self.line) and not PROGRESS_NOISE.match(line):
                self._goes_past()

    def _goes_on(self, line: str, *, indented: bool) -> bool:
        """Tell whether a line is of the message, or of a failed task that Ray quotes in it."""
        if indented and self.message < MAX_MESSAGE:
            return True
        if self.message >= MAX_TRACEBACK_LINES or not any(map(REMOTE.match, self.traceback)):
            return False
        return indented or not line or EXCEPTION.match(line) is not None

    def _keep(self, line: str) -> None:
        if self.closed:
            return
        self.traceback.append(line)
        if len(self.traceback) > MAX_TRACEBACK_LINES:  # the last frames and the exception say most
            del self.traceback[1]

    def _said(self, line: str, number: int) -> bool:
        """Take a line that names a signal, an exit code, a cancelled job, or success."""
        if self.traceback and any(words in line for words in CHAINED):
            self._keep(line)
            return True
        if not any(hint in line for hint in HINTS):
            return False
        if (
            number <= 1
            and not self.traceback
            and re.fullmatch(r"(?:\w+\.)*[A-Z]\w*(?:Error|Exception): \S.*", line)
        ):
            self._failure(number, None)
            self._keep(line)
            return True
        text = line.strip()
        if self._failed(text, number):
            return True
        is_interrupt = bool(INTERRUPTED.fullmatch(text) or CANCELLED.match(text))
        is_success = not is_interrupt and not self.failed and SUCCESS.match(text) is not None
        self.interrupted |= is_interrupt
        self.success |= is_success
        return is_interrupt or is_success

    def _failed(self, line: str, number: int) -> bool:
        for pattern in EXITS:
            if (found := pattern.match(line)) and int(found[1]):
                self._failure(number, int(found[1]))
                return True
        for signal, code in SIGNALS:
            if signal.fullmatch(line):
                self._failure(number, code)
                self.said = self.said or line
                return True
        return False

    def _failure(self, number: int, code: int | None) -> None:
        self.line = self.line if self.failed else number
        self.exit_code = self.exit_code or code
        self.success, self.after = False, 0

    def ending(self) -> Ending | None:
        """Return how the run ended; None where the log does not say that it did."""
        if self.interrupted:
            return Ending(reason=STOPPED_BY_HAND)
        if self.failed:
            # The traceback up to what was raised: a link that is cut off says nothing.
            last = len(self.traceback)
            while last and (
                re.fullmatch(r"[\s^~]*", self.traceback[last - 1])
                or self.traceback[last - 1].startswith(CHAINED)
            ):
                last -= 1
            return Ending(self.exit_code, "\n".join(self.traceback[:last]) or self.said)
        return Ending(0) if self.success else None

    def notes(self) -> list[str]:
        """Say what ended by hand, and what training went on after."""
        notes = [STOPPED_BY_HAND] if self.interrupted else []
        if self.outlived:
            count = len(self.outlived)
            some = "a failure was" if count == 1 else f"{count} failures were"
            notes.append(f"{some} printed, and training went on: line {self.outlived[0]}")
        return notes

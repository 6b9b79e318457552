"""tqdm's progress bars: the step, the length of the run, the time a step takes, the postfix.

` 10%|█         | 50/500 [15:30<2:18:45, 18.47s/it, loss=0.5, reward=1.2]`

A loop may put its numbers before the bar, and Lightning draws a bar without an end an epoch:

`Loss: 0.5 | Acc: 0.75:  10%|█         | 50/500 [15:30<2:18:45, 18.47s/it]`
`Epoch 3: : 8it [17:02, 1.20s/it, loss=1.56, v_num=0, avg_reward=-.0573]`

The description of a bar shows whether it counts the run's steps; a bar without one counts them
until another takes its place before any row of numbers. A state of a bar is read when the next
one shows, because its postfix is set after its count. Source: tqdm's `std.py`, `format_meter`.
"""

import re
from dataclasses import field
from typing import ClassVar

from rlvitals.readers.console_dialects.dialect import Dialect, Page, Pair, Progress, number
from rlvitals.readers.formats import column_guess
from rlvitals.startup.fast_dataclass import dataclass

BAR = re.compile(
    r"(?<!\d)\d{1,3}%(?:\|[^|]{0,400}\||\s)\s*(\d{1,15})/(\d{1,15})"
    r" \[[\d:]{1,12}<[^,\]]{1,24}(?:, +([\d.]{1,12}|\?) *(\w{1,20})/(\w{1,20}))?(?:, ?([^\]]*))?\]"
)
POSTFIX = re.compile(
    r"([A-Za-z_][\w./%-]{0,80}(?: [A-Za-z_][\w-]{0,30}){0,2})(?:=|: ?)([^\s,\]]{1,40})"
)
BAR_EPOCH = re.compile(
    r"(?:train(?:ing)? )?(?:epochs?|episodes?|iter(?:ation)?s?):? *[\[(]?(\d{1,9})(?:/\d+)?[\])]?",
    re.IGNORECASE,
)
OF_TRAINING = re.compile(
    r"(?:train(?:ing)?|learning|optimi[sz]ation|ppo|grpo|psr|nsr|w-reinforce)"
    r"(?:[ _](?:progress|steps?|loop|epochs?|iterations?))?"
    r"|(?:global |env )?(?:steps?|updates?|iterations?|episodes?|rollouts?)|progress",
    re.IGNORECASE,
)
PER_STEP = "time_per_step"  # seconds


@dataclass(slots=True)
class Bars:
    """The bar that counts steps, and its last state until it moves on."""

    max_length: ClassVar[int] = 4000  # characters of a piece
    endless: ClassVar[re.Pattern[str]] = re.compile(
        r"(?<![\d/])\d{1,15}it \[[\d:]{1,12}, +(?:[\d.]{1,12}|\?) *(?:it/s|s/it), ?([^\]]*)\]"
    )
    key: tuple[str, int] | None = None  # kind of description, total
    sure: bool = False  # its description says that it counts training
    first_epoch: int = 0
    by_epoch: bool = False
    step: int = 0
    written: int = 0  # the last step whose state was read
    state: list[Pair] = field(default_factory=list)
    open: bool = False

    def take(self, page: Page) -> None:
        """Read a bar's state."""
        if len(page.text) > self.max_length:
            return
        found = BAR.search(page.text)
        if found is None:
            self._take_endless(page)
            return
        step, total = int(found[1]), int(found[2])
        description = page.text[: found.start()].strip(" :\t")
        described = self._kind(description)
        if described is None or not total or step > total:
            return
        kind, epoch = described
        if not self._counts(kind, total, page):
            return
        if epoch is not None:
            self.first_epoch = epoch if self.step == 0 else self.first_epoch
            step += max(epoch - self.first_epoch, 0) * total
        if step != self.step:
            self._write(page)
        self.by_epoch = epoch is not None
        self.step, self.state = step, _numbers(found, timed=page.shared.timed)
        self.state += _numbers_before(description)
        if found[1] == found[2]:  # the last: no next one will show
            self._write(page)
        page.shared.drawn += 1
        page.shared.bar = Progress(step, 0 if self.by_epoch else total)

    def _take_endless(self, page: Page) -> None:
        """Read the bar of an epoch whose length is not known: epochs are the steps."""
        bar = self.endless.search(page.text)
        epoch = BAR_EPOCH.fullmatch(page.text[: bar.start()].strip(" :\t")) if bar else None
        if bar is None or epoch is None or not self._counts("epoch", 0, page):
            return
        step = int(epoch[1]) + 1
        if step != self.step:
            self._write(page)
        self.by_epoch, self.step, self.state = True, step, _postfix(bar[1])

    def _kind(self, description: str) -> tuple[str, int | None] | None:
        """Return what a description says of a bar, and its epoch; None for other work."""
        if not description:
            return "", None
        if epoch := BAR_EPOCH.fullmatch(description):
            return "epoch", int(epoch[1])
        if any(column_guess.is_measure(key) for key, _ in _numbers_before(description)):
            return "training", None
        last = description.rsplit("  ", maxsplit=1)[-1]
        return ("training", None) if OF_TRAINING.fullmatch(last.strip(" :")) else None

    def _counts(self, kind: str, total: int, page: Page) -> bool:
        if self.key == (kind, total):
            return True
        named = bool(kind)
        rows = page.shared.rows or page.shared.regular
        if self.key is None or (named and not self.sure) or not (self.sure or rows):
            self.key, self.sure = (kind, total), named
            self.step, self.written, self.state = 0, 0, []
            return True
        return False

    def _write(self, page: Page) -> None:
        if self.step in {0, self.written} or page.shared.unit not in {"", "steps"}:
            return
        self.written = self.step
        if not self.state:
            return
        measures = any(column_guess.is_measure(key) for key, _ in self.state)
        if measures or self.sure:
            page.add_regular(self.step, self.state, "steps")
        else:
            page.columns.add_row(self.step, self.state)


def _numbers(found: re.Match[str], *, timed: bool) -> list[Pair]:
    pairs: list[Pair] = []
    rate, each, per = found[3], found[4], found[5]
    if not timed and rate and rate != "?" and (value := number(rate)):
        if each == "s":
            pairs.append((PER_STEP, value))
        elif per == "s":
            pairs.append((PER_STEP, 1.0 / value))
    return pairs + _postfix(found[6] or "")


def _postfix(text: str) -> list[Pair]:
    found = ((key.replace(" ", "_"), cell) for key, cell in POSTFIX.findall(text))
    cells = ((key, number(cell)) for key, cell in found if key != "v_num")
    return [(key, value) for key, value in cells if value is not None]


def _numbers_before(description: str) -> list[Pair]:
    """Return the numbers that a loop puts before its bar of training; their keys as loggers'."""
    if re.match(r"\W*(?:eval|val|test)", description, re.IGNORECASE):
        return []
    # No count ("6.4/8.8GB"), no clock and no time that is left.
    cells = re.findall(
        r"(?:^|[|,;] *|\s)([A-Za-z_][\w ./-]{0,40}?) ?[:=] ?"
        r"([-+]?\d[\d.]{0,20}(?:e[-+]?\d{1,3})?)(?=$|[\s|,;:](?!\d))",
        description,
    )
    keys = [re.sub(r"[\s-]+", "_", key.strip()).lower() for key, _ in cells]
    values = [number(cell) for _, cell in cells]
    return [(key, v) for key, v in zip(keys, values, strict=True) if v is not None]


DIALECT = Dialect("tqdm", "tqdm's progress bars", ("it/s", "s/it", "%|"), Bars)

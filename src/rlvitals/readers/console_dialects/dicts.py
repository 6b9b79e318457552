"""Dicts as Python prints them: Hugging Face's and TRL's trainers, OpenRLHF, slime.

`{'loss': '0.5', 'grad_norm': '1.2', 'learning_rate': '1e-05', 'epoch': '0.1'}`
`step 12: {'train/loss': 0.5, 'train/grad_norm': 1.2}`   `Global step 12: {'policy_loss': 0.5}`
`train stats after 64 examples: {'loss/train': '0.69'}`   the reference implementation of DPO

A dict may be wrapped over lines, by a terminal too, be JSON, or lack its first brace where a person
pasted it. The trainers print no step. Their bar, which is drawn anew after each row, has it;
without a bar rows are counted. transformers 5 prints numbers as strings of four digits.
Source: transformers' `trainer_callback.py` (ProgressCallback.on_log, PrinterCallback.on_log);
OpenRLHF's `ppo_trainer.py` (fit); slime's `model.py` (train) and `train_metric_utils.py`.
"""

import re
from dataclasses import field
from functools import lru_cache
from typing import ClassVar

from rlvitals.readers.console_dialects.dialect import Dialect, Page, Pair, number
from rlvitals.readers.formats import column_guess
from rlvitals.readers.formats.columns import json_number, to_step
from rlvitals.readers.formats.json_lines import flatten, parse_object
from rlvitals.startup.fast_dataclass import dataclass

PAIR = re.compile(
    r"'([^'\n]{1,200})': ?(?:(?:np\.|numpy\.)?(?:float|int)(?:16|32|64)\(|tensor\()?"
    r"'?([-+]?[\w.+-]{1,40})'?(?=[,}):])"
)
NUMBERED = re.compile(
    r"^[^\w{]{0,8}(?:(?:Global |global_)?step|rollout|perf|eval|(?:actor|critic)[\w -]{0,20}step"
    r"|(?:train stats|eval) after) (\d{1,15})(?: examples)?: \{'",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Dicts:
    """Rows that wait for the bar to show their step, and the count of those without one."""

    # A bar before a row: a paste has lost the carriage return between them.
    bar_before_row: ClassVar[re.Pattern[str]] = re.compile(
        r".{0,400}\d/\d{1,15} \[[\d:]{1,12}<[^\]{]{1,60}\]?\s*(?=\{')"
    )
    max_waiting: ClassVar[int] = 64
    max_wrapped_lines: ClassVar[int] = 100
    max_wrapped_length: ClassVar[int] = 8000  # characters
    open: bool = False
    counts: bool | None = None  # no bar gives the steps; None: not known yet
    rows: int = 0  # of training, without a step of their own
    waiting: list[tuple[list[Pair], float]] = field(default_factory=list)
    last_step: int = 0  # that a bar gave to a row
    drawn: int = 0  # how often the bar had been drawn when the last of them came
    wrapped: list[str] = field(default_factory=list)  # lines of a dict that is still open
    width: int = 0  # characters of the first of these lines, with a bar before the dict
    min_terminal_width: ClassVar[int] = 79  # characters
    cut: bool = False  # the last of these lines is as long as the first: a terminal's width

    def take(self, page: Page) -> None:
        """Read a row, or a state of the bar that rows wait for."""
        if self.waiting and page.shared.drawn > self.drawn:
            self._shown(page)
        was_part = self._unwrap(page)
        self.open = bool(self.waiting or self.wrapped)
        if was_part:
            return
        text = page.message
        if re.fullmatch(r"'[\w./@-]{1,80}': [^{}]{1,8000}\}", text):  # pasted without a brace
            self._row(page, _pairs(text))
            return
        if "{'" not in page.text:
            return
        bar = self.bar_before_row.match(text)
        said = text[bar.end() :] if bar else text
        if (stepped := NUMBERED.match(said)) is not None:
            page.add(int(stepped[1]), _pairs(said), "steps")
        elif said.startswith("{'") and said.endswith("}"):
            self._row(page, _pairs(said))

    def close(self, page: Page) -> None:
        """Give the rows that wait at the end of a text: counted on from the bar before them."""
        bar, training = page.shared.bar, sum(_trains(pairs) for pairs, _ in self.waiting)
        if bar is None or self.counts or (self.counts is None and training > 1):
            self._shown(page)
            return
        step = max(bar.step, self.last_step + 1)
        for number_of_row, (pairs, time) in enumerate(self.waiting):
            page.add(step + number_of_row, pairs, "steps", time)
        self.waiting = []

    def _unwrap(self, page: Page) -> bool:
        """Collect the lines of a dict until it is closed; return whether the line is one of it.

        JSON is read on one line too.
        """
        said = page.message
        if self.wrapped:
            starts_inside = re.match(r"['\"{}\[\]\d.,+\s-]", said)
            if not (starts_inside or self.cut) or len(self.wrapped) >= self.max_wrapped_lines:
                self.wrapped = []
                return False
            body = said
        else:
            bar = self.bar_before_row.match(said)
            body = said[bar.end() :] if bar else said
            if not (body == "{" or body.startswith(('{"', "{'"))):
                return False
            self.width = len(said)
        text = "".join((*self.wrapped, body))
        if len(text) > self.max_wrapped_length or text.count("{") < text.count("}"):
            self.wrapped = []
        elif text.count("{") > text.count("}"):
            self.wrapped.append(body)
            self.cut = (
                min(self.width, len(said)) >= self.min_terminal_width
                and abs(self.width - len(said)) <= 2
            )  # a space at the edge
            return True
        elif self.wrapped or body.startswith('{"'):
            was_wrapped, self.wrapped = bool(self.wrapped), []
            self._document(page, text)
            return was_wrapped
        return False

    def _document(self, page: Page, text: str) -> None:
        """Read a dict that was printed over several lines, or as JSON."""
        document = parse_object(text)
        cells = flatten(document) if document else ()
        pairs = [(key, n) for key, cell in cells if (n := json_number(cell)) is not None]
        pairs = pairs or _pairs(text)
        # No dict of settings has such a key.
        if any(
            re.fullmatch(r"(?:.*[/_])?(?:loss|rewards?|reward/mean|score/mean)", key)
            for key, _ in pairs
        ):
            self._row(page, pairs)

    def _row(self, page: Page, pairs: list[Pair]) -> None:
        keys = {key for key, _ in pairs}
        own = _own_step(tuple(key for key, _ in pairs))
        step = to_step(dict(pairs)[own]) if own else None
        if own and step is not None:
            rest = [pair for pair in pairs if pair[0] != own]
            page.add_regular(step, rest, column_guess.step_unit(own), page.time)
            return
        trainers = keys & {"loss", "train_loss", "epoch", "learning_rate", "grad_norm", "reward"}
        row = bool(trainers) and (len(keys) > 1 or "loss" in keys)
        if not row and "train_runtime" not in keys:
            return
        page.shared.timed = page.shared.timed or "step_time" in keys  # by TRL
        if self.counts is None and page.shared.bar is None:
            self.counts = True
        if self.counts:
            self._count(page, pairs, page.time)
            return
        self.waiting.append((pairs, page.time))
        self.drawn = page.shared.drawn
        self.open = True
        # Two rows of training between two states of the bar: output and bar were buffered apart,
        # and the bar may never be drawn again.
        apart = self.counts is None and sum(_trains(row) for row, _ in self.waiting) > 1
        if apart or len(self.waiting) > self.max_waiting:
            self._shown(page)

    def _shown(self, page: Page) -> None:
        """The bar was drawn after the waiting rows: its count is their step.

        Several rows of training at once were held back in a buffer: then the bar says nothing.
        """
        waiting, self.waiting, self.open = self.waiting, [], False
        training = sum(_trains(pairs) for pairs, _ in waiting)
        if self.counts is None:
            self.counts = training > 1
        for pairs, time in waiting:
            if self.counts or page.shared.bar is None:
                self._count(page, pairs, time)
            else:
                self.last_step = page.shared.bar.step
                page.add(self.last_step, pairs, "steps", time)

    def _count(self, page: Page, pairs: list[Pair], time: float) -> None:
        self.rows += _trains(pairs)
        page.shared.notes["rows without a step: counted"] = None
        page.add(self.rows, pairs, "rows", time)


@lru_cache(maxsize=256)
def _own_step(keys: tuple[str, ...]) -> str:
    """Return the key of a row's own step; "" where it has none, or no measure beside it."""
    if not any(column_guess.is_measure(key) for key in keys):
        return ""
    known = (
        k
        for k in column_guess.step_keys(keys)
        if column_guess.normalise_name(k) not in column_guess.EPOCH_STEPS
    )
    return next(known, "")


def _trains(pairs: list[Pair]) -> bool:
    """Tell whether a row is one of training, not of evaluation nor of the whole run."""
    keys = {key for key, _ in pairs}
    return "train_runtime" not in keys and not any(
        key.startswith(("eval_", "eval/")) for key in keys
    )


def _pairs(text: str) -> list[Pair]:
    found = PAIR.findall(text)
    return [(key, value) for key, cell in found if (value := number(cell)) is not None]


DIALECT = Dialect("dicts", "Hugging Face's and other printed dicts", ("{", "': "), Dicts)

"""Keys with their numbers, one a line, below a heading that says the step: bare, bulleted or boxed.

`=== Iteration 3/100 ===`          `Step 3`                     `       Training step 3       `
`mean_reward = 0.51`               `  reward: 0.51`             `│ env/all/reward │ 0.51 │`
`kl_divergence: 0.002  # a remark` `  kl: 0.002`                `╰──────────────────────────╯`

Many loops print so, and the tables and panels of `rich` look so. A block counts where two of its
lines are pairs and one of these is a measure. Texts between heading and pairs are passed over. Keys
with a slash that come without any heading, three lines on end, are a row that is counted.
"""

import re
from dataclasses import field
from typing import ClassVar

from rlvitals.readers.console_dialects.dialect import Dialect, Page, Pair, number
from rlvitals.readers.formats import column_guess
from rlvitals.startup.fast_dataclass import dataclass


@dataclass(slots=True)
class KeyLines:
    """The block that is being read, and those before it until the log is known to be of blocks."""

    # The step's number ends the line, but for its total, a time in brackets, "results" and a rule.
    heading: ClassVar[re.Pattern[str]] = re.compile(
        r"(?:^|[^\w.])(?P<word>global[_ ]step|(?:time)?step|iter(?:ation)?|update|epoch|episode"
        r"|rollout|generation|game|trial|cycle|round)(?:[ \t]num(?:ber)?)?"
        r"[ \t]*[:#=|]?[ \t]*(?P<step>\d{1,15})(?:[ \t]?(?:/|of)[ \t]?(?P<total>\d{1,15}))?"
        r"(?:[ \t]?\([^()]{0,40}\)|[ \t]*\|[^|]{1,40})?"
        r"(?:[ \t](?:results?|report|summary|stats|complete[d]?|finished|done|ended))?"
        r"[^\w(){}\[\]]{0,100}$",
        re.IGNORECASE,
    )
    # Of rsl_rl, NeMo-RL and PyMARL.
    other_heading: ClassVar[re.Pattern[str]] = re.compile(
        r"Learning iteration \d|=+ Step \d{1,12}/\d{1,12} =+|Recent Stats"
    )
    max_heading_length: ClassVar[int] = 200  # characters
    max_block_lines: ClassVar[int] = 300  # between a heading and its last pair
    min_block_pairs: ClassVar[int] = 2
    min_blocks: ClassVar[int] = 3  # of pairs that may stand in prose
    min_lone_pairs: ClassVar[int] = 3  # keys with a slash that are a row without a heading
    open: bool = False
    step: int = 0
    unit: str = ""  # of the step; empty outside a block
    lines: int = 0  # since the heading
    pairs: list[Pair] = field(default_factory=list)
    counts: bool = False  # two pairs, one a measure
    waiting_blocks: list[tuple[int, str, list[Pair]]] = field(default_factory=list)
    is_known: bool = False  # the log's rows are this dialect's
    lone: list[Pair] = field(default_factory=list)  # without a heading
    rows: int = 0  # of those

    def take(self, page: Page) -> None:
        """Read a heading, a pair below it, or a line between them."""
        if (page.shared.rows or page.shared.regular) and not self.is_known:
            self.open = False  # another dialect knows this log
            return
        if len(page.text) <= self.max_heading_length and self._starts(page):
            return
        pair = _pair(page.message)
        if self.unit and self.lines < self.max_block_lines:
            self.lines += 1
            if pair is not None:
                self._add(page, pair)
        else:
            self.unit = ""
            self._add_without_heading(page, pair)
        self.open = bool(self.unit or self.lone)

    def _starts(self, page: Page) -> bool:
        heading = self.heading.search(page.text)
        if heading is None or self.other_heading.search(page.text):
            return False
        if self.counts and not self.is_known:
            self.waiting_blocks.append((self.step, self.unit, self.pairs))
        self.open, self.counts, self.step = True, False, int(heading["step"])
        name = heading["word"].lower().split()[-1].rpartition("_")[2]
        self.unit = "iterations" if name == "iter" else f"{name}s"
        self.lines, self.pairs, self.lone = 0, [], []
        if heading["total"] and self.is_known and self.unit == page.shared.unit:
            page.shared.settings["total_steps"] = int(heading["total"])
        return True

    def _add(self, page: Page, pair: Pair) -> None:
        if self.counts and self.is_known:
            if self.unit == page.shared.unit:
                page.columns.add_row(self.step, [pair], page.time)
            return
        self.pairs.append(pair)
        if not self.counts and (len(self.pairs) >= self.min_block_pairs or self.lines == 1):
            self.counts = any(column_guess.is_measure_of_row(key) for key, _ in self.pairs)
        # Keys with a slash are nobody's prose: one block suffices.
        has_folder = any(_has_folder(key) for key, _ in self.pairs)
        if not self.counts or not (
            self.is_known or has_folder or len(self.waiting_blocks) + 1 >= self.min_blocks
        ):
            return
        self.is_known = True
        for step, unit, pairs in (*self.waiting_blocks, (self.step, self.unit, self.pairs)):
            if has_folder:
                page.add(step, pairs, unit)
            else:
                page.add_regular(step, pairs, unit, page.time)
        self.waiting_blocks = []

    def _add_without_heading(self, page: Page, pair: Pair | None) -> None:
        """Collect keys with a slash: another line, or a key that comes again, ends the row."""
        if pair is None or "/" not in pair[0] or any(pair[0] == key for key, _ in self.lone):
            self.lone = []
        if pair is None or "/" not in pair[0]:
            return
        self.lone.append(pair)
        if len(self.lone) > self.min_lone_pairs and self.is_known:
            page.columns.add_row(self.rows, [pair], page.time)
        elif len(self.lone) >= self.min_lone_pairs and any(
            _has_folder(key) for key, _ in self.lone
        ):
            self.rows += 1
            self.is_known = True
            page.shared.notes["rows without a step: counted"] = None
            page.add(self.rows, self.lone, "rows")


def _has_folder(key: str) -> bool:
    return "/" in key and " " not in key and column_guess.is_measure(key)


def _pair(text: str) -> Pair | None:
    """Return the key and the number of a line that holds nothing else."""
    line = re.fullmatch(
        r"(?P<key>[A-Za-z_][\w./@()%-]{0,100}(?: [A-Za-z_(][\w./@()%-]{0,40}){0,4}?)"
        r"(?:[ \t]*[:=│┃|][ \t]*|[ \t]{2,}|[ \t]?\.{2,}[ \t]?)"
        r"(?:np\.\w{1,10}\(|tensor\()?(?P<value>[-+]?(?:\d[\d.]{0,40}(?:e[-+]?\d{1,3})?|nan|inf))\)?"
        r"(?P<percent> ?%)?(?: ?(?:s|ms|sec|seconds|GiB|GB|MB|MiB|tokens))?"
        r"(?: ?\([^()]{1,40}\)| ?(?:±|\+/-) ?[\d.]{1,20})?(?:[ \t]+(?:<-|←|#|//).{0,200})?",
        re.sub(r" ?\((?:last|past|over) [^()]{1,30}\)(?=\s*[:=])", "", text).strip(
            " \t│┃║|├└╰─•*>·-–"
        ),  # what tables and lists are drawn with
        re.IGNORECASE,
    )
    value = number(line["value"]) if line else None
    if line is None or value is None:
        return None
    key = line["key"].strip()
    key = key if "/" in key else re.sub(r"[\s_-]+", "_", re.sub(r"[.()]", "", key)).lower()
    return key, value / 100.0 if line["percent"] else value


DIALECT = Dialect(
    "key lines",
    "a key and its number a line, below a step",
    (
        *(
            "tep",
            "TEP",
            "ter",
            "ITER",
            "poch",
            "EPOCH",
            "pisode",
            "EPISODE",
            "pdate",
            "ollout",
            "/",
        ),
        *("enerat", "ENERAT", "ame", "rial", "ycle", "ound"),
    ),
    KeyLines,
)

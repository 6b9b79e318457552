"""One key and its number a line, below a heading that says the step: bare, bulleted or boxed.

`=== Iteration 3/100 ===`          `Step 3`                     `       Training step 3       `
`mean_reward = 0.51`               `  reward: 0.51`             `│ env/all/reward │ 0.51 │`
`kl_divergence: 0.002`             `  kl: 0.002`                `╰──────────────────────────╯`

Many loops print so, and the tables and panels of `rich` look so. A block counts where two of its
lines are pairs and one of these is a measure. Texts between heading and pairs are passed over. Keys
with a slash that come without any heading, three lines on end, are a row that is counted.
"""

import re
from dataclasses import dataclass, field

from rlvitals.readers.console_dialects.dialect import Dialect, Page, Pair, number
from rlvitals.readers.formats import column_guess

MAX_HEADING_LENGTH = 200  # characters
MAX_BLOCK_LINES = 300  # between a heading and its last pair
MIN_BLOCK_PAIRS = 2
MIN_BLOCKS = 3  # of pairs that may stand in prose
MIN_LONE_PAIRS = 3  # keys with a slash, one below the other, that are a row without a heading
STEP_WORDS = {
    "step": "steps",
    "global_step": "steps",
    "iter": "iterations",
    "iteration": "iterations",
    "update": "updates",
    "epoch": "epochs",
    "episode": "episodes",
    "rollout": "rollouts",
}
# The step's number ends the line, but for its total, a time in brackets and a rule.
HEADING = re.compile(
    r"(?:^|[^\w.])(?P<word>global[_ ]step|step|iter(?:ation)?|update|epoch|episode|rollout)"
    r"[ \t]?[:#=]?[ \t]?(?P<step>\d{1,15})(?:[ \t]?(?:/|of)[ \t]?(?P<total>\d{1,15}))?"
    r"(?:[ \t]?\([^()]{0,40}\))?[^\w(){}\[\]]{0,100}$",
    re.IGNORECASE,
)
# Other dialects' headings: of rsl_rl and NeMo-RL.
OTHER_HEADING = re.compile(r"Learning iteration \d|=+ Step \d{1,12}/\d{1,12} =+|Recent Stats")
FRAME = " \t│┃║|•*>·-–"
KEY_LINE = re.compile(
    r"(?P<key>[A-Za-z_][\w./@()%-]{0,100}(?: [A-Za-z_(][\w./@()%-]{0,40}){0,4}?)"
    r"(?:[ \t]*[:=│┃|][ \t]*|[ \t]{2,})"
    r"(?:np\.\w{1,10}\(|tensor\()?(?P<value>[-+]?(?:\d[\d.]{0,40}(?:e[-+]?\d{1,3})?|nan|inf))\)?"
    r"(?P<percent> ?%)?(?: ?(?:s|ms|sec|seconds|GiB|GB|MB|MiB|tokens))?",
    re.IGNORECASE,
)


@dataclass(slots=True)
class KeyLines:
    """The block that is being read, and those before it until the log is known to be of blocks."""

    open: bool = False
    step: int = 0
    unit: str = ""  # of the step; empty outside a block
    lines: int = 0  # since the heading
    pairs: list[Pair] = field(default_factory=list)
    counts: bool = False  # two pairs, one a measure
    held: list[tuple[int, str, list[Pair]]] = field(default_factory=list)  # blocks that count
    own: bool = False  # the log's rows are this dialect's
    lone: list[Pair] = field(default_factory=list)  # without a heading
    rows: int = 0  # of those

    def take(self, page: Page) -> None:
        """Read a heading, a pair below it, or a line between them."""
        if (page.shared.rows or page.shared.regular) and not self.own:
            self.open = False  # another dialect knows this log
            return
        if len(page.text) <= MAX_HEADING_LENGTH and self._starts(page):
            return
        pair = _pair(page.message)
        if self.unit and self.lines < MAX_BLOCK_LINES:
            self.lines += 1
            if pair is not None:
                self._add(page, pair)
        else:
            self.unit = ""
            self._add_lone(page, pair)
        self.open = bool(self.unit or self.lone)

    def _starts(self, page: Page) -> bool:
        heading = HEADING.search(page.text)
        if heading is None or OTHER_HEADING.search(page.text):
            return False
        if self.counts and not self.own:
            self.held.append((self.step, self.unit, self.pairs))
        self.open, self.counts, self.step = True, False, int(heading["step"])
        self.unit = STEP_WORDS[heading["word"].lower().replace(" ", "_")]
        self.lines, self.pairs, self.lone = 0, [], []
        if heading["total"] and self.own and self.unit == page.shared.unit:
            page.shared.settings["total_steps"] = int(heading["total"])
        return True

    def _add(self, page: Page, pair: Pair) -> None:
        if self.counts and self.own:
            if self.unit == page.shared.unit:
                page.columns.add_row(self.step, [pair], page.time)
            return
        self.pairs.append(pair)
        if not self.counts and len(self.pairs) >= MIN_BLOCK_PAIRS:
            self.counts = any(column_guess.is_measure(key) for key, _ in self.pairs)
        # Keys with a slash are nobody's prose: one block suffices.
        scoped = any(_is_scoped(key) for key, _ in self.pairs)
        if not self.counts or not (self.own or scoped or len(self.held) + 1 >= MIN_BLOCKS):
            return
        self.own = True
        for step, unit, pairs in (*self.held, (self.step, self.unit, self.pairs)):
            if scoped:
                page.add(step, pairs, unit)
            else:
                page.add_regular(step, pairs, unit, page.time)
        self.held = []

    def _add_lone(self, page: Page, pair: Pair | None) -> None:
        """Collect keys with a slash: another line, or a key that comes again, ends the row."""
        if pair is None or "/" not in pair[0] or any(pair[0] == key for key, _ in self.lone):
            self.lone = []
        if pair is None or "/" not in pair[0]:
            return
        self.lone.append(pair)
        if len(self.lone) > MIN_LONE_PAIRS and self.own:
            page.columns.add_row(self.rows, [pair], page.time)
        elif len(self.lone) >= MIN_LONE_PAIRS and any(_is_scoped(key) for key, _ in self.lone):
            self.rows += 1
            self.own = True
            page.shared.notes["rows without a step: counted"] = None
            page.add(self.rows, self.lone, "rows")


def _is_scoped(key: str) -> bool:
    return "/" in key and " " not in key and column_guess.is_measure(key)


def _pair(text: str) -> Pair | None:
    """Return the key and the number of a line that holds nothing else."""
    line = KEY_LINE.fullmatch(text.strip(FRAME))
    value = number(line["value"]) if line else None
    if line is None or value is None:
        return None
    key = line["key"].strip()
    key = key if "/" in key else re.sub(r"[\s_-]+", "_", re.sub(r"[.()]", "", key)).lower()
    return key, value / 100.0 if line["percent"] else value


DIALECT = Dialect(
    "key lines",
    "a key and its number a line, below a step",
    ("tep", "TEP", "ter", "ITER", "poch", "EPOCH", "pisode", "EPISODE", "pdate", "ollout", "/"),
    KeyLines,
)

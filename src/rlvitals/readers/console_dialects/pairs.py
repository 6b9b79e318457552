"""Lines of `key: value` pairs that come again and again: verl's, CleanRL's, hand-written ones.

`step:1 - actor/pg_loss:0.1 - critic/score/mean:0.5`      verl: `aggregate_logger.py`
`global_step=1000, episodic_return=[21.]`                  CleanRL: `ppo.py` and its kin
`Step 12 | 1.2s | Loss 0.1 | Entropy 0.5 | LR 1.00e-06`    prime-rl: `trainer/rl/train.py`
`Episode 10/500, reward 12.0`                              anyone's
`[run]  12/100 | loss=0.1 | reward=0.5`                    anyone's: the count alone

Strict: the line is pairs, one of them step-like, one a measure, and it comes twice. Other words
may stand among four pairs or more.
"""

import re
from dataclasses import field
from functools import lru_cache
from itertools import pairwise
from statistics import fmean
from typing import ClassVar

from rlvitals.readers.console_dialects import line_forms
from rlvitals.readers.console_dialects.dialect import Dialect, Page, Pair, number
from rlvitals.readers.console_dialects.line_forms import NUMBER
from rlvitals.readers.formats import column_guess
from rlvitals.readers.formats.columns import to_step
from rlvitals.startup.fast_dataclass import dataclass

SEGMENT = re.compile(
    r"(?P<key>[^\W\d][\w./@()%-]{0,80}(?: (?:[^\W\d]|\()[\w./@()%-]{0,40}){0,3}?)"
    rf"(?: *[:=#] *| +)(?:(?:np\.\w{{1,10}}|tensor)?\()?(?P<value>{NUMBER}|none|true|false|--)\)?"
    rf"(?: ?/ ?(?P<total>{NUMBER}))?(?P<percent> ?%)?(?: ?\({NUMBER} ?(?:%|\w{{1,6}})?\))?"
    rf"(?: ?\(?(?:±|\+/?-) ?{NUMBER}\)?)?"  # the deviation, as Tianshou prints it
    r"(?: ?(?:s|ms|sec|secs|seconds|min|h|(?:[a-z]{1,12})?/s|GiB|GB|MB|MiB|USDT?|m|km|moves))?"
    r"[.:]?",
    re.IGNORECASE,
)
BARE = re.compile(
    rf"(?:{NUMBER} ?(?:s|ms|sec|m|h|%|[a-z]{{1,12}}/s|s/it|fps)?(?: \d+s|m)?(?: elapsed| left)?"
    r"|(?:tokens|steps|it|samples)/s"
    r"|s|sec|seconds|[GM]i?B|\d+[dhm] \d+[hms])",
    re.IGNORECASE,
)
SPLIT = re.compile(
    r"[,|;\t]+| [-–/] |\s{2,}|(?:(?<=\d)(?<![A-Za-z_]\d)|(?<=\d[.%):])|(?<=\d) :)\s+(?=[^\W\d])"
    r"|(?<=\d(?:s|h))\s+(?=[A-Za-z_]\w{0,40}=)|(?<=\dms)\s+(?=[A-Za-z_]\w{0,40}=)"  # "t=2.6s a=1"
)
ALIGNED = re.compile(r"\s{0,12}([:=])\s+(?=[-+.\d]|nan|inf)")
PADDED = re.compile(r"(?<=[A-Za-z_)])\s{2,}(?=[-+.]?\d)")  # "Episode    10", a name and its number
# What stands in brackets after a space: pairs of their own, "(std 3.0)", "(eps=0.9)".
BRACKETED_PAIRS = re.compile(r"(?<=\s)\(([A-Za-z_][^()]{1,60})\)")
# Several numbers under one name: those of the agents, or of the environments.
AGENT_NUMBERS = re.compile(
    rf"([A-Za-z_][\w ]{{0,60}}?) ?[:=] ?\[\s*({NUMBER}(?:[\s,]+{NUMBER})+)\s*\]"
)
SYMBOLS = re.compile(r"[\u2190-\u2bff\U0001f000-\U0001faff\ufe0f]+")  # arrows, signs, emoji
# "--- Episode 3 ---", "Ep 3 -> reward 2"
RULED = re.compile(r"(?<!\S)(?:(?:-{2,}|={2,}|\*{2,}|#{2,})>?|[-=]>)(?!\S)")
# A step-like word and its number, which every row has. Each branch begins with a letter or a digit:
# the search is three times as fast as with assertions.
STEPPED = re.compile(
    r"(?:[Ss]teps?|STEPS?|[Ee]pisodes?|EPISODE|[Ee]pochs?|EPOCH|[Ii]ter(?:ation)?s?|ITER(?:ATION)?"
    r"|[Uu]pdates?|UPDATE|[Gg]en(?:eration)?s?|GENERATION|[Ff]rames?|[Ee]ps?|EP|[Gg]ames?"
    r"|[Tt]rials?|[Rr]ounds?|[Tt]rajector(?:y|ies)|[Mm]atch|[Bb]atch|[Aa]ttempt|[Ll]ap|[Ss]eason"
    r"|[Cc]ycle|[Nn]um(?:ber)?)\W{0,12}\d|[tin] ?[:=] {0,3}\d"
    r"|\d(?:-?th)? (?:[Ee]pisode|game|step|frame|iteration|epoch|timestep)|a(?:t|fter) \d"
    r"|E\d{3}|[Ee]p(?:isode)?_\d"
)
# The step without its word, after what the run calls itself.
COUNTER = re.compile(
    r"(?:(?:\[[^\[\]]{1,60}\])?\s*(\d{1,9} ?/ ?\d{1,9})\s*[|,:]|\[\s*(\d{1,9}(?: ?/ ?\d{1,9})?)\])"
    r"\s*(?=[A-Za-z_])"
)
VERL = re.compile(r"\bstep:(\d{1,15}) - (?=\S{1,200}:)")
VERL_PAIR = re.compile(r"(\S{1,200}):(?:np\.\w{1,10}\()?([-+\w.]{1,40})\)?")
CLEANRL = re.compile(
    rf"\bglobal_step=(\d{{1,15}}), (?:avg_)?episodic_return=\[?(?:np\.\w{{1,10}}\()? *({NUMBER})"
)
RENAMED = {
    "average_reward": "avg_reward",
    "mean_reward": "avg_reward",
    "average_return": "avg_return",
    "ave_reward": "avg_reward",
    "average_score": "mean_score",
    "avg_score": "mean_score",
}
# prime-rl prints some of its metrics under short words; these are their own names.
PRIME_RL = {
    "loss": "loss/mean",
    "entropy": "entropy/all/mean",
    "mismatch_kl": "mismatch_kl/all/mean",
    "grad_norm": "optim/grad_norm",
    "lr": "optim/lr",
    "throughput": "perf/throughput",
    "mfu": "perf/mfu",
    "peak_mem": "perf/peak_memory",
    "time": "time/step",
}

Row = dict[str, tuple[float, float | None]]  # value and total by name


@dataclass(slots=True)
class Pairs:
    """The shapes of line: with the rows that wait for more of their shape, or with their step."""

    max_length: ClassVar[int] = 2000  # characters of a hand-written line
    min_worded_rows: ClassVar[int] = 5  # of lines that hold words besides: prose has no such series
    open: bool = False
    shapes: dict[tuple[str, ...], list[tuple[Row, float]] | str] = field(default_factory=dict)
    epoch: int = 0
    last: int = 0
    before: int = 0  # steps of the epochs before, where each counts from its own start
    wrapped: int | None = None  # the step of verl's line, while its pairs go on below

    def take(self, page: Page) -> None:
        """Read a line of pairs."""
        if self.wrapped is not None:
            step = self.wrapped
            self.wrapped, self.open = None, False
            # A paste breaks the line: "actor/pg_loss:0.1 - actor/grad_norm:0.5".
            cells = page.message.strip(" -").split(" - ")
            below = "/" in cells[0] and all(VERL_PAIR.fullmatch(cell) for cell in cells)
            if below and not VERL.search(page.text):
                page.columns.add_row(step, self._verl_pairs(page.message), page.time)
                self.wrapped, self.open = step, True
                return
        if found := VERL.search(page.text):
            if pairs := self._verl_pairs(page.text[found.end() :]):
                page.add(int(found[1]), pairs, "steps")
                self.wrapped, self.open = int(found[1]), True
        elif found := CLEANRL.search(page.text):
            if (value := number(found[2])) is not None:
                page.add(int(found[1]), [("charts/episodic_return", value)], "environment steps")
        elif len(page.text) > self.max_length or page.message.startswith("{"):
            return
        elif counted := COUNTER.match(page.message):
            self._line(page, f"step: {counted[1] or counted[2]}, {page.message[counted.end() :]}")
        elif STEPPED.search(page.text):
            self._line(page, page.message)

    def _verl_pairs(self, text: str) -> list[Pair]:
        pairs: list[Pair] = []
        for cell in text.split(" - "):
            found = VERL_PAIR.match(cell.strip(" -"))
            if found and (value := number(found[2])) is not None:
                pairs.append((found[1], value))
        return pairs

    def _line(self, page: Page, text: str) -> None:
        row, is_worded = _row(text)
        names = tuple(row)
        counters = _steps(names)
        if not counters or not _measures(tuple(name_in_row(name, counters[0]) for name in names)):
            return
        shape = self.shapes.get(names)
        if shape is None:
            if len(self.shapes) < 64:
                self.shapes[names] = [(row, page.time)]
            return
        if not isinstance(shape, str):
            shape.append((row, page.time))
            step = self._step(shape, counters, is_worded=is_worded)
            if step is None:
                return
            self.shapes[names] = step
            for waiting_row, time in shape:
                self._add(page, waiting_row, step, time)
            return
        self._add(page, row, shape, page.time)

    def _step(
        self, waiting: list[tuple[Row, float]], counters: list[str], *, is_worded: bool
    ) -> str | None:
        """Return the step of rows of one shape; None where more have to show it."""
        steps = {key: [row[key][0] for row, _ in waiting] for key in counters}
        growing = [key for key in counters if all(a < b for a, b in pairwise(steps[key]))]
        if not is_worded:
            # The length of an episode may grow by chance.
            more = len(growing) > 1 and growing[0] in {"steps", "timesteps"} and len(waiting) < 4
            return None if more else next(iter(growing), counters[0])
        if len(waiting) < self.min_worded_rows:
            return None
        if not growing:
            del waiting[0]
        return next(iter(growing), None)

    def _add(self, page: Page, row: Row, key: str, time: float) -> None:
        """Add a row whose steps are those under `key`."""
        step = to_step(row[key][0])
        if step is None:
            return
        values = {name_in_row(k, key): v for k, (v, _) in row.items() if k != key}
        if (average := _average(tuple(values), key)) is not None:
            values["avg_reward"] = values.pop(average)
        is_prime_rl = "mfu" in values
        if is_prime_rl:
            values = {PRIME_RL.get(name, name): value for name, value in values.items()}
            values["perf/mfu"] *= 100.0  # its trackers have it in per cent
        if len(_steps(tuple(row))) > 1 and key not in column_guess.EPOCH_STEPS:
            # Counts on over epochs whose steps each start anew.
            epochs = (to_step(row[name][0]) for name in column_guess.EPOCH_STEPS if name in row)
            if (epoch := next(epochs, None)) is not None:
                if epoch > self.epoch and step <= self.last and self.last:
                    self.before += self.last
                self.epoch, self.last = epoch, step
                step += self.before
        unit = column_guess.step_unit(key)
        if is_prime_rl and "mismatch_kl/all/mean" in values:  # no other loop prints these
            page.add(step, values.items(), unit, time)
        else:
            page.add_regular(step, values.items(), unit, time)
        total = row[key][1]
        if total and not self.before and unit == page.shared.unit:
            page.shared.settings["total_steps"] = int(total)


def _row(text: str) -> tuple[Row, bool]:
    """Return a line's pairs, and True if words stand among them; none where it is anything else."""
    if "{" in text:  # "actions: {'hold': 3}"; a line of a dict alone is another dialect's
        text = re.sub(r"[,|;]?[\w ]{0,30}[:=]?\s*\{[^{}]{0,400}\}", "", text)
    tested = line_forms.EVALUATION.match(text)
    text, is_sentence = line_forms.write_pairs(text[tested.end() :] if tested else text)
    segments = _segments(text)
    if not 2 <= len(segments) <= 60:  # a step and a measure; prose may have more
        return {}, False
    row: Row = {}
    unread_segments = 0
    while segments and _is_tail(segments[-1].strip(" :.-")):
        segments.pop()
    for segment in segments:
        part = segment.strip(" :.-")
        if not part or BARE.fullmatch(part):
            continue
        found = SEGMENT.fullmatch(part)
        if found is None:
            unread_segments += 1
            continue
        value = None if found["value"] == "--" else number(found["value"])
        if value is None and (
            column_guess.is_measure(found["key"]) or found["value"].lower() == "none"
        ):
            continue  # nothing was measured: "loss=None"
        if value is None:
            return {}, False
        name = _plain(found["key"])
        name = f"eval_{name}" if tested and column_guess.is_measure(name) else name
        total = number(found["total"]) if found["total"] else None
        row[name] = (value / 100.0 if found["percent"] else value, total)
    if unread_segments > len(row):
        return {}, False
    row, is_worded = _with_step(row)
    # Four pairs in a row are nobody's prose.
    is_worded |= unread_segments > 0 and len(row) < max(4, 2 * unread_segments)
    is_worded |= is_sentence and len(row) < 4
    return (row, is_worded) if len(row) > 1 and _steps(tuple(row)) else ({}, False)


def _with_step(row: Row) -> tuple[Row, bool]:
    """Return a row with its step's name, and True if that is none: "t=12", "eps: 12"."""
    if any(name not in {"step", "steps", "timesteps"} for name in _steps(tuple(row))):
        return row, False
    renamed = {_step_of(name): cell for name, cell in row.items()}  # "GRPO step 10/500"
    first = next(iter(row), "")
    if _steps(tuple(renamed)) or first not in {"t", "i", "n", "eps"}:
        return (renamed if len(renamed) == len(row) else row), False
    return {"step" if name == first else name: cell for name, cell in row.items()}, True


def _segments(text: str) -> list[str]:
    """Cut a line into what may be pairs; brackets, rules and signs are taken out."""
    text = BRACKETED_PAIRS.sub(r", \1,", RULED.sub(",", SYMBOLS.sub(" ", text)))
    text = AGENT_NUMBERS.sub(_mean_of_list, text) if ": [" in text or "=[" in text else text
    return SPLIT.split(PADDED.sub(" ", ALIGNED.sub(r"\1", text.replace("[", "").replace("]", ""))))


def _mean_of_list(match: re.Match[str]) -> str:
    """Write a list of several agents' or environments' numbers as its mean."""
    cells = match[2].replace(",", " ").split()
    numbers = [value for cell in cells if (value := number(cell)) is not None]
    return f"{match[1]} mean: {fmean(numbers)!r}" if len(numbers) == len(cells) else match[0]


def _is_tail(text: str) -> bool:
    """Return True for words at the end of a line, "NEW BEST": no pair, and no number lost."""
    holds_more = any(char.isdigit() or char in ":=" for char in text)
    # Words at the end, "NEW BEST".
    return len(text) <= 30 and not holds_more and SEGMENT.fullmatch(text) is None


@lru_cache(maxsize=1024)
def _step_of(name: str) -> str:
    """Return the step-like word that a name ends with; else the name."""
    last = name.rpartition("_")[2]
    return (
        last
        if last in {"step", "episode", "ep", "epoch", "iteration", "update", "generation", "game"}
        else name
    )


@lru_cache(maxsize=1024)
def _plain(key: str) -> str:
    """Return a printed name as loggers write it: "Grad. Norm" is "grad_norm"."""
    name = re.sub(r"[.()]", "", key).strip()
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)  # "EpisodeReward"
    return name if "/" in name else re.sub(r"[\s_-]+", "_", name).lower()


@lru_cache(maxsize=1024)
def _steps(names: tuple[str, ...]) -> list[str]:
    return column_guess.step_keys(names)


@lru_cache(maxsize=1024)
def _measures(names: tuple[str, ...]) -> bool:
    return any(map(column_guess.is_measure_of_row, names))


@lru_cache(maxsize=1024)
def _average(names: tuple[str, ...], step: str) -> str | None:
    """Return the name of what the rows of episodes or of generations average, unsaid: "avg 12"."""
    outcomes = [name for name in names if column_guess.is_measure(name) and "loss" not in name]
    is_game = column_guess.step_unit(step) in {"episodes", "generations"}
    if outcomes or not is_game:
        return None
    averages = r"(?:recent_)?(?:avg|average|mean|moving_avg|ma|sc)(?:_?\d{1,4})?"
    if column_guess.step_unit(step) == "generations":
        averages += "|best"
    return next((name for name in names if re.fullmatch(averages, name)), None)


def name_in_row(name: str, step: str) -> str:
    """Return what a number of a row is called, whose step is the number called `step`."""
    # What one episode's sum is called where the episode is the step.
    if (
        name
        in {"reward", "total_reward", "rewards", "ep_reward", "ep_r", "episode_score", "r", "sum"}
        and column_guess.normalise_name(step) in column_guess.EPISODE_STEPS
    ):
        return "episode_reward"
    return RENAMED.get(name, name)


DIALECT = Dialect(
    "pairs",
    "lines of key: value pairs",
    (
        "tep",
        "TEP",
        "pisode",
        "EPISODE",
        "poch",
        "EPOCH",
        "ter",
        "ITER",
        "pdate",
        "Ep",
        "rame",
        "enerat",
        "en ",
        "en=",
        "ep=",
        "ep:",
        "ep ",
        "ame",
        *("EP", "E0", "ound", "rial", "atch", "raject", "ttempt", "Lap ", "eason", "ycle"),
        "oss",  # rows that count without a word for it have a measure
        "eward",
        *("core", "val", "W:", "win", "Win", "eturn", "rew"),
    ),
    Pairs,
)

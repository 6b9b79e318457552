"""rlgym-ppo's report of an iteration: a key and its number a line, its step among them.

`--------BEGIN ITERATION REPORT--------`
`Policy Reward: 1.23400`   `Cumulative Timesteps: 50,002`   `Overall Steps per Second: 5,510.12345`
`--------END ITERATION REPORT--------`

Numbers are grouped and decimals marked as the machine's language does: `5.510,12345` too. Floats
have five decimals. Source: rlgym-ppo's `util/reporting.py` (report_metrics).
"""

import re
from dataclasses import field

from rlvitals.readers.console_dialects.dialect import Dialect, Page, Pair, number
from rlvitals.readers.formats.columns import to_step
from rlvitals.startup.fast_dataclass import dataclass


@dataclass(slots=True)
class IterationReport:
    """The report that is being read."""

    open: bool = False
    pairs: list[Pair] = field(default_factory=list)

    def take(self, page: Page) -> None:
        """Read a line of a report, or the rule above or below it."""
        text = page.text.strip()
        if "BEGIN ITERATION REPORT" in text:
            self._close(page)
            self.open = True
        elif "END ITERATION REPORT" in text:
            self._close(page)
        elif self.open and (line := re.fullmatch(r"([A-Za-z][^:]{0,80}): (\S.{0,40})", text)):
            value = _number(line[2])
            if value is not None:
                self.pairs.append((line[1], value))

    def _close(self, page: Page) -> None:
        """Add the row of a report that said its step."""
        pairs = dict(self.pairs)
        step = to_step(pairs.pop("Cumulative Timesteps", None))
        self.open, self.pairs = False, []
        if step is not None and pairs:
            page.add(step, pairs.items(), "agent steps")


def _number(text: str) -> float | None:
    """Return a number that may be grouped; its last mark is a decimal one before five digits."""
    grouped = re.fullmatch(r"([-+]?\d{1,3}(?:[.,'\s]?\d{3})*)(?:[.,](\d{5}))?", text)
    if grouped is None:
        return number(text)  # nan, inf, or what another version prints
    integer = re.sub(r"[.,'\s]", "", grouped[1])
    return float(f"{integer}.{grouped[2] or '0'}")


DIALECT = Dialect(
    "rlgym-ppo", "rlgym-ppo's reports of an iteration", ("ITERATION REPORT",), IterationReport
)

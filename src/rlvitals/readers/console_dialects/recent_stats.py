r"""Recent statistics of PyMARL and EPyMARL: a line with the step, then four metrics a line.

`Recent Stats | t_env:      14313 | Episode:       16`
`critic_loss:               0.3131\tep_length_mean:          885.7500\t...`

Each number is a mean over the last five rows of its metric. A name of 24 characters or more leaves
no space before its number. Source: pymarl `utils/logging.py`
(print_recent_stats), `run.py` ("t_env: 21538 / 10000000").
"""

import re

from rlvitals.readers.console_dialects.dialect import Dialect, Page, number
from rlvitals.startup.fast_dataclass import dataclass

STATS_HEAD = re.compile(r"Recent Stats \| t_env: +(\d{1,15}) \| Episode: +(\d{1,15})\s*\Z")
STATS_METRIC = re.compile(r"([A-Za-z_][\w/.-]{0,80}):\s*([-+\w.]{1,30})(?:\s+|\Z)")
STATS_LINE = re.compile(rf"(?:{STATS_METRIC.pattern})+\Z")
STATS_BUDGET = re.compile(r"t_env: \d{1,15} / (\d{1,15})\s*\Z")


@dataclass(slots=True)
class RecentStats:
    """The step of the block that is being read."""

    open: bool = False
    step: int = 0

    def take(self, page: Page) -> None:
        """Read a block's head, or four of its metrics."""
        if head := STATS_HEAD.search(page.message):
            self.open, self.step = True, int(head[1])
            page.add(self.step, [("episode", float(head[2]))], "environment steps")
        elif budget := STATS_BUDGET.search(page.message):
            page.shared.settings["total_steps"] = int(budget[1])
        elif self.open and STATS_LINE.match(page.text):
            cells = STATS_METRIC.findall(page.text)
            pairs = [(key, value) for key, cell in cells if (value := number(cell)) is not None]
            page.add(self.step, pairs, "environment steps")
        else:
            self.open = False


DIALECT = Dialect("pymarl", "recent statistics of PyMARL", ("t_env: ",), RecentStats)

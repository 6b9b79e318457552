"""The debug log of R1-V's reward functions and of the trainers that came from it.

`------------- 22-21-00-29-161451 Accuracy reward: 1.0 -------------`, then the completion
`------------- 22-21-00-29-161451 Format reward -------------`, then a line `Has format: True` each

Completions of one time stamp are those of one call of the function: a batch. Its mean and spread
make a row, and calls are counted. A call is read once the next one begins.
"""

import re
import statistics
from dataclasses import dataclass, field

from rlvitals.readers.console_dialects.dialect import Dialect, Page, number

CALL = re.compile(
    r"^-{5,40} (\d\d(?:-\d\d){3}-\d{6}) ([A-Z][\w ]{0,40}?) rewards?(?:: ?(\S{1,30}))? -{5,40}$"
)
HAS_FORMAT = re.compile(r"^Has format: (True|False)$")


@dataclass(slots=True)
class RewardCalls:
    """The call whose completions are read, and how many were before it."""

    open: bool = False
    calls: dict[str, int] = field(default_factory=dict)  # by reward function
    call: tuple[str, str] | None = None  # time stamp and function
    rewards: list[float] = field(default_factory=list)

    def take(self, page: Page) -> None:
        """Read the head of a completion, or of a call."""
        if self.call is not None and (found := HAS_FORMAT.match(page.text)):
            self.rewards.append(float(found[1] == "True"))
        if (found := CALL.match(page.text)) is None:
            return
        call = (found[1], found[2].lower().replace(" ", "_"))
        if call != self.call:
            self._end(page)
            self.call = call
        if (reward := number(found[3] or "")) is not None:
            self.rewards.append(reward)

    def _end(self, page: Page) -> None:
        rewards, self.rewards = self.rewards, []
        if self.call is None or not rewards:
            return
        function = self.call[1]
        self.calls[function] = self.calls.get(function, 0) + 1
        page.shared.notes["rewards of single completions: averaged over each call"] = None
        pairs = [(f"rewards/{function}_reward/mean", statistics.fmean(rewards))]
        if len(rewards) > 1:
            pairs.append((f"rewards/{function}_reward/std", statistics.stdev(rewards)))
        page.add(self.calls[function], pairs, "calls")


DIALECT = Dialect(
    "reward calls", "debug log of R1-V's reward functions", (" reward", "Has format: "), RewardCalls
)

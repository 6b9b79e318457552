"""The debug log of R1-V's reward functions and of the trainers that came from it.

`------------- 22-21-00-29-161451 Accuracy reward: 1.0 -------------`, then the completion
`------------- 22-21-00-29-161451 Format reward -------------`, then a line `Has format: True` each

Completions of one time stamp are those of one call of the function: a batch. Its mean and spread
make a row, and calls are counted. A call is read once the next one begins.
"""

import re
from dataclasses import field
from typing import ClassVar

from rlvitals.readers.console_dialects.dialect import Dialect, Page, number, reward_pairs
from rlvitals.startup.fast_dataclass import dataclass


@dataclass(slots=True)
class RewardCalls:
    """The call whose completions are read, and how many were before it."""

    max_completions: ClassVar[int] = 2**16  # of a call: more are taken for another one
    open: bool = False
    calls: dict[str, int] = field(default_factory=dict)  # by reward function
    call: tuple[str, str] | None = None  # time stamp and function
    rewards: list[float] = field(default_factory=list)

    def take(self, page: Page) -> None:
        """Read the head of a completion, or of a call."""
        if self.call is not None and page.text in {"Has format: True", "Has format: False"}:
            self.rewards.append(float(page.text == "Has format: True"))
        head = re.fullmatch(
            r"-{5,40} (\d\d(?:-\d\d){3}-\d{6}) ([A-Z][\w ]{0,40}?) rewards?"
            r"(?:: ?(\S{1,30}))? -{5,40}",
            page.text,
        )
        if head is None:
            return
        call = (head[1], head[2].lower().replace(" ", "_"))
        if call != self.call or len(self.rewards) >= self.max_completions:
            rewards, self.rewards = self.rewards, []
            if self.call is not None and rewards:
                function = self.call[1]
                self.calls[function] = self.calls.get(function, 0) + 1
                page.shared.notes["rewards of single completions: averaged over each call"] = None
                page.add(self.calls[function], reward_pairs(f"{function}_reward", rewards), "calls")
            self.call = call
        if (reward := number(head[3] or "")) is not None:
            self.rewards.append(reward)


DIALECT = Dialect(
    "reward calls", "debug log of R1-V's reward functions", (" reward", "Has format: "), RewardCalls
)

"""Rewards of the samples of an update, printed as a list or a tensor and nothing else.

`rewards: tensor([-1.,  1.], device='cuda:0')`   `Rewards: [-1.0, 0.52] (1/2 rendered)`

Each line is a batch: its mean and its spread. Batches are counted. Beside rows of a trainer's own
they are left out: those say the same. Those of a reward function have another dialect.
"""

import re

from rlvitals.readers.console_dialects.dialect import Dialect, Page, mean_and_std, number
from rlvitals.startup.fast_dataclass import dataclass

LIST = re.compile(
    r"(?:^|(?<!accuracy)(?<!format)(?<!length)(?<!count)\s)"
    r"rewards? ?[:=] ?(?:tensor\(|array\(|np\.array\()?\[([-+\d.,\seE]{1,4000})(?:\]|$)",
    re.IGNORECASE,
)


@dataclass(slots=True)
class RewardLists:
    """How many batches came so far."""

    open: bool = False
    batches: int = 0

    def take(self, page: Page) -> None:
        """Read a list of rewards."""
        found = None if page.shared.sure or page.shared.unit not in {"", "rows"} else LIST.search(
            page.message
        )  # fmt: skip
        if found is None:
            return
        cells = (number(cell.strip()) for cell in found[1].split(",") if cell.strip())
        rewards = [value for value in cells if value is not None]
        if len(rewards) < 2:
            return
        self.batches += 1
        page.shared.notes["lists of rewards without a step: counted"] = None
        mean, std = mean_and_std(rewards)
        pairs = (("rewards_mean", mean), ("reward/std", std))
        page.add_regular(self.batches, pairs, "rows", page.time)


DIALECT = Dialect(
    "reward lists", "lists of the rewards of a batch", ("ewards: ", "ewards=", "eward: ["),
    RewardLists,
)  # fmt: skip

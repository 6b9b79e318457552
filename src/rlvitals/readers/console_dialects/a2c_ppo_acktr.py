"""Lines of pytorch-a2c-ppo-acktr-gail and its many forks: an update in two lines.

`Updates 10, num timesteps 14080, FPS 712`
` Last 10 training episodes: mean/median reward 20.1/19.5, min/max reward 9.0/41.0`

Source: ikostrikov/pytorch-a2c-ppo-acktr-gail, `main.py`.
"""

import re

from rlvitals.readers.console_dialects.dialect import Dialect, Page, number
from rlvitals.startup.fast_dataclass import dataclass

ACKTR_UPDATE = re.compile(r"\bUpdates (\d{1,15}), num timesteps (\d{1,15}), FPS (\d{1,9})")
ACKTR_REWARDS = re.compile(
    r"mean/median reward ([-+\w.]{1,30})/([-+\w.]{1,30}), min/max reward ([-+\w.]{1,30})/"
    r"([-+\w.]{1,30})"
)
ACKTR_EVALUATION = re.compile(r"Evaluation using \d+ episodes: mean reward ([-+\w.]{1,30})")


@dataclass(slots=True)
class Updates:
    """The step of the last update."""

    open: bool = False
    step: int | None = None

    def take(self, page: Page) -> None:
        """Read the line of an update, of its rewards or of an evaluation."""
        if update := ACKTR_UPDATE.search(page.text):
            self.step = int(update[2])
            pairs = [("updates", float(update[1])), ("fps", float(update[3]))]
            page.add(self.step, pairs, "environment steps")
        elif self.step is not None and (rewards := ACKTR_REWARDS.search(page.text)):
            cells = zip(
                ("mean_episode_reward", "median_reward", "min_reward", "max_reward"),
                rewards.groups(),
                strict=True,
            )
            page.add(
                self.step,
                [(k, v) for k, c in cells if (v := number(c)) is not None],
                "environment steps",
            )
        elif self.step is not None and (evaluation := ACKTR_EVALUATION.search(page.text)):
            value = number(evaluation[1])
            page.add(
                self.step,
                [] if value is None else [("eval/mean_reward", value)],
                "environment steps",
            )


DIALECT = Dialect(
    "a2c-ppo-acktr",
    "lines of pytorch-a2c-ppo-acktr",
    ("num timesteps", "mean/median reward", "Evaluation using"),
    Updates,
)

"""Lines of Keras-RL: one an episode, or one an interval.

`  17/50000: episode: 1, duration: 0.1s, episode steps: 17, ..., episode reward: 17.000, ...`
`500 episodes - episode_reward: 20.0 [8.0, 60.0] - loss: 0.5 - mae: 1.2`   below `Interval 2 (...)`

Source: keras-rl `rl/callbacks.py` (TrainEpisodeLogger, TrainIntervalLogger).
"""

import re

from rlvitals.readers.console_dialects.dialect import Dialect, Page, Pair, number
from rlvitals.startup.fast_dataclass import dataclass

KERAS_EPISODE = re.compile(r"\s*(\d{1,15})/(\d{1,15}): (?=episode: \d)")
KERAS_INTERVAL = re.compile(r"Interval \d{1,9} \((\d{1,15}) steps performed\)")
KERAS_EPISODES = re.compile(r"\d{1,9} episodes - (?=episode_reward: )")
KERAS_INTERVAL_BAR = re.compile(r"(\d{1,15})/\1 \[=+\]")
KERAS_METRIC = re.compile(r"([A-Za-z_][\w ]{0,60}): +([-+\w.]{1,30})")


@dataclass(slots=True)
class Episodes:
    """Steps offset the interval that is printed, and those of it."""

    open: bool = False
    offset: int = 0
    length: int = 0

    def take(self, page: Page) -> None:
        """Read a line of an episode, or those of an interval."""
        if head := KERAS_EPISODE.match(page.text):
            page.shared.settings["total_steps"] = int(head[2])
            page.add(int(head[1]), _metrics(page.text[head.end() :]), "environment steps")
        elif interval := KERAS_INTERVAL.search(page.text):
            self.offset = int(interval[1])
        elif bar := KERAS_INTERVAL_BAR.search(page.text):
            self.length = int(bar[1])
        elif self.length and (episodes := KERAS_EPISODES.search(page.text)):
            page.add(
                self.offset + self.length,
                _metrics(page.text[episodes.end() :]),
                "environment steps",
            )


def _metrics(text: str) -> list[Pair]:
    cells = [
        (key.strip().replace(" ", "_"), cell.rstrip("s"))
        for key, cell in KERAS_METRIC.findall(text)
    ]
    return [
        ("reward_per_step" if key == "mean_reward" else key, value)  # within the episode
        for key, cell in cells
        if cell != "--" and (value := number(cell)) is not None
    ]


DIALECT = Dialect(
    "keras-rl",
    "lines of Keras-RL",
    (": episode: ", "Interval ", " episodes - ", "[======"),
    Episodes,
)

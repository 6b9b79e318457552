"""Tables in a box, one key a line: Stable-Baselines3, Baselines, Spinning Up; AReaL's grid.

`| rollout/            |          |`      a group: its keys are indented below it
`|    ep_rew_mean      | 21.5     |`      "rollout/ep_rew_mean"
`|    AverageEpRet |            12.3 |`   Spinning Up: no groups, right-aligned
`│ ppo_actor/loss │ 1.2e-01 │ reward │ 0.5 │`   AReaL: its step stands in a line above

Source: stable_baselines3 `common/logger.py` (HumanOutputFormat.write), spinup `utils/logx.py`
(dump_tabular), AReaL `utils/stats_logger.py` (commit), `utils/printing.py`.
"""

import re
from dataclasses import field

from rlvitals.metrics.frameworks import sb3
from rlvitals.readers.console_dialects.dialect import Dialect, Page, Pair, number
from rlvitals.readers.formats import column_guess
from rlvitals.readers.formats.columns import to_step
from rlvitals.startup.fast_dataclass import dataclass

EDGE, BOX_SIDE = "│", "|"
DONE = re.compile(r"Train step (\d{1,15})/(\d{1,15}) done\.")
BOX_STEPS = ("time/total_timesteps", "total_timesteps", "total timesteps", "TimestepsSoFar")


@dataclass(slots=True)
class Boxes:
    """The box that is being read, and the step that was said before a grid."""

    open: bool = False
    group: str = ""
    pairs: list[Pair] = field(default_factory=list)
    step: int | None = None  # AReaL's

    def take(self, page: Page) -> None:
        """Read a line of a box, its frame, or the line that says a grid's step."""
        text = page.message if BOX_SIDE not in page.text and EDGE not in page.text else page.text
        text = text.strip()
        if found := DONE.search(text):
            self.step = int(found[1])
            page.shared.settings["total_steps"] = int(found[2])
        elif text.startswith(EDGE):
            # A row of AReaL's grid: keys and numbers in turn.
            cells = [cell.strip() for cell in text.strip(EDGE).split(EDGE)]
            if self.step is not None and len(cells) % 2 == 0:
                grid = zip(cells[::2], cells[1::2], strict=True)
                pairs = [(k, v) for k, cell in grid if k and (v := number(cell)) is not None]
                page.add(self.step, pairs, "steps")
        elif (
            (at := text.find(BOX_SIDE)) >= 0 and text.endswith(BOX_SIDE) and len(self.pairs) < 1000
        ):
            self._row(text[at:])
        elif text.endswith(("--------", "========")):
            self._close(page)
            self.open = True
        else:
            self._drop()

    def _drop(self) -> None:
        self.open, self.group, self.pairs = False, "", []

    def _row(self, text: str) -> None:
        """Take `| key | value |`; what is more or less is a table of another kind."""
        cells = text[1:-1].split(BOX_SIDE)
        if not self.open or len(cells) != 2 or not cells[0].strip():  # a pair
            self._drop()
            return
        key, cell = cells[0].strip(), cells[1].strip()
        if not cell and key.endswith("/"):
            self.group = key
            return
        indented = cells[0].startswith("    ")
        name = f"{self.group}{key}" if self.group and indented else key
        if (value := number(cell)) is None:
            return
        if name.endswith("..."):  # cut to fit the box: completed where one known key begins so
            name = name.removesuffix("...")
            keys = [table_key for table_key in sb3.NAMES.keys if table_key.startswith(name)]
            name = keys[0] if len(keys) == 1 else name
        self.pairs.append((name, value))

    def _close(self, page: Page) -> None:
        pairs = dict(self.pairs)
        self._drop()
        step_names = [
            key
            for key in (*BOX_STEPS, "Epoch", "nupdates", "steps", "EpisodesSoFar", "Iteration")
            if key in pairs
        ]
        key = next(iter([*step_names, *column_guess.step_keys(pairs)]), "")
        step = to_step(pairs.pop(key)) if key else None
        is_training = any(
            name.startswith(("rollout/", "time/", "train/", "eval/"))
            or column_guess.is_measure(name)
            or any(word in name.lower() for word in ("rew", "epret", "loss", "entropy"))
            for name in pairs
        )
        if step is not None and is_training:
            unit = "environment steps" if key in BOX_STEPS or key == "steps" else ""
            units = {"Epoch": "epochs", "nupdates": "updates", "EpisodesSoFar": "episodes"}
            unit = unit or units.get(key, "") or column_guess.step_unit(key)
            page.add(step, pairs.items(), unit)


DIALECT = Dialect(
    "boxes",
    "boxed tables of Stable-Baselines3, Baselines, Spinning Up, AReaL",
    ("-----", "| ", EDGE, " done."),
    Boxes,
)

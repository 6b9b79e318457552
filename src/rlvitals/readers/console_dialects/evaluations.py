"""Lines of evaluations that loops print between other lines.

`Eval num_timesteps=10000, episode_reward=-12.30 +/- 4.50`   SB3: `EvalCallback`
`Evaluation over 10 episodes: 123.456`                       TD3: `eval_policy`
`Evaluation #3 reward/mean: 1.23 metrics/sentiments: 0.9`    trlx: the title of its table of samples

SB3's line says nothing of what the log's rows count: the boxes between such lines do. TD3's line
holds no step. It follows the rows of the episodes before it, whose last step is its own;
without such rows the evaluations are counted.
"""

import re
from typing import ClassVar

from rlvitals.readers.console_dialects.dialect import Dialect, Page, number
from rlvitals.readers.console_dialects.line_forms import NUMBER, TD3_ROW
from rlvitals.startup.fast_dataclass import dataclass


@dataclass(slots=True)
class Evaluations:
    """The step of the last episode, and the evaluation before the first one."""

    sb3_line: ClassVar[re.Pattern[str]] = re.compile(
        rf"\bEval num_timesteps=(\d{{1,15}}), episode_reward=({NUMBER})"
    )
    td3_line: ClassVar[re.Pattern[str]] = re.compile(
        rf"\bEvaluat(?:ion|ed) (?:over|on|for) \d{{1,6}} episodes: ({NUMBER})"
    )
    trlx_line: ClassVar[re.Pattern[str]] = re.compile(
        rf"\bEvaluation #(\d{{1,9}})((?: (?:reward|metrics)/\S{{1,80}}: {NUMBER}(?!\S))+)"
    )
    trlx_pair: ClassVar[re.Pattern[str]] = re.compile(rf"(\S+): ({NUMBER})")
    key: ClassVar[str] = "eval/return"
    min_lines: ClassVar[int] = 3  # that make a log
    open: bool = False
    step: int | None = None
    first: float | None = None  # waits for what comes next: an episode, or an evaluation
    rows: int = 0  # evaluations, where no episode is printed
    lines: int = 0  # of SB3's callback

    @property
    def waiting(self) -> bool:
        """Whether the lines of SB3's callback are enough for a log that holds no other rows."""
        return self.lines >= self.min_lines

    def take(self, page: Page) -> None:
        """Read a line of an evaluation, or the step of an episode."""
        if found := self.sb3_line.search(page.text):
            if (value := number(found[2])) is not None:
                page.columns.add_row(int(found[1]), [(self.key, value)], page.time)
                self.lines += 1
        elif found := self.trlx_line.search(page.text):
            cells = self.trlx_pair.findall(found[2])
            pairs = [(key, value) for key, cell in cells if (value := number(cell)) is not None]
            page.add(int(found[1]), pairs, "evaluations")
        elif found := TD3_ROW.search(page.text):
            self.step = int(found[1])
            if self.first is not None:
                page.columns.add_row(0, [(self.key, self.first)], page.time)
                self.first = None
        elif (found := self.td3_line.search(page.text)) and (value := number(found[1])) is not None:
            if self.step is not None:
                page.columns.add_row(self.step, [(self.key, value)], page.time)
            elif self.first is None and not self.rows:
                self.first = value
            else:
                values = [value] if self.first is None else [self.first, value]
                self.first = None
                for each in values:
                    self.rows += 1
                    page.add_regular(self.rows, [(self.key, each)], "evaluations", page.time)


DIALECT = Dialect(
    "evaluations", "lines of evaluations between others", ("Eval", "Total T"), Evaluations
)

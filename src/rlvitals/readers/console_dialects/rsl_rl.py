"""rsl_rl's report of an iteration; its keys get the names of its TensorBoard tags.

`              Learning iteration 12/1500`
`                        Mean reward: 3.21`
The report ends with the line `ETA:`. Source: rsl_rl `utils/logger.py` (log) and, of versions 1
to 3, `runners/on_policy_runner.py` (log).
"""

import re
from dataclasses import field

from rlvitals.readers.console_dialects.dialect import Dialect, Page, Pair, number
from rlvitals.startup.fast_dataclass import dataclass

ITERATION_HEADING = "Learning iteration "
TITLE = re.compile(r"Learning iteration (\d{1,12})/(\d{1,12})")
LINE = re.compile(r"\s{2,}(\S[^:]{0,120}):\s+([-+]?[\w.+-]{1,40}?)(s|m| steps/s.*)?\s*$")
COMPUTATION = re.compile(
    r"Computation: +(\d+) steps/s \(collection: ([\d.]+)s, learning:? ([\d.]+)s\)"
)
FIXED_NAMES = {
    "Mean reward": "Train/mean_reward",
    "Mean total reward": "Train/mean_reward",
    "Mean extrinsic reward": "Rnd/mean_extrinsic_reward",
    "Mean intrinsic reward": "Rnd/mean_intrinsic_reward",
    "Mean episode length": "Train/mean_episode_length",
    "Mean action std": "Policy/mean_std",
    "Mean action noise std": "Policy/mean_noise_std",
    "Value function loss": "Loss/value_function",
    "Surrogate loss": "Loss/surrogate",
    "Steps per second": "Perf/total_fps",
    "Collection time": "Perf/collection_time",
    "Learning time": "Perf/learning_time",
    "Total steps": "progress/steps",
    "Total timesteps": "progress/steps",
}


@dataclass(slots=True)
class Report:
    """The report that is being read."""

    open: bool = False
    step: int = 0
    lines: int = 0
    pairs: list[Pair] = field(default_factory=list)

    def take(self, page: Page) -> None:
        """Read a line of the report; write the report when its last line is there."""
        if ITERATION_HEADING in page.text:
            if found := TITLE.search(page.text):
                self.open, self.step, self.lines, self.pairs = True, int(found[1]), 0, []
                page.shared.settings["total_steps"] = int(found[2])
            return
        if not self.open:
            return
        self.lines += 1
        if page.text.lstrip().startswith("ETA:") or self.lines > 300:
            self.open = False
            page.add(self.step, self.pairs, "iterations")
        elif found := COMPUTATION.search(page.text):
            names = ("Perf/total_fps", "Perf/collection_time", "Perf/learning_time")
            values = [number(cell) for cell in found.groups()]
            self.pairs += [(n, v) for n, v in zip(names, values, strict=True) if v is not None]
        elif found := LINE.match(page.text):
            name, value = _name(found[1]), number(found[2])
            if name and value is not None:
                self.pairs.append((name, value))


def _name(printed: str) -> str:
    if printed in FIXED_NAMES:
        return FIXED_NAMES[printed]
    if found := re.fullmatch(r"Mean (.+) loss", printed):
        return f"Loss/{found[1]}"
    if found := re.fullmatch(r"Mean episode (.+)", printed):
        return f"Episode/{found[1]}"
    return printed if "/" in printed else ""


DIALECT = Dialect("rsl_rl", "rsl_rl's reports", (ITERATION_HEADING,), Report)

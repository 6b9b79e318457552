"""NeMo-RL's report of a step: lines under a heading, one number each.

`========================= Step 12/50 =========================`
`  • Loss: 0.0219`   `  • Avg Reward: 0.3184`   `    - E2E (Tokens/sec): 8262.34`
Source: NeMo-RL's `algorithms/grpo.py` (grpo_train, validate), `algorithms/dpo.py`.
"""

import re

from rlvitals.readers.console_dialects.dialect import Dialect, Page, number
from rlvitals.startup.fast_dataclass import dataclass

STEP_HEADING = re.compile(r"=+ Step (\d{1,12})/(\d{1,12}) =+")
REPORT_LINE = re.compile(
    r"\s*[•-] (\S[^:]{0,80}): ([-+]?[\w.+-]{1,40}?)(?:s|%| tokens)?(?: \([\d.]+%\))?\s*$"
)
TRAINING_KEYS = {
    "Loss": "train/loss",
    "Generation KL Error": "train/gen_kl_error",
    "Avg Reward": "train/reward",
    "Avg Filtered Reward": "train/filtered_reward",
    "Mean Generation Length": "train/mean_gen_tokens_per_sample",
    "Mean Total Tokens per Sample": "train/mean_total_tokens_per_sample",
    "Total step time": "timing/train/total_step_time",
    "E2E (Tokens/sec/gpu)": "performance/tokens_per_sec_per_gpu",
    "E2E (Tokens/sec)": "performance/tokens_per_sec",
    "E2E (Samples/sec)": "performance/samples_per_sec",
}
VALIDATION_KEYS = {
    "Accuracy": "validation/accuracy",
    "Average response length": "validation/avg_length",
}


@dataclass(slots=True)
class Report:
    """The report that is being read, and what its lines are of."""

    open: bool = False
    step: int = 0
    validates: bool = False

    def take(self, page: Page) -> None:
        """Read a line of the report."""
        if heading := STEP_HEADING.search(page.text):
            self.open, self.step, self.validates = True, int(heading[1]), False
            page.shared.settings["total_steps"] = int(heading[2])
            return
        if not self.open:
            return
        if " Results:" in page.text:
            self.validates = "Validation" in page.text
        elif line := REPORT_LINE.match(page.text):
            name = (VALIDATION_KEYS if self.validates else TRAINING_KEYS).get(line[1])
            value = number(line[2])
            if name is not None and value is not None:
                page.add(self.step, [(name, value)], "steps")


DIALECT = Dialect("nemo-rl", "NeMo-RL's reports of a step", ("= Step ",), Report)

"""The lines of training on positive, on negative, or on weighted samples (PSR, NSR, W-REINFORCE).

`PSR [Step 10]: 3/4 positive samples | Avg reward: 5.234`
`NSR [Step 10]: 2/4 negative samples | Avg reward: -2.145`
`W-REINFORCE [Step 10]: 2 pos (λ=0.1) + 2 neg (λ=1.0) | Avg reward: 3.421`

The rewards of a batch, `Format rewards: [2.0, 0.0]`, are the batch's mean and spread. They stand
before the line of their step or after it: the first of the log tells.
"""

import re
from dataclasses import field

from rlvitals.readers.console_dialects.dialect import Dialect, Page, Pair, number, reward_pairs
from rlvitals.readers.formats.columns import NAN
from rlvitals.startup.fast_dataclass import dataclass

DECIMAL_NUMBER = r"([-+]?(?:\d[\d.]{0,30}(?:e[-+]?\d{1,3})?|nan|inf))"
ONE_SIDED_STEP = re.compile(
    rf"\b(PSR|NSR) \[Step (\d{{1,15}})\]: (\d{{1,9}})/(\d{{1,9}}) (?:positive|negative) samples"
    rf" \| Avg reward: {DECIMAL_NUMBER}"
)
TWO_SIDED_STEP = re.compile(
    rf"\bW-REINFORCE \[Step (\d{{1,15}})\]: (\d{{1,9}}) pos \(\S{{1,3}}={DECIMAL_NUMBER}\)"
    rf" \+ (\d{{1,9}}) neg \(\S{{1,3}}={DECIMAL_NUMBER}\) \| Avg reward: {DECIMAL_NUMBER}"
)
LISTED = re.compile(
    r"^(Format|Count|Accuracy|Length|Graph Type|Table style|Process Style) rewards?: *(\[.*\])$"
    r"|^(Rewards Accuracy): *(\[.*\])$",
    re.IGNORECASE,
)
REWARDS = {  # what a printed list is called, and the reward function that gave it
    "format": "format_reward",
    "count": "num_token_reward",
    "accuracy": "accuracy_reward",
    "rewards accuracy": "accuracy_reward",
    "length": "length_think_reward",
    "graph type": "chart_type_reward",
    "table style": "table_style_reward",
    "process style": "process_style_reward",
}
PSR_SETTINGS = {
    "training mode": "mode",
    "training samples": "train_samples",
    "epochs": "num_train_epochs",
    "reward threshold": "reward_threshold",
    "lambda": "lambda_psr",
    "lambda_psr": "lambda_psr",
    "num generations": "num_generations",
    "generations": "num_generations",
    "learning rate": "learning_rate",
    "batch size": "per_device_train_batch_size",
    "seed": "seed",
    "model": "model_name_or_path",
    "dataset": "dataset_name",
}
SETTING = re.compile(r"^([A-Za-z][\w -]{1,40}): *(\S.{0,200})$")
CONFIGURATION_HEADING = "TRAINING CONFIGURATION"


@dataclass(slots=True)
class SampleModes:
    """The last step, and the lists that wait for theirs."""

    open: bool = False  # within the block of settings
    step: int | None = None
    lists_lead: bool | None = None
    waiting: list[Pair] = field(default_factory=list)
    waiting_since: float = NAN
    batches: int = 0  # without any step

    def take(self, page: Page) -> None:
        """Read a line of a step, a list of rewards, or the block of settings."""
        text = page.message
        if CONFIGURATION_HEADING in text:
            self.open = True
        elif self.open:
            setting = SETTING.match(text)
            if setting is None:
                self.open = set(text) <= set("=-─═ ")  # a rule under the heading
            elif (name := PSR_SETTINGS.get(setting[1].lower())) is not None:
                value = number(setting[2])
                exact = value is not None and value.is_integer() and "." not in setting[2]
                page.shared.settings[name] = (
                    setting[2].strip() if value is None else int(value) if exact else value
                )
        if "[Step " in text:
            self._stepped(page, text)
        elif text.endswith("]") and (found := LISTED.match(text)):
            self._listed(page, (found[1] or found[3]).lower(), found[2] or found[4])

    def _stepped(self, page: Page, text: str) -> None:
        if found := ONE_SIDED_STEP.search(text):
            mode, side = ("psr", "positive") if found[1] == "PSR" else ("nsr", "negative")
            step, some, batch = (int(found[i]) for i in (2, 3, 4))
            pairs = [(f"{mode}/{side}_samples", float(some))]
            if batch:
                pairs.append((f"{mode}/{side}_ratio", some / batch))
            reward = found[5]
        elif found := TWO_SIDED_STEP.search(text):
            mode, step, up, down = "w_reinforce", *(int(found[i]) for i in (1, 2, 4))
            # The originals' guard against a division by 0.
            pairs = [
                ("w_reinforce/positive_samples", float(up)),
                ("w_reinforce/negative_samples", float(down)),
                ("w_reinforce/pos_neg_ratio", up / (down + 1e-6)),
            ]
            page.shared.settings["lambda_psr"] = number(found[3]) or 0.0
            reward = found[6]
        else:
            return
        if (value := number(reward)) is not None:
            pairs.append((f"{mode}/avg_reward", value))
        if self.lists_lead is None:
            self.lists_lead = bool(self.waiting)
        self.step = step
        # Lists that stand before the line of their step.
        waiting, self.waiting = self.waiting, []
        page.add(step, [*pairs, *(waiting if self.lists_lead else [])], "steps")

    def _listed(self, page: Page, name: str, cells: str) -> None:
        name = REWARDS.get(name.removesuffix("rewards").strip(), name.replace(" ", "_"))
        numbers = [n for cell in cells.strip("[]").split(",") if (n := number(cell)) is not None]
        if not numbers:
            return
        pairs = reward_pairs(name, numbers)
        if self.step is not None and not self.lists_lead:
            page.add(self.step, pairs, "steps")
            return
        if any(key == pairs[0][0] for key, _ in self.waiting):  # a new batch, and no step yet
            self._without_step(page)
        self.waiting += pairs
        self.waiting_since = page.time

    def _without_step(self, page: Page) -> None:
        waiting, self.waiting = self.waiting, []
        if self.step is not None or self.lists_lead is not None:
            return
        bar = page.shared.bar
        self.batches += 1
        if bar is None:
            page.shared.notes["rewards without a step: counted by batch"] = None
        page.add(bar.step if bar else self.batches, waiting, "steps", self.waiting_since)


DIALECT = Dialect(
    "sample modes",
    "lines of PSR, NSR and W-REINFORCE",
    (" [Step ", "ewards", CONFIGURATION_HEADING),
    SampleModes,
)

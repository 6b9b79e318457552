"""Check during training whether right answers depend on the image.

Some questions of the training data are answered twice with the likeliest tokens: with their own
image, and with the image of another of these questions. The shares of right answers are logged;
the rules `image-not-seen` and `image-mismatched` read them. Nothing is drawn at random but the
choice of questions, whose generator is its own, so that a resumed training stays the same.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rlvitals.trainers.language import generate
from rlvitals.trainers.language.evaluate_model import Judge
from rlvitals.trainers.language.generate import Policy, Row

# Names of rlvitals' own, whatever else a log's names are.
QUESTIONS_METRIC = "language/image_questions"
RIGHT_OWN_METRIC = "language/image_right_own"
RIGHT_OTHER_METRIC = "language/image_right_other"
DISTINCT_SHARE_METRIC = "language/image_distinct_share"
BLANK_SHARE_METRIC = "language/image_blank_share"


def measure(policy: Policy, rows: Sequence[Row], right: Judge, *, batch: int) -> dict[str, float]:
    """Return the metrics of a check of `rows`, each with a column `image`; two rows or more.

    Where all images are equal, the second answers are the first: no other image can be shown.
    """
    pixels = [(row["image"].size, row["image"].tobytes()) for row in rows]
    own_marks = _marks(policy, rows, right, batch)
    other_marks = own_marks
    if len(set(pixels)) > 1:
        swaps = [{**row, "image": rows[_next(pixels, i)]["image"]} for i, row in enumerate(rows)]
        other_marks = _marks(policy, swaps, right, batch)
    flips = sum(mark != swapped for mark, swapped in zip(own_marks, other_marks, strict=True))
    bands = [row["image"].convert("RGB").getextrema() for row in rows]
    blank = sum(all(low == high for low, high in extrema) for extrema in bands)
    counts = {
        RIGHT_OWN_METRIC: sum(own_marks),
        RIGHT_OTHER_METRIC: sum(other_marks),
        "language/image_marks_changed": flips,
        DISTINCT_SHARE_METRIC: len(set(pixels)),
        BLANK_SHARE_METRIC: blank,
    }
    shares = {name: count / len(rows) for name, count in counts.items()}
    return {QUESTIONS_METRIC: float(len(rows)), **shares}


def sentence(shares: Mapping[str, float]) -> str:
    """Return the result of a check as a sentence."""
    count, accuracy = shares[QUESTIONS_METRIC], shares[RIGHT_OWN_METRIC]
    start = f"Images: {accuracy:.0%} of {count:.0f} training questions are answered right"
    if shares[BLANK_SHARE_METRIC] == 1:
        return f"{start}; all of their images are blank"
    if shares[DISTINCT_SHARE_METRIC] * count == 1 < count:
        return f"{start}; all have the same image, which is no fault where the task has only one"
    if not accuracy:
        return f"{start}: whether answers depend on the image cannot be told yet"
    return f"{start}, and {shares[RIGHT_OTHER_METRIC]:.0%} with the image of another one"


def _marks(policy: Policy, rows: Sequence[Row], right: Judge, batch: int) -> list[bool]:
    batches = (rows[i : i + batch] for i in range(0, len(rows), batch))
    return [mark for chunk in batches for mark in right(chunk, generate.greedy(policy, chunk))]


def _next(pixels: Sequence[Any], row: int) -> int:
    """Return the first row after one, in a circle, whose image is another one."""
    indices = ((row + shift) % len(pixels) for shift in range(1, len(pixels)))
    return next(index for index in indices if pixels[index] != pixels[row])


@dataclass(slots=True)
class ImageCheck(TrainerCallback):
    """Checks before training and every `steps` optimizer steps, `questions` of `rows` each time.

    The numbers join the trainer's next row of metrics, and so every place that it is logged to.
    """

    trainer: Any
    policy: Policy
    rows: Any  # a data set with the columns image and prompt, and those that `right` looks at
    right: Judge
    questions: int
    steps: int
    batch: int  # answers at once
    tell: Callable[[str], None]  # called with the first check, and with a failed one
    failed: bool = False

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Check the policy as training begins; a resumed training did so before."""
        if state.global_step == 0:
            self._check(0)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Check the policy where a check is due."""
        if state.global_step % self.steps == 0:
            self._check(state.global_step)

    def _check(self, step: int) -> None:
        if self.failed:
            return
        model = self.policy.model
        training = model.training
        count = min(self.questions, len(self.rows))
        indices = Random(step).sample(range(len(self.rows)), count)  # noqa: S311 - no secret
        model.eval()
        try:
            rows = [self.rows[index] for index in indices]
            shares = measure(self.policy, rows, self.right, batch=self.batch)
        except Exception as error:  # noqa: BLE001 - as of a machine without memory for it
            self.failed = True
            self.tell(f"no check of the images from now on: {type(error).__name__}: {error}")
            return
        finally:
            model.train(training)
        if not step:
            self.tell(sentence(shares))
        for name, value in shares.items():
            self.trainer._metrics["train"][name].append(value)  # noqa: SLF001 - as TRL does

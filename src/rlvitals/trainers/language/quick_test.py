"""Compare answers before and after a short training: the last line of `--quick-test`.

The same unseen questions are asked before and after. A question that is right once and wrong once
counts for one side; a sign test on these decides whether the change exceeds chance.
"""

import sys
from dataclasses import dataclass
from math import comb
from pathlib import Path

import rlvitals
from rlvitals.lab import quantity
from rlvitals.trainers.language import evaluate_model
from rlvitals.trainers.language.console import Progress
from rlvitals.trainers.language.language_harness import TrainingResult


@dataclass(frozen=True, slots=True)
class Comparison:
    """Answers to the same unseen questions before and after a training."""

    before: tuple[bool, ...]  # whether the likeliest answer is right, by question
    after: tuple[bool, ...]
    steps: int  # of the training

    @property
    def gained_count(self) -> int:
        """Number of questions answered right after the training alone."""
        return sum(b < a for b, a in zip(self.before, self.after, strict=True))

    @property
    def lost_count(self) -> int:
        """Number of questions answered right before the training alone."""
        return sum(b > a for b, a in zip(self.before, self.after, strict=True))

    def p_value(self) -> float:
        """Return the two-sided p-value of the exact sign test; 1 where no answer changed."""
        changed, fewer = (
            self.gained_count + self.lost_count,
            min(self.gained_count, self.lost_count),
        )
        tail = sum(comb(changed, k) for k in range(fewer + 1))
        return min(1.0, 2 * tail / (1 << changed))

    def sentence(self) -> str:
        """Return what the training showed."""
        p, questions = self.p_value(), len(self.after)
        numbers = (
            f"{sum(self.after) / questions:.1%} of {questions} unseen questions are answered "
            f"right, {sum(self.before) / questions:.1%} before training "
            f"({self.gained_count} gained, {self.lost_count} lost, "
            f"sign test p {'< 0.001' if p < 0.001 else f'= {p:.2g}'})"
        )
        # The two-sided p-value at which a change is called a rise or a fall.
        if p > 0.05:
            steps = quantity(self.steps, "step")
            return f"all parts ran; no rise in {steps}, which may be too few to learn: {numbers}"
        change = "a rise" if self.gained_count > self.lost_count else "a fall"
        return f"all parts ran, and {self.steps} steps show {change}: {numbers}"


def compare(folder: Path, *, questions: int = 256) -> Comparison:
    """Ask a run's first and newest policy the same unseen questions, `questions` at the most.

    Raises UsageError where the run keeps no questions back or has no checkpoint, BadCheckpoint
    where no checkpoint is complete.
    """
    evaluate_model.quiet()
    before, _ = _answers(folder, 0, questions)
    after, steps = _answers(folder, None, questions)
    return Comparison(before, after, steps)


def _answers(folder: Path, step: int | None, questions: int) -> tuple[tuple[bool, ...], int]:
    """Return by question whether a checkpoint's likeliest answer is right, and its step."""
    trained = evaluate_model.load(folder, step=step)
    title = f"Asking unseen questions at step {trained.step:,}"
    progress = Progress(wanted=sys.stderr.isatty(), title=title, stream=sys.stderr)
    count = min(questions, len(trained.questions))
    evaluation = evaluate_model.evaluate(trained, questions=count, samples=0, progress=progress)
    progress.close()
    return evaluation.right_questions, trained.step


def last_line(result: TrainingResult) -> tuple[str, bool]:
    """Return what a quick test showed, and whether all of its parts ran.

    Where no unseen questions can be asked, the verdict on the training's own rewards is shown.
    """
    sentence, all_ran = _outcome(result)
    return f"Quick test: {sentence}.", all_ran


def _outcome(result: TrainingResult) -> tuple[str, bool]:
    if result.status != "finished":
        return f"not all parts ran: the training was {result.status}", False
    if result.failed_rewards:
        return f"not all parts ran: {result.failed_rewards} rewards could not be computed", False
    try:
        return compare(result.folder).sentence(), True
    except rlvitals.UsageError as error:
        if (
            any(result.folder.glob("checkpoint-*"))
            and rlvitals.Checkpoints(result.folder, tell=lambda _: None).latest() is None
        ):
            return "not all parts ran: no checkpoint is whole", False
        verdict = rlvitals.diagnose(result.folder).verdict
        log = f"by its log the training is {verdict.word.value}: {verdict.why}"
        return f"all parts ran; no unseen questions were asked ({error.problem}); {log}", True
    except rlvitals.VitalsError as error:
        return f"not all parts ran: the evaluation failed: {error.problem}", False

"""Evaluate a trained language model on held-out questions."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
import transformers
from peft import PeftModel

import rlvitals
from rlvitals.trainers import schema
from rlvitals.trainers.language import data, factory, generate, models, rewards
from rlvitals.trainers.language.config import Config, TrainingConfig
from rlvitals.trainers.language.console import Progress
from rlvitals.trainers.language.generate import Answers, Entropy, Policy, Row
from rlvitals.trainers.language.rlhf import config as rlhf
from rlvitals.trainers.language.tiny import base as tiny

TINY_BATCH_SIZE = 512  # answers of a tiny model at once: a forward pass is all overhead

ACCURACY_REWARD = "accuracy_reward"

Judge = Callable[[Sequence[Row], Answers], list[bool]]
RewardScorer = Callable[[Sequence[Row], Answers], list[float | None]]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The evaluation of a policy."""

    right_questions: tuple[bool, ...]  # by question: whether the likeliest answer is right
    samples: int  # of each question
    right_samples: tuple[int, ...]  # of each question
    entropy: float  # of the tempered distributions that tokens were drawn from: nats a token
    # Mean of each other reward function over the likeliest answers that it could score, or None.
    rewards: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def right(self) -> int:
        """Number of questions whose likeliest answer is right."""
        return sum(self.right_questions)

    @property
    def questions(self) -> int:
        """Number of questions."""
        return len(self.right_questions)


@dataclass(frozen=True, slots=True)
class Trained:
    """A run's policy as a checkpoint holds it, and what it is asked."""

    policy: Policy
    config: Config
    step: int  # 0: as training began
    questions: Sequence[Row]
    judge: str  # the reward function that decides whether an answer is right
    right: Judge
    other_rewards: Mapping[str, RewardScorer]  # the other reward functions, by name
    batch: int  # answers at once
    notes: tuple[str, ...]  # the task's notes


def load(folder: Path, *, step: int | None = None) -> Trained:
    """Load a run's policy: its newest complete checkpoint, another step's, or the base at step 0.

    Nothing of the run is changed. Raises UsageError for a folder without settings or without a
    checkpoint, or whose task keeps no questions back, VitalsError for a tiny model that was taught
    another task than is asked now, BadCheckpoint for a step without a complete one.
    """
    config = _config(folder)
    base = folder / models.BASE_FOLDER
    if config.model.vlm_name in tiny.TINY_MODELS and not base.is_dir():
        raise rlvitals.UsageError(
            "the tiny model that training began with is gone", where=str(base)
        )
    loaded = models.load(config.model, seed=config.training.seed, base=base)
    if loaded.tiny:
        torch.set_num_threads(config.training.threads or 1)
    checkpoint = _checkpoint(folder, step) if step != 0 else None
    model = _load_weights(loaded.model, checkpoint.folder) if checkpoint else loaded.model
    if torch.cuda.is_available() and not loaded.tiny:
        model = model.to("cuda")
    training = config.training
    task = data.load(config.data, vision=loaded.vision, seed=training.seed)
    if not len(task.held_out):
        raise rlvitals.UsageError(
            "its task keeps no questions back", where=config.data.dataset_name
        )
    return Trained(
        policy=Policy(
            model.eval(), loaded.processor, training.temperature, training.max_completion_length
        ),
        config=config,
        step=checkpoint.step if checkpoint else 0,
        questions=task.held_out,
        judge=judge_name(config),
        right=judge(config, task.rewards),
        other_rewards=_other_rewards(config, task.rewards),
        batch=TINY_BATCH_SIZE if loaded.tiny else max(training.batch_size, 1),
        notes=task.notes,
    )


def quiet() -> None:
    """Keep transformers' bars and warnings off the console: they are about its own future."""
    warnings.simplefilter("ignore", FutureWarning)
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()


def _config(folder: Path) -> Config:
    file = folder / factory.LANGUAGE_CONFIG_FILE
    if file.is_file():
        return schema.load(Config, file, {})
    if (folder / rlhf.RLHF_CONFIG_FILE).is_file():
        config = schema.load(rlhf.Config, folder / rlhf.RLHF_CONFIG_FILE, {})
        settings = config.rlhf
        return Config(
            training=TrainingConfig(
                mode="rlhf", seed=settings.seed, temperature=settings.temperature,
                batch_size=settings.batch_size,
                max_completion_length=settings.response_length, threads=settings.threads,
            ),
            model=config.model, data=config.data, rewards=config.rewards,
        )  # fmt: skip
    raise rlvitals.UsageError(
        f"there is no {factory.LANGUAGE_CONFIG_FILE}",
        where=str(folder),
        hint="a run of rlvitals train grpo",
    )


def _checkpoint(folder: Path, step: int | None) -> rlvitals.lab.Checkpoint:
    checkpoints = rlvitals.Checkpoints(folder, tell=lambda _: None)
    checkpoint = checkpoints.latest() if step is None else checkpoints.at(step)
    if checkpoint is None:
        hint = f"rlvitals checkpoints {folder}"
        raise rlvitals.UsageError("there is no whole checkpoint", where=str(folder), hint=hint)
    return checkpoint


def _load_weights(model: Any, folder: Path) -> Any:
    """Return a model with a checkpoint's weights, or with its adapters."""
    if not (folder / "adapter_config.json").is_file():
        return type(model).from_pretrained(folder, dtype=model.dtype)
    return PeftModel.from_pretrained(model, folder)


def judge_name(config: Config) -> str:
    """Return the name of the reward function that decides whether an answer is right.

    It is the run's correctness reward, or the accuracy where that is one of the form: an answer in
    the right form is not a right answer.
    """
    name = config.rewards.correctness
    return (
        ACCURACY_REWARD if name in {measure.name for measure in rewards.REWARD_MEASURES} else name
    )


def judge(config: Config, default: tuple[str, ...]) -> Judge:
    """Return a function that marks answers as right. An answer without a reward is not right."""
    name = judge_name(config)
    # A person's own is called by its name alone, and found by module:name.
    path = next((path for path in config.rewards.functions if path.endswith(f":{name}")), name)
    ((_, paid),) = _reward_scorers(config, default, (path,)).items()
    # The accuracy reward pays 0 or 1.
    threshold = 0.5 if name == ACCURACY_REWARD else config.signal.reward_threshold

    def right(rows: Sequence[Row], answers: Answers) -> list[bool]:
        return [value is not None and value >= threshold for value in paid(rows, answers)]

    return right


def _other_rewards(config: Config, default: tuple[str, ...]) -> dict[str, RewardScorer]:
    """Return the reward functions of the training other than the judge."""
    paid = _reward_scorers(config, default, config.rewards.functions)
    return {name: score for name, score in paid.items() if name != judge_name(config)}


def _reward_scorers(
    config: Config, default: tuple[str, ...], names: tuple[str, ...]
) -> dict[str, RewardScorer]:
    rewards_config = replace(config.rewards, functions=names, weights=(), on_error="skip")
    functions = rewards.functions(rewards_config, default, failed=lambda _: None)
    return {reward.name: _scores(reward) for reward in functions}


def _scores(reward: rewards.Reward) -> RewardScorer:
    def scores(rows: Sequence[Row], answers: Answers) -> list[float | None]:
        columns = {name: [row[name] for row in rows] for name in rows[0] if name != "prompt"}
        return reward(
            prompts=[row["prompt"] for row in rows],
            completions=answers.completions, completion_ids=answers.ids, **columns,
        )  # fmt: skip

    return scores


def evaluate(
    trained: Trained,
    *,
    questions: int = 0,
    samples: int = 64,
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluated:
    """Ask each of the first `questions` (0: all) once for its likeliest answer, and draw samples.

    The same seed, batch and machine give the same answers; the caller's random numbers stay.
    """
    count = min(questions or len(trained.questions), len(trained.questions))
    rows = [trained.questions[i] for i in range(count)]
    count_marks = _progress_counter(progress, len(rows) * (1 + samples))
    right, paid = list[bool](), {name: list[float | None]() for name in trained.other_rewards}
    for batch in _batches(rows, trained.batch):
        likeliest = generate.greedy(trained.policy, batch)
        right += count_marks(trained.right(batch, likeliest))
        for name, scores in trained.other_rewards.items():
            paid[name] += scores(batch, likeliest)
    total, marks = Entropy(), list[bool]()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for batch, each in _samples(rows, samples, trained.batch):
            answers = generate.sample(trained.policy, batch, total, each=each)
            marks += count_marks(
                trained.right([row for row in batch for _ in range(each)], answers)
            )
    shares = tuple(sum(marks[i : i + samples]) for i in range(0, len(marks), samples or 1))
    numbers = {name: [v for v in values if v is not None] for name, values in paid.items()}
    means = {name: fmean(values) if values else None for name, values in numbers.items()}
    return Evaluated(tuple(right), samples, shares, total.mean(), means)


def _samples(rows: Sequence[Row], samples: int, size: int) -> Iterator[tuple[Sequence[Row], int]]:
    """Share answers out to batches: some questions, and how many answers to each.

    A question is read once for all of its answers in a batch, and its image seen once.
    """
    for batch in _batches(rows, max(size // max(samples, 1), 1)):
        for start in range(0, samples, size):
            yield batch, min(size, samples - start)


def _batches(rows: Sequence[Row], size: int) -> Iterator[Sequence[Row]]:
    return (rows[i : i + size] for i in range(0, len(rows), size))


def _progress_counter(progress: Progress | None, total: int) -> Callable[[list[bool]], list[bool]]:
    """Return what passes marks on, and shows how many there are by now."""
    if progress is None:
        return lambda marks: marks
    progress.begin(0, total)
    done = 0

    def count(marks: list[bool]) -> list[bool]:
        nonlocal done
        done += len(marks)
        if (line := progress.update(done)) and not progress.drawn:
            progress.print(line)
        return marks

    return count

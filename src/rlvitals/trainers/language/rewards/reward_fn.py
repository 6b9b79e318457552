"""Reward functions as TRL calls them: one number per completion, or None on an error."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlvitals import UsageError, VitalsError
from rlvitals.lab import nearest
from rlvitals.trainers.language.config import RewardsConfig
from rlvitals.trainers.language.rewards import encoder
from rlvitals.trainers.language.rewards.custom_reward import import_function
from rlvitals.trainers.language.rewards.reward import Alike, Measure, Sample

MAX_ERROR_CHARACTERS = 200  # characters of a prompt, a completion or an exception in an error
# A person's code may raise anything, and end the program; who asks for the end by Ctrl-C has it.
CAUGHT_ERRORS = (Exception, SystemExit)


class WrongCountError(ValueError):
    """Other rewards than there are samples."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A sample that a reward function raised on, or gave no finite number for."""

    function: str
    sample: int | None  # its place in the batch, on this process; None: not one, but the batch
    prompt: str
    completion: str
    error: Exception | SystemExit

    @property
    def sentence(self) -> str:
        """What happened, in one line."""
        error = " ".join(f"{type(self.error).__name__}: {self.error}".split())
        if len(error) > MAX_ERROR_CHARACTERS:
            error = f"{error[:MAX_ERROR_CHARACTERS]} …"
        if self.sample is None:
            return f"{self.function} failed on a batch, and on none of its samples alone: {error}"
        prompt = self.prompt[-MAX_ERROR_CHARACTERS:]
        completion = self.completion[:MAX_ERROR_CHARACTERS]
        context = f"prompt {prompt!r}, completion {completion!r}"
        return f"{self.function} failed on sample {self.sample}: {error} ({context})"


@dataclass(frozen=True, slots=True)
class Batch:
    """What TRL gives a reward function: completions with their prompts, tokens and columns."""

    prompts: Sequence[Any]
    completions: Sequence[Any]
    completion_ids: Sequence[Any] | None
    columns: dict[str, Any]

    def only(self, index: int) -> "Batch":
        """Return the batch of one sample."""
        span = slice(index, index + 1)
        ids = None if self.completion_ids is None else self.completion_ids[span]
        columns = {
            name: value[span] if self.of_samples(value) else value
            for name, value in self.columns.items()
        }
        return Batch(self.prompts[span], self.completions[span], ids, columns)

    def of_samples(self, value: object) -> bool:
        """Return True if an argument is a column; TRL passes its own objects too."""
        return isinstance(value, list | tuple) and len(value) == len(self.completions)


Scores = Callable[[Batch], Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class Reward:
    """A reward function for TRL. `title`: how its line on the console begins.

    `last`: for the last function, returns the metrics of a batch of so many samples.

    A sample that it raises on, or gives no finite number for, gets None and a call of `failed`;
    where `stop` is set, a VitalsError ends the training instead.
    """

    name: str
    title: str
    scores: Scores
    failed: Callable[[Failure], None]
    stop: bool
    last: Callable[[int], Mapping[str, float]] | None = None

    @property
    def __name__(self) -> str:
        """What TRL logs it by: `rewards/<name>/mean`."""
        return self.name

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Any] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """Score completions. Raises UsageError where the data lacks a column that it needs."""
        batch = Batch(prompts, completions, completion_ids, columns)
        try:
            paid = _numbers(self.scores(batch), len(batch.completions))
        except UsageError:
            raise
        except CAUGHT_ERRORS as error:
            paid = self._score_each(batch, error)
        if self.last is not None:
            for name, value in self.last(len(completions)).items():
                columns["log_metric"](name, value)  # TRL's, which averages over processes
        return paid

    def _score_each(self, batch: Batch, batch_error: Exception | SystemExit) -> list[float | None]:
        """Score samples one by one, after a batch of them failed: that finds which.

        A function that gives one number, however many there are, fails on none of them alone.
        """
        failures: list[Failure] = []
        scores: list[float | None] = []
        for index in range(len(batch.completions)):
            try:
                scores += _numbers(self.scores(batch.only(index)), 1)
            except CAUGHT_ERRORS as error:
                texts = text(batch.prompts[index]), text(batch.completions[index])
                failures.append(Failure(self.name, index, *texts, error))
                scores.append(None)
        if not failures and isinstance(batch_error, WrongCountError):
            failures.append(Failure(self.name, None, "", "", batch_error))
        for failure in failures:
            if self.stop:
                hint = "mend the function, or leave such samples out: --on-error skip"
                raise VitalsError(failure.sentence, hint=hint) from failure.error
            self.failed(failure)
        return scores


def _numbers(scores: Sequence[float | None], count: int) -> list[float | None]:
    """Return scores as numbers. Raises ValueError for others than there are samples, NaN, inf.

    Infinity is also what float32 has no room for.
    """
    values = [None if score is None else float(score) for score in scores]
    if len(values) != count:
        msg = f"it gave {len(values)} rewards for {count} samples"
        raise WrongCountError(msg)
    # Up to float32's largest: TRL holds rewards so, and above is infinity.
    if strange := [
        value for value in values if value is not None and not abs(value) <= 3.4028234663852886e38
    ]:
        msg = f"it gave {strange[0]}"
        raise ValueError(msg)
    return values


def text(message: Any) -> str:
    """Return a prompt or a completion as text: of a conversation its last words."""
    if isinstance(message, str):
        return message
    content = message[-1].get("content") if message else ""
    if isinstance(content, str):
        return content
    return "".join(item.get("text") or "" for item in content or ())


def make_rewards(
    config: RewardsConfig,
    default: tuple[str, ...],
    catalogue: tuple[Measure, ...],
    failed: Callable[[Failure], None],
) -> list[Reward]:
    """Make the functions that the settings name. Raises UsageError for an unknown or double one."""
    measures = {measure.name: measure for measure in catalogue}
    by_model = tuple(m.name for m in catalogue if m.needs_model and config.process_model)
    names = config.functions or tuple(dict.fromkeys((*default, *by_model)))
    rewards = [_make_reward(name, measures, config, failed) for name in names]
    called = [reward.name for reward in rewards]
    if double := sorted({name for name in called if called.count(name) > 1}):
        raise UsageError(f"{double[0]} is named twice", where="rewards.functions")
    return rewards


def _make_reward(
    name: str,
    measures: Mapping[str, Measure],
    config: RewardsConfig,
    failed: Callable[[Failure], None],
) -> Reward:
    stop = config.on_error == "stop"
    if ":" in name:
        function = import_function(name)
        return Reward(function.__name__, function.__name__, _custom_scores(function), failed, stop)
    if name not in measures:
        raise UsageError(
            f"there is no reward function {name}",
            where="rewards.functions",
            hint=nearest(name, measures)
            or f"{', '.join(measures)}, or one of your own: module:function",
        )
    measure = measures[name]
    if measure.needs_model and not config.process_model:
        raise UsageError(
            f"{name} needs a model, and none is named",
            where="rewards.process_model",
            hint="--process-model sentence-transformers/all-MiniLM-L6-v2",
        )
    alike = encoder.load(config.process_model) if measure.needs_model else None
    return Reward(name, measure.title, _builtin_scores(measure, alike), failed, stop)


def _builtin_scores(measure: Measure, alike: Alike | None) -> Scores:
    """Return what scores a batch by one of our measures."""

    def scores(batch: Batch) -> list[float | None]:
        for either in measure.needs:
            if not set(either) & set(batch.columns):
                raise UsageError(
                    f"{measure.name} needs the column {' or '.join(either)}",
                    where=f"the data has {', '.join(sorted(batch.columns)) or 'none'}",
                    hint="choose other rewards: --functions accuracy_reward",
                )
        columns = {name: v for name, v in batch.columns.items() if batch.of_samples(v)}
        return [
            measure.score(
                Sample(text(completion), {name: v[index] for name, v in columns.items()}, alike)
            )
            for index, completion in enumerate(batch.completions)
        ]

    return scores


def _custom_scores(function: Callable[..., Sequence[float | None]]) -> Scores:
    """Return what scores a batch by a person's function: it gets copies, and may spoil them."""

    def scores(batch: Batch) -> Sequence[float | None]:
        columns = {
            name: [_copy(item) for item in value] if batch.of_samples(value) else value
            for name, value in batch.columns.items()
        }
        return function(
            prompts=_copy(list(batch.prompts)),
            completions=_copy(list(batch.completions)),
            completion_ids=_copy(batch.completion_ids),
            **columns,
        )

    return scores


def _copy(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_copy(item) for item in value]
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return value.copy() if callable(getattr(value, "copy", None)) else value


def weights(config: RewardsConfig, rewards: Sequence[Reward]) -> list[float]:
    """Return the weights of functions, 1 each by default. Raises UsageError for too few or many."""
    if config.weights and len(config.weights) != len(rewards):
        raise UsageError(
            f"there are {len(config.weights)} weights for {len(rewards)} reward functions",
            where="rewards.weights",
            hint=f"one for each of {', '.join(reward.name for reward in rewards)}",
        )
    return list(config.weights or (1.0,) * len(rewards))

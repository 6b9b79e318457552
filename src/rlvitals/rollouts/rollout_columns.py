"""Hold the numbers of a run's rollouts as columns, and open single samples by their location."""

from array import array
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlvitals.errors import UnreadableLog
from rlvitals.rollouts.dialects import ROLLOUT_DIALECTS
from rlvitals.rollouts.records import Place, read_record
from rlvitals.rollouts.sample import EVAL_SPLIT, Sample
from rlvitals.rollouts.text_measures import (
    TextMeasures,
    changes_script,
    copied_share,
    gives_answer,
    states_answer,
)
from rlvitals.startup.fast_dataclass import dataclass

NO_STEP = -1
PENDING_ROWS = 4096  # that wait as Python's objects
MAX_TEXTS = 10_000  # different tasks, stop reasons and errors
# A row of the index; NaN and -1 stand for what a log does not record.
ROW = np.dtype(
    [
        ("file", "u4"),  # number of the file
        ("offset", "i8"),  # bytes
        ("size", "i8"),  # bytes
        ("row", "i4"),  # line of a frame, row of a table
        ("item", "i4"),  # number of the sample within the record
        ("step", "i8"),
        ("split", "u1"),  # 1: evaluation
        ("prompt", "u8"),  # hash
        ("group", "u8"),  # hash
        ("task", "u4"),  # numbers of texts
        ("stop_reason", "u4"),
        ("error", "u4"),
        ("reward", "f8"),
        ("advantage", "f8"),
        ("seconds", "f4"),
        ("policy_version", "i8"),
        ("turns", "i4"),  # of the policy
        ("tool_calls", "i4"),
        ("failed_calls", "i4"),
        ("characters", "i4"),  # of the policy's text
        ("token_count", "i4"),
        ("looping", "u1"),  # 1: the text ends in one phrase over and over
        ("reply", "u8"),  # hash of the policy's text
        # Measured on a few rollouts of each step, NaN on the others: see text_measures.py.
        ("retrieved", "f4"),
        ("copied", "f4"),  # share of the text
        ("answer_stated", "f4"),  # 1: the prompt states the answer
        ("answer_given", "f4"),  # 1: the text ends by giving the answer
        ("other_script", "f4"),  # 1: the text is in a script that the prompt does not use
    ]
)


@dataclass(frozen=True, slots=True, eq=False)
class Rollouts:
    """The rollouts of a run, one row each, in the order of files and bytes.

    `rows` has the fields of `ROW`; `parts` holds a column of float64 [n] for each reward part,
    NaN where a sample has none, and `weights` the last weight of each; `texts` are the names that
    `task`, `stop_reason` and `error` refer to.
    """

    root: Path
    files: tuple[str, ...]  # below `root`
    dialects: tuple[str, ...]  # of each file
    rows: NDArray[np.void]
    parts: Mapping[str, NDArray[np.float64]]
    weights: Mapping[str, float]
    texts: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Count the rollouts."""
        return len(self.rows)

    def read_sample(self, index: int) -> Sample:
        """Read one sample from its file. Raises UnreadableLog."""
        row = self.rows[index]
        path = self.root / self.files[int(row["file"])]
        dialect = next(d for d in ROLLOUT_DIALECTS if d.name == self.dialects[int(row["file"])])
        location = Place(int(row["offset"]), int(row["size"]), int(row["row"]))
        try:
            samples = dialect.samples(path, read_record(path, dialect.layout, location))
            return samples[int(row["item"])]
        except (OSError, IndexError, KeyError, TypeError, ValueError) as error:
            raise UnreadableLog(
                "the rollouts changed since they were indexed", where=str(path)
            ) from error

    def column(self, name: str) -> list[str]:
        """Return a column of texts: "task", "stop_reason" or "error"."""
        return [self.texts[number] for number in self.rows[name].tolist()]

    def indices(self, mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the indices of rows that a mask [n] picks."""
        return np.flatnonzero(mask).astype(np.int64)

    def text_is(self, name: str, text: str) -> NDArray[np.bool_]:
        """Return a mask [n] of rows with this text in a column."""
        number = self.texts.index(text) if text in self.texts else len(self.texts)
        return np.asarray(self.rows[name] == number)

    @property
    def training(self) -> NDArray[np.bool_]:
        """A mask [n] of rollouts of the training, not of an evaluation."""
        return np.asarray(self.rows["split"] == 0)


def hash_text(text: str) -> int:
    """Return a hash of a text that is the same in every process, uint64."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def is_looping(text: str) -> bool:
    """Return whether a text ends in one phrase over and over: three times, 200 characters.

    The phrase is found where the last characters stood before; what repeats with a change, as a
    list that counts on, does not loop.
    """
    tail = text.rstrip()[-4096:]
    end = tail[-24:]  # its last appearance is found by these
    position = tail.rfind(end, 0, len(tail) - 1)
    if position < 0:
        return False
    period = len(tail) - len(end) - position
    length = max(200, 3 * period)  # shorter runs of one letter are numbers and rules
    return length <= len(tail) and tail[-length:-period] == tail[-length + period :]


class Builder:
    """Collects samples into the columns of `Rollouts`, in chunks of bounded memory."""

    def __init__(self) -> None:
        """Begin empty."""
        self._pending: list[tuple[object, ...]] = []
        self._chunks: list[NDArray[np.void]] = []
        self._parts: dict[str, _Sparse] = {}
        self._numbers: dict[str, int] = {"": 0}
        self._count = 0
        self._texts = TextMeasures()
        self.weights: dict[str, float] = {}

    def add(self, file: int, location: Place, item: int, sample: Sample) -> None:
        """Add a sample."""
        text = sample.text
        calls = list(sample.tool_calls)
        prompt = hash_text(sample.prompt)
        self._pending.append(
            (
                file,
                *location,
                item,
                NO_STEP if sample.step is None else sample.step,
                sample.split == EVAL_SPLIT,
                prompt,
                hash_text(sample.group) if sample.group else prompt,
                self._number(sample.task),
                self._number(sample.stop_reason),
                self._number(sample.error.partition("\n")[0][:100]),
                np.nan if sample.reward is None else sample.reward,
                np.nan if sample.advantage is None else sample.advantage,
                np.nan if sample.seconds is None else sample.seconds,
                -1 if sample.policy_version is None else sample.policy_version,
                sum(turn.role == "assistant" for turn in sample.turns),
                len(calls),
                sum(call.failed for call in calls),
                len(text),
                -1 if sample.token_count is None else sample.token_count,
                is_looping(text),
                hash_text(text),
                np.nan,  # known when the step's other prompts are
                *self._measure(prompt, sample, text),
            )
        )
        for name, part in sample.parts.items():
            if name in self._parts or len(self._parts) < 64:
                self._parts.setdefault(name, _Sparse()).add(self._count, part.score)
                self.weights[name] = part.weight
        self._count += 1
        if len(self._pending) >= PENDING_ROWS:
            self._pack()

    def _measure(self, prompt: int, sample: Sample, text: str) -> tuple[float, ...]:
        """Return the shares that are measured on a few rollouts of training alone."""
        is_training = sample.step is not None and sample.split != EVAL_SPLIT and text
        if not is_training or not self._texts.add(
            self._count, sample.step or 0, prompt, sample, text
        ):
            return np.nan, np.nan, np.nan, np.nan
        answer = sample.answer
        return (
            copied_share(sample.prompt, text),
            float(states_answer(sample.prompt, answer)) if answer else np.nan,
            float(gives_answer(text, answer)) if answer else np.nan,
            float(changes_script(sample.prompt, text)),
        )

    def _number(self, text: str) -> int:
        if text not in self._numbers and len(self._numbers) >= MAX_TEXTS:
            text = "(others)"
        return self._numbers.setdefault(text, len(self._numbers))

    def _pack(self) -> None:
        self._chunks.append(np.array(self._pending, ROW))
        self._pending.clear()

    def build(
        self, root: Path, files: Sequence[str], dialects: Sequence[str], notes: Sequence[str]
    ) -> Rollouts:
        """Return all samples as columns."""
        self._pack()
        self._texts.close()
        rows = np.concatenate(self._chunks)
        for row, value in self._texts.retrieved:
            rows["retrieved"][row] = value
        return Rollouts(
            root=root,
            files=tuple(files),
            dialects=tuple(dialects),
            rows=rows,
            parts={name: column.full(self._count) for name, column in self._parts.items()},
            weights=self.weights,
            texts=tuple(self._numbers),
            notes=tuple(notes),
        )


class _Sparse:
    """A column of which most cells may be missing."""

    def __init__(self) -> None:
        self._rows, self._values = array("q"), array("d")

    def add(self, row: int, value: float) -> None:
        self._rows.append(row)
        self._values.append(value)

    def full(self, count: int) -> NDArray[np.float64]:
        column = np.full(count, np.nan)
        column[self._rows] = self._values
        return column

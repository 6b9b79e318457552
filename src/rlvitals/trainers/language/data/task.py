"""The questions of a training: drawn charts, sums, or a person's data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvitals import UsageError, VitalsError
from rlvitals.trainers.language.data import chart_task, checking, read_rows, sums_task, template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import datasets
    from PIL import Image

    from rlvitals.trainers.language.config import DataConfig

EVALUATED = "evaluation"  # the seed of what evaluation asks: the same of every training
LEAST = 28  # pixels of a side: two for each of a tiny chart's units, and its letters
CHART = ("image", "query", "label")
CHART_REWARDS = ("format_reward", "num_token_reward", "accuracy_reward", "length_think_reward")
# Columns that TRL 1.16 takes for its own, or gives reward functions itself (grpo_trainer.py).
TAKEN = (
    "prompts", "completion", "completions", "completion_ids", "images", "tools", "environment",
    "environments", "trainer_state", "log_extra", "log_metric",
)  # fmt: skip
BY_COLUMN = {"chart_type": "chart_type_reward", "table": "table_style_reward"}


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked: datasets with the column prompt, and with label (charts) or answer (texts).

    `rewards`: what is paid by default. `notes`: what a person should know, as rows left out.
    """

    train: datasets.Dataset
    held_out: datasets.Dataset
    rewards: tuple[str, ...]
    name: str
    notes: tuple[str, ...] = ()


def check(config: DataConfig) -> None:
    """Raise UsageError for data that cannot be had, as far as its name tells."""
    read_rows.check(config.dataset_name)


def find(config: DataConfig, tell: Callable[[str], None]) -> datasets.Dataset | None:
    """Read a person's data, before a model is loaded for it; None for what is made here.

    `tell` hears where it is looked for, which may take long. Raises UsageError as `load`.
    """
    name = config.dataset_name
    if name in read_rows.MADE:
        return None
    if read_rows.is_remote(name):
        tell(f"{name} is looked for at Hugging Face ...")
    try:
        return read_rows.read(name, config.dataset_split)
    except VitalsError as error:
        error.where = error.where or name
        raise


def load(
    config: DataConfig, *, vision: bool, seed: int, found: datasets.Dataset | None = None
) -> Task:
    """Make or read a task. `vision`: whether the model sees images; `found`: what `find` did.

    Raises UsageError for data that is not there, has no such columns, or cannot be asked.
    """
    if config.dataset_name == "sums":
        return _sums(config, seed)
    if config.dataset_name == "charts":
        _sees(vision, "charts")
        return _charts(config, seed)
    try:
        rows = find(config, lambda _: None) if found is None else found
        return _asked(rows, config, vision=vision, seed=seed)
    except VitalsError as error:
        error.where = error.where or config.dataset_name
        raise


def _sees(vision: bool, name: str) -> None:  # noqa: FBT001 - said by its name above
    if not vision:
        raise UsageError(
            f"{name} has images, and the model sees none",
            where="data.dataset_name",
            hint="a model that sees, as --vlm-name tiny-vlm, or --dataset-name sums",
        )


def _sums(config: DataConfig, seed: int) -> Task:
    import datasets

    text = datasets.Value("string")

    def asked(questions: Sequence[sums_task.Question]) -> datasets.Dataset:
        around = config.prompt_template or template.QUERY
        columns = {
            "prompt": [template.asked(question["prompt"], around) for question in questions],
            "answer": [question["answer"] for question in questions],
        }
        features = datasets.Features({"prompt": text, "answer": text})
        dataset = datasets.Dataset.from_dict(columns, features=features)
        return _talking(dataset, columns["prompt"]) if config.chat else dataset

    train = asked(sums_task.questions(config.subset_size or 2000, seed))
    held_out = asked(sums_task.held_out(config.held_out))
    return Task(train, held_out, ("accuracy_reward",), "sums", _few(len(held_out), config))


def _charts(config: DataConfig, seed: int) -> Task:
    if config.chart_pixels < LEAST:
        raise UsageError(
            f"a chart of {config.chart_pixels} pixels shows nothing",
            where="data.chart_pixels",
            hint=f"{LEAST} or more",
        )
    count = config.subset_size or 1000
    train = [chart_task.chart(seed, index, pixels=config.chart_pixels) for index in range(count)]
    drawn: dict[tuple[str, ...], chart_task.Sample] = {}  # by question: each is asked once
    # Draw at most 20 charts for each held-out question.
    for index in range(20 * config.held_out):
        if len(drawn) == config.held_out:
            break
        sample = chart_task.chart(EVALUATED, index, pixels=config.chart_pixels, held_out=True)
        drawn.setdefault(_question(sample), sample)
    held_out = list(drawn.values())
    rewards = (*CHART_REWARDS, *BY_COLUMN.values())
    notes = _few(len(held_out), config)
    return Task(_drawn(train, config), _drawn(held_out, config), rewards, "charts", notes)


def _few(held_out: int, config: DataConfig) -> tuple[str, ...]:
    """Say where fewer questions are held out than are asked for."""
    if held_out >= config.held_out:
        return ()
    return (f"{held_out} {config.dataset_name} are held out: no more differ from those trained on",)


def _question(sample: chart_task.Sample) -> tuple[str, ...]:
    return sample.query, sample.label, sample.table, sample.chart_type


def _drawn(samples: Iterable[chart_task.Sample], config: DataConfig) -> datasets.Dataset:
    import datasets

    names = (*CHART, "table", "chart_type", "reasoning")
    columns = {name: [getattr(sample, name) for sample in samples] for name in names}
    kinds = {name: datasets.Value("string") for name in names}
    features = datasets.Features({**kinds, "image": datasets.Image()})
    dataset = datasets.Dataset.from_dict(columns, features=features)
    return _pictured(_prompted(dataset, config), config)


def _prompted(rows: datasets.Dataset, config: DataConfig) -> datasets.Dataset:
    """Put each query into the words around it, as a conversation: its image comes before them."""
    around = config.prompt_template or template.CHART
    return _talking(rows, [template.asked(str(query), around) for query in rows["query"]])


def _talking(rows: datasets.Dataset, texts: Sequence[str | None]) -> datasets.Dataset:
    """Make each prompt a conversation that a person begins with a text."""
    import datasets

    conversations = [[{"role": "user", "content": prompt}] for prompt in texts]
    text = datasets.Value("string")
    kind = datasets.List({"role": text, "content": text})
    rows = rows.remove_columns("prompt") if "prompt" in rows.column_names else rows
    return rows.add_column("prompt", conversations, feature=kind)


def _pictured(rows: datasets.Dataset, config: DataConfig) -> datasets.Dataset:
    """Give images in colour, and with no more pixels than are asked for, whenever they are read."""
    return rows.with_transform(Pictures(config.image_pixels))


@dataclass(frozen=True, slots=True)
class Pictures:
    """Make images RGB, and smaller where they have more than `most` pixels (0: as they are)."""

    most: int

    def __call__(self, batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Return a batch of columns with its images so."""
        if "image" not in batch:
            return batch
        return {**batch, "image": [self._one(image) for image in batch["image"]]}

    def _one(self, image: Any) -> Any:
        picture = _coloured(image)
        pixels = image.width * image.height
        if not self.most or pixels <= self.most:
            return picture
        factor = (self.most / pixels) ** 0.5
        return picture.resize(
            (max(1, int(image.width * factor)), max(1, int(image.height * factor)))
        )


def _coloured(image: Image.Image) -> Image.Image:
    """Make an image RGB as a person sees it: on white paper, 16 bits of grey as 8."""
    from PIL import Image

    if image.mode.startswith("I"):
        return image.convert("I").point(lambda grey: grey * (1 / 257)).convert("RGB")
    if not image.has_transparency_data:
        return image.convert("RGB")
    paper = Image.new("RGBA", image.size, "white")
    paper.alpha_composite(image.convert("RGBA"))
    return paper.convert("RGB")


def _asked(rows: datasets.Dataset, config: DataConfig, *, vision: bool, seed: int) -> Task:
    import datasets

    reserved = [name for name in TAKEN if name in rows.column_names]
    rows = rows.remove_columns(reserved)
    has_images = "image" in rows.column_names
    if has_images:
        _sees(vision, config.dataset_name)
        rows = _chart_rows(rows)
    else:
        rows = _text_rows(rows, config)
    needed = CHART if has_images else ("prompt", "answer")
    selection = checking.choose(
        rows, needed, subset=config.subset_size, held_out=config.held_out, seed=seed
    )
    if has_images:
        rows = _pictured(_prompted(rows.cast_column("image", datasets.Image()), config), config)
    elif config.chat:
        rows = _talking(rows, rows["prompt"])
    path = Path(config.dataset_name)
    paid = tuple(reward for name, reward in BY_COLUMN.items() if name in rows.column_names)
    return Task(
        rows.select(selection.train),
        rows.select(selection.held_out),
        (*CHART_REWARDS, *paid) if has_images else ("accuracy_reward",),
        path.stem if path.is_file() else path.name,
        (*_left_out(reserved), *selection.notes(config.subset_size)),
    )


def _left_out(columns: list[str]) -> tuple[str, ...]:
    names = ", ".join(columns)
    return (f"left out, since trl means something else by that: {names}",) if columns else ()


def _chart_rows(rows: datasets.Dataset) -> datasets.Dataset:
    """Check the columns, images undecoded. Raises UsageError."""
    import datasets
    import pyarrow as pa

    missing = [name for name in CHART if name not in rows.column_names]
    if missing:
        raise _lacking(missing, rows)
    try:
        rows = rows.cast_column("image", datasets.Image(decode=False))
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise UsageError(
            f"the column image holds no images but {rows.features['image']}",
            hint="of each row one file's name, or the bytes of one",
        ) from error
    return _as_texts(rows, ("query", "label", "chart_type", "reasoning"))


def _text_rows(rows: datasets.Dataset, config: DataConfig) -> datasets.Dataset:
    for either in (("prompt", "query", "question"), ("answer", "label")):
        column = next((name for name in either if name in rows.column_names), None)
        if column is None:
            raise _lacking([either[0]], rows)
        if column != either[0]:
            rows = rows.rename_column(column, either[0])
    rows = _as_texts(rows, ("prompt", "answer"))
    if config.prompt_template:
        prompts = [
            template.asked(prompt or "", config.prompt_template) for prompt in rows["prompt"]
        ]
        rows = rows.remove_columns("prompt").add_column("prompt", prompts)
    return rows


def _as_texts(rows: datasets.Dataset, names: tuple[str, ...]) -> datasets.Dataset:
    """Make columns texts. Raises UsageError for one that holds lists or tables."""
    import datasets
    import pyarrow as pa

    for name in names:
        if name in rows.column_names and rows.features[name] != datasets.Value("string"):
            try:
                rows = rows.cast_column(name, datasets.Value("string"))
            except (TypeError, ValueError, pa.ArrowException) as error:
                raise UsageError(
                    f"the column {name} holds no texts but {rows.features[name]}"
                ) from error
    return rows


def _lacking(missing: list[str], rows: datasets.Dataset) -> UsageError:
    columns = ", ".join(rows.column_names)
    several = "columns" if len(missing) > 1 else "column"
    return UsageError(
        f"the data has no {several} {' and '.join(missing)}; it has {columns}",
        hint="charts have image, query and label; plain questions prompt and answer",
    )

"""Build the dataset of a training: generated charts, sums, or a person's data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvitals import UsageError, VitalsError
from rlvitals.trainers.language.data import chart_task, checking, read_rows, sums_task, template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import datasets

    from rlvitals.trainers.language.config import DataConfig

EVALUATION_SEED = "evaluation"  # the seed of what evaluation asks: the same of every training
MIN_CHART_PIXELS = 28  # pixels of a side: two for each of a tiny chart's units, and its letters
CHART_TASK_COLUMNS = ("image", "query", "label")
CHART_REWARDS = ("format_reward", "num_token_reward", "accuracy_reward", "length_think_reward")
REWARDS_BY_COLUMN = {"chart_type": "chart_type_reward", "table": "table_style_reward"}


@dataclass(frozen=True, slots=True)
class Task:
    """Datasets with the column prompt, and with label (charts) or answer (texts).

    `rewards`: the default reward functions. `notes`: messages for a person, as rows left out.
    """

    train: datasets.Dataset
    held_out: datasets.Dataset
    rewards: tuple[str, ...]
    name: str
    notes: tuple[str, ...] = ()


def check(config: DataConfig) -> None:
    """Raise UsageError for data that cannot exist by its name."""
    read_rows.check(config.dataset_name)


def find(config: DataConfig, tell: Callable[[str], None]) -> datasets.Dataset | None:
    """Read a person's data before a model is loaded; return None for built-in data.

    `tell` is called before a remote dataset is fetched. Raises UsageError as `load`.
    """
    name = config.dataset_name
    if name in read_rows.BUILT_IN_DATASETS:
        return None
    if read_rows.is_remote(name):
        tell(f"{name} is looked for at Hugging Face ...")
    try:
        return read_rows.read(name, config.dataset_split)
    except VitalsError as error:
        error.where = error.where or name
        raise


def load(
    config: DataConfig, *, vision: bool, seed: int, dataset: datasets.Dataset | None = None
) -> Task:
    """Make or read a task. `dataset`: what `find` returned; `vision`: the model reads images.

    Raises UsageError for data that is not there, has no such columns, or cannot be asked.
    """
    if config.dataset_name == "sums":
        return _sums(config, seed)
    if config.dataset_name == "charts":
        _sees(vision, "charts")
        return _charts(config, seed)
    try:
        rows = find(config, lambda _: None) if dataset is None else dataset
        return _make_task(rows, config, vision=vision, seed=seed)
    except VitalsError as error:
        error.where = error.where or config.dataset_name
        raise


def _sees(vision: bool, name: str) -> None:  # noqa: FBT001 - passed by position
    if not vision:
        raise UsageError(
            f"{name} has images, and the model sees none",
            where="data.dataset_name",
            hint="a model that sees, as --vlm-name tiny-vlm, or --dataset-name sums",
        )


def _sums(config: DataConfig, seed: int) -> Task:
    import datasets

    text = datasets.Value("string")

    def make_dataset(questions: Sequence[sums_task.Question]) -> datasets.Dataset:
        around = config.prompt_template or template.QUERY_FIELD
        columns = {
            "prompt": [
                template.fill_template(question["prompt"], around) for question in questions
            ],
            "answer": [question["answer"] for question in questions],
        }
        features = datasets.Features({"prompt": text, "answer": text})
        dataset = datasets.Dataset.from_dict(columns, features=features)
        return _add_conversations(dataset, columns["prompt"]) if config.chat else dataset

    train = make_dataset(sums_task.questions(config.subset_size or 2000, seed))
    held_out = make_dataset(sums_task.held_out(config.held_out))
    return Task(
        train, held_out, ("accuracy_reward",), "sums", _shortage_notes(len(held_out), config)
    )


def _charts(config: DataConfig, seed: int) -> Task:
    if config.chart_pixels < MIN_CHART_PIXELS:
        raise UsageError(
            f"a chart of {config.chart_pixels} pixels shows nothing",
            where="data.chart_pixels",
            hint=f"{MIN_CHART_PIXELS} or more",
        )
    count = config.subset_size or 1000
    train = [chart_task.chart(seed, index, pixels=config.chart_pixels) for index in range(count)]
    drawn: dict[tuple[str, ...], chart_task.Sample] = {}  # by question: each is asked once
    # Draw at max_pixels 20 charts for each held-out question.
    for index in range(20 * config.held_out):
        if len(drawn) == config.held_out:
            break
        sample = chart_task.chart(EVALUATION_SEED, index, pixels=config.chart_pixels, held_out=True)
        question = sample.query, sample.label, sample.table, sample.chart_type
        drawn.setdefault(question, sample)
    held_out = list(drawn.values())
    rewards = (*CHART_REWARDS, *REWARDS_BY_COLUMN.values())
    notes = _shortage_notes(len(held_out), config)
    return Task(
        _chart_dataset(train, config), _chart_dataset(held_out, config), rewards, "charts", notes
    )


def _shortage_notes(held_out: int, config: DataConfig) -> tuple[str, ...]:
    """Return a note if fewer questions are held out than requested."""
    if held_out >= config.held_out:
        return ()
    return (f"{held_out} {config.dataset_name} are held out: no more differ from those trained on",)


def _chart_dataset(samples: Iterable[chart_task.Sample], config: DataConfig) -> datasets.Dataset:
    import datasets

    names = (*CHART_TASK_COLUMNS, "table", "chart_type", "reasoning")
    columns = {name: [getattr(sample, name) for sample in samples] for name in names}
    kinds = {name: datasets.Value("string") for name in names}
    features = datasets.Features({**kinds, "image": datasets.Image()})
    dataset = datasets.Dataset.from_dict(columns, features=features)
    return _convert_images(_add_prompts(dataset, config), config)


def _add_prompts(rows: datasets.Dataset, config: DataConfig) -> datasets.Dataset:
    """Put each query into the words around it, as a conversation: its image comes before them."""
    around = config.prompt_template or template.CHART_TEMPLATE
    return _add_conversations(
        rows, [template.fill_template(str(query), around) for query in rows["query"]]
    )


def _add_conversations(rows: datasets.Dataset, texts: Sequence[str | None]) -> datasets.Dataset:
    """Make each prompt a conversation that a person begins with a text."""
    import datasets

    conversations = [[{"role": "user", "content": prompt}] for prompt in texts]
    text = datasets.Value("string")
    kind = datasets.List({"role": text, "content": text})
    rows = rows.remove_columns("prompt") if "prompt" in rows.column_names else rows
    return rows.add_column("prompt", conversations, feature=kind)


def _convert_images(rows: datasets.Dataset, config: DataConfig) -> datasets.Dataset:
    """Give images in colour, and with no more pixels than are asked for, whenever they are read."""
    return rows.with_transform(ImageTransform(config.image_pixels))


@dataclass(frozen=True, slots=True)
class ImageTransform:
    """Convert images to RGB, and shrink them to `max_pixels` pixels (0: keep the size)."""

    max_pixels: int

    def __call__(self, batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Return a batch of columns with its images so."""
        if "image" not in batch:
            return batch
        return {**batch, "image": [self._convert(image) for image in batch["image"]]}

    def _convert(self, image: Any) -> Any:
        # As a person sees it: on white paper, 16 bits of grey as 8.
        from PIL import Image

        if image.mode.startswith("I"):
            picture = image.convert("I").point(lambda grey: grey * (1 / 257)).convert("RGB")
        elif not image.has_transparency_data:
            picture = image.convert("RGB")
        else:
            paper = Image.new("RGBA", image.size, "white")
            paper.alpha_composite(image.convert("RGBA"))
            picture = paper.convert("RGB")
        pixels = image.width * image.height
        if not self.max_pixels or pixels <= self.max_pixels:
            return picture
        factor = (self.max_pixels / pixels) ** 0.5
        return picture.resize(
            (max(1, int(image.width * factor)), max(1, int(image.height * factor)))
        )


def _make_task(rows: datasets.Dataset, config: DataConfig, *, vision: bool, seed: int) -> Task:
    import datasets

    # Columns that TRL 1.16 takes for its own, or gives reward functions itself (grpo_trainer.py).
    columns = (
        "prompts", "completion", "completions", "completion_ids", "images", "tools", "environment",
        "environments", "trainer_state", "log_extra", "log_metric",
    )  # fmt: skip
    reserved = [name for name in columns if name in rows.column_names]
    rows = rows.remove_columns(reserved)
    has_images = "image" in rows.column_names
    if has_images:
        _sees(vision, config.dataset_name)
        rows = _chart_rows(rows)
    else:
        rows = _text_rows(rows, config)
    needed = CHART_TASK_COLUMNS if has_images else ("prompt", "answer")
    selection = checking.choose(
        rows, needed, subset=config.subset_size, held_out=config.held_out, seed=seed
    )
    if has_images:
        rows = _convert_images(
            _add_prompts(rows.cast_column("image", datasets.Image()), config), config
        )
    elif config.chat:
        rows = _add_conversations(rows, rows["prompt"])
    path = Path(config.dataset_name)
    paid = tuple(reward for name, reward in REWARDS_BY_COLUMN.items() if name in rows.column_names)
    names = ", ".join(reserved)
    notes = (f"left out, since trl means something else by that: {names}",) if reserved else ()
    return Task(
        rows.select(selection.train),
        rows.select(selection.held_out),
        (*CHART_REWARDS, *paid) if has_images else ("accuracy_reward",),
        path.stem if path.is_file() else path.name,
        (*notes, *selection.notes(config.subset_size)),
    )


def _chart_rows(rows: datasets.Dataset) -> datasets.Dataset:
    """Check the columns, images undecoded. Raises UsageError."""
    import datasets
    import pyarrow as pa

    missing = [name for name in CHART_TASK_COLUMNS if name not in rows.column_names]
    if missing:
        raise _missing_columns_error(missing, rows)
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
            raise _missing_columns_error([either[0]], rows)
        if column != either[0]:
            rows = rows.rename_column(column, either[0])
    rows = _as_texts(rows, ("prompt", "answer"))
    if config.prompt_template:
        prompts = [
            template.fill_template(prompt or "", config.prompt_template)
            for prompt in rows["prompt"]
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


def _missing_columns_error(missing: list[str], rows: datasets.Dataset) -> UsageError:
    columns = ", ".join(rows.column_names)
    several = "columns" if len(missing) > 1 else "column"
    return UsageError(
        f"the data has no {several} {' and '.join(missing)}; it has {columns}",
        hint="charts have image, query and label; plain questions prompt and answer",
    )

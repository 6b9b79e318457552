"""Charts with injected faults: blank images, or images of other questions."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import datasets
from PIL import Image

from rlvitals.trainers.language.data import chart_task

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = ("query", "label", "table", "chart_type", "reasoning")


def folder_of_charts(folder: Path, images: str, *, seed: int, count: int) -> Path:
    """Write `count` charts with their images `blank`, or `shuffled` against the questions."""
    samples = [chart_task.chart(seed, index) for index in range(count)]
    drawn = [sample.image for sample in samples]
    if images == "blank":
        drawn = [Image.new("RGB", image.size, "#808080") for image in drawn]
    elif images == "shuffled":
        Random(seed).shuffle(drawn)
    columns = {name: [getattr(sample, name) for sample in samples] for name in COLUMNS}
    kinds = {name: datasets.Value("string") for name in COLUMNS}
    rows = datasets.Dataset.from_dict(
        {**columns, "image": drawn},
        features=datasets.Features({**kinds, "image": datasets.Image()}),
    )
    rows.save_to_disk(str(folder))
    return folder

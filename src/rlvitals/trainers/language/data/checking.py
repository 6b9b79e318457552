"""Select rows for training and evaluation, and report those that cannot be used."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from io import BytesIO
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from rlvitals import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import datasets
    from PIL import Image

DECODE_BATCH = 64  # rows whose images are decoded at the same time
MAX_ASPECT_RATIO = 200  # times its shorter side: transformers 5.23, qwen2_vl's `smart_resize`


@dataclass(frozen=True, slots=True)
class Selection:
    """Row numbers for training and evaluation; `bad` has the reason for each unusable row."""

    train: list[int]
    held_out: list[int]
    bad: dict[int, str]

    def notes(self, subset: int) -> tuple[str, ...]:
        """Return notes about rows that are left out or missing."""
        notes = []
        if self.bad:
            rows = "row is" if len(self.bad) == 1 else "rows are"
            notes.append(f"{len(self.bad)} {rows} left out: {format_bad_rows(self.bad)}")
        if len(self.train) < subset:
            notes.append(f"{subset} samples were asked for, and there are {len(self.train)}")
        if not self.held_out:
            notes.append("all rows are trained on: none is held out for evaluation")
        return tuple(notes)


def choose(
    rows: datasets.Dataset, needed: tuple[str, ...], *, subset: int, held_out: int, seed: int
) -> Selection:
    """Choose `subset` rows that can be asked (0: all), and of the rest up to `held_out`.

    No question of the second is among the first. The images of `rows` are undecoded.
    Raises UsageError where no row can be asked.
    """
    order = list(range(len(rows)))
    if subset:
        Random(seed).shuffle(order)  # noqa: S311 - no secret
    bad: dict[int, str] = {}
    usable = _usable(rows, needed, order, bad)
    train = dict(islice(usable, subset or None))
    if not len(rows):
        raise UsageError("there are no rows")
    if not train:
        raise UsageError(f"none of its {len(rows)} rows can be asked: {format_bad_rows(bad)}")
    train_keys = set(train.values())
    held_out_rows: list[int] = []
    if held_out:
        for row, key in usable:
            if key not in train_keys:
                held_out_rows.append(row)
            if len(held_out_rows) == held_out:
                break
    return Selection(list(train), held_out_rows, bad)


def _usable(
    rows: datasets.Dataset, needed: tuple[str, ...], order: list[int], bad: dict[int, str]
) -> Iterator[tuple[int, bytes]]:
    """Yield each usable row's number with a key of its question; note the bad rows.

    Images are decoded by several threads: a row takes 4 to 13 ms by itself (800 x 600).
    """
    with ThreadPoolExecutor() as pool:
        for start in range(0, len(order), DECODE_BATCH):
            numbers = order[start : start + DECODE_BATCH]
            batch = [rows[number] for number in numbers]
            problems = pool.map(partial(unusable, needed=needed), batch)
            for number, row, problem in zip(numbers, batch, problems, strict=True):
                if problem:
                    bad[number] = problem
                else:
                    values = (
                        (row[name].get("bytes") or str(row[name]["path"]).encode())
                        if name == "image"
                        else str(row[name]).encode()
                        for name in needed
                    )
                    yield number, blake2b(b"\0".join(values), digest_size=16).digest()


def unusable(row: Mapping[str, Any], needed: tuple[str, ...]) -> str:
    """Return why a row cannot be used, "" if it can. An image is decoded in full."""
    for name in needed:
        if name == "image":
            if problem := _unreadable(row[name]):
                return problem
        elif row[name] is None or not str(row[name]).strip():
            return f"its {name} is empty"
    return ""


def _unreadable(image: Mapping[str, Any] | None) -> str:
    from PIL import Image

    if not image or not (image.get("bytes") or image.get("path")):
        return "it has no image"
    label = " ".join(("its image", *([Path(image["path"]).name] if image.get("path") else [])))
    try:
        content = image.get("bytes")
        content = Path(image["path"]).read_bytes() if content is None else content
        with Image.open(BytesIO(content)) as picture:
            wide, high = picture.size
            _decode(picture)
    except FileNotFoundError:
        return f"there is no file {image['path']}"
    except Exception as error:  # noqa: BLE001 - whatever Pillow makes of broken bytes
        reason = str(error).partition(" <_io")[0]  # not the name of a file in memory
        return f"{label} cannot be read: {reason}"
    if max(wide, high) > MAX_ASPECT_RATIO * min(wide, high):
        size = f"{wide} x {high} pixels"
        return f"{label} is {size}: one side is over {MAX_ASPECT_RATIO} times the other"
    return ""


def _decode(image: Image.Image) -> None:
    """Decode an image as datasets does for the training; it raises what that would."""
    from PIL import ExifTags, ImageOps

    image.draft(None, (1, 1))  # a JPEG is read completely, and decoded at an eighth
    image.load()
    try:
        if image.getexif().get(ExifTags.Base.Orientation) is not None:
            ImageOps.exif_transpose(image)
    except Exception as error:
        raise ValueError(f"its EXIF is broken ({error})") from error


def format_bad_rows(bad: Mapping[int, str]) -> str:
    """Name the first bad rows, counted from 1."""
    first = [f"row {number + 1}: {bad[number]}" for number in sorted(bad)[:5]]
    more = len(bad) - len(first)
    return "; ".join([*first, *([f"and {more} more"] if more else [])])

"""Images as people have them: of every mode and shape, broken ones; from folders and from files."""

import io
import json

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from rlvitals import UsageError
from rlvitals.cli import main
from rlvitals.trainers.language import data
from rlvitals.trainers.language.config import DataConfig

pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),  # datasets', of animations
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning"),
]
ROTATED = 6  # of EXIF: to be turned by a quarter
ORIENTATION, RESOLUTION = 0x0112, 0x011A


def encoded(image, kind, **said):
    file = io.BytesIO()
    image.save(file, kind, **said)
    return file.getvalue()


def chart():
    """White paper, one red bar; wider than high."""
    made = np.full((48, 64, 3), 255, np.uint8)
    made[10:40, 8:16] = (200, 30, 30)
    return Image.fromarray(made)


def see_through():
    """The same, where the paper is left to who looks at it: black, and not there at all."""
    made = np.array(chart().convert("RGBA"))
    made[(made == 255).all(-1)] = 0
    return Image.fromarray(made)


def exif():
    made = Image.Exif()
    made[ORIENTATION], made[RESOLUTION] = ROTATED, 72.0
    return made


def broken_exif():
    """Pixels that are whole, and a resolution that says it is a text."""
    whole = encoded(chart(), "JPEG", exif=exif())
    place = whole.index(RESOLUTION.to_bytes(2, "big")) + 2
    return whole[:place] + (2).to_bytes(2, "big") + whole[place + 2 :]


def good():
    """Images by their files' names; all show the chart but for what their names say."""
    one, black = chart(), Image.new("RGB", (64, 48))
    grey = np.array(one.convert("L"))
    first = {"save_all": True, "append_images": [black]}
    return {
        "cmyk.jpg": encoded(one.convert("CMYK"), "JPEG", quality=95),
        "palette.png": encoded(one.convert("P"), "PNG"),
        "animated.gif": encoded(one, "GIF", **first),
        "animated.webp": encoded(one, "WEBP", lossless=True, **first),
        "grey.png": encoded(one.convert("L"), "PNG"),
        "grey16.png": encoded(Image.fromarray(grey.astype(np.uint16) * 257), "PNG"),
        "transparent.png": encoded(see_through(), "PNG"),
        "rotated.jpg": encoded(one, "JPEG", exif=exif(), quality=95),
        "pixel.png": encoded(Image.new("RGB", (1, 1), "white"), "PNG"),
        "huge.png": encoded(Image.new("1", (3000, 2500), 1), "PNG"),
    }  # fmt: skip


def bad():
    """What is no image a model can be shown, and what is said of it."""
    whole = encoded(chart(), "PNG")
    return {
        "cut.png": (whole[: len(whole) // 2], "its image cut.png cannot be read"),
        "empty.png": (b"", "its image empty.png cannot be read: cannot identify image file"),
        "page.jpg": (b"<html>404</html>", "its image page.jpg cannot be read"),
        "exif.jpg": (broken_exif(), "its image exif.jpg cannot be read: its EXIF is broken"),
        "line.png": (
            encoded(Image.new("RGB", (2000, 1)), "PNG"),
            "its image line.png is 2000 x 1 pixels: one side is over 200 times the other",
        ),
    }


def held(place, files, images):
    """Write rows that name, or hold, images: as a folder, JSON lines or Parquet."""
    columns = {"query": list(files), "label": ["3"] * len(files)}
    for name, content in files.items():
        (place / name).write_bytes(content)
    if images == "inside":
        inside = [{"bytes": content, "path": name} for name, content in files.items()]
        parquet.write_table(pa.table({"image": inside, **columns}), place / "rows.parquet")
        return place / "rows.parquet"
    file = place / ("metadata.jsonl" if images == "folder" else "rows.jsonl")
    rows = [{"image": name, "query": name, "label": "3"} for name in files]
    file.write_text("\n".join(map(json.dumps, rows)))
    return place if images == "folder" else file


def load(name):
    return data.load(DataConfig(dataset_name=str(name), held_out=0), vision=True, seed=0)


@pytest.mark.parametrize("images", ["folder", "lines", "inside"])
def test_each_is_shown_as_a_person_sees_it(images, tmp_path):
    task = load(held(tmp_path, good(), images))
    assert task.notes == ("all rows are trained on: none is held out for evaluation",)
    shown = {name: np.array(row["image"]) for name, row in zip(good(), task.train, strict=True)}
    assert {one.shape[2:] for one in shown.values()} == {(3,)}
    assert shown.pop("pixel.png").shape == (1, 1, 3)
    assert shown.pop("huge.png").min() == 255
    turned = shown.pop("rotated.jpg")
    assert turned.shape == (64, 48, 3)
    shown["turned back"] = np.rot90(turned)
    for name, one in shown.items():
        assert one.shape == (48, 64, 3), name
        assert one[2, 2].min() > 250, name  # the paper
        assert one[25, 12].mean() == pytest.approx(87, abs=16), name  # the bar


@pytest.mark.parametrize("images", ["folder", "lines", "inside"])
def test_what_cannot_be_shown_is_named_and_left_out(images, tmp_path):
    files = {name: content for name, (content, _) in bad().items()}
    task = load(held(tmp_path, {"chart.png": encoded(chart(), "PNG"), **files}, images))
    assert task.train["query"][:] == ["chart.png"]
    assert task.notes[0].startswith("5 rows are left out: row 2: its image cut.png cannot be read")
    for _, said in bad().values():
        assert said in task.notes[0]


def test_whatever_its_decoder_raises_it_is_named(tmp_path, monkeypatch):
    """Of bytes that are broken, Pillow's decoders and its EXIF raise errors of many kinds."""

    def fails(*_):
        raise AttributeError("'IFDRational' object has no attribute 'encode'")

    place = held(tmp_path, {"0.png": encoded(chart(), "PNG", exif=exif())}, "folder")
    monkeypatch.setattr("PIL.ImageOps.exif_transpose", fails)
    with pytest.raises(UsageError, match=r"image 0\.png cannot be read: its EXIF is broken"):
        load(place)


@pytest.mark.parametrize("kind", ["number", "list"])
def test_a_column_without_images_is_named(kind, tmp_path):
    image = {"number": 3, "list": ["chart.png"]}[kind]
    (tmp_path / "rows.jsonl").write_text(json.dumps({"image": image, "query": "?", "label": "1"}))
    with pytest.raises(UsageError, match="the column image holds no images but"):
        load(tmp_path / "rows.jsonl")


@pytest.mark.soak
def test_a_training_and_an_evaluation_see_all_of_them(tmp_path, capsys):
    files = good() | {name: content for name, (content, _) in bad().items()}
    place, run = tmp_path / "data", tmp_path / "run"
    place.mkdir()
    asked = [
        "--dataset-name", str(held(place, files, "folder")), "--output-dir", str(run),
        "--warm-start-steps", "0", "--batch-size", "4", "--num-generations", "2", "--held-out", "4",
        "--subset-size", "6", "--max-completion-length", "4", "--report-to", "none",
        "--diagnose-seconds", "0", "--save-steps", "3", "--max-steps", "3",
    ]  # fmt: skip
    assert main(["train", "grpo", *asked]) == 0
    told = capsys.readouterr()
    assert "left out: row" in told.out
    assert "Traceback" not in told.out + told.err
    assert main(["evaluate", str(run), "--samples", "1"]) == 0

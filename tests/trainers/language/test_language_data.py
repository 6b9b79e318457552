"""What is asked: made here, or read from a person's files, with nothing lost in silence."""

import csv
import json
import math
from collections import Counter

import datasets
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from rlvitals import UsageError
from rlvitals.trainers.language import data
from rlvitals.trainers.language.config import DataConfig
from rlvitals.trainers.language.data import chart_render, chart_task, sums_task, template

TABLE = {"columns": ["Name", "Value"], "rows": [["A", 1]]}
FIRST_THREE = ["4+9+6+4=", "3+2+5+7=", "3+4+2+7="]


def load(name, *, vision=True, seed=0, **settings):
    return data.load(DataConfig(dataset_name=str(name), **settings), vision=vision, seed=seed)


def rows(count):
    return [
        {"image": f"{n}.png", "query": f"How many in {n}?", "label": n, "table": TABLE,
         "chart_type": "bar", "reasoning": "<step-1>: read", "source": f"s{n}"}
        for n in range(count)
    ]  # fmt: skip


def pictures(folder, count, size=(30, 20)):
    folder.mkdir(exist_ok=True)
    for n in range(count):
        Image.new("RGB", size, (n, 0, 0)).save(folder / f"{n}.png")


def lines(path, given):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in given))
    return path


@pytest.fixture
def folder(tmp_path):
    pictures(tmp_path, 8)
    lines(tmp_path / "metadata.jsonl", rows(8))
    return tmp_path


# ---- sums ----


def test_sums_are_right_and_of_their_seed():
    task = load("sums", vision=False, seed=3, subset_size=200, held_out=50)
    asked = list(task.train)
    for one in asked:
        assert sum(digits(one)) == int(one["answer"])
    assert asked == list(load("sums", vision=False, seed=3, subset_size=200, held_out=50).train)
    assert asked != list(load("sums", vision=False, seed=4, subset_size=200, held_out=50).train)
    assert len(task.held_out) == 50
    assert (task.rewards, task.notes) == (("accuracy_reward",), ())


def digits(question):
    return [int(one) for one in question["prompt"].removesuffix("=").split("+")]


@pytest.mark.soak
def test_no_sum_that_is_held_out_is_trained_on_in_any_order_of_its_digits():
    kept = sums_task.held_out(10_000)
    drawn = Counter(one["prompt"] for one in sums_task.questions(100 * 10_000, 0))
    assert len({one["prompt"] for one in kept}) == len(kept) == 10_000 - len(drawn) == 1979
    asked = {tuple(sorted(digits({"prompt": prompt}))) for prompt in drawn}
    assert not asked & {tuple(sorted(digits(one))) for one in kept}
    # Each is drawn evenly: 125 times each, give or take 11.
    assert 60 < min(drawn.values()) <= max(drawn.values()) < 190


def test_the_same_sums_are_held_out_everywhere():
    """By all versions, too: accuracies would not compare."""
    assert [one["prompt"] for one in sums_task.held_out(3)] == FIRST_THREE
    assert sums_task.held_out(3) == sums_task.held_out(2000)[:3]
    few, all_there = (load("sums", subset_size=9, held_out=n).held_out for n in (3, 1024))
    assert few["prompt"] == FIRST_THREE
    assert len(set(all_there["prompt"])) == 1024


def test_fewer_sums_than_asked_for_are_told():
    task = load("sums", vision=False, subset_size=4, held_out=5000)
    assert len(task.held_out) == 1979
    assert task.notes == ("1979 sums are held out: no more differ from those trained on",)


def test_evaluation_asks_the_same_of_every_seed():
    one, other = (load(n, seed=s, subset_size=20, held_out=20)
                  for s, n in ((1, "sums"), (2, "sums")))  # fmt: skip
    assert list(one.held_out) == list(other.held_out)


def test_none_is_held_out_where_none_is_asked_for():
    for name in ("sums", "charts"):
        task = load(name, subset_size=3, held_out=0)
        assert len(task.held_out) == 0
        assert task.held_out.column_names == task.train.column_names


# ---- charts that are made ----


def test_charts_are_of_their_seed_and_held_out_ones_are_others():
    task = load("charts", seed=5, subset_size=300, held_out=100)
    again = load("charts", seed=5, subset_size=300, held_out=100)
    assert (len(task.train), len(task.held_out), task.notes) == (300, 100, ())

    def keys(found):
        names = ("query", "label", "table", "chart_type")
        return [tuple(one[name] for name in names) for one in found]

    assert keys(task.train) == keys(again.train)
    assert task.train[7]["image"].tobytes() == again.train[7]["image"].tobytes()
    assert not set(keys(task.train)) & set(keys(task.held_out))
    assert keys(task.train) != keys(load("charts", seed=6, subset_size=300, held_out=1).train)


def test_a_smaller_subset_is_the_beginning_of_a_larger_one():
    small, large = (load("charts", subset_size=n, held_out=1).train for n in (5, 9))
    assert list(small["query"]) == list(large["query"])[:5]


def test_a_chart_s_prompt_is_a_conversation_in_the_guide_s_form():
    one = load("charts", subset_size=1, held_out=1).train[0]
    (message,) = one["prompt"]
    assert message["role"] == "user"
    assert message["content"] == template.fill_template(one["query"])
    assert message["content"].endswith(f"Question: {one['query']}")
    for tag in ("<think>\n<type>", "</type>\n<table>", "<step-1>:", "</think>\n<answer>"):
        assert tag in message["content"]
    assert one["image"].size == (48, 48)
    assert one["image"].mode == "RGB"
    large = load("charts", subset_size=1, held_out=1, chart_pixels=200).train[0]
    assert large["image"].size == (200, 200)


def test_a_prompt_of_one_s_own():
    task = load("charts", subset_size=1, held_out=1, prompt_template='{"q": "{query}"} {x}')
    query = task.train[0]["query"]
    assert task.train[0]["prompt"][0]["content"] == f'{{"q": "{query}"}} {{x}}'
    plain = load("sums", subset_size=1, held_out=1, prompt_template="What is {query}?")
    assert plain.train[0]["prompt"].startswith("What is ")


def test_charts_need_a_model_that_sees():
    with pytest.raises(UsageError, match="charts has images, and the model sees none"):
        load("charts", vision=False)
    with pytest.raises(UsageError, match="a chart of 20 pixels shows nothing"):
        load("charts", chart_pixels=20)


# ---- a person's own ----


def read(path, **settings):
    task = load(path, **settings)
    return task, sorted(task.train, key=lambda one: one["query"])


def same_rows(found, count):
    assert [one["label"] for one in found] == [str(n) for n in range(count)]
    assert [one["query"] for one in found] == [f"How many in {n}?" for n in range(count)]
    assert [one["image"].getpixel((0, 0)) for one in found] == [(n, 0, 0) for n in range(count)]
    table = found[0]["table"]
    assert (json.loads(table) if isinstance(table, str) else table) == TABLE
    assert found[0]["source"] == "s0"
    assert found[0]["prompt"][0]["content"] == template.fill_template("How many in 0?")


def test_a_folder_of_images_with_json_lines(folder):
    task, found = read(folder)
    same_rows(found, 8)
    assert task.name == folder.name
    assert task.notes == ("all rows are trained on: none is held out for evaluation",)
    assert task.rewards[-2:] == ("chart_type_reward", "table_style_reward")


def test_the_name_of_an_image_may_be_its_file_name(folder):
    given = [{"file_name": row.pop("image"), **row} for row in rows(8)]
    lines(folder / "metadata.jsonl", given)
    same_rows(read(folder)[1], 8)


def test_a_folder_of_images_with_a_csv(folder):
    (folder / "metadata.jsonl").unlink()
    with (folder / "metadata.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows(1)[0])
        writer.writeheader()
        writer.writerows({**row, "table": json.dumps(TABLE)} for row in rows(8))
    same_rows(read(folder)[1], 8)


def test_a_folder_with_a_folder_for_its_split(folder):
    (folder / "train").mkdir()
    for file in [*folder.glob("*.png"), folder / "metadata.jsonl"]:
        file.rename(folder / "train" / file.name)
    same_rows(read(folder)[1], 8)


def test_a_folder_of_images_below_what_names_them(folder):
    (folder / "train").mkdir()
    for file in folder.glob("*.png"):
        file.rename(folder / "train" / file.name)
    lines(folder / "metadata.jsonl", [{**row, "image": f"train/{row['image']}"} for row in rows(8)])
    same_rows(read(folder)[1], 8)


def test_one_file_of_json_lines_or_json(folder):
    same_rows(read((folder / "metadata.jsonl").rename(folder / "mine.jsonl"))[1], 8)
    (folder / "mine.jsonl").write_text(
        (folder / "mine.jsonl").read_text().replace("\n", "\n \n\n", 3)
    )
    same_rows(read(folder / "mine.jsonl")[1], 8)
    (folder / "mine.json").write_text(json.dumps(rows(8)))
    same_rows(read(folder / "mine.json")[1], 8)


def saved(folder):
    given = [{**row, "table": json.dumps(TABLE), "label": str(row["label"])} for row in rows(8)]
    found = datasets.Dataset.from_list(given)
    inside = [{"bytes": (folder / name).read_bytes(), "path": None} for name in found["image"]]
    return found.remove_columns("image").add_column("image", inside, feature=datasets.Image())


def test_parquet_with_images_inside(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "data").mkdir()
    whole = saved(folder)
    whole.select(range(5)).to_parquet(other / "data" / "train-00000-of-00002.parquet")
    whole.select(range(5, 8)).to_parquet(other / "data" / "train-00001-of-00002.parquet")
    whole.select(range(2)).to_parquet(other / "data" / "test-00000-of-00001.parquet")
    for file in folder.glob("*.png"):
        file.unlink()
    same_rows(read(other)[1], 8)
    same_rows(read(other, dataset_split="test")[1], 2)
    same_rows(read(other / "data" / "train-00000-of-00002.parquet")[1], 5)


def test_a_split_that_is_not_there_is_not_replaced_by_another(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    saved(folder).to_parquet(other / "test-00000-of-00001.parquet")
    for split in ("train", "validation"):
        with pytest.raises(UsageError, match=f"no file is of the split {split}") as refused:
            load(other, dataset_split=split)
        assert refused.value.hint == "it has test-00000-of-00001.parquet"
    saved(folder).save_to_disk(other / "saved")
    for path in (folder, folder / "metadata.jsonl", other / "saved"):
        with pytest.raises(UsageError, match="it has no splits, and so no test"):
            load(path, dataset_split="test")
    (folder / "test").mkdir()
    (folder / "0.png").rename(folder / "test" / "0.png")
    lines(folder / "test" / "metadata.jsonl", rows(1))
    same_rows(read(folder, dataset_split="test")[1], 1)


def test_parquet_that_another_library_wrote(folder):
    given = [{**row, "label": float(row["label"]), "table": json.dumps(TABLE)} for row in rows(3)]
    inside = [(folder / row["image"]).read_bytes() for row in given]
    told = pa.Table.from_pylist(given).drop_columns("image")
    kinds = {
        "bytes": inside,
        "struct": [{"bytes": one, "path": "x"} for one in inside],
        "paths": [f"{n}.png" for n in range(3)],
    }
    for name, images in kinds.items():
        parquet.write_table(told.append_column("image", [images]), folder / f"{name}.parquet")
        found = read(folder / f"{name}.parquet")[1]
        assert [one["image"].getpixel((0, 0)) for one in found] == [(n, 0, 0) for n in range(3)]
        assert [float(one["label"]) for one in found] == [0, 1, 2]


def test_a_line_ends_where_json_and_csv_say_so(tmp_path):
    asked = "one\u2028two\x0bthree\x85?"
    (tmp_path / "a.jsonl").write_text(
        json.dumps({"prompt": asked, "answer": "1"}, ensure_ascii=False) + "\r\n", newline=""
    )
    (tmp_path / "a.csv").write_text(f'prompt,answer\r\n"{asked}\nfour",1\r\n', newline="")
    assert load(tmp_path / "a.jsonl").train["prompt"][0] == asked
    assert list(load(tmp_path / "a.csv").train) == [{"prompt": f"{asked}\nfour", "answer": "1"}]


def test_what_save_to_disk_wrote(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    saved(folder).save_to_disk(other / "one")
    same_rows(read(other / "one")[1], 8)
    datasets.DatasetDict({"train": saved(folder)}).save_to_disk(other / "several")
    same_rows(read(other / "several")[1], 8)
    with pytest.raises(UsageError, match="there is no split test") as refused:
        load(other / "several", dataset_split="test")
    assert refused.value.hint == "one of train"


def test_plain_questions(tmp_path):
    given = [{"question": f"{n}+1=", "answer": n + 1} for n in range(5)]
    task = load(lines(tmp_path / "own.jsonl", given), vision=False)
    assert list(task.train) == [{"prompt": f"{n}+1=", "answer": str(n + 1)} for n in range(5)]
    assert (task.rewards, task.name) == (("accuracy_reward",), "own")
    around = load(tmp_path / "own.jsonl", vision=False, prompt_template="Q: {query} A:")
    assert around.train["prompt"][0] == "Q: 0+1= A:"


def test_a_subset_is_of_its_seed_and_the_rest_is_held_out(folder):
    one = load(folder, subset_size=5, held_out=100, seed=1)
    again = load(folder, subset_size=5, held_out=100, seed=1)
    other = load(folder, subset_size=5, held_out=2, seed=2)
    assert list(one.train["query"]) == list(again.train["query"])
    assert set(one.train["query"]) != set(other.train["query"])
    assert len({*one.train["query"], *one.held_out["query"]}) == 8
    assert (len(one.train), len(one.held_out), len(other.held_out)) == (5, 3, 2)
    assert one.notes == ()


def test_a_question_that_is_trained_on_is_not_held_out(tmp_path):
    given = [{"prompt": f"{n % 4}+1=", "answer": n % 4 + 1} for n in range(40)]
    task = load(lines(tmp_path / "own.jsonl", given), subset_size=3, held_out=40)
    assert not set(task.train["prompt"]) & set(task.held_out["prompt"])


def test_images_are_made_smaller_when_they_are_read(tmp_path):
    pictures(tmp_path, 2, (400, 100))
    lines(tmp_path / "metadata.jsonl", rows(2))
    assert load(tmp_path).train[0]["image"].size == (400, 100)
    assert load(tmp_path, image_pixels=40_000).train[0]["image"].size == (400, 100)
    small = load(tmp_path, image_pixels=10_000).train[0]["image"]
    assert small.size == (200, 50)
    assert load(tmp_path, image_pixels=1).train[1]["image"].size[0] <= 2


def test_an_image_without_three_colours_has_them(tmp_path):
    pictures(tmp_path, 2)
    Image.new("P", (9, 9)).save(tmp_path / "0.png")
    Image.new("RGBA", (9, 9)).save(tmp_path / "1.png")
    lines(tmp_path / "metadata.jsonl", rows(2))
    assert {one["image"].mode for one in load(tmp_path).train} == {"RGB"}


# ---- what is wrong is named ----


def test_rows_that_cannot_be_asked_are_left_out_and_named(folder):
    (folder / "1.png").unlink()
    (folder / "2.png").write_bytes((folder / "2.png").read_bytes()[:50])
    (folder / "3.png").write_bytes(b"no image")
    (folder / "4.png").write_bytes(b"")
    given = rows(8)
    given[5]["query"], given[6]["label"] = " ", None
    lines(folder / "metadata.jsonl", given)
    task = load(folder, subset_size=5)
    assert sorted(task.train["label"]) == ["0", "7"]
    left_out, few, held_out = task.notes
    assert left_out.startswith(f"6 rows are left out: row 2: there is no file {folder / '1.png'}; ")
    assert "row 3: its image 2.png cannot be read: " in left_out
    assert "row 4: its image 3.png cannot be read: cannot identify image file" in left_out
    assert "row 6: its query is empty; and 1 more" in left_out
    assert few == "5 samples were asked for, and there are 2"
    assert held_out == "all rows are trained on: none is held out for evaluation"


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP"])
def test_an_image_that_was_cut_is_found(tmp_path, kind):
    noise = Image.effect_noise((64, 64), 90).convert("RGB")
    for n in range(2):
        noise.save(tmp_path / f"{n}.png", kind)
    whole = (tmp_path / "0.png").read_bytes()
    (tmp_path / "0.png").write_bytes(whole[: len(whole) // 2])
    task = load(lines(tmp_path / "metadata.jsonl", rows(2)).parent)
    assert list(task.train["label"]) == ["1"]
    assert task.notes[0].startswith("1 row is left out: row 1: its image 0.png cannot be read: ")


def test_an_image_too_large_to_be_one_is_found(folder, monkeypatch):
    Image.new("1", (300, 300)).save(folder / "3.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    (note, *_) = load(folder).notes
    assert "row 4: its image 3.png cannot be read: Image size (90000 pixels)" in note


def test_columns_that_trl_takes_for_its_own_are_left_out_and_named(tmp_path):
    """TRL takes `images` for a model that sees, and hands a reward function `completions` twice."""
    given = [{"prompt": f"{n}+1=", "answer": str(n + 1), "images": "x", "completions": "y",
              "mine": "z"} for n in range(9)]  # fmt: skip
    task = load(lines(tmp_path / "sums.jsonl", given), vision=False)
    assert task.train.column_names == ["prompt", "answer", "mine"]
    assert task.notes[0] == "left out, since trl means something else by that: completions, images"


def test_no_rows_are_said_so(tmp_path):
    empty = pa.table({"prompt": pa.array([], pa.string()), "answer": pa.array([], pa.string())})
    parquet.write_table(empty, tmp_path / "none.parquet")
    with pytest.raises(UsageError, match="there are no rows"):
        load(tmp_path / "none.parquet", vision=False)


def test_where_no_row_can_be_asked_nothing_is_trained(folder):
    for file in folder.glob("*.png"):
        file.write_bytes(b"no image")
    with pytest.raises(UsageError, match="none of its 8 rows can be asked: row 1: its image") as no:
        load(folder)
    assert no.value.where == str(folder)


def test_missing_columns_are_named_with_those_that_are_there(folder, tmp_path):
    lines(folder / "metadata.jsonl", [{"image": "0.png", "question": "?", "answer": 1}])
    with pytest.raises(UsageError, match=r"no columns query and label; it has image, question"):
        load(folder)
    with pytest.raises(UsageError, match=r"the data has no column answer; it has prompt"):
        load(lines(tmp_path / "a.jsonl", [{"prompt": "?"}]), vision=False)
    with pytest.raises(UsageError, match=r"the data has no column prompt; it has x"):
        load(lines(tmp_path / "b.jsonl", [{"x": "?"}]), vision=False)


def test_a_column_of_lists_is_no_column_of_texts(folder):
    datasets.Dataset.from_list([{"prompt": "?", "answer": [1, 2]}]).to_parquet(folder / "a.parquet")
    with pytest.raises(UsageError, match="the column answer holds no texts but"):
        load(folder / "a.parquet")


@pytest.mark.parametrize(
    ("content", "problem", "where"),
    [
        ("", "there are no rows", "own.jsonl"),
        ("\n\n", "there are no rows", "own.jsonl"),
        ('{"prompt": "?", "answer": "1"}\n{"prompt"', "it is not JSON", "own.jsonl, line 2"),
        ("3\n", "not a row: '3'", "own.jsonl, line 1"),
        ("[" * 10_000, "it is not JSON", "own.jsonl, line 1"),
        ('{"x": 1}\n{"x": "a"}', "a column holds values of several kinds", "own.jsonl"),
    ],
)
def test_a_file_that_is_no_data_is_named(tmp_path, content, problem, where):
    path = tmp_path / "own.jsonl"
    path.write_text(content)
    with pytest.raises(UsageError, match=problem) as refused:
        load(path)
    assert refused.value.where == str(tmp_path / where)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.parquet", b"PAR1", "it cannot be read"),
        ("a.json", b'{"a": 1}', "it holds no list of rows"),
        ("a.jsonl", b"\xff\xfe\x00", "it cannot be read"),
        ("a.csv", b'a,b\n"x', "it is no CSV"),
        ("a.txt", b"x", "no file of this kind is read"),
    ],
)
def test_files_of_every_kind_that_cannot_be_read(tmp_path, name, content, problem):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=problem) as refused:
        load(tmp_path / name)
    assert str(tmp_path / name) in refused.value.where


def test_names_that_are_nowhere(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="the folder holds no data"):
        load(tmp_path)
    with pytest.raises(UsageError, match="there is no such file or folder"):
        load(tmp_path / "none.jsonl")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    with pytest.raises(UsageError, match="nothing here is called chart") as refused:
        load("chart")
    assert refused.value.hint.startswith("did you mean charts or evochart?")
    with pytest.raises(UsageError, match="neither here nor to be had from Hugging Face"):
        load("owner/charts")


# ---- drawing ----


@pytest.mark.parametrize("pixels", [28, 32, 48, 56, 160, 336])
def test_every_size_is_drawn_and_charts_differ(pixels):
    drawn = [chart_task.chart(1, index, pixels=pixels) for index in range(12)]
    assert {one.image.size for one in drawn} == {(pixels, pixels)}
    assert len({one.image.tobytes() for one in drawn}) == 12


@pytest.mark.soak
@pytest.mark.parametrize("pixels", [48, 160])
def test_answers_of_every_kind_occur(pixels):
    drawn = [chart_task.chart(2, index, pixels=pixels) for index in range(200)]
    labels = [one.label for one in drawn]
    assert {one.chart_type for one in drawn} == {"bar", "line"}
    assert "0" in labels
    assert any(label.startswith("-") for label in labels)
    assert any(label.endswith("%") for label in labels)
    assert {"Yes", "No"} < set(labels)
    assert any(label.isalpha() and label not in {"Yes", "No"} for label in labels)


def test_a_value_of_zero_occurs_on_every_scale_that_begins_at_zero_or_below():
    seen = {subject.column: [] for subject in chart_task.READABLE_SUBJECTS}
    for index in range(200):
        sample = chart_task.chart(5, index, pixels=160)
        table = json.loads(sample.table)
        seen[table["columns"][1]] += [value == 0 for _, value in table["rows"]]
    for zeros in seen.values():
        assert 0.03 < sum(zeros) / len(zeros) < 0.2  # one in twelve


def test_a_title_stands_in_the_middle():
    for index in range(10):
        image = chart_task.chart(6, index, pixels=336).image.convert("L")
        band = image.crop((0, 0, 336, 40)).point(lambda grey: 255 * (grey < 128))
        left, _, right, _ = band.getbbox()
        assert abs((left + right) / 2 - 168) <= 2


def test_a_tiny_bar_is_as_high_as_its_value():
    colours = [tuple(bytes.fromhex(one[1:])) for one in chart_render.COLOURS]
    negative = 0
    for index in range(60):
        one = chart_task.chart(4, index, pixels=48)
        table = json.loads(one.table)
        if one.chart_type != "bar" or table["columns"][1] != "Value":
            continue
        low = any(value < 0 for _, value in table["rows"])
        for place, (_, value) in enumerate(table["rows"]):
            middle = 16 + 8 * place + 4
            heights = [y for y in range(48) if one.image.getpixel((middle, y)) in colours]
            assert len(heights) == abs(value) * 4 + 1
            negative += low and value < 0
    assert negative > 3


@pytest.mark.parametrize("span", [3.0, 7.5, 12.0, 40.0, 99.0, 130.0, 750.0, 1_000.0, 86_000.0])
def test_an_axis_has_a_round_step_and_few_ticks(span):
    tick = chart_task._tick(span)
    assert span <= tick * 6
    digits = tick / 10 ** math.floor(math.log10(tick))
    assert any(math.isclose(digits, round_step) for round_step in (1, 2, 2.5, 5))
    finer = {1: 0.5, 2: 1, 2.5: 2, 5: 2.5}[round(digits, 1) if digits == 2.5 else round(digits)]
    assert span > tick / digits * finer * 6, "a finer step would do"

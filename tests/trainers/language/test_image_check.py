"""A training tells whether its right answers depend on the images, at the cost of a few answers."""

import json

import pytest
import torch
import trained
from PIL import Image

import rlvitals
from rlvitals.metrics.catalogue import images
from rlvitals.trainers.language import data, evaluate_model, image_check
from rlvitals.trainers.language.config import Config, DataConfig
from rlvitals.trainers.language.generate import Policy
from rlvitals.trainers.language.program import Training
from rlvitals.trainers.language.tiny import vlm

pytestmark = pytest.mark.filterwarnings("ignore", "error:::rlvitals")  # transformers' own
COUNT = 48
NAMES = {metric.name for metric in images.METRICS}


@pytest.fixture(scope="module")
def rows():
    task = data.load(DataConfig(subset_size=COUNT, held_out=0), vision=True, seed=3)
    return [task.train[i] for i in range(COUNT)]


@pytest.fixture(scope="module")
def right():
    return evaluate_model.judge(Config(), data.task.CHART_REWARDS)


def policy(model, processor):
    return Policy(model.eval(), processor, 1.0, 24)


@pytest.fixture(scope="module")
def reader():
    return policy(*vlm.make(0))


def measured(who, rows, right):
    shares = image_check.measure(who, rows, right, batch=COUNT)
    assert set(shares) == NAMES
    return {name.removeprefix("language/image_"): value for name, value in shares.items()}


def test_a_model_that_reads_needs_its_own_image(reader, rows, right):
    found = measured(reader, rows, right)
    assert found["questions"] == COUNT
    assert found["right_own"] > 0.8
    assert found["right_other"] < 0.4
    # Paired: what is right with one image alone is at least what the own image adds.
    assert found["marks_changed"] >= found["right_own"] - found["right_other"]
    assert (found["distinct_share"], found["blank_share"]) == (1.0, 0.0)


def test_images_of_other_questions_are_no_better_than_any(reader, rows, right):
    drawn = [row["image"] for row in rows]
    shuffled = [
        {**row, "image": image} for row, image in zip(rows, [*drawn[5:], *drawn[:5]], strict=True)
    ]
    found = measured(reader, shuffled, right)
    assert abs(found["right_own"] - found["right_other"]) < 0.2
    assert found["marks_changed"] > 0.05
    assert found["blank_share"] == 0.0


@pytest.mark.parametrize(("colour", "blank"), [("#808080", 1.0), (None, 0.0)])
def test_one_image_for_all_changes_no_answer(reader, rows, right, colour, blank):
    one = rows[0]["image"] if colour is None else Image.new("RGB", rows[0]["image"].size, colour)
    found = measured(reader, [{**row, "image": one} for row in rows], right)
    assert found["blank_share"] == blank
    assert found["distinct_share"] == 1 / COUNT
    assert found["marks_changed"] == 0.0
    assert found["right_own"] == found["right_other"]


def test_another_image_is_another_one_where_several_questions_share_theirs():
    pixels = ["a", "a", "b", "a"]
    assert [image_check._next(pixels, row) for row in range(4)] == [2, 2, 3, 2]


def test_random_weights_give_no_right_answers_and_that_is_what_is_said(rows, right):
    shares = image_check.measure(policy(*vlm.blank(0)), rows, right, batch=COUNT)
    assert shares["language/image_right_own"] == 0.0
    assert "cannot be told yet" in image_check.sentence(shares)


def test_the_first_line_says_what_was_shown(reader, rows, right):
    own = image_check.sentence(image_check.measure(reader, rows, right, batch=COUNT))
    assert "with the image of another one" in own
    grey = [{**row, "image": Image.new("RGB", (48, 48), "grey")} for row in rows]
    said = image_check.sentence(image_check.measure(reader, grey, right, batch=COUNT))
    assert "all of their images are blank" in said
    same = [{**row, "image": rows[0]["image"]} for row in rows]
    said = image_check.sentence(image_check.measure(reader, same, right, batch=COUNT))
    assert "no fault where the task has only one" in said


def charts(out, **said):
    """Train a tiny model that sees, from the weights that are shipped."""
    given = {
        "model__vlm_name": "tiny-vlm", "model__warm_start_steps": 0, "model__lora": True,
        "data__dataset_name": "charts", "data__held_out": 0, "training__max_steps": 3,
        "training__max_completion_length": 24, "training__learning_rate": 1e-3,
        "checks__image_check_steps": 2, "checks__image_check_questions": 16,
        "checkpointing__save_steps": 2, **said,
    }  # fmt: skip
    return Training(trained.config(out, "psr", **given))


def weights(out):
    return (out / "adapter_model.safetensors").read_bytes()


@pytest.mark.soak
def test_a_training_logs_its_checks_and_is_the_same_without_them(tmp_path):
    with_checks, without = tmp_path / "with", tmp_path / "without"
    assert charts(with_checks).run() == "finished"
    assert charts(without, checks__image_check_steps=0).run() == "finished"
    assert weights(with_checks) == weights(without)
    trace = rlvitals.trace(with_checks)
    assert trace["language/image_right_own"].steps.tolist() == [1, 2]
    assert trace["language/image_questions"].values.tolist() == [16.0, 16.0]
    assert not NAMES & set(rlvitals.trace(without).series)
    debug = (with_checks / "logs" / "debug.log").read_text()
    assert debug.count("Images: ") == 1


@pytest.mark.soak
def test_a_resumed_training_checks_no_more_often(tmp_path):
    charts(tmp_path, training__max_steps=2).run()
    charts(tmp_path, training__max_steps=4).run()
    assert rlvitals.trace(tmp_path)["language/image_questions"].steps.tolist() == [1, 2, 4]


def test_a_training_without_images_has_no_check(tiny, tmp_path):
    trained.train(tmp_path, base=tiny, checks__image_check_steps=1, training__max_steps=3)
    assert not NAMES & set(rlvitals.trace(tmp_path).series)


def test_a_check_that_fails_ends_no_training(tmp_path, monkeypatch):
    def broken(*_, **__):
        msg = "CUDA out of memory"
        raise torch.OutOfMemoryError(msg)

    monkeypatch.setattr(image_check, "measure", broken)
    assert charts(tmp_path).run() == "finished"
    debug = (tmp_path / "logs" / "debug.log").read_text()
    assert debug.count("no check of the images from now on: OutOfMemoryError") == 1
    state = json.loads((tmp_path / "checkpoint-3" / "trainer_state.json").read_text())
    assert not NAMES & {key for row in state["log_history"] for key in row}

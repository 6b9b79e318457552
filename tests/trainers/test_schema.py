"""The schema of a training's settings: files, flags and tables from one declaration."""

import argparse
import json
import shlex
from dataclasses import dataclass

import pytest

from rlvitals import UsageError
from rlvitals.lab import option
from rlvitals.trainers import schema


@dataclass(frozen=True, slots=True)
class Inner:
    enable: bool = option(False, "is it on")
    rate: float = option(0.1, "how much", item="SHARE")


@dataclass(frozen=True, slots=True)
class Algorithm:
    learning_rate: float = option(3e-4, "Adam's", item="LR")
    epochs: int = option(4, "passes", item="N")
    mode: str = option("fast", "which", choices=("fast", "slow"))
    sizes: tuple[int, ...] = option((64, 64), "widths", item="N")
    names: tuple[str, ...] = option(("a",), "which", item="NAME")
    floor: float = option(-1.0, "below 0: none", item="C")
    inner: Inner = Inner()


@dataclass(frozen=True, slots=True)
class Whole:
    algorithm: Algorithm = Algorithm()
    other: Inner = Inner()


def load(tmp_path, values=None, **said):
    file = None
    if values is not None:
        file = tmp_path / "settings.json"
        file.write_text(json.dumps(values))
    return schema.load(Whole, file, {name.replace("__", "."): v for name, v in said.items()})


def test_the_command_line_is_above_the_file_and_that_above_the_defaults(tmp_path):
    found = load(tmp_path, {"algorithm": {"epochs": 8, "sizes": [32]}}, algorithm__epochs=2)
    assert found.algorithm == Algorithm(epochs=2, sizes=(32,))
    assert found.other == Inner()


def test_what_is_written_reads_back(tmp_path):
    held = Whole(algorithm=Algorithm(sizes=(8,), names=("x", "y"), inner=Inner(rate=0.5)))
    assert load(tmp_path, json.loads(json.dumps(schema.to_dict(held)))) == held


@pytest.mark.parametrize(
    ("values", "problem", "hint"),
    [
        ({"algorithm": {"epoch": 3}}, "there is no algorithm.epoch", "did you mean epochs"),
        ({"algorithm": {"lr": 3}}, "there is no algorithm.lr", "did you mean learning_rate?"),
        (
            {"other": {"learning_rate": 1}},
            "there is no other.learning_rate",
            "did you mean algorithm.learning_rate?",
        ),
        (
            {"rate": 1},
            "there is no rate",
            "did you mean algorithm.inner.rate or other.rate?",
        ),
        ({"algorythm": {}}, "there is no algorythm", "did you mean algorithm"),
        ({"algorithm": {"inner": {"ratee": 1}}}, "no algorithm.inner.ratee", "mean rate"),
        ({"algorithm": {"epochs": 2.5}}, "not a whole number", "as 4"),
        ({"algorithm": {"epochs": "8"}}, "'8' is not a number", "as 4"),
        ({"algorithm": {"epochs": True}}, "True is not a number", ""),
        ({"other": {"rate": float("nan")}}, "nan is not a number", "as 0.1"),
        ({"algorithm": {"epochs": -1}}, "cannot be -1", "0 or more"),
        ({"algorithm": {"learning_rate": -0.1}}, "cannot be -0.1", "0 or more"),
        ({"algorithm": {"mode": "slwo"}}, "cannot be 'slwo'", "did you mean slow"),
        ({"algorithm": {"sizes": 64}}, "not a list", ""),
        ({"algorithm": {"names": [3]}}, "3 is not a text", ""),
        ({"algorithm": 3}, "algorithm is no table but 3", ""),
        ({"other": {"rate": 1.5}}, "cannot be 1.5", "between 0 and 1"),
        ({"other": {"enable": "yes"}}, "not true or false", ""),
    ],
)
def test_what_the_schema_has_not_is_named(tmp_path, values, problem, hint):
    with pytest.raises(UsageError, match=problem) as caught:
        load(tmp_path, values)
    assert hint in (caught.value.hint or "")
    assert "settings.json" in caught.value.where


def test_numbers_below_zero_where_the_default_is(tmp_path):
    assert load(tmp_path, {"algorithm": {"floor": -1}}).algorithm.floor == -1.0


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        schema.load(Whole, tmp_path / "none.json", {})
    for text, problem in (("{", "are not JSON"), ("[]", "are no table")):
        (tmp_path / "settings.json").write_text(text)
        with pytest.raises(UsageError, match=problem):
            schema.load(Whole, tmp_path / "settings.json", {})


def test_flags():
    parser = argparse.ArgumentParser()
    schema.add_flags(parser, Whole)
    argv = shlex.split(
        "--epochs 3 --sizes 8 16 --other-rate 0.5 --inner-enable true --algorithm-mode slow"
    )
    said = schema.flag_values(vars(parser.parse_args(argv)), Whole)
    assert schema.load(Whole, None, said) == Whole(
        Algorithm(epochs=3, sizes=(8, 16), mode="slow", inner=Inner(enable=True)), Inner(rate=0.5)
    )


def test_flags_of_some_sections_alone():
    parser = argparse.ArgumentParser()
    schema.add_flags(parser, Whole, sections={"other"})
    assert parser.parse_args(["--other-rate", "0.5"]).__dict__["other.rate"] == 0.5
    assert {key.partition(".")[0] for key in vars(parser.parse_args([]))} == {"other"}


def test_every_key_has_a_flag_of_its_own():
    flags = [key.flag for key in schema.keys(Whole)]
    assert len(flags) == len(set(flags)) == 10


def test_the_table_names_every_key():
    made = schema.table(Whole)
    assert "## `algorithm.inner`" in made
    for key in schema.keys(Whole):
        assert f"`{key.path[-1]}`" in made
        assert key.doc in made

"""Every format followed: what was put together from many looks is what one reading finds."""

import log_checks
import numpy as np
import pytest
from effort import cases, sampled
from following import Followed, assert_as_read_at_once, kinds, of, points
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_every_format import CASES, Files, files, mixed, states  # noqa: F401 - fixtures

from rlvitals.following import changes


def whole(watched):
    """Our own run.json is only ever replaced by one rename: no part of it is there to be read."""
    return watched.target.name == "run.json"


def test_a_file_that_grows_ends_as_one_reading_of_it(files):  # noqa: F811 - a fixture
    if whole(files):
        return
    chance = log_checks.chance_of(7)
    for cuts in (5,) if files.case.appended else (0,):
        ends = sorted(chance.choices(range(len(files.data)), k=cuts))
        files.target.write_bytes(b"" if files.case.appended else files.data)
        followed = Followed(files.location)
        told = []
        for end in (*ends, len(files.data)):
            files.target.write_bytes(files.data[:end])
            told += followed.look(chance.choice([1.0, 12.0]))
        told += followed.settle()
        assert_as_read_at_once(followed, files.location)
        count = sum(points(told).values())
        assert count == sum(run.points for run in followed.watch.runs), "each is told once"
        assert not of(changes.Restarted, told)


def test_a_file_that_is_replaced_ends_as_one_reading_of_it(files):  # noqa: F811 - a fixture
    every = list(states(files).items()) if files.other and not whole(files) else []
    for what, contents in every[:: cases(2, 1)]:
        followed = Followed(files.location)
        told = []
        for content in contents:
            files.target.write_bytes(content)
            told += followed.look(5.0)
        told += followed.settle()
        assert_as_read_at_once(followed, files.location)
        restarts = kinds(told).count("Restarted")
        replaced = what.startswith(
            ("is rotated", "starts again", SPOILT.get(files.case.name, "starts"))
        )
        if files.target.name != "meta.yaml":  # it holds no points
            assert bool(restarts) == replaced, what


def test_a_database_is_followed_run_by_run(trackio_store, tmp_path):
    data = trackio_store[0].read_bytes()
    (tmp_path / "p.db").write_bytes(data)
    followed = Followed(tmp_path)
    followed.look()
    assert len(followed.watch.runs) > 1
    followed.settle()
    assert_as_read_at_once(followed, tmp_path)


SPOILT = {"result.json": "gets a column"}  # rows of JSON are none with a comma behind them
ROWS = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.floats(width=32),
        st.one_of(st.none(), st.floats(-5, 5, width=16)),
        st.sampled_from(["a", "b"]),
    ),
    max_size=60,
)


@settings(
    deadline=None,
    max_examples=cases(20, 60),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    rows=ROWS,
    cuts=st.lists(st.floats(0, 1), max_size=6),
    kind=st.sampled_from(["csv", "jsonl"]),
    back=st.sampled_from([3, 20, 41]),
)
@example(rows=[(0, 1.0, None, "a")] * 8, cuts=[0.5], kind="csv", back=41)  # each step falls
@example(rows=[(0, 1.0, 0.1, "a"), (9, 1.0, 0.1, "b")] * 9, cuts=[0.3], kind="csv", back=7)
def test_any_rows_cut_anywhere(tmp_path_factory, rows, cuts, kind, back):
    """Steps that go back, NaN, gaps, a text that changes: in any chunks it is the same run."""
    data = as_csv(rows, back) if kind == "csv" else as_json(rows)
    ends = [int(cut * len(data)) for cut in sorted(cuts)]
    assert_ends_as_read_at_once(tmp_path_factory.mktemp("run") / f"metrics.{kind}", data, ends)


def assert_ends_as_read_at_once(path, data, ends):
    """A file that is seen at some sizes, then whole, is the same run as one reading of it."""
    path.write_bytes(b"")
    followed = Followed(path.parent)
    told = []
    for end in ends:
        path.write_bytes(data[:end])
        told += followed.look(11.0)
    path.write_bytes(data)
    told += [*followed.look(31.0), *followed.settle()]
    if followed.watch.runs:
        assert_as_read_at_once(followed, path.parent)
    assert not of(changes.Restarted, told), "its rows are the same ones"
    return followed


def as_csv(rows, back):
    steps = np.cumsum([max(step - back, -5) for step, *_ in rows]) if rows else []
    lines = [
        f"{step},{value!r},{'' if kl is None else kl},{text}\n"
        for step, (_, value, kl, text) in zip(steps, rows, strict=True)
    ]
    return "".join(["step,return,approx_kl,phase\n", *lines]).encode()


def as_json(rows):
    lines = []
    for number, (step, value, kl, text) in enumerate(rows):
        said = f'{{"step": {number * 3 + step}, "return": {as_json_number(value)}'
        said += f', "phase": "{text}"'
        said += "" if kl is None else f', "approx_kl": {kl}'
        lines.append(f"{said}}}\n")
    return "".join(lines).encode()


def as_json_number(value):
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))


def lines_of(*rows):
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


# What the first rows say of a table, and what all of them say, differ.
TURNING = {
    "metrics.csv": {
        "its step falls in each row": lines_of(
            ("step", "return"), *((-n * 5, n * 0.5) for n in range(12))
        ),
        "its only step counts within episodes": lines_of(
            ("step", "reward"), *((n * 7 % 5, n * 0.5) for n in range(12))
        ),
        "a constant begins to move": lines_of(
            ("global_step", "episode", "return"),
            *((0 if n < 6 else n * 64, n, n * 0.5) for n in range(14)),
        ),
        "its last columns stand in the first row alone": lines_of(
            ("step", "return", "gamma"), (0, 0.5, 0.99), *((n, n * 0.5) for n in range(1, 12))
        ),
        "it is started again": lines_of(
            ("episode", "reward"), *((n % 6, n * 0.5) for n in range(18))
        ),
        "it names a second run": lines_of(
            ("seed", "episode", "reward"), *((n // 6, n % 6, n * 0.5) for n in range(18))
        ),
    },
    "rewards.csv": {
        "its counter is none": lines_of(*((n % 5, n * 0.5) for n in range(12))),
        "its second column counts no more": lines_of(
            *((n, n if n < 9 else 3, n * 0.5) for n in range(14))
        ),
    },
}


@pytest.mark.parametrize(
    ("file", "text"),
    sampled(
        [
            pytest.param(file, text, id=what)
            for file, cases_of_file in TURNING.items()
            for what, text in cases_of_file.items()
        ],
        2,
    ),
)
def test_a_table_that_later_rows_show_to_be_another(tmp_path, file, text):
    lines = text.splitlines(keepends=True)
    for count in range(1, len(lines)):
        for cut in cases((count % 2,), (0, 1)):
            folder = tmp_path / f"{count}-{cut}"
            folder.mkdir()
            end = len("".join(lines[:count])) + cut
            assert_ends_as_read_at_once(folder / file, text.encode(), [end // 2, end])

"""Every format followed: what was put together from many looks is what one reading finds."""

import log_checks
import numpy as np
from effort import cases
from following import Followed, assert_as_read_at_once, kinds, of, points
from hypothesis import HealthCheck, given, settings
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
        followed = Followed(files.path.parent)
        told = []
        for end in (*ends, len(files.data)):
            files.target.write_bytes(files.data[:end])
            told += followed.look(chance.choice([1.0, 12.0]))
        told += followed.settle()
        assert_as_read_at_once(followed, files.path.parent)
        count = sum(points(told).values())
        assert count == sum(run.points for run in followed.watch.runs), "each is told once"
        assert not of(changes.Restarted, told)


def test_a_file_that_is_replaced_ends_as_one_reading_of_it(files):  # noqa: F811 - a fixture
    for what, contents in states(files).items() if files.other and not whole(files) else ():
        followed = Followed(files.path.parent)
        told = []
        for content in contents:
            files.target.write_bytes(content)
            told += followed.look(5.0)
        told += followed.settle()
        assert_as_read_at_once(followed, files.path.parent)
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
    rows=ROWS, cuts=st.lists(st.floats(0, 1), max_size=6), kind=st.sampled_from(["csv", "jsonl"])
)
def test_any_rows_cut_anywhere(tmp_path_factory, rows, cuts, kind):
    """Steps that go back, NaN, gaps, a text that changes: in any chunks it is the same run."""
    data = as_csv(rows) if kind == "csv" else as_json(rows)
    folder = tmp_path_factory.mktemp("run")
    path = folder / f"metrics.{kind}"
    path.write_bytes(b"")
    followed = Followed(folder)
    for cut in sorted(cuts):
        path.write_bytes(data[: int(cut * len(data))])
        followed.look(11.0)
    path.write_bytes(data)
    followed.look(31.0)
    followed.settle()
    if followed.watch.runs:
        assert_as_read_at_once(followed, folder)


def as_csv(rows):
    steps = np.cumsum([max(step - 3, -5) for step, *_ in rows]) if rows else []
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

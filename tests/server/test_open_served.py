"""`rlvitals.open` reads a served run into what it reads of the run's folder."""

import math

import numpy as np
import pytest
from served import build, record, serving

import rlvitals
from rlvitals.errors import UnreadableLog, UsageError, VitalsError


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    record(root / "sweep" / "fine")
    record(root / "sweep" / "fallen", collapse=30)
    run = rlvitals.start(str(root / "odd"), framework="sb3")
    run.log({"train/loss": math.nan}, step=1)
    run.log({"train/loss": math.inf, "rollout/ep_rew_mean": -0.0}, step=2)
    run.finish()
    return root


@pytest.fixture(scope="module")
def address(root, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("http_proxy", "http://127.0.0.1:9")  # loopback needs no proxy
        with serving(build(root)) as address:
            yield address


@pytest.mark.parametrize("key", ["sweep/fine", "sweep/fallen", "odd"])
@pytest.mark.parametrize("form", ["{}/run/{}", "{}/{}"])
def test_a_served_run_is_the_run_of_its_folder(address, root, key, form):
    served, local = rlvitals.open(form.format(address, key)), rlvitals.open(root / key)
    assert list(served.series) == list(local.series)
    for name, series in local.series.items():
        for column in ("steps", "times", "values"):
            ours, theirs = getattr(served[name], column), getattr(series, column)
            assert ours.dtype == theirs.dtype
            assert ours.tobytes() == np.ascontiguousarray(theirs).tobytes(), (name, column)
    for field in ("measured", "settings", "profile", "budget", "notes", "unmapped", "step_unit"):
        assert getattr(served, field) == getattr(local, field), field
    assert served.texts == local.texts
    assert served.lifecycle.checkpoints == local.lifecycle.checkpoints
    ours, theirs = rlvitals.diagnose(served), rlvitals.diagnose(local)
    assert ours.verdict.word == theirs.verdict.word
    assert [str(found) for found in ours.findings] == [str(found) for found in theirs.findings]


def test_the_list_reads_a_run_when_it_is_asked_for(address):
    runs = rlvitals.open(address)
    assert set(runs) == {"sweep/fine", "sweep/fallen", "odd"}
    assert len(runs) == 3
    result = rlvitals.compare(runs["sweep/fine"], runs["sweep/fallen"])
    assert result.metric == "outcome/return"


def test_a_folder_of_runs_opens_as_a_mapping(root):
    assert {name.rpartition("/")[2] for name in rlvitals.open(root / "sweep")} == {"fine", "fallen"}


def test_what_is_not_there_is_said_with_where_and_what_to_try(address):
    with pytest.raises(UnreadableLog, match="no such run") as missing:
        rlvitals.open(f"{address}/run/nothing")
    assert missing.value.where == f"{address}/run/nothing"
    with pytest.raises(VitalsError, match="cannot be reached") as nobody:
        rlvitals.open("http://127.0.0.1:9/run/x")
    assert "rlvitals serve" in nobody.value.hint
    with pytest.raises(UsageError, match="no host"):
        rlvitals.open("http://")


def test_a_token_in_the_address_opens_and_is_not_repeated_in_errors(root):
    with serving(build(root, token="secret-token")) as address:
        with pytest.raises(VitalsError, match="needs its token"):
            rlvitals.open(f"{address}/run/odd")
        runs = rlvitals.open(f"{address}/?token=secret-token")
        assert runs["odd"].name == rlvitals.open(root / "odd").name
        assert "odd" in set(runs)
        with pytest.raises(UnreadableLog) as error:
            rlvitals.open(f"{address}/run/none?token=secret-token")
    assert "secret-token" not in f"{error.value} {error.value.where} {error.value.hint}"

"""The fleet of an index that another program fills: the folders are not walked."""

import pytest
from served import build, record, until
from starlette.testclient import TestClient

from rlvitals.cli import judging
from rlvitals.storage.index import Index


@pytest.fixture
def client(tmp_path):
    root = tmp_path / "runs"
    record(root / "good")
    record(root / "bad", collapse=40)
    with Index(root, tmp_path / "index", threads=True) as index:
        index.refresh()
        judging.judge_index(index)
        record(root / "later")  # not in the index
        with TestClient(build(root, store=index), base_url="http://127.0.0.1") as opened:
            yield opened


def rows(client, query=""):
    return {row["key"]: row for row in client.get(f"/api/runs?{query}").json()["rows"]}


def test_runs_and_verdicts_are_those_of_the_index(client):
    listed = until(lambda: rows(client))
    assert {key: row["lamp"] for key, row in listed.items()} == {"good": "good", "bad": "bad"}
    assert listed["bad"]["rule"]
    assert rows(client, "search=learning_rate%3D3e-4 good").keys() == {"good"}
    assert client.get("/run/good").status_code == 200


def test_a_plot_is_read_without_judging_the_run(client):
    answer = client.get("/api/pixels?key=good&metric=train/approx_kl&width=3&first=2048").json()
    assert (answer["count"], answer["steps"][0], set(answer["values"])) == (59, 2048, {0.01})
    assert client.get("/api/pixels?key=good&metric=none").status_code == 404
    assert client.get("/api/pixels?key=../good&metric=train/approx_kl").status_code == 404

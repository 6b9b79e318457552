"""Several folders are served as one fleet: keys begin with the folder's name."""

import json

import pytest
from served import build, record, until
from starlette.testclient import TestClient

from rlvitals.server import served_folder


@pytest.fixture
def roots(tmp_path):
    record(tmp_path / "laptop" / "ppo")
    record(tmp_path / "cluster" / "ppo", collapse=40)
    csv = tmp_path / "cluster" / "dqn" / "progress.csv"
    csv.parent.mkdir()
    lines = [f"{1000 * row},{20 + 3 * row}" for row in range(1, 60)]
    csv.write_text("\n".join(["time/total_timesteps,rollout/ep_rew_mean", *lines]))
    return tmp_path / "laptop", tmp_path / "cluster"


@pytest.fixture
def client(roots):
    with TestClient(build(*roots), base_url="http://127.0.0.1") as opened:
        yield opened


def verdicts(client, query=""):
    rows = client.get("/api/runs", params={"search": query}).json()["rows"]
    return {row["key"]: row["verdict"] for row in rows}


def judged(client):
    return until(
        lambda: len(shown := verdicts(client)) == 3 and "pending" not in shown.values() and shown
    )


def test_runs_of_one_name_in_two_folders_are_two_runs(client):
    shown = judged(client)
    assert shown["laptop/ppo"] == "learning"
    assert shown["cluster/ppo"] == "collapsed"
    assert shown["cluster/dqn"] == "learning"
    assert "<title>laptop, cluster" in client.get("/").text
    for key in shown:
        page = client.get(f"/run/{key}")
        assert page.status_code == 200
        assert key in page.text
    ends = {}
    for key in ("laptop/ppo", "cluster/ppo"):
        metric = {"key": key, "metric": "outcome/return"}
        ends[key] = client.get("/api/series", params=metric).json()["values"][-1]
        assert client.get("/api/run", params=metric).json()["verdict"]["word"] == shown[key]
    assert ends["cluster/ppo"] == 9.0
    assert ends["laptop/ppo"] > 150.0


def test_the_filter_asks_the_index_of_each_folder(client):
    judged(client)
    assert verdicts(client, "learning_rate=0.0003").keys() == {"laptop/ppo", "cluster/ppo"}
    assert verdicts(client, "cluster").keys() == {"cluster/ppo", "cluster/dqn"}
    assert verdicts(client, "verdict:collapsed").keys() == {"cluster/ppo"}


def test_lines_are_kept_for_the_next_start(roots, client):
    shown = judged(client)
    with TestClient(build(*roots), base_url="http://127.0.0.1") as again:
        page = again.get("/").text
    rows = json.loads(page.split('id="data">')[1].split("</script>")[0])["rows"]
    kept = {row["key"]: row["verdict"] for row in rows if row["key"].endswith("/ppo")}
    assert kept.items() <= shown.items()
    assert len(kept) == 2


def test_a_folder_that_cannot_be_listed_hides_no_other(roots, client):
    judged(client)
    roots[0].rename(roots[0].with_name("unmounted"))
    record(roots[1] / "sac")
    assert until(lambda: "cluster/sac" in verdicts(client))


def test_a_link_from_one_folder_to_another_leads_out(roots):
    (roots[0] / "linked").symlink_to(roots[1] / "dqn")
    with TestClient(build(*roots), base_url="http://127.0.0.1") as client:
        shown = until(
            lambda: len(keys := verdicts(client)) >= 3 and "pending" not in keys.values() and keys
        )
    assert shown.get("laptop/linked", "unreadable") == "unreadable"
    assert shown["cluster/dqn"] == "learning"


def test_labels_tell_the_folders_apart(tmp_path):
    names = ("a/runs", "b/runs", "b/runs/inner", "c/old")
    roots = [tmp_path / name for name in names]
    for root in roots:
        root.mkdir(parents=True, exist_ok=True)
    folders = served_folder.from_roots([*roots, roots[0]])
    assert [folder.label for folder in folders] == ["a/runs", "b/runs", "c/old"]
    (alone,) = served_folder.from_roots([roots[2], roots[1]])
    assert alone.label == ""
    assert alone.root == roots[1]
    assert folders[0].key(".") == "a/runs"
    assert folders[0].path("a/runs") == "."
    assert folders[0].path(folders[0].key("x/y")) == "x/y"
    for folder in (*folders, alone):
        folder.close()

"""What the page of a comparison says first: which runs it compares, and which are broken."""

import pytest
from served import build, record, until
from starlette.testclient import TestClient


@pytest.fixture
def root(tmp_path):
    return tmp_path / "runs"


@pytest.fixture
def client(root):
    root.mkdir()
    with TestClient(build(root), base_url="http://127.0.0.1") as opened:
        yield opened


def page(client, *keys):
    until(lambda: {row["key"] for row in client.get("/api/runs").json()["rows"]} >= {*keys})
    return client.get("/compare?" + "&".join(f"key={key}" for key in keys)).text


def test_runs_without_a_seed_are_no_seeds_of_one_experiment(root, client):
    """Nothing says that two runs of one folder repeat each other: each is drawn for itself."""
    for name, collapse in (("first", None), ("second", 40)):
        record(root / "kept" / name, collapse=collapse, seed=None)
    text = page(client, "kept/first", "kept/second")
    assert "Too few seeds to compare kept/second with kept/first" in text
    assert "Each line is a run." in text
    for seed in (0, 1):
        record(root / "kept" / f"seed-{seed}", seed=None)
    text = page(client, "kept/seed-0", "kept/seed-1")  # their names say it
    assert "Nothing to compare with: 2 runs of one group" in text
    assert ">the reference<" not in text


def test_broken_runs_are_named_before_the_charts(root, client):
    for seed in range(3):
        record(root / "low" / f"seed-{seed}", seed=seed)
        record(root / "high" / f"seed-{seed}", seed=seed, collapse=40 if seed else None)
    keys = [f"{name}/seed-{seed}" for name in ("low", "high") for seed in range(3)]
    text = page(client, *keys)
    assert "Broken: high (2 of 3 runs)." in text
    assert text.index("Broken: high") < text.index("data-chart")
    assert "Broken:" not in page(client, *keys[:3])


def test_a_comparison_of_nothing_says_how_to_choose_runs(client):
    answer = client.get("/compare")
    assert answer.status_code == 422
    assert "0 runs cannot be compared" in answer.text
    assert "select 2 to 24 runs in the list of all runs" in answer.text

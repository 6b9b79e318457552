"""The benchmarks behind `docs/scale.md`, each at a small size: they run, and print their rows."""

import importlib
import sys
from pathlib import Path

import pytest

pytest.importorskip("moto", reason="moto is not installed: no server")
pytestmark = [pytest.mark.soak, pytest.mark.filterwarnings("default")]  # of Ray and the peers
BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
CASES = [
    ("bucket", {"POINTS": 20_000, "ROUNDS": 20, "ROOT_RUNS": 3, "LAG_SECONDS": 12.0}, []),
    ("listing", {"RUNS": 60, "METRICS": 5, "PEER_ROWS": 5, "LISTED": 2}, []),
    ("ray_runs", {}, ["--runs", "4"]),
    ("clickhouse", {"RUNS": 20, "METRICS": 5, "FILLED_ROWS": 50},
     ["--points", "1e4", "--series", "1e3", "--filled", "500"]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[name for name, *_ in CASES])
def test_a_benchmark_runs(case, tmp_path, monkeypatch, capsys):
    name, sizes, arguments = case
    if name == "ray_runs":
        pytest.importorskip("ray", reason="Ray is not installed")
    if name == "clickhouse":
        pytest.importorskip("chdb", reason="the engine of ClickHouse is not installed")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.chdir(tmp_path)
    for variable in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
                     "XDG_CACHE_HOME", "RAY_USAGE_STATS_ENABLED"):  # fmt: skip
        monkeypatch.setenv(variable, "")  # what a benchmark sets is taken back
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
    module = importlib.import_module(name)
    for constant, size in sizes.items():
        assert hasattr(module, constant)
        monkeypatch.setattr(module, constant, size)
    module.main()
    assert len(capsys.readouterr().out.splitlines()) >= 4

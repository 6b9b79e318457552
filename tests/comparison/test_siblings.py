"""A run beside healthy ones of its task: what differs, their band, and where it leaves it."""

from dataclasses import replace

import numpy as np
import pytest

from rlvitals.cli import main
from rlvitals.comparison.siblings import compare_siblings, is_sibling
from rlvitals.types import Measured, Profile, Series, Trace

ROWS = 100
STEPS = 1000 * (1 + np.arange(ROWS))


def made(name, seed, rate=3e-4, breaks=ROWS):
    """A run whose KL is larger from row `breaks` on, and whose return falls ten rows later."""
    random = np.random.default_rng(seed)
    kl = 0.01 + 0.001 * random.standard_normal(ROWS)
    kl[breaks:] += 0.05
    back = np.linspace(20, 400, ROWS) + 5 * random.standard_normal(ROWS)
    back[breaks + 10 :] = 20
    columns = {"policy/approx_kl": kl, "outcome/return": back}
    none = np.full(ROWS, np.nan)
    return Trace(
        {key: Series(STEPS, none, values) for key, values in columns.items()},
        {key: Measured("sb3", key, "") for key in columns},
        settings={"env_id": "CartPole-v1", "learning_rate": rate, "seed": seed},
        profile=Profile.CONTROL_PPO,
        name=name,
    )


def test_what_differs_and_where_it_left_the_band_first():
    healthy = [made("a", 1), made("b", 2, rate=1e-3), made("c", 3)]
    found = compare_siblings(made("broken", 4, rate=0.1, breaks=50), healthy)
    assert set(found.names) == {"a", "b", "c"}
    assert [change.key for change in found.changed if change.area == "setting"] == ["learning_rate"]
    assert found.level < 30
    assert 350 < found.low <= found.high
    assert found.divergence.metric == "policy/approx_kl"
    assert abs(found.divergence.step - int(STEPS[50])) <= 5000
    assert "in 3 healthy runs" in found.sentence


def test_a_run_that_stays_within_the_band_leaves_it_nowhere():
    healthy = [made(str(seed), seed) for seed in range(1, 7)]
    found = compare_siblings(made("other", 9), healthy)
    assert found.divergence is None
    assert not [change for change in found.changed if change.area == "setting"]


@pytest.mark.parametrize(
    "change",
    [{"settings": {"env_id": "Pendulum-v1"}}, {"profile": Profile.ON_POLICY}, {"series": {}}],
)
def test_another_task_is_no_sibling(change):
    run = made("a", 1)
    assert is_sibling(run, made("b", 2))
    assert not is_sibling(run, replace(made("b", 2), **change))
    assert compare_siblings(run, [replace(made("b", 2), **change)]) is None


def write(folder, rises, rate):
    folder.mkdir(parents=True)
    random = np.random.default_rng(len(folder.name))
    back = np.linspace(20, 450, 60) if rises else np.full(60, 40.0)
    rows = zip(2048 * np.arange(1, 61), back + 3 * random.standard_normal(60), strict=True)
    head = "time/total_timesteps,rollout/ep_rew_mean,train/learning_rate\n"
    text = head + "".join(f"{step},{value:.3f},{rate}\n" for step, value in rows)
    (folder / "progress.csv").write_text(text)
    return folder


def test_diagnose_compares_with_marked_healthy_runs_beside_it(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good = write(tmp_path / "runs" / "good", rises=True, rate=3e-4)
    bad = write(tmp_path / "runs" / "bad", rises=False, rate=3e-4)
    main(["diagnose", str(bad)])
    assert "siblings" not in capsys.readouterr().out
    main(["mark", str(good), "--healthy"])
    main(["diagnose", str(bad)])
    out = " ".join(capsys.readouterr().out.split())
    assert "in the healthy run good" in out
    assert "outcome/return leaves their band first" in out
    assert out.index("Beside healthy siblings") < out.index("? Not known from this log")
    main(["diagnose", str(bad), "--markdown"])
    assert "Beside healthy siblings" in capsys.readouterr().out
    main(["report", str(bad), "-o", "page.html"])
    assert "Beside healthy siblings" in (tmp_path / "page.html").read_text()
    main(["diagnose", str(good)])
    assert "siblings" not in capsys.readouterr().out.split("marked")[-1]

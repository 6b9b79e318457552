"""What the look-alike of W&B's module answers without a server, and what it refuses by its name."""

import time

import pytest
import wandb as real

from rlvitals import wandb


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Each test in a folder of its own; its run is ended."""
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.chdir(tmp_path)
    yield
    wandb.finish()


@pytest.mark.parametrize("name", ["Api", "sweep", "agent", "use_artifact", "restore"])
def test_what_needs_a_server_is_refused_by_its_name(name):
    with pytest.raises(wandb.Error, match=f"wandb.{name} needs a server"):
        getattr(wandb, name)("me/project/run")


def test_what_a_script_asks_of_its_run_is_answered_or_refused_by_its_name():
    with wandb.init() as run:
        assert (run.sweep_id, run.sweep_url, run.project_url, run.url) == (None,) * 4
        assert (run.offline, run.starting_step, run.sync_dir) == (True, 0, run.dir)
        assert 0 <= time.time() - run.start_time < 60
        assert not run.display()
        for name in ("restore", "use_model", "link_artifact", "upsert_artifact"):
            assert hasattr(real.Run, name)
            with pytest.raises(wandb.Error, match=f"Run.{name} needs a server"):
                getattr(run, name)("x")
        for name in ("to_html", "pin_config_keys"):
            assert not hasattr(run, name)
            with pytest.raises(AttributeError, match=f"has no '{name}': it records"):
                getattr(run, name)

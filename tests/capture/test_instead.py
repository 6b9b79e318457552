"""Look-alikes in place of the libraries: nothing of theirs is imported or written."""

from recorded_runs import run, series

SCRIPT = """
import sys
import swanlab, trackio, wandb
import wandb.util
from torch.utils.tensorboard import SummaryWriter
from trackio import context_vars
from wandb.errors import CommError
from wandb.sdk import wandb_run
from wandb.sdk.lib.runid import generate_id

run = wandb.init(project="p", config={"lr": 0.5}, settings=wandb.Settings(mode="shared"))
swanlab.init(project="p", experiment_name="e", config={"lr": 0.5}, mode="cloud")
trackio.init(project="p", name="e")
assert isinstance(run, wandb_run.Run) and context_vars.current_run.get() is not None
writer = SummaryWriter(log_dir="tb")
for i in range(5):
    for tracker in (wandb, swanlab, trackio):
        tracker.log({"reward": i}, step=i)
    writer.add_scalar("reward", i, i)
    writer.add_scalar("loss", -i, i)
wandb.finish(), swanlab.finish(), trackio.finish(), writer.close()
assert wandb.__file__.endswith("rlvitals/wandb/__init__.py")
assert "tensorboard" not in sys.modules and "pydantic" not in sys.modules
assert len(generate_id()) == 8
"""


def test_four_trackers_are_one_run(tmp_path):
    done = run(tmp_path, SCRIPT, flags=("--instead", "-o", "rec"))
    assert done.returncode == 0, done.stderr
    recorded = series(tmp_path / "rec")
    assert recorded["reward"] == [(i, i) for i in range(5)]
    assert recorded["loss"] == [(i, -i) for i in range(5)]
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"train.py", "rec"}


TRACKIO = """
import trackio
trackio.init(project="p", config={"lr": 0.5})
trackio.log({"reward": 1.0, **trackio.log_gpu(), **trackio.log_cpu()}, step=0)
trackio.alert("KL", "is 40", level=trackio.AlertLevel.ERROR)
assert trackio.config.lr == 0.5
for name in ("sync", "Api", "delete_project"):
    try:
        getattr(trackio, name)
    except AttributeError as error:
        print(error)
trackio.finish()
"""


def test_the_names_of_trackio(tmp_path):
    done = run(tmp_path, TRACKIO, flags=("--instead", "-o", "rec"))
    assert done.returncode == 0, done.stderr
    assert "`rlvitals run --instead` serves no trackio.sync\n" in done.stdout
    assert done.stdout.count("serves no trackio.") == 3
    assert series(tmp_path / "rec")["reward"] == [(0, 1)]


def test_what_is_not_served_is_refused_by_name(tmp_path):
    script = "import wandb\ntry:\n    import wandb.keras\nexcept ImportError as error:\n"
    script += (
        "    print(error)\ntry:\n    wandb.Api()\nexcept wandb.Error as error:\n    print(error)"
    )
    done = run(tmp_path, script, flags=("--instead", "-o", "rec"))
    assert "No module named 'wandb.keras'" in done.stdout
    assert "wandb.Api needs a server" in done.stdout

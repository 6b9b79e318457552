"""`wandb.tensorboard`, and `wandb.init(sync_tensorboard=True)`.

What torch's or tensorboardX's `SummaryWriter` writes is recorded into the run. What `wandb.log`
gets without a step is placed at the step that was written last.
"""

from typing import Any

from rlvitals.capture import run_folders
from rlvitals.capture.trackers import writer_calls
from rlvitals.wandb import session
from rlvitals.wandb.recorded import Run


def patch(save: bool = True, root_logdir: str = "", **_: object) -> None:
    """Follow the writers from the next `wandb.init()` on, or in the run that has begun."""
    del save, root_logdir  # nothing is uploaded; all folders belong to the run
    writer_calls.follow_writers()
    if (run := session.open_run()) is not None:
        follow(run)
    else:
        session.state.follows_tensorboard = True


def follow(run: Run) -> None:
    """Record what TensorBoard's writers write into a run, from now on."""
    writer_calls.follow_writers()
    recording: Any = run.recording
    if not isinstance(recording, run_folders.Share):
        recording = run_folders.share(recording, run_folders.Source("wandb", run.id))
        run.recording = recording
    recording.on_step = run.set_tensorboard_step
    session.state.follows_tensorboard = False


def unpatch() -> None:
    """Do nothing: writers that are followed keep writing their own files too."""


def log(data: object, **_: object) -> None:
    """Do nothing: summaries of TensorFlow are recorded by its own writer."""
    del data

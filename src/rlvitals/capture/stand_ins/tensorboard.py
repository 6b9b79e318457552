"""`torch.utils.tensorboard` and `tensorboardX`, with a writer that writes into the run alone."""

import os
from pathlib import Path
from typing import Any

from rlvitals.capture.run_folders import SHARED_TRACKER, Source, join
from rlvitals.integrations import torch_tensorboard

__all__ = ["SummaryWriter"]


class SummaryWriter(torch_tensorboard.SummaryWriter):
    """torch's writer; its folder is a name, and no event file is written."""

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        *args: Any,
        logdir: str | os.PathLike[str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Join the run of this process; `logdir` is tensorboardX's name of `log_dir`."""
        folder = os.fspath(log_dir or logdir or Path("runs", comment or "run"))
        share: Any = join(Source(SHARED_TRACKER, folder))
        super().__init__(None, comment, *args, run=share, **kwargs)
        self.log_dir = self.logdir = folder

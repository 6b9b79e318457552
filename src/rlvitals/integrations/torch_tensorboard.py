"""A drop-in replacement of `torch.utils.tensorboard.SummaryWriter` that records a run.

CleanRL's scripts and most hand-written loops need one changed line:
`from rlvitals.integrations.torch_tensorboard import SummaryWriter`.
"""

import socket
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rlvitals.tracking.start import start

if TYPE_CHECKING:
    from rlvitals.tracking.run import Run


class SummaryWriter:
    """Records numbers, texts and histograms with the interface of torch's `SummaryWriter`.

    A tag that is logged without `global_step` has its own counter: 0, 1, 2, ... Other content
    (figures, images, graphs) is not recorded, which is noted once for each kind.

    Parameters
    ----------
    log_dir : path, optional
        The run folder. Default: `runs/<date>_<time>_<host><comment>`.
    comment : str
        End of the default folder's name.
    *args, **kwargs : object
        Torch's arguments on event files: they have no effect, and others are noted in the run.
    run : Run, optional
        An open run to record into, instead of a new one in `log_dir`.
    """

    def __init__(
        self,
        log_dir: str | PathLike[str] | None = None,
        comment: str = "",
        *args: object,
        run: "Run | None" = None,
        **kwargs: object,
    ) -> None:
        """Start the run, if none is given."""
        if log_dir is None:
            start_time = datetime.now().astimezone().strftime("%b%d_%H-%M-%S")
            log_dir = Path("runs") / f"{start_time}_{socket.gethostname()}{comment}"
        self.run = start(Path(log_dir)) if run is None else run
        self.log_dir = fspath(log_dir) if run is None else str(run.folder)
        self.steps: Counter[str] = Counter()
        self.ignored: set[str] = set()
        # Arguments of torch's SummaryWriter that concern event files only.
        for name in kwargs.keys() - {"purge_step", "max_queue", "flush_secs", "filename_suffix"}:
            self._ignore(f"SummaryWriter's argument {name}")

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        *_: object,
        **__: object,
    ) -> None:
        """Record a number.

        Parameters
        ----------
        tag : str
            Name of the metric.
        scalar_value : float, array or tensor
            A single number.
        global_step : int, optional
            Step of the row.
        walltime : float, optional
            Time in seconds since the epoch. Default: now.
        """
        step = self._step(tag, global_step)
        if walltime is None:  # the short way of a run: half the time
            self.run.log(step, {tag: scalar_value})
        else:
            self.run.log(step, {tag: scalar_value}, time=walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Record several numbers in one row.

        Parameters
        ----------
        main_tag : str
            First part of the names `main_tag/tag`.
        tag_scalar_dict : mapping of str to float
            The numbers by tag.
        global_step : int, optional
            Step of the row.
        walltime : float, optional
            Time in seconds since the epoch. Default: now.
        """
        values = {f"{main_tag}/{tag}": value for tag, value in tag_scalar_dict.items()}
        self.run.log(self._step(main_tag, global_step), values, time=walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        *_: object,
        **__: object,
    ) -> None:
        """Record the distribution of some values; torch's choice of bins is not followed.

        Parameters
        ----------
        tag : str
            Name of the histogram.
        values : array_like or tensor
            Numbers of any shape.
        global_step : int, optional
            Step of the histogram.
        """
        self.run.log_histogram(self._step(tag, global_step), tag, values)

    def add_histogram_raw(
        self,
        tag: str,
        min: object,
        max: object,
        num: object,
        sum: object,
        sum_squares: object,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: int | None = None,
        *_: object,
        **__: object,
    ) -> None:
        """Record a histogram from its bucket counts.

        Parameters
        ----------
        tag : str
            Name of the histogram.
        min, max, num, sum, sum_squares : object
            Not used.
        bucket_limits : sequence of float
            Upper limits of the buckets, [n], ascending; the first bucket begins at -inf.
        bucket_counts : sequence of float
            Number of values in each bucket, [n].
        global_step : int, optional
            Step of the histogram.
        """
        edges = [float("-inf"), *map(float, bucket_limits)]
        step = self._step(tag, global_step)
        self.run.log_histogram(step, tag, edges=edges, counts=list(bucket_counts))

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, *_: object, **__: object
    ) -> None:
        """Record a text; a text that consists of hyperparameters is also added to the settings.

        Parameters
        ----------
        tag : str
            Name of the text.
        text_string : str
            The text. Hyperparameters are a Markdown table of parameters and values, an
            `argparse.Namespace`, or the arguments of transformers as JSON.
        global_step : int, optional
            Step of the text.
        """
        from rlvitals.readers.event_files.texts import settings_in  # noqa: PLC0415 - texts are few

        self.run.log_text(self._step(tag, global_step), tag, text_string)
        if settings := settings_in(str(text_string)):
            self.run.update_settings(settings)

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        *_: object,
        **__: object,
    ) -> None:
        """Record settings and the metrics of the run.

        Parameters
        ----------
        hparam_dict : mapping
            Settings by name.
        metric_dict : mapping of str to float
            Metrics by name: one row, whose step counts the calls with metrics from 0.
        """
        self.run.update_settings(dict(hparam_dict))
        if metric_dict:
            self.run.log(self._step("hparams", None), dict(metric_dict))

    def get_logdir(self) -> str:
        """Return the run folder."""
        return self.log_dir

    def flush(self) -> None:
        """Wait until all recorded values are written."""
        self.run.flush()

    def close(self) -> None:
        """Finish the run."""
        self.run.finish()

    def __enter__(self) -> Self:
        """Record until the block ends."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Finish the run, as failed where an exception ended the block."""
        self.run.__exit__(kind, error, trace)

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Accept any other `add_...` of torch's, and note that it is not recorded."""
        if not name.startswith("add_"):
            raise AttributeError(f"SummaryWriter has no {name!r}")

        def ignore_call(*_: object, **__: object) -> None:
            self._ignore(name)

        return ignore_call

    def _ignore(self, method: str) -> None:
        if method not in self.ignored:
            self.ignored.add(method)
            self.run.note(f"{method} is not recorded")

    def _step(self, tag: str, step: int | None) -> int:
        if step is None:
            step = self.steps[tag]
            self.steps[tag] += 1
        return step

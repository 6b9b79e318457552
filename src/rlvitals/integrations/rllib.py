"""Callbacks for RLlib and Ray Tune that record every result of a trial.

    from rlvitals.integrations import rllib as vitals

    Tuner("PPO", run_config=RunConfig(callbacks=[vitals.TuneRecord()]), ...)  # a run a trial
    config.callbacks(vitals.record("runs/one"))  # an algorithm that is trained by hand

A result's numbers keep their names, joined by "/". Read from Ray 2.60: ray/tune/logger/,
ray/rllib/callbacks/callbacks.py.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.tune.logger import LoggerCallback

from rlvitals.integrations import hook_facts
from rlvitals.readers.rllib import RLLIB_STEPS
from rlvitals.tracking.run import Run
from rlvitals.tracking.start import start


class TuneRecord(LoggerCallback):
    """Records each trial in its own folder, next to Tune's files; `options` are `start`'s.

    The trials of an experiment are one group of runs, named as the experiment.
    """

    def __init__(self, **options: Any) -> None:
        """Store the options of each run."""
        self.options = options
        self.runs: dict[str, Run] = {}

    def log_trial_start(self, trial: Any) -> None:
        """Start a trial's run, or another attempt of it."""
        if trial.trial_id in self.runs:
            return
        trial.init_local_path()
        options = {
            "name": str(trial),
            "group": trial.storage.experiment_dir_name,
            "settings": hook_facts.to_json(trial.config),
            **self.options,
        }
        self.runs[trial.trial_id] = run = start(trial.local_path, **options)
        hook_facts.record_framework(run, "rllib")

    def log_trial_restore(self, trial: Any) -> None:
        """Record an event for a trial resumed from its checkpoint."""
        self.log_trial_start(trial)
        self.runs[trial.trial_id].event("restore")

    def log_trial_save(self, trial: Any) -> None:
        """Record an event for a checkpoint."""
        if trial.trial_id in self.runs:
            checkpoint = getattr(trial, "checkpoint", None)
            name = Path(checkpoint.path).name if checkpoint else ""
            self.runs[trial.trial_id].event("checkpoint", folder=name)

    def log_trial_result(self, iteration: int, trial: Any, result: dict[str, Any]) -> None:
        """Record a result."""
        self.log_trial_start(trial)
        _record(self.runs[trial.trial_id], result)

    def log_trial_end(self, trial: Any, failed: bool = False) -> None:  # noqa: FBT001, FBT002 - Ray's
        """Finish a trial's run."""
        run = self.runs.pop(trial.trial_id, None)
        if run is not None:
            run.finish("failed" if failed else "finished")


class Record(RLlibCallback):
    """Records an algorithm; `record()` creates the class that RLlib expects.

    RLlib creates an instance on every env runner too: the run starts in the algorithm's process.
    """

    folder: str | Path | None = None
    options: Mapping[str, Any] = {}

    def __init__(self) -> None:
        """Create the callback; the run starts with the algorithm."""
        super().__init__()
        self.run: Run | None = None

    def on_algorithm_init(self, *, algorithm: Any, **_: Any) -> None:
        """Start the run with the algorithm's complete configuration."""
        options = {
            "name": type(algorithm).__name__,
            "settings": hook_facts.to_json(algorithm.config.to_dict()),
            **self.options,
        }
        self.run = start(self.folder or algorithm.logdir, **options)
        hook_facts.record_framework(self.run, "rllib")

    def on_train_result(self, *, algorithm: Any, result: dict[str, Any], **_: Any) -> None:
        """Record the result of `algorithm.train()`."""
        if self.run is not None:
            _record(self.run, result)

    def on_checkpoint_loaded(self, *, algorithm: Any, **_: Any) -> None:
        """Record an event for a training resumed from a checkpoint."""
        if self.run is not None:
            self.run.event("restore")


def record(folder: str | Path | None = None, **options: Any) -> type[Record]:
    """Return the callbacks of one run for `AlgorithmConfig.callbacks`.

    `folder` defaults to the algorithm's log directory. The run ends with the process.
    """
    return type("RecordRun", (Record,), {"folder": folder, "options": options})


def _record(run: Run, result: Mapping[str, Any]) -> None:
    numbers = dict(hook_facts.numbers({key: v for key, v in result.items() if key != "config"}))
    step = next((numbers[name] for name in RLLIB_STEPS if name in numbers), None)
    if step is None:
        run.note("a result without a count of steps was left out")
        return
    # Identifiers, which are no metrics even where they are digits.
    metrics = {
        key: value
        for key, value in numbers.items()
        if key.split("/")[-1]
        not in {"trial_id", "experiment_id", "pid", "timestamp", "node_ip", "hostname"}
    }
    run.log(int(step), metrics)

"""RLlib and Ray Tune: every result of a trial is recorded as it comes.

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
from rlvitals.tracking.run import Run
from rlvitals.tracking.start import start

# The first that a result has is its step, as where its files are read.
STEPS = (
    "timesteps_total",
    "num_env_steps_sampled_lifetime",
    "env_runners/num_env_steps_sampled_lifetime",
    "num_env_steps_sampled",
    "training_iteration",
)
CONFIG = "config"
FRAMEWORK = "rllib"  # whose names a result's numbers have
# Who and where, not how it goes: digits that mean nothing as a number.
IDENTITY = frozenset({"trial_id", "experiment_id", "pid", "timestamp", "node_ip", "hostname"})


class TuneRecord(LoggerCallback):
    """Records each trial in its own folder, beside Tune's files; `options` are `start`'s."""

    def __init__(self, **options: Any) -> None:
        """Keep what each run is to be told."""
        self.options = options
        self.runs: dict[str, Run] = {}

    def log_trial_start(self, trial: Any) -> None:
        """Begin a trial's run, or another attempt of it."""
        if trial.trial_id in self.runs:
            return
        trial.init_local_path()
        said = {"name": str(trial), "settings": hook_facts.plain(trial.config), **self.options}
        self.runs[trial.trial_id] = run = start(trial.local_path, **said)
        hook_facts.says(run, FRAMEWORK)

    def log_trial_restore(self, trial: Any) -> None:
        """Say that a trial goes on from its checkpoint."""
        self.log_trial_start(trial)
        self.runs[trial.trial_id].event("restore")

    def log_trial_save(self, trial: Any) -> None:
        """Say that a checkpoint stands."""
        if trial.trial_id in self.runs:
            checkpoint = getattr(trial, "checkpoint", None)
            name = Path(checkpoint.path).name if checkpoint else ""
            self.runs[trial.trial_id].event("checkpoint", folder=name)

    def log_trial_result(self, iteration: int, trial: Any, result: dict[str, Any]) -> None:
        """Record a result."""
        self.log_trial_start(trial)
        _record(self.runs[trial.trial_id], result)

    def log_trial_end(self, trial: Any, failed: bool = False) -> None:  # noqa: FBT001, FBT002 - Ray's
        """End a trial's run."""
        run = self.runs.pop(trial.trial_id, None)
        if run is not None:
            run.finish("failed" if failed else "finished")


class Record(RLlibCallback):
    """Records the algorithm it is made for; `record()` makes the class that RLlib wants.

    RLlib makes one on every env runner too: the run begins where the algorithm itself is.
    """

    folder: str | Path | None = None
    options: Mapping[str, Any] = {}

    def __init__(self) -> None:
        """Record nothing yet."""
        super().__init__()
        self.run: Run | None = None

    def on_algorithm_init(self, *, algorithm: Any, **_: Any) -> None:
        """Begin the run with the algorithm's whole configuration."""
        said = {
            "name": type(algorithm).__name__,
            "settings": hook_facts.plain(algorithm.config.to_dict()),
            **self.options,
        }
        self.run = start(self.folder or algorithm.logdir, **said)
        hook_facts.says(self.run, FRAMEWORK)

    def on_train_result(self, *, algorithm: Any, result: dict[str, Any], **_: Any) -> None:
        """Record what `algorithm.train()` returns."""
        if self.run is not None:
            _record(self.run, result)

    def on_checkpoint_loaded(self, *, algorithm: Any, **_: Any) -> None:
        """Say that training goes on from a checkpoint."""
        if self.run is not None:
            self.run.event("restore")


def record(folder: str | Path | None = None, **options: Any) -> type[Record]:
    """Return the callbacks of one run for `AlgorithmConfig.callbacks`.

    `folder` is the algorithm's own where none is given. The run ends with the process.
    """
    return type("RecordRun", (Record,), {"folder": folder, "options": options})


def _record(run: Run, result: Mapping[str, Any]) -> None:
    numbers = dict(hook_facts.numbers({key: v for key, v in result.items() if key != CONFIG}))
    step = next((numbers[name] for name in STEPS if name in numbers), None)
    if step is None:
        run.note("a result without a count of steps was left out")
        return
    kept = {key: value for key, value in numbers.items() if key.split("/")[-1] not in IDENTITY}
    run.log(int(step), kept)

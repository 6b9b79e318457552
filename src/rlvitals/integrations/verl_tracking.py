"""Add the logger "rlvitals" to verl, and to rLLM, whose `Tracking` is a copy of verl's.

    rlvitals run -- python -m verl.trainer.main_ppo 'trainer.logger=[console,rlvitals]' ...

Without the verb Ray's workers register the logger by their setup hook, a setting of Ray that verl
passes on; the run is then `runs/<project>/<experiment>`:

    +ray_kwargs.ray_init.runtime_env.worker_process_setup_hook=rlvitals.integrations.verl_tracking.register

Read from verl 1dda039 (after 0.9): verl/utils/tracking.py, trainer/main_ppo.py.
"""

from functools import wraps
from pathlib import Path
from typing import Any

from rlvitals.capture import imports, mirror
from rlvitals.wandb.recorded import Run


def register() -> None:
    """Let `Tracking` know the logger in this process, also where it is imported later."""
    imports.watch()


def follow(module: Any) -> None:
    """Add the logger to the `Tracking` class of a module; a second call does nothing."""
    tracking, name = module.Tracking, "rlvitals"
    if name in tracking.supported_backend:
        return
    tracking.supported_backend = [*tracking.supported_backend, name]
    original = tracking.__init__

    @wraps(original)
    def begin(  # the arguments' names are verl's
        self: Any,
        project_name: str,
        experiment_name: str,
        default_backend: str | list[str] = "console",
        config: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        original(self, project_name, experiment_name, default_backend, config, *args, **kwargs)
        if name in ([default_backend] if isinstance(default_backend, str) else default_backend):
            self.logger[name] = Logger(project_name, experiment_name, config)

    tracking.__init__ = begin
    finish = tracking.finish

    @wraps(finish)
    def end(self: Any, *args: Any, **kwargs: Any) -> None:
        finish(self, *args, **kwargs)
        if (ours := getattr(self, "logger", {}).get(name)) is not None:
            ours.finish(*args, **kwargs)

    tracking.finish = end


class Logger:
    """Records the rows of one `Tracking`."""

    def __init__(self, project: str, experiment: str, config: Any = None) -> None:
        """Begin the run, or join the one of `rlvitals run`."""
        facts = {"project": project, "name": experiment}
        folder = Path("runs", _file_name(project), _file_name(experiment))
        self._run: Run | None = mirror.begin(
            "verl", f"{project}/{experiment}", facts, config, folder=folder
        )

    def log(self, data: Any, step: int, **_: object) -> None:
        """Record a row."""
        if self._run is not None:
            self._run.log(data, step)

    def finish(self, exit_code: int = 0, **_: object) -> None:
        """End the run; a second call does nothing."""
        if self._run is not None:
            self._run.finish(exit_code)


def _file_name(text: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in text) or "_"

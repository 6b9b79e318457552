"""Write the scalars of rsl_rl into a run in the folder that it saves its models in.

    train_cfg["logger"] = {"class_name": "rlvitals.integrations.rsl_rl_writer:LogWriter"}

Read from rsl-rl-lib 5.5.1: rsl_rl/utils/log_writer.py, logger.py.
"""

from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from rsl_rl.utils.log_writer import LogWriter as Base

from rlvitals.capture import mirror
from rlvitals.wandb.recorded import Run


class LogWriter(Base):
    """Records the scalars of a runner, its settings and those of the environment."""

    def __init__(self, log_dir: str, **options: Any) -> None:
        """Begin the run in `log_dir`, or join the one of `rlvitals run`."""
        folder = Path(log_dir)
        facts = {"name": folder.name, **options}
        self._run: Run | None = mirror.begin("rsl_rl", str(folder), facts, folder=folder)

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        """Record a number; the second copy of a return, whose step is in seconds, is left out."""
        if self._run is not None and not tag.endswith("/time"):
            self._run.recording.log(global_step, {tag: scalar_value})

    def store_config(self, env_cfg: Any, train_cfg: dict[str, Any]) -> None:
        """Record the settings; the environment's stand below `env`."""
        if self._run is not None:
            environment = asdict(env_cfg) if is_dataclass(env_cfg) else env_cfg  # type: ignore[arg-type]
            self._run.config.update({**train_cfg, "env": environment})

    def stop(self) -> None:
        """End the run."""
        if self._run is not None:
            self._run.finish()

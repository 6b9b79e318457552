"""`wandb.integration.sb3`: the callback of W&B's own package for Stable-Baselines3."""

from pathlib import Path

from stable_baselines3.common.callbacks import BaseCallback

from rlvitals.wandb import session


class WandbCallback(BaseCallback):
    """Record the model's hyperparameters and gradients, and save the model to a file.

    The numbers come from Stable-Baselines3's TensorBoard writer, as with W&B's own callback:
    `wandb.init(sync_tensorboard=True)` and `tensorboard_log=...`.
    """

    def __init__(
        self,
        verbose: int = 0,
        model_save_path: str | None = None,
        model_save_freq: int = 0,
        gradient_save_freq: int = 0,
        log: str | None = "all",
    ) -> None:
        """Record into the run of `wandb.init`. Raises UsageError where none has begun."""
        super().__init__(verbose)
        session.current_run()
        self.model_save_freq, self.gradient_save_freq = model_save_freq, gradient_save_freq
        self.log = log
        self.path = None if model_save_path is None else Path(model_save_path, "model.zip")
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)

    def _init_callback(self) -> None:
        plain = {k: v for k, v in vars(self.model).items() if type(v) in {float, int, str}}
        facts = {"algo": type(self.model).__name__, **plain}
        run = session.current_run()
        if self.gradient_save_freq > 0:
            run.watch(self.model.policy, log=self.log, log_freq=self.gradient_save_freq)
        run.config.setdefaults(facts)

    def _on_step(self) -> bool:
        if self.model_save_freq > 0 and self.n_calls % self.model_save_freq == 0:
            self._save()
        return True

    def _on_training_end(self) -> None:
        self._save()

    def _save(self) -> None:
        if self.path is not None:
            self.model.save(self.path)
            session.current_run().save(self.path)

"""`wandb.watch`: histograms of a torch model's gradients and parameters."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlvitals.tracking.run import Run


class Watching:
    """Hooks on models, which are looked at in every so many backward passes."""

    def __init__(self, run: "Run") -> None:
        """Record into `run`."""
        self.run = run
        self.step = 0
        self.hooks: list[Any] = []

    def add(self, model: Any, log: str, every: int) -> None:
        """Watch a model's parameters: "gradients", "parameters" or "all" of them."""
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                hook = self._hook(name, parameter, log, every)
                self.hooks.append(parameter.register_hook(hook))

    def close(self) -> None:
        """Leave the models as they were."""
        for hook in self.hooks:
            hook.remove()
        self.hooks.clear()

    def _hook(self, name: str, parameter: Any, log: str, every: int) -> Any:
        passes = 0

        def look(gradient: Any) -> None:
            nonlocal passes
            passes += 1
            if passes % every:
                return
            if log in {"gradients", "all"}:
                self.run.log_histogram(self.step, f"gradients/{name}", gradient.detach())
            if log in {"parameters", "all"}:
                self.run.log_histogram(self.step, f"parameters/{name}", parameter.detach())

        return look

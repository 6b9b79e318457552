"""Callback that checks the first update of a Stable-Baselines3 training."""

import copy
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from rlvitals.integrations.stable_baselines3 import hyperparameters, rollouts
from rlvitals.sanity_checks import environments, updates
from rlvitals.sanity_checks import preflight as made
from rlvitals.sanity_checks.check import Check, CouldNotCheck, Outcome, run_check

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from rlvitals import sanity_checks
    from rlvitals.tracking.run import Run

MAX_TRANSITIONS = (
    1024  # transitions asked again: enough to see a ratio off 1, milliseconds to compute
)
NOISY_LAYERS = (torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._BatchNorm)  # noqa: SLF001 - torch has no public base class for them


class Preflight(BaseCallback):
    """Checks the first update: `model.learn(..., callback=[Record(run), Preflight(run)])`.

    Changes nothing: policies and environments are evaluated on copies. The report is
    `.report`; a failure is printed, and with `stop=True` raised as a VitalsError.
    """

    def __init__(
        self,
        run: "Run | None" = None,
        *,
        make_env: "Callable[[], gym.Env[Any, Any]] | None" = None,
        stop: bool = False,
    ) -> None:
        """Report into `run`, if any. `make_env` creates the environment for `check_env`."""
        super().__init__()
        self.run: Any = run
        self.make_env = make_env
        self.stop = stop
        self.checks: list[Check] = []
        self.before: dict[str, Tensor] = {}
        self.updates = 0
        self.report: sanity_checks.Preflight | None = None

    def _on_training_start(self) -> None:
        self.report = None
        self.before = {}
        self.checks = [run_check("check-env", "Gymnasium's check_env passes", self._check_env)]
        self.position = getattr(getattr(self.model, "replay_buffer", None), "pos", 0)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        model: Any = self.model
        is_off_policy = not isinstance(model, OnPolicyAlgorithm)
        if self.report is not None or self.before:
            return
        if is_off_policy and self.num_timesteps <= model.learning_starts:
            return
        self._look(self._off_policy() if is_off_policy else self._on_policy())
        self.updates = getattr(model, "_n_updates", 0)
        self.before = {name: p.detach().clone() for name, p in self._trained_parameters()}

    def _look(self, checks: Iterator[Check]) -> None:
        try:
            self.checks += checks
        except Exception as error:  # noqa: BLE001 - a preflight reports and never ends a training
            outcome = CouldNotCheck(f"{type(error).__name__}: {error}")
            self.checks.append(Check("first-rollout", "the first rollout is in order", outcome))

    def _on_rollout_start(self) -> None:
        self._judge()

    def _on_training_end(self) -> None:
        self._judge()
        if self.report is None and self.before:
            self.checks.append(
                Check(
                    "weights-moved",
                    "the first update moved every trained weight",
                    CouldNotCheck("no update was made"),
                )
            )
        if self.report is None:
            self._tell()

    def _judge(self) -> None:
        """Compare the weights once every network had its first gradient step."""
        if self.report is not None or not self.before:
            return
        steps = getattr(self.model, "_n_updates", 0) - self.updates
        if steps < max(1, getattr(self.model, "policy_delay", 1)):  # TD3's actor learns later
            return
        self.checks.append(updates.check_weights(self.before, dict(self._trained_parameters())))
        self._tell()

    def _tell(self) -> None:
        self.report = made(*self.checks)
        self.before = {}
        failed = [str(check.name) for check in self.report.failed]
        if self.run is not None:
            summary = {
                "passed": len(self.report.passed),
                "failed": failed,
                "report": str(self.report),
            }
            self.run.event("preflight", step=self.num_timesteps, **summary)
        if self.stop:
            self.report.require()
        if failed:
            print(self.report, file=sys.stderr)  # noqa: T201 - a person should see it

    def _trained_parameters(self) -> Iterator[tuple[str, "Tensor"]]:
        for name, p in self.model.policy.named_parameters():
            if p.requires_grad and "target" not in name:
                yield name, p

    def _check_env(self) -> Outcome:
        if self.make_env:
            env = self.make_env()
        else:
            name = hyperparameters.env_id(self.training_env)
            if name not in gym.registry:
                raise LookupError(f"{name or 'the environment'} is not registered: give make_env")
            env = gym.make(name)
        try:
            (check,) = environments.check_environment(env)
            return check.outcome
        finally:
            env.close()

    def _off_policy(self) -> Iterator[Check]:
        rollout = rollouts.of_replay(self.model.replay_buffer, self.position)  # type: ignore[attr-defined] # off-policy
        yield from self._check_observations(rollout)

    def _on_policy(self) -> Iterator[Check]:
        model: Any = self.model
        rollout = rollouts.of_rollout(model.rollout_buffer)
        yield from self._check_observations(rollout)
        first = next(iter(rollout.observations.values()))
        is_start = model.rollout_buffer.episode_starts.astype(bool)
        yield environments.check_starts([first[is_start[:, i], i] for i in range(model.n_envs)])
        trained_model: Any = self.model
        old = rollout.more["log_probs"].ravel()[:MAX_TRANSITIONS]
        new = self._log_probs(trained_model.policy, rollout)
        yield updates.check_ratio(np.exp(new - old))
        if any(isinstance(module, NOISY_LAYERS) for module in trained_model.policy.modules()):
            learning = copy.deepcopy(trained_model.policy)
            learning.set_training_mode(True)
            devices = [trained_model.device] if trained_model.device.type == "cuda" else []
            with torch.random.fork_rng(devices):
                training_log_probs = self._log_probs(learning, rollout)
            note = "; dropout or batch normalisation changes the policy between the two"
            yield updates.check_ratio(
                np.exp(training_log_probs - old), variable="ratio in training mode", note=note
            )
        advantages = rollout.more["advantages"]
        yield updates.check_advantages(advantages)
        if getattr(model, "normalize_advantage", False):
            flat = advantages.ravel()[: getattr(model, "batch_size", advantages.size)]
            # ppo.py and a2c.py, train: the same expression on the first samples of the rollout.
            white = (flat - flat.mean()) / (flat.std(ddof=1) + np.float32(1e-8))
            yield updates.check_normalised_advantages(white, variable="normalised advantages")

    def _check_observations(self, rollout: rollouts.Collected) -> Iterator[Check]:
        for name, values in rollout.observations.items():
            flat = values.reshape(-1, *values.shape[2:])
            yield from environments.check_observations(flat, variable=rollouts.variable(name))

    def _log_probs(self, policy: Any, rollout: rollouts.Collected) -> NDArray[np.float32]:
        model: Any = self.model
        observations = {
            k: x.reshape(-1, *x.shape[2:])[:MAX_TRANSITIONS]
            for k, x in rollout.observations.items()
        }
        actions = torch.as_tensor(
            rollout.actions.reshape(-1, *rollout.actions.shape[2:])[:MAX_TRANSITIONS]
        )
        if isinstance(model.action_space, spaces.Discrete):
            actions = actions.long().flatten()
        with torch.no_grad():
            tensors = policy.obs_to_tensor(observations.get("", observations))[0]
            tensors = policy.evaluate_actions(tensors, actions.to(model.device))[1]
        log_probs: NDArray[np.float32] = tensors.cpu().numpy()
        return log_probs

"""A preflight of Stable-Baselines3 by one callback: what must hold at the first update."""

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

MOST = 1024  # transitions asked again: enough to see a ratio off 1, milliseconds to compute
NOISY = (torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._BatchNorm)  # noqa: SLF001 - torch has no public base class for them


class Preflight(BaseCallback):
    """Checks the first update: `model.learn(..., callback=[Record(run), Preflight(run)])`.

    Changes nothing: what it asks of a policy or an environment it asks of a copy. The report is
    `.report`; a failure is printed, and with `stop=True` raised as a VitalsError.
    """

    def __init__(
        self,
        run: "Run | None" = None,
        *,
        make_env: "Callable[[], gym.Env[Any, Any]] | None" = None,
        stop: bool = False,
    ) -> None:
        """Report into `run` if there is one. `make_env` makes the environment for `check_env`."""
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
        late = not isinstance(model, OnPolicyAlgorithm)
        if self.report is not None or self.before:
            return
        if late and self.num_timesteps <= model.learning_starts:
            return
        self._look(self._off_policy() if late else self._on_policy())
        self.updates = getattr(model, "_n_updates", 0)
        self.before = {name: p.detach().clone() for name, p in self._trained()}

    def _look(self, checks: Iterator[Check]) -> None:
        try:
            self.checks += checks
        except Exception as error:  # noqa: BLE001 - a preflight reports and never ends a training
            why = CouldNotCheck(f"{type(error).__name__}: {error}")
            self.checks.append(Check("first-rollout", "the first rollout is in order", why))

    def _on_rollout_start(self) -> None:
        self._judge()

    def _on_training_end(self) -> None:
        self._judge()
        if self.report is None and self.before:
            self.checks.append(_unmade("weights-moved", "no update was made"))
        if self.report is None:
            self._tell()

    def _judge(self) -> None:
        """Compare the weights once every network was due for its first gradient step."""
        if self.report is not None or not self.before:
            return
        done = getattr(self.model, "_n_updates", 0) - self.updates
        if done < max(1, getattr(self.model, "policy_delay", 1)):  # TD3's actor learns later
            return
        self.checks.append(updates.check_weights(self.before, dict(self._trained())))
        self._tell()

    def _tell(self) -> None:
        self.report = made(*self.checks)
        self.before = {}
        failed = [str(check.name) for check in self.report.failed]
        if self.run is not None:
            said = {"passed": len(self.report.passed), "failed": failed, "report": str(self.report)}
            self.run.event("preflight", step=self.num_timesteps, **said)
        if self.stop:
            self.report.require()
        if failed:
            print(self.report, file=sys.stderr)  # noqa: T201 - a person should see it

    def _trained(self) -> Iterator[tuple[str, "Tensor"]]:
        for name, p in self.model.policy.named_parameters():
            if p.requires_grad and hyperparameters.TARGET not in name:
                yield name, p

    def _check_env(self) -> Outcome:
        env = self.make_env() if self.make_env else gym.make(self._registered())
        try:
            (check,) = environments.check_environment(env)
            return check.outcome
        finally:
            env.close()

    def _registered(self) -> str:
        name = hyperparameters.env_id(self.training_env)
        if name not in gym.registry:
            raise LookupError(f"{name or 'the environment'} is not registered: give make_env")
        return name

    def _off_policy(self) -> Iterator[Check]:
        found = rollouts.of_replay(self.model.replay_buffer, self.position)  # type: ignore[attr-defined] # off-policy
        yield from self._seen(found)

    def _on_policy(self) -> Iterator[Check]:
        model: Any = self.model
        found = rollouts.of_rollout(model.rollout_buffer)
        yield from self._seen(found)
        first = next(iter(found.observations.values()))
        began = model.rollout_buffer.episode_starts.astype(bool)
        yield environments.check_starts([first[began[:, i], i] for i in range(model.n_envs)])
        yield from self._ratios(found)
        advantages = found.more["advantages"]
        yield updates.check_advantages(advantages)
        if getattr(model, "normalize_advantage", False):
            flat = advantages.ravel()[: getattr(model, "batch_size", advantages.size)]
            # ppo.py and a2c.py, train: the same expression on the first samples of the rollout.
            white = (flat - flat.mean()) / (flat.std(ddof=1) + np.float32(1e-8))
            yield updates.check_normalised_advantages(white, variable="normalised advantages")

    def _seen(self, found: rollouts.Collected) -> Iterator[Check]:
        for name, values in found.observations.items():
            flat = values.reshape(-1, *values.shape[2:])
            yield from environments.check_observations(flat, variable=rollouts.variable(name))

    def _ratios(self, found: rollouts.Collected) -> Iterator[Check]:
        """Ask the policy again, as it collected and as it will learn."""
        model: Any = self.model
        old = found.more["log_probs"].ravel()[:MOST]
        new = self._log_probs(model.policy, found)
        yield updates.check_ratio(np.exp(new - old))
        if any(isinstance(module, NOISY) for module in model.policy.modules()):
            learning = copy.deepcopy(model.policy)
            learning.set_training_mode(True)
            devices = [model.device] if model.device.type == "cuda" else []
            with torch.random.fork_rng(devices):
                again = self._log_probs(learning, found)
            note = "; dropout or batch normalisation changes the policy between the two"
            yield updates.check_ratio(
                np.exp(again - old), variable="ratio in training mode", note=note
            )

    def _log_probs(self, policy: Any, found: rollouts.Collected) -> NDArray[np.float32]:
        model: Any = self.model
        seen = {k: x.reshape(-1, *x.shape[2:])[:MOST] for k, x in found.observations.items()}
        actions = torch.as_tensor(found.actions.reshape(-1, *found.actions.shape[2:])[:MOST])
        if isinstance(model.action_space, spaces.Discrete):
            actions = actions.long().flatten()
        with torch.no_grad():
            asked = policy.obs_to_tensor(seen.get("", seen))[0]
            asked = policy.evaluate_actions(asked, actions.to(model.device))[1]
        found_again: NDArray[np.float32] = asked.cpu().numpy()
        return found_again


def _unmade(name: str, why: str) -> Check:
    return Check(name, "the first update moved every trained weight", CouldNotCheck(why))

"""Evaluate the policy during training on fixed arrivals or episodes.

A rollout's return varies with what arrives and with the actions drawn. Here both stay the same, so
what changes is the policy. Nothing of it is the training's: environments and random numbers are its
own, so the training is bit for bit the same with it and without.
"""

import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import rlvitals
from rlvitals.trainers.ppo import cluster, evaluate
from rlvitals.trainers.ppo.config import Config
from rlvitals.trainers.ppo.ppo import PPO

# Far from the seeds that a finished run is evaluated with.
HELD_OUT_SEED = 2**20
Numbers = dict[str, float]


def best(config: Config) -> rlvitals.Best | None:
    """Return by what a checkpoint is the best; None: none is.

    Raises UsageError for an evaluation's number where nothing is evaluated.
    """
    name, evaluated = config.checkpointing.keep_best, is_enabled(config)
    if name == "auto":
        aim = "latency" if _is_cluster(config) else "return"
        name = f"eval_{aim}" if evaluated else "ep_return"
    elif name.startswith("eval_") and not evaluated:
        raise rlvitals.UsageError(
            f"no checkpoint is the best by {name}: nothing is evaluated",
            where="checkpointing.keep_best", hint="evaluation.held_out_episodes, or ep_return",
        )  # fmt: skip
    return rlvitals.Best(name, "min" if "latency" in name else "max") if name else None


def is_enabled(config: Config) -> bool:
    """Return True if the settings ask for evaluations."""
    evaluation = config.evaluation
    return evaluation.enable and (_is_cluster(config) or evaluation.held_out_episodes > 0)


def _is_cluster(config: Config) -> bool:
    return config.training.env == cluster.ID


class Evaluator:
    """The evaluations of one training. Raises UsageError for sizes that show nothing."""

    def __init__(
        self, ppo: PPO, config: Config, recorder: rlvitals.Run, log: logging.Logger
    ) -> None:
        """Evaluate nothing yet."""
        self._ppo, self._config, self._own = ppo, config, config.evaluation
        self._recorder, self._log = recorder, log
        self._serves, self.enabled = _is_cluster(config), is_enabled(config)
        self._every = self._own.interval or max(ppo.total_steps // 20, 1)
        self._last_step = 0  # the step up to which evaluations are made
        self._busy: cluster.Busy | None = None
        self.returns: list[float] = []  # of each evaluation since the program began

    def begin(self) -> None:
        """Before the first update of a run: evaluate its baseline and the policy it begins with."""
        self._last_step = self._ppo.global_step
        if self.enabled and not self._last_step:
            self._recorder.log(0, (self._baseline() if self._serves else {}) | self._evaluate())

    def after_update(self) -> Numbers:
        """Evaluate where it is time; returns nothing where it is not."""
        step, last_step = self._ppo.global_step, self._last_step
        is_final = step >= self._ppo.total_steps > last_step
        if not self.enabled or not (is_final or step // self._every > last_step // self._every):
            return {}
        self._last_step = step
        return self._evaluate()

    def _evaluate(self) -> Numbers:
        trained = evaluate.Trained(self._ppo, self._config, self._ppo.global_step)
        if self._serves:
            metrics = self._numbers("eval", trained.schedule)
        else:
            with _preserve_global_rng():
                episodes = evaluate.on_episodes(
                    trained, seed=HELD_OUT_SEED, episodes=self._own.held_out_episodes
                )
            metrics = {
                "eval_return": float(np.mean(episodes.returns)),
                "eval_length": float(np.mean(episodes.lengths)),
            }
        self.returns.append(metrics["eval_return"])
        self._say("ppo", metrics)
        return metrics

    def _baseline(self) -> Numbers:
        name = self._own.baseline_scheduler
        metrics = self._numbers("baseline", cluster.baselines()[name])
        self._recorder.event("baseline", 0, scheduler=name, **metrics)
        self._say(name, metrics)
        return metrics

    def _numbers(self, prefix: str, policy: cluster.Policy) -> Numbers:
        config, evaluation = self._config.environment, self._own
        if self._busy is None:
            # Idle clusters are easy: a policy trained for busy ones is no better on them.
            warm = cluster.baselines()["lor/speed"]
            self._busy = cluster.busy(
                warm, config, seed=HELD_OUT_SEED, envs=evaluation.held_out_clusters
            )
        result = cluster.evaluate(
            policy,
            config,
            envs=evaluation.held_out_clusters,
            steps=evaluation.held_out_decisions,
            begin=self._busy,
        )
        return {
            f"{prefix}_return": result.reward * config.horizon,  # as an episode of the training has
            f"{prefix}_latency": result.mean, f"{prefix}_latency_p95": result.p95,
            f"{prefix}_latency_p99": result.p99,
        }  # fmt: skip

    def _say(self, policy_name: str, metrics: Numbers) -> None:
        text = " ".join(f"{name.partition('_')[2]}={value:.4g}" for name, value in metrics.items())
        self._log.info("[PPO:evaluation] step=%d %s %s", self._ppo.global_step, policy_name, text)


@contextmanager
def _preserve_global_rng() -> Iterator[None]:
    """Put the random numbers that environments may share back to where they were."""
    python, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002 - the shared ones
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpys)  # noqa: NPY002

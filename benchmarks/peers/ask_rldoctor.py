"""rldoctor (rl-doctor), https://github.com/junglezke/rl-doctor, Apache-2.0.

A doctor of GRPO and PPO runs of language models. Fed through its Python interface for records
(`run_from_records`, then `diagnose`), its defaults, one record a row. Its own table of names takes
three of Stable-Baselines3's (`train/loss`, `train/learning_rate`, and `train/entropy_loss` with
the wrong sign), so the keys are renamed to the names it knows. It takes PPO's KL between old and
new policy for its KL (its table lists verl's `actor/ppo_kl`), and so it is given `approx_kl`.

`diagnose` gives no step. What it finds in the whole run counts; steps are those of the warnings of
the same detector in its `LiveMonitor`, fed the same rows with its defaults (from the 60th row,
every 25), where there were any.
"""

import logging
from collections.abc import Mapping

from peers.exchange import ERROR, STEPS, WARNING, Alarm, Given, answer, first, installed, known
from rl_doctor import diagnose
from rl_doctor.detectors.base import Finding, Severity
from rl_doctor.ingest.base import run_from_records
from rl_doctor.live import LiveMonitor

NOT_MAPPED = (
    "advantage_collapse, reward_hacking, reward_composition: what they read is not logged",
    "length_pathology: an episode's length is no response's length; in CartPole it is the return",
)


def record(row: Mapping[str, float], index: int) -> dict[str, float]:
    """Rename a row's keys to the names that rldoctor knows."""
    entropy = row.get("train/entropy_loss")
    return known(
        step=row.get(STEPS, index),
        reward=row.get("rollout/ep_rew_mean"),
        entropy=None if entropy is None else -entropy,
        kl=row.get("train/approx_kl"),
        clip_ratio=row.get("train/clip_fraction"),
        grad_norm=row.get("train/grad_norm"),
        learning_rate=row.get("train/learning_rate"),
        policy_loss=first(
            row, "train/policy_gradient_loss", "train/policy_loss", "train/actor_loss"
        ),
        explained_variance=row.get("train/explained_variance"),
    )


def config(run: Given) -> dict[str, object]:
    """Rename the settings that rldoctor's configuration knows."""
    settings = {
        "algorithm": run.algorithm,
        "batch_size": run.settings.get("batch_size"),
        "learning_rate": run.settings.get("learning_rate"),
        "entropy_coef": run.settings.get("ent_coef"),
        "clip_eps_low": run.settings.get("clip_range"),
        "clip_eps_high": run.settings.get("clip_range"),
        "max_steps": run.budget,
    }
    return {key: value for key, value in settings.items() if value is not None}


def ask(run: Given) -> list[Alarm]:
    """Diagnose a whole run, and take the steps from a live monitor."""
    records = [record(row, index) for index, row in enumerate(run.rows)]
    if not records:
        return []
    settings = config(run)
    problems = diagnose(run_from_records(records, config=settings)).problems
    alarms = [alarm(finding, None) for finding in problems if finding.severity >= Severity.WARNING]
    monitor = LiveMonitor(config=settings, on_finding=_silent)
    live = [
        alarm(finding, int(live_alarm["step"]))
        for live_alarm in records
        for finding in monitor.log(live_alarm)
    ]
    final = {live_alarm.id for live_alarm in alarms}
    return [*alarms, *(live_alarm for live_alarm in live if live_alarm.id in final)]


def alarm(finding: Finding, step: int | None) -> Alarm:
    """Name a finding by its detector."""
    severity = ERROR if finding.severity is Severity.CRITICAL else WARNING
    return Alarm(finding.detector, severity, step)


def _silent(finding: Finding) -> None:
    del finding


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    source = "https://github.com/junglezke/rl-doctor"
    answer(installed("rldoctor", "Apache-2.0", source, NOT_MAPPED), ask)

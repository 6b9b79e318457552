"""rlwatch, https://github.com/varun1724/rlwatch, MIT.

A live monitor of GRPO and PPO runs. Fed as its documentation says for a loop of one's own:
`attach(framework="manual")`, then `log_step` for every row, its defaults. Its step is the row's
number, as in its examples, for its warm-up and its pause between alerts count steps; an alert's
step is turned back into environment steps. `approx_kl` is a name that its own TRL callback takes
for the KL. Alerts count that it would have sent, after its pause and its limit of 50.
"""

import logging
from collections.abc import Mapping

import rlwatch
from peers.exchange import ERROR, WARNING, Alarm, Given, answer, first, installed, known

NOT_MAPPED = (
    "reward_hacking: the spread of the rewards is not logged",
    "advantage_variance: the spread of the advantages is not logged",
)


def metrics(row: Mapping[str, float]) -> dict[str, float]:
    """Rename a row's keys to the arguments of `log_step`."""
    entropy = row.get("train/entropy_loss")
    return known(
        entropy=None if entropy is None else -entropy,
        kl_divergence=row.get("train/approx_kl"),
        reward_mean=row.get("rollout/ep_rew_mean"),
        loss=first(row, "train/loss", "train/critic_loss", "train/value_loss"),
        learning_rate=row.get("train/learning_rate"),
        clip_fraction=row.get("train/clip_fraction"),
        grad_norm=row.get("train/grad_norm"),
    )


def ask(run: Given) -> list[Alarm]:
    """Log every row and gather the alerts that were sent."""
    monitor = rlwatch.attach(framework="manual", run_id=run.folder.name)
    alarms = []
    for index, (row, step) in enumerate(zip(run.rows, run.steps, strict=True)):
        for alert in monitor.log_step(index, **metrics(row)):
            severity = ERROR if alert.severity == "critical" else WARNING
            alarms.append(Alarm(alert.detector, severity, step))
    monitor.stop()
    return alarms


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    source = "https://github.com/varun1724/rlwatch"
    answer(installed("rlwatch", "MIT", source, NOT_MAPPED), ask)

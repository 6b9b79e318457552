"""rlprobe, https://github.com/Nick-2908/rlprobe, Apache-2.0.

A recorder and a doctor of GRPO and PPO runs. Fed a `StepRecord` a row, which is what its
`Recorder.log_step` stores, and asked by `diagnose_view`, its defaults; nothing goes over the disk.
Its KL is the one to a reference model; PPO's KL between old and new policy is the nearest that
these logs have. A row whose training columns hold a NaN or an infinity counts as one NaN event.
"""

from peers.exchange import ERROR, WARNING, Alarm, Given, answer, finite, first, installed, known
from rlprobe.doctor.engine import diagnose_view
from rlprobe.doctor.runview import RunView
from rlprobe.schemas import RunManifest, StepRecord

SEVERITIES = {"warn": WARNING, "critical": ERROR}  # and "info", which is no alarm
NOT_MAPPED = (
    "FORMAT_GAMING, DEGENERATE_GROUPS, ADV_COLLAPSE, REWARD_STD_DEATH: not logged",
    "TRUNCATION_STARVE, REPETITION_SPIRAL, REF_POLICY_DRIFT_ASYMMETRY: not logged",
    "REWARD_HACK_LENGTH: an episode's length is no completion's length",
    "THROUGHPUT_ROT: only ever an info",
)


def record(run: Given, index: int) -> StepRecord:
    """Rename a row's keys to the fields of a step record."""
    row, step = run.rows[index], run.steps[index]
    entropy = row.get("train/entropy_loss")
    trained = [value for key, value in row.items() if key.startswith("train/")]
    fields = known(
        reward_mean=row.get("rollout/ep_rew_mean"),
        entropy_mean=None if entropy is None else -entropy,
        kl_mean=row.get("train/approx_kl"),
        clip_fraction=row.get("train/clip_fraction"),
        value_loss=first(row, "train/value_loss", "train/critic_loss"),
        value_explained_variance=row.get("train/explained_variance"),
        loss=row.get("train/loss"),
        lr=row.get("train/learning_rate"),
        grad_norm=row.get("train/grad_norm"),
    )
    broken = any(not finite(value) for value in trained)
    return StepRecord(step=step, nan_count=int(broken), **fields)


def ask(run: Given) -> list[Alarm]:
    """Run its catalogue over the recording."""
    manifest = RunManifest(
        run_id=run.folder.name, created_at="1970-01-01T00:00:00", algorithm=run.algorithm
    )
    view = RunView(manifest, [record(run, index) for index in range(len(run.rows))])
    return [
        Alarm(finding.signature_id, SEVERITIES[finding.severity], finding.first_step)
        for finding in diagnose_view(view)
        if finding.severity in SEVERITIES
    ]


if __name__ == "__main__":
    source = "https://github.com/Nick-2908/rlprobe"
    answer(installed("rlprobe", "Apache-2.0", source, NOT_MAPPED), ask)

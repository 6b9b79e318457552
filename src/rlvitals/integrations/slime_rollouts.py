"""Record the samples of slime and miles, which call these functions with each rollout.

    --custom-rollout-log-function-path rlvitals.integrations.slime_rollouts.log_rollout
    --custom-eval-rollout-log-function-path rlvitals.integrations.slime_rollouts.log_eval_rollout

The numbers of the optimiser do not pass here: `rlvitals run` with `--use-tensorboard` records them.

Read from slime 624b824: slime/observability/rollout_metrics.py, utils/types.py; miles 31f1ca9:
miles/ray/rollout/metrics.py.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rlvitals.capture import mirror
from rlvitals.wandb.recorded import Run

_runs: list[Run] = []  # of this process, at most one


def log_rollout(
    rollout_id: int, args: Any, samples: Any, rollout_extra_metrics: Any, rollout_time: float
) -> bool:
    """Record the samples of a rollout; False: slime's own logging follows."""
    flat = list(_leaves(samples))
    rewards = [reward for sample in flat if (reward := _reward(args, sample)) is not None]
    columns = {
        "rollout/raw_reward": rewards,
        "rollout/response_len/mean": [sample.effective_response_length for sample in flat],
        "rollout/truncated_ratio": [
            getattr(sample.status, "value", "") == "truncated" for sample in flat
        ],
    }
    row = {key: sum(cells) / len(cells) for key, cells in columns.items() if cells}
    row |= {"perf/rollout_time": rollout_time, **(rollout_extra_metrics or {})}
    _record(rollout_id, args, row, (_sample(args, sample) for sample in flat))
    return False


def log_eval_rollout(
    rollout_id: int, args: Any, data: Mapping[str, Mapping[str, Any]], extra_metrics: Any = None
) -> bool:
    """Record the samples and the mean reward of each evaluation set; False as above."""
    row: dict[str, Any] = dict(extra_metrics or {})
    records: list[dict[str, Any]] = []
    for name, fields in data.items():
        rewards = [reward for reward in fields["rewards"] if reward is not None]
        if rewards:
            row[f"eval/{name}"] = sum(rewards) / len(rewards)
        samples = _leaves(fields.get("samples") or ())
        records += [{**_sample(args, each), "task": name, "split": "eval"} for each in samples]
    _record(rollout_id, args, row, records)
    return False


def _record(
    step: int, args: Any, row: Mapping[str, Any], samples: Iterable[Mapping[str, Any]]
) -> None:
    if not _runs:
        name = getattr(args, "wandb_group", None) or getattr(args, "tb_experiment_name", None)
        project = getattr(args, "wandb_project", None) or getattr(args, "tb_project_name", None)
        facts = {"name": name or "slime", "project": project}
        folder = Path(getattr(args, "save", None) or "runs", "rlvitals")
        run = mirror.begin("slime", str(facts["name"]), facts, vars(args), folder=folder)
        if run is None:
            return
        _runs.append(run)
    recording = _runs[0].recording
    recording.log(step, {key: value for key, value in row.items() if _is_number(value)})
    recording.log_rollouts(step, list(samples))


def _leaves(samples: Any) -> Iterator[Any]:
    for sample in samples:
        if isinstance(sample, list | tuple):
            yield from _leaves(sample)
        else:
            yield sample


def _reward(args: Any, sample: Any) -> float | None:
    """Return the number that the sample is paid: of several rewards the one of `--reward-key`."""
    reward = sample.reward
    if isinstance(reward, Mapping):
        reward = reward.get(getattr(args, "reward_key", None))
    return float(reward) if _is_number(reward) else None


def _sample(args: Any, sample: Any) -> dict[str, Any]:
    record = {
        "prompt": sample.prompt,
        "completion": sample.response,
        "reward": _reward(args, sample),
        "group": sample.group_index,
        "answer": sample.label,
        "stop_reason": str(getattr(sample.status, "value", sample.status)),
        "token_count": sample.response_length,
    }
    if isinstance(sample.reward, Mapping):
        record["rewards"] = {k: v for k, v in sample.reward.items() if _is_number(v)}
    return {key: value for key, value in record.items() if value is not None}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)

"""Language runs for the tools, under names that they share, with the standard library only.

A run is a JSON list of rows. A row holds what of `FIELDS` the log has at a step. The names are
ours; each tool's module turns them into its own.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from peers.exchange import Alarm, Tool

# Field, and the canonical names of rlvitals, the first that a log has.
FIELDS = {
    "reward": ("outcome/reward", "outcome/score"),
    "reward_std": ("reward/std",),
    "group_std_zero": ("reward/group_zero_std",),
    "entropy": ("exploration/entropy",),
    "kl": ("policy/kl_to_reference_per_token", "policy/kl_to_reference"),
    "update_kl": ("policy/approx_kl",),
    "clip_fraction": ("policy/clip_fraction_effective", "policy/clip_fraction"),
    "ratio": ("policy/ratio", "policy/sampler_ratio_mean"),
    "grad_norm": ("optimiser/grad_norm",),
    "learning_rate": ("optimiser/learning_rate",),
    "loss": ("optimiser/loss", "policy/loss"),
    "value_loss": ("value/loss",),
    "length": ("language/length_mean",),
    "truncated": ("language/truncated_share",),
    "repetition": ("language/repetition_share",),
    "margin": ("preference/margin",),
    "accuracy": ("preference/accuracy",),
    "chosen_logp": ("preference/chosen_logp",),
    "rejected_logp": ("preference/rejected_logp",),
    "evaluation_loss": ("optimiser/eval_loss", "outcome/eval_loss"),
}
Row = Mapping[str, float]


@dataclass(frozen=True)
class Given:
    """A run as a tool gets it: no name, no fault."""

    name: str  # a number
    algorithm: str  # grpo, psr, nsr, w-reinforce, sft, dpo or rlhf-ppo
    rows: Sequence[Row]
    settings: Mapping[str, object]


def read(path: Path) -> list[Given]:
    """Read the runs that `language_peers.py` wrote."""
    return [Given(**each) for each in json.loads(path.read_text())]


def renamed(row: Row, names: Mapping[str, str]) -> dict[str, float]:
    """Rename the fields of a row to a tool's own; what it has no name for is left out."""
    return {names[field]: value for field, value in row.items() if field in names}


def answer(tool: Tool, ask: Callable[[Given], Sequence[Alarm]]) -> None:
    """Ask a tool about every run of the file argv[2], write its alarms to argv[3]."""
    alarms = {run.name: ask(run) for run in read(Path(sys.argv[2]))}
    Path(sys.argv[3]).write_text(json.dumps({**vars(tool), "alarms": alarms}, indent=1))

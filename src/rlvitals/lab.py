"""What tools built on rlvitals need besides the public names: types, meters, calibration.

>>> from rlvitals import lab
>>> lab.Ema(0.9)  # doctest: +SKIP

- Findings and their parts: `Alternative`, `Band`, `Bound`, `Case`, `Check`, `Clear`, `Coverage`,
  `Forecast`, `Knob`, `Preflight`, `Rate`, `Rule`, `Sentence`, `Spent`, `Undecided`, `Waste`.
- Logs and metrics: `Budget`, `Comparison`, `Lifecycle`, `Log`, `Measured`, `Metric`, `Profile`,
  `Series`.
- Meters for a training loop: `Ema`, `SpeedMeter`, `action_histogram`, `action_shares`,
  `reward_parts`.
- Progress, requests and checkpoints: `Checkpoint`, `Keeper`, `Progress`, `Requests`, `Resumed`,
  `disk_is_full`.
- Diagnosis over time and its calibration: `Judged`, `Retraction`, `reduce_diagnosis`, `prefixes`,
  `rates_module`, `ray_map`, `summarise`, `tally`.
- Options, texts and errors of a command: `nearest`, `option`, `quantity`.
- The commands of these names for one run, as functions: `plot`, `report`.
- A run's folder, or a page of `rlvitals serve`, as a trace: `open`.
- The calls of a script for W&B or TensorBoard: `init`, `log`, `finish`, `SummaryWriter`.
"""

from typing import TYPE_CHECKING, Any

import rlvitals
from rlvitals.errors import unknown_name

if TYPE_CHECKING:
    from rlvitals.api import open, plot, report, summarise  # noqa: A004 - as of other readers
    from rlvitals.checkpoints.catalog import Checkpoint
    from rlvitals.checkpoints.disk import disk_is_full
    from rlvitals.checkpoints.progress import Keeper, Progress
    from rlvitals.checkpoints.resume_result import Resumed
    from rlvitals.comparison.result import Comparison
    from rlvitals.diagnosis.calibration import Judged, rates_module, reduce_diagnosis, tally
    from rlvitals.diagnosis.cost import Spent, Waste
    from rlvitals.diagnosis.coverage import Coverage
    from rlvitals.diagnosis.forecast import Forecast
    from rlvitals.diagnosis.ray_map import ray_map
    from rlvitals.diagnosis.remedies import Knob
    from rlvitals.diagnosis.replay import Retraction, prefixes
    from rlvitals.diagnosis.root_cause import Alternative, Case
    from rlvitals.diagnosis.summary import Sentence
    from rlvitals.errors import nearest, quantity
    from rlvitals.integrations.torch_tensorboard import SummaryWriter
    from rlvitals.metrics.metric import Band, Bound, Metric
    from rlvitals.options import option
    from rlvitals.rules.rate import Rate
    from rlvitals.rules.rule import Clear, Rule, Undecided
    from rlvitals.sanity_checks import Check, Preflight
    from rlvitals.tracking.meters import (
        Ema,
        SpeedMeter,
        action_histogram,
        action_shares,
        reward_parts,
    )
    from rlvitals.tracking.requests import Requests
    from rlvitals.types import Budget, Lifecycle, Log, Measured, Profile, Series
    from rlvitals.wandb.session import finish, init, log

__all__ = [
    "Alternative",
    "Band",
    "Bound",
    "Budget",
    "Case",
    "Check",
    "Checkpoint",
    "Clear",
    "Comparison",
    "Coverage",
    "Ema",
    "Forecast",
    "Judged",
    "Keeper",
    "Knob",
    "Lifecycle",
    "Log",
    "Measured",
    "Metric",
    "Preflight",
    "Profile",
    "Progress",
    "Rate",
    "Requests",
    "Resumed",
    "Retraction",
    "Rule",
    "Sentence",
    "Series",
    "SpeedMeter",
    "Spent",
    "SummaryWriter",
    "Undecided",
    "Waste",
    "action_histogram",
    "action_shares",
    "disk_is_full",
    "finish",
    "init",
    "log",
    "nearest",
    "open",
    "option",
    "plot",
    "prefixes",
    "quantity",
    "rates_module",
    "ray_map",
    "reduce_diagnosis",
    "report",
    "reward_parts",
    "summarise",
    "tally",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    """Load a name at its first use."""
    if name not in __all__:
        raise AttributeError(unknown_name(name, __all__))
    return getattr(rlvitals, name)


def __dir__() -> list[str]:
    """Show the names, loaded or not."""
    return __all__

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
- Diagnosis over time and its calibration: `Judged`, `Retraction`, `judged`, `prefixes`,
  `rates_module`, `summarise`, `tally`.
- Options and errors of a command: `nearest`, `option`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rlvitals.errors import unknown_name

if TYPE_CHECKING:
    from rlvitals.api import summarise
    from rlvitals.checkpoints.catalog import Checkpoint
    from rlvitals.checkpoints.disk import disk_is_full
    from rlvitals.checkpoints.progress import Keeper, Progress
    from rlvitals.checkpoints.resume_result import Resumed
    from rlvitals.comparison.result import Comparison
    from rlvitals.diagnosis.calibration import Judged, judged, rates_module, tally
    from rlvitals.diagnosis.cost import Spent, Waste
    from rlvitals.diagnosis.coverage import Coverage
    from rlvitals.diagnosis.forecast import Forecast
    from rlvitals.diagnosis.remedies import Knob
    from rlvitals.diagnosis.replay import Retraction, prefixes
    from rlvitals.diagnosis.root_cause import Alternative, Case
    from rlvitals.diagnosis.summary import Sentence
    from rlvitals.errors import nearest
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

_MODULES = {
    "Alternative": "diagnosis.root_cause",
    "Band": "metrics.metric",
    "Bound": "metrics.metric",
    "Budget": "types",
    "Case": "diagnosis.root_cause",
    "Check": "sanity_checks",
    "Checkpoint": "checkpoints.catalog",
    "Clear": "rules.rule",
    "Comparison": "comparison.result",
    "Coverage": "diagnosis.coverage",
    "Ema": "tracking.meters",
    "Forecast": "diagnosis.forecast",
    "Judged": "diagnosis.calibration",
    "Keeper": "checkpoints.progress",
    "Knob": "diagnosis.remedies",
    "Lifecycle": "types",
    "Log": "types",
    "Measured": "types",
    "Metric": "metrics.metric",
    "Preflight": "sanity_checks",
    "Profile": "types",
    "Progress": "checkpoints.progress",
    "Rate": "rules.rate",
    "Requests": "tracking.requests",
    "Resumed": "checkpoints.resume_result",
    "Retraction": "diagnosis.replay",
    "Rule": "rules.rule",
    "Sentence": "diagnosis.summary",
    "Series": "types",
    "SpeedMeter": "tracking.meters",
    "Spent": "diagnosis.cost",
    "Undecided": "rules.rule",
    "Waste": "diagnosis.cost",
    "action_histogram": "tracking.meters",
    "action_shares": "tracking.meters",
    "disk_is_full": "checkpoints.disk",
    "judged": "diagnosis.calibration",
    "nearest": "errors",
    "option": "options",
    "prefixes": "diagnosis.replay",
    "rates_module": "diagnosis.calibration",
    "reward_parts": "tracking.meters",
    "summarise": "api",
    "tally": "diagnosis.calibration",
}

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
    "Undecided",
    "Waste",
    "action_histogram",
    "action_shares",
    "disk_is_full",
    "judged",
    "nearest",
    "option",
    "prefixes",
    "rates_module",
    "reward_parts",
    "summarise",
    "tally",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    """Load a name at its first use."""
    if name not in _MODULES:
        raise AttributeError(unknown_name(name, __all__))
    return getattr(import_module(f"rlvitals.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Show the names, loaded or not."""
    return __all__

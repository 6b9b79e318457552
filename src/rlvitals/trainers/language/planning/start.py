"""Plan a training before it starts, and compare the plan with the resources used."""

import json
from collections.abc import Callable
from pathlib import Path

from rlvitals import VitalsError
from rlvitals.trainers.language.config import Config
from rlvitals.trainers.language.planning import estimate, shell
from rlvitals.trainers.language.planning.plan import Plan
from rlvitals.trainers.language.rlhf import config as rlhf
from rlvitals.trainers.language.tiny import base as tiny
from rlvitals.trainers.language.usage import ResourceUsage

# Parameters below which a training is not planned: it fits anywhere, and estimating takes seconds.
MIN_PLANNED_PARAMETERS = 50_000_000


def plan(
    config: Config | rlhf.Config, folder: Path, seed: int, tell: Callable[[str], None]
) -> Plan | None:
    """Plan a training before its weights are fetched, and keep the plan in the run's folder.

    None for a small model, and for one that cannot be estimated; `tell` gets the outcome.
    """
    if config.model.vlm_name in tiny.TINY_MODELS:
        return None
    try:
        with shell.build_shell(config.model, seed=seed) as model_shell:
            if model_shell.parameters < MIN_PLANNED_PARAMETERS:
                return None
        result = estimate.plan(config, estimate.Overrides())
    except VitalsError as error:
        tell(f"no plan: {error.problem}")
        return None
    tell(
        f"plan: {result.memory / estimate.GIB:,.1f} GiB, {result.seconds:,.3g} s an update "
        "(--plan shows more)"
    )
    for line in result.warnings:
        tell(f"plan: {line}")
    (folder / "plan.json").write_text(json.dumps(result.document()), encoding="utf-8")
    return result


def compare_usage(plan: Plan, used: ResourceUsage) -> str:
    """Return a line that compares the resources used with the plan."""
    lines = []
    if used.memory is not None:
        lines.append(
            f"{used.memory / estimate.GIB:,.2f} GiB, planned {plan.memory / estimate.GIB:,.2f}"
        )
    if used.seconds == used.seconds:
        lines.append(f"{used.seconds:,.3g} s an update, planned {plan.seconds:,.3g}")
    return f"used: {'; '.join(lines)}"

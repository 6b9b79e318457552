"""Print the estimate of a training: `rlvitals train grpo --plan`."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlvitals.trainers.language.planning.plan import Plan

UNITS = (("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10))


def show(plan: "Plan", *, as_json: bool) -> None:
    """Print a plan, as tables or as one object."""
    from rlvitals.views.console import emit
    from rlvitals.views.lists import columns

    if as_json:
        print(json.dumps(plan.document()))
        return
    share = plan.trainable / plan.parameters
    print(f"{plan.model}: {plan.parameters:,} parameters, {plan.trainable:,} trained ({share:.2%})")
    if plan.adapters:
        print(f"adapters of {plan.adapters}")
    print()
    parts = [(name, size(value)) for name, value in plan.parts.items() if value]
    emit(columns(["part", "memory"], parts))
    print()
    rows = [(one.name, span(one.seconds), f"{one.flops / 1e9:,.1f}", size(one.memory))
            for one in plan.phases]  # fmt: skip
    rows.append(("an update", span(plan.seconds), "", f"{size(plan.memory)} at its peak"))
    emit(columns(["phase", "time", "GFLOP", "memory at its peak"], rows))
    print("\n" + "\n".join(_lines(plan)))


def _lines(plan: "Plan") -> Iterator[str]:
    yield "Assumed:"
    yield from (f"- {line}." for line in plan.assumptions)
    yield from (f"warning: {line}" for line in plan.warnings)


def size(count: float) -> str:
    """Return bytes in a unit that fits."""
    unit, factor = next((one for one in UNITS if count >= one[1]), UNITS[-1])
    return f"{count / factor:,.2f} {unit}"


def span(seconds: float) -> str:
    """Return seconds in a unit that fits."""
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 120:  # noqa: PLR2004 - two minutes
        return f"{seconds:.3g} s"
    return f"{seconds / 60:,.3g} min" if seconds < 7200 else f"{seconds / 3600:,.3g} h"  # noqa: PLR2004

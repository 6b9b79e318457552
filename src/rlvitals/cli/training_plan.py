"""Print the estimated memory and time of a training: `rlvitals train grpo --plan`."""

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlvitals.trainers.language.planning.plan import Plan


def show(plan: "Plan", *, as_json: bool) -> None:
    """Print a plan as tables or as a JSON object."""
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
    memory_rows = [(name, size(value)) for name, value in plan.parts.items() if value]
    emit(columns(["part", "memory"], memory_rows))
    print()
    rows = [(phase.name, span(phase.seconds), f"{phase.flops / 1e9:,.1f}", size(phase.memory))
            for phase in plan.phases]  # fmt: skip
    rows.append(("an update", span(plan.seconds), "", f"{size(plan.memory)} at its peak"))
    emit(columns(["phase", "time", "GFLOP", "memory at its peak"], rows))
    warnings = (f"warning: {line}" for line in plan.warnings)
    print("\n" + "\n".join(["Assumed:", *(f"- {line}." for line in plan.assumptions), *warnings]))


def size(count: float) -> str:
    """Format a number of bytes in the largest fitting binary unit."""
    units = (("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10))
    unit, factor = next((pair for pair in units if count >= pair[1]), units[-1])
    return f"{count / factor:,.2f} {unit}"


def span(seconds: float) -> str:
    """Format a duration in seconds in the largest fitting unit."""
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 120:  # two minutes
        return f"{seconds:.3g} s"
    return f"{seconds / 60:,.3g} min" if seconds < 7200 else f"{seconds / 3600:,.3g} h"

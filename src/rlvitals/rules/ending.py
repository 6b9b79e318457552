"""What ended a run: its exception, signal, exit code, or the reason that it recorded."""

from rlvitals.metrics.catalogue.throughput import MACHINE
from rlvitals.types import Trace

LAST_OF_MEMORY = (f"{MACHINE.name}/ram",)
FULL = 90.0  # per cent of the memory: whoever asks for more is likely to be killed


def ended(trace: Trace) -> str:
    """Say what ended a run, and at which step; empty where nothing says that it did."""
    cycle = trace.lifecycle
    told = cycle.traceback.strip().rsplit("\n", 1)[-1]
    if not cycle.failed:
        said = cycle.reason
    elif cycle.lost:
        said = cycle.lost + _full(trace)
    elif cycle.signal:
        said = cycle.reason or cycle.signal
    else:
        who = cycle.reason.partition(": ")[0] if cycle.reason.startswith("rank ") else ""
        said = told or f"exit code {cycle.exit_code}"
        said = f"{who}: {said}" if who else said
    if not said or (cycle.end_step is None and not cycle.signal and not cycle.lost):
        return said
    step = max(trace.last_step, cycle.end_step or 0)
    return f"{said}, at step {step:,}"


def _full(trace: Trace) -> str:
    """Say that there was hardly any memory left as a process was last heard of."""
    shares = {name: trace.numbers(name) for name in trace.series if name in LAST_OF_MEMORY}
    full = [s.values[-1] for s in shares.values() if s is not None and s.values[-1] >= FULL]
    return f"; {max(full):.0f} % of the memory was in use shortly before" if full else ""

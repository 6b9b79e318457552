"""A long run is judged by as many points as a short one: the same findings, at the same cost.

Rules look at some successive points, 20 or 50. Of a million, some 20 in a row are beyond any
limit by chance, and last for a moment; of every k-th point they are again a part of the run.
"""

from dataclasses import replace

from rlvitals.signals.thin import MAX_THIN_POINTS, thin
from rlvitals.types import Trace


def thinned(trace: Trace) -> Trace:
    """Return the run with at most about 8,000 points of each metric; a short run as it is."""
    if all(len(s) <= MAX_THIN_POINTS for s in trace.series.values()):
        return trace
    series = {
        name: s if len(s) <= MAX_THIN_POINTS else s.where(thin(s.values))
        for name, s in trace.series.items()
    }
    return replace(trace, series=series)

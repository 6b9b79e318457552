"""Measure rlwatch, which has one interface: `log_step` row by row."""

from collections.abc import Iterator, Mapping, Sequence

import rlwatch
from peers.ask_rlwatch import metrics
from peers.cost import answer

Rows = Sequence[Mapping[str, float]]


def whole(rows: Rows) -> int:
    """Log every row of a run; return how many alerts were sent."""
    monitor = rlwatch.attach(framework="manual", run_id="run")
    alerts = sum(len(monitor.log_step(index, **metrics(row))) for index, row in enumerate(rows))
    monitor.stop()
    return alerts


def live(old: Rows, new: Rows) -> Iterator[None]:
    """Log the rows of a run up to now, then yield, then log the new ones."""
    monitor = rlwatch.attach(framework="manual", run_id="run")
    for index, row in enumerate(old):
        monitor.log_step(index, **metrics(row))
    yield
    for index, row in enumerate(new, len(old)):
        monitor.log_step(index, **metrics(row))
    monitor.stop()


if __name__ == "__main__":
    answer("rlwatch", whole, live)

"""Measure rldoctor: a complete run, and new rows with its `LiveMonitor`."""

from collections.abc import Iterator, Mapping, Sequence

from peers.ask_rldoctor import record
from peers.cost import answer
from rl_doctor import diagnose
from rl_doctor.ingest.base import run_from_records
from rl_doctor.live import LiveMonitor

Rows = Sequence[Mapping[str, float]]


def whole(rows: Rows) -> int:
    """Judge a run from its records; return how many problems it has."""
    records = [record(row, index) for index, row in enumerate(rows)]
    return len(diagnose(run_from_records(records, config={"algorithm": "ppo"})).problems)


def live(old: Rows, new: Rows) -> Iterator[None]:
    """Log the rows of a run up to now, then yield, then log the new ones."""
    monitor = LiveMonitor(config={"algorithm": "ppo"}, on_finding=lambda _: None)
    for index, row in enumerate(old):
        monitor.log(record(row, index))
    yield
    for index, row in enumerate(new, len(old)):
        monitor.log(record(row, index))


if __name__ == "__main__":
    answer("rldoctor", whole, live)

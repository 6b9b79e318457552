"""Measure a peer's CPU time in its own environment, on rows from a file."""

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from importlib.metadata import version
from pathlib import Path

Rows = Sequence[Mapping[str, float]]
ROUNDS = 3


def answer(
    package: str, diagnose_run: Callable[[Rows], int], live: Callable[[Rows, Rows], Iterator[None]]
) -> None:
    """Time both on the rows in the first argument's file; write to the second's.

    The third says how many of the rows, the last, are the new ones.
    `whole` judges a run. `live` is a generator: what it does before it yields is not counted.
    Both are the best of some rounds, in CPU seconds, of all threads.
    """
    logging.disable(logging.CRITICAL)
    rows = json.loads(Path(sys.argv[1]).read_text())
    split = len(rows) - int(sys.argv[3])
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):  # alerts are printed
        cost = {
            "version": version(package),
            "whole": min(_whole(diagnose_run, rows) for _ in range(ROUNDS)),
            "live": min(_live(live(rows[:split], rows[split:])) for _ in range(ROUNDS)),
        }
    Path(sys.argv[2]).write_text(json.dumps(cost))


def _whole(judge: Callable[[Rows], int], rows: Rows) -> float:
    start_time = time.process_time()
    judge(rows)
    return time.process_time() - start_time


def _live(grows: Iterator[None]) -> float:
    next(grows)
    start_time = time.process_time()
    next(grows, None)
    return time.process_time() - start_time

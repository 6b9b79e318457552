"""Many runs, each read and judged: in this process, or in several where that pays.

    for found in diagnose([(run, settings), ...]): ...

The answers are the same either way and come in the order they were asked for.
"""

import contextlib
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.diagnosis import duplicates, engine, load, neighbours, own_rates, suppressions
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.errors import UnreadableLog
from rlvitals.readers.discovery.sources import Run
from rlvitals.settings import Settings
from rlvitals.tracking import clock
from rlvitals.types import Trace

if TYPE_CHECKING:  # loaded where processes are started
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess

Asked = tuple[Run, Settings]  # a run, and what a person says about it
Answer = Diagnosis | UnreadableLog

RUNS_PER_TASK = 4  # few enough that all processes end together


def diagnose(
    requests: Sequence[Asked],
    jobs: int = 0,
    *,
    patience: float = 0.5,  # seconds: a process that imports numpy starts in 0.2 s
    ray_address: str | None = None,
) -> Iterator[Answer]:
    """Judge every run; one that cannot be read is answered by its error.

    `jobs` is the number of processes, 0 for one on each core that this one may use. Others
    start only where the runs left after `patience` seconds would take as long again. They load
    the program that asks: a script does so under `if __name__ == "__main__"`.
    `ray_address` is that of a Ray cluster to judge on, "" for one on this machine, None for none.
    """
    if ray_address is not None:
        from rlvitals.diagnosis.ray_map import ray_map  # noqa: PLC0415 - it is seldom asked for

        yield from ray_map(judge, requests, ray_address, path_of=lambda request: request[0].root)
        return
    start_time = time.monotonic()
    processes = (jobs or cores()) if _can_start() else 1
    for index, request in enumerate(requests):
        spent = time.monotonic() - start_time
        remaining = len(requests) - index
        if processes > 1 and spent >= patience and remaining * spent >= patience * index:
            yield from _by_processes(requests[index:], min(processes, remaining))
            return
        yield judge(request)


def list_once(runs: Sequence[Run], answers: Sequence[Answer]) -> list[tuple[Run, Answer]]:
    """Leave out runs that another tracker logged too; the notes of the run kept name them."""
    traces = {i: answer.trace for i, answer in enumerate(answers) if isinstance(answer, Diagnosis)}
    copies = duplicates.find(
        {i: duplicates.identify(runs[i].trackers, trace) for i, trace in traces.items()}
    )
    notes: dict[int, list[str]] = defaultdict(list)
    for copy, fullest in sorted(copies.items()):
        names = ", ".join(sorted(runs[copy].trackers))
        file = runs[copy].files[0][0] if runs[copy].files else runs[copy].root
        notes[fullest].append(f"{file} ({names}) logs the same training: not listed")
    results = [(run, answers[i]) for i, run in enumerate(runs)]
    for i, trace in traces.items():
        answer = answers[i]
        if i in notes and isinstance(answer, Diagnosis):
            noted_trace = replace(trace, notes=(*trace.notes, *notes[i]))
            results[i] = (runs[i], replace(answer, trace=noted_trace))
    return [result for i, result in enumerate(results) if i not in copies]


def judge(request: Asked) -> Answer:
    """Read and judge one run; the trace of a large one is thinned."""
    run, settings = request
    try:
        trace = load.load(run, load.run_overrides(settings), thin=True)
    except UnreadableLog as error:
        return error
    return neighbours.attach(judge_trace(request, trace), run, load.run_overrides(settings))


def judge_trace(request: Asked, trace: Trace) -> Diagnosis:
    """Judge a run that was read."""
    run, settings = request
    rules = load.chosen_rules(settings.diagnose.only, settings.diagnose.ignore)
    diagnosis = engine.diagnose(trace, rules)
    if settings.diagnose.rates:
        diagnosis = own_rates.attach(diagnosis, own_rates.read(Path(settings.diagnose.rates)))
    return suppressions.mute(diagnosis, run.name, load.check_mutes(settings.muted), today(settings))


def today(settings: Settings) -> date:
    """Return the day, here, on which a mute is asked whether it holds."""
    return datetime.fromtimestamp(clock.now(settings.diagnose.now)).astimezone().date()


def cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _can_start() -> bool:
    """Tell whether other processes can load the program that runs: not one typed into stdin."""
    file = getattr(sys.modules["__main__"], "__file__", None)
    return file is None or os.path.exists(file)  # noqa: PTH110 - "<stdin>", or any other text


def _by_processes(requests: Sequence[Asked], processes: int) -> Iterator[Answer]:
    """Judge in other processes; what they leave undone when one of them dies is judged here."""
    import multiprocessing  # noqa: PLC0415 - a single run needs none of it
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - the same
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415 - the same

    chunks = [
        requests[start : start + RUNS_PER_TASK] for start in range(0, len(requests), RUNS_PER_TASK)
    ]
    children_before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(processes, _context(), initializer=_stop_on_interrupt)
    count = 0
    try:
        futures = [pool.submit(_judge_all, chunk) for chunk in chunks]
        for future in futures:
            for answer in future.result():
                count += 1
                yield answer
    except BrokenProcessPool:  # one was killed: out of memory, as a rule
        yield from map(judge, requests[count:])
    except BaseException:
        # Ctrl-C, an error, or nobody wants the rest. A process that is killed may leave half an
        # answer in the pipe, for which this one would wait for ever: they are asked to stop.
        for worker in set(multiprocessing.active_children()) - children_before:
            _interrupt(worker)
        raise
    finally:
        # Its thread is waited for where nothing can hold it up: Python's end would race with it.
        pool.shutdown(wait=count == len(requests), cancel_futures=True)


def _interrupt(worker: "BaseProcess") -> None:
    if os.name == "posix" and worker.pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGINT)
    else:
        worker.terminate()


class _Stopped(Exception):  # noqa: N818 - not an error
    """Another process was told to stop while it judged."""


class _Work:
    """What another process does at the moment: it may be stopped while it judges, not else."""

    judging = False
    stopped = False

    @classmethod
    def stop(cls, _signal: int, _frame: object) -> None:
        cls.stopped = True
        if cls.judging:
            raise _Stopped


def _judge_all(requests: Sequence[Asked]) -> list[Answer]:
    answers: list[Answer] = []
    _Work.judging = True
    try:
        for run in requests:
            if _Work.stopped:  # a callback may have swallowed the exception
                break
            answers.append(judge(run))
    except _Stopped:
        pass
    finally:
        _Work.judging = False
    return [] if _Work.stopped else answers


def _context() -> "BaseContext":
    """Choose how processes start: never by forking this one, which may run threads."""
    import multiprocessing  # noqa: PLC0415 - a single run needs none of it

    methods = multiprocessing.get_all_start_methods()
    if "forkserver" not in methods:
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # numpy and the rules are imported once for all
    return context


def _stop_on_interrupt() -> None:
    """Stop at Ctrl-C without a traceback: the process that asked says what is to be said."""
    signal.signal(signal.SIGINT, _Work.stop)
    sys.unraisablehook = _hide_stop


def _hide_stop(unraisable: "sys.UnraisableHookArgs") -> None:
    """Print no traceback of a stop that arrives in a destructor or in a weak reference's callback.

    Python ignores exceptions there, and prints them.
    """
    if unraisable.exc_type is not _Stopped:
        sys.__unraisablehook__(unraisable)

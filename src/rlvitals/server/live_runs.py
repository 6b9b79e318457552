"""Keep the runs that somebody looks at, and read each of them twice a second."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from rlvitals.tracking import clock

if TYPE_CHECKING:  # the module that opens runs loads what judges
    from rlvitals.readers.discovery.sources import Run
    from rlvitals.server.live_run import LiveRun

LIVE_LOOK_SECONDS = 0.5  # between two looks: a new row is shown within 1.5 s of being written

Open = Callable[[str, float], "LiveRun"]  # by key, at a time in epoch seconds
FindFiles = Callable[["LiveRun"], "Run | None"]  # None: the run's files are those that it reads


class SingleReader:
    """A lock with which one run is read and judged at a time, as each takes memory.

    Who releases it and takes it again waits for who has waited: the list for a page.
    """

    def __init__(self) -> None:
        """Start free."""
        self._reading, self._turn = threading.Lock(), threading.Lock()

    def __enter__(self) -> None:
        """Wait for the run that is read."""
        with self._turn:
            self._reading.acquire()

    def __exit__(self, *_: object) -> None:
        """Let the next one read."""
        self._reading.release()


class LiveRuns:
    """The open runs, least recently used first."""

    def __init__(
        self, open_run: Open, find_files: FindFiles, note: "Callable[[LiveRun], None]"
    ) -> None:
        """Start without runs. `note` is called after each judgement."""
        self._open_run, self._find_files, self._note = open_run, find_files, note
        self._runs: dict[str, LiveRun] = {}
        self._lock = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="live runs", daemon=True)
        self._judges = ThreadPoolExecutor(1, "judge")
        self._pending: set[str] = set()

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """Stop following and wait for the thread."""
        self._stop.set()
        self._thread.join()
        self._judges.shutdown(cancel_futures=True)

    def close_streams(self) -> None:
        """End the streams of all open runs."""
        with self._lock:
            for run in self._runs.values():
                run.channel.close()

    def keys(self) -> frozenset[str]:
        """Return the keys of the open runs."""
        with self._lock:
            return frozenset(self._runs)

    def get(self, key: str) -> "LiveRun":
        """Return an open run, reading it first if needed. Raises KeyError, UnreadableLog."""
        with self._lock:
            opening = self._opening.setdefault(key, threading.Lock())
        with opening:  # two browsers that ask at once wait for one reading
            with self._lock:
                run = self._runs.pop(key, None)
                if run is not None:
                    self._runs[key] = run
                    return run
            try:
                run = self._open_run(key, clock.now())
            finally:
                with self._lock:
                    self._opening.pop(key, None)
            with self._lock:
                self._runs[key] = run
                self._drop_idle()
        self._note(run)
        return run

    def judge(self, run: "LiveRun") -> None:
        """Judge an open run, after those that wait to be judged."""
        self._judges.submit(self._judge, run).result()

    def drop(self, key: str) -> None:
        """Forget a run that no longer exists."""
        with self._lock:
            self._runs.pop(key, None)

    def _drop_idle(self) -> None:
        idle = [key for key, run in self._runs.items() if not run.channel.listeners]
        oldest = time.monotonic() - 300.0
        for index, key in enumerate(idle[:-1]):
            surplus = index < len(idle) - 8  # the least recently used one is dropped
            if surplus or self._runs[key].channel.quiet_since < oldest:
                del self._runs[key]

    def _follow(self) -> None:
        pause = LIVE_LOOK_SECONDS
        while not self._stop.wait(pause):
            start = time.monotonic()
            with self._lock:
                self._drop_idle()
                runs = list(self._runs.values())
            for run in runs:
                time_s = clock.now()
                if (changed := self._find_files(run)) is None:
                    run.look(time_s)
                else:
                    run.replace_files(changed, time_s)
                if run.key not in self._pending and run.needs_judging(time_s):
                    self._pending.add(run.key)
                    self._judges.submit(self._judge, run)
                elif run.key not in self._pending:
                    run.release()
            spent = time.monotonic() - start
            # Reading takes at most half of the time.
            pause = max(LIVE_LOOK_SECONDS - spent, spent)

    def _judge(self, run: "LiveRun") -> None:
        try:
            run.judge(clock.now())
            self._note(run)
        finally:
            self._pending.discard(run.key)

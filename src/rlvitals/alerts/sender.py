"""Send alerts on separate threads: a slow channel never delays a diagnosis.

    sender = Sender(routes, link)
    sender.update("run_3", diagnosis)  # after each judgement
    sender.close()

The first message of a channel is sent at once. What comes within the next minutes is collected
into one message, and within quiet hours until they end. A channel that fails is asked again after
5 s, 10 s, 20 s, and so on up to 10 minutes.
"""

import contextlib
import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from rlvitals.alerts import message
from rlvitals.alerts.channels import CHANNELS
from rlvitals.alerts.conditions import Alarm, find_alarms
from rlvitals.alerts.delivery import DeliveryError, Message
from rlvitals.alerts.message import Link
from rlvitals.alerts.routes import Route
from rlvitals.alerts.tracker import Notice, Tracker
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.rules.going_on import goes_on

logger = logging.getLogger(__name__)

Update = tuple[str, Mapping[str, Alarm], float, float | None]  # run, alarms, time, its last row


class Sender:
    """All routes. `update` may be called by any thread and never waits."""

    def __init__(
        self, routes: Sequence[Route], link: Link, clock: Callable[[], float] = time.time
    ) -> None:
        """Start a thread for each route."""
        self._clock = clock
        self._workers = [RouteWorker(route, link, clock) for route in routes]
        for worker in self._workers:
            worker.start()

    def update(self, run: str, diagnosis: Diagnosis) -> None:
        """Take the newest diagnosis of a run."""
        trace = diagnosis.trace
        last_row = math.inf if goes_on(trace) else trace.lifecycle.last_row
        for worker in self._workers:
            alarms = find_alarms(diagnosis, worker.route.conditions)
            worker.put((run, alarms, self._clock(), last_row))

    def close(self, timeout: float = 15.0) -> None:
        """Send what is pending, for so many seconds at most, and stop."""
        deadline = time.monotonic() + timeout
        for worker in self._workers:
            worker.stop()
        for worker in self._workers:
            worker.join(max(0.0, deadline - time.monotonic()))


class RouteWorker:
    """One route with its tracker, its pending notices and its retries."""

    def __init__(self, route: Route, link: Link, clock: Callable[[], float]) -> None:
        """Prepare; `start` begins."""
        self.route = route
        self._link, self._clock = link, clock
        # So many updates wait for the thread.
        self._updates: queue.Queue[Update] = queue.Queue(1_000)
        self._tracker = Tracker(clock(), route.wait_seconds)
        self._notices: list[Notice] = []
        self._left_out = 0
        self._sent_at = -math.inf
        self._attempts = 0
        self._retry_at = -math.inf
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"rlvitals-alert-{route.channel}", daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to send what is pending and to end."""
        self._stop.set()

    def join(self, seconds: float) -> None:
        """Wait for the thread."""
        self._thread.join(seconds)

    def put(self, update: Update) -> None:
        """Queue the state of a run; where the queue is full the next state will do."""
        with contextlib.suppress(queue.Full):
            self._updates.put_nowait(update)

    def _run(self) -> None:
        while not self._stop.wait(1.0):  # seconds
            self.step()
        self.step(is_last=True)

    def step(self, *, is_last: bool = False) -> None:
        """Take what is queued and send what is due.

        `is_last`: what a digest, quiet hours or a retry held back is sent now: else it is lost.
        """
        while True:
            try:
                self._tracker.update(*self._updates.get_nowait())
            except queue.Empty:
                break
        for notice in self._tracker.collect(self._clock()):
            self._add(notice)
        time_s = self._clock()
        is_waiting = (
            time_s - self._sent_at < self.route.digest_seconds
            or time_s < self._retry_at
            or self.route.is_quiet(datetime.fromtimestamp(time_s).astimezone())
        )
        if self._notices and (is_last or not is_waiting):
            self._deliver(time_s)

    def _add(self, notice: Notice) -> None:
        """Keep a notice until it is sent; what is over before it was told is dropped with it."""
        if notice.is_cleared:
            key = (notice.run, notice.alarm.subject)
            remaining = [n for n in self._notices if (n.run, n.alarm.subject) != key]
            was_pending = len(remaining) < len(self._notices)
            self._notices = remaining
            if was_pending:
                return
        self._notices.append(notice)
        if len(self._notices) > 1_000:  # kept until a channel takes them
            self._left_out += 1
            del self._notices[0]

    def _deliver(self, time_s: float) -> None:
        text = message.write(self._notices, self._link, self._left_out)
        try:
            send(self.route, text)
        except DeliveryError as error:
            self._attempts += 1
            if error.lasting or self._attempts >= 50:  # more than 7 hours of one message
                logger.warning(
                    "%d alerts to %s are given up: %s",
                    len(self._notices),
                    self.route.channel,
                    error,
                )
                self._settle(time_s)
                return
            if self._attempts == 1:
                logger.warning("an alert to %s failed: %s", self.route.channel, error)
            # Seconds: from 5 on, twice as long each time, 10 minutes at most.
            wait = 5.0 * 2 ** min(self._attempts - 1, 10)
            self._retry_at = time_s + min(max(wait, error.wait), 600.0)
        else:
            self._settle(time_s)

    def _settle(self, time_s: float) -> None:
        self._notices, self._left_out = [], 0
        self._sent_at, self._attempts, self._retry_at = time_s, 0, -math.inf


def send_alarms(
    routes: Sequence[Route], diagnoses: Mapping[str, Diagnosis], link: Link, time_s: float
) -> list[str]:
    """Send the alarms that hold now as one message to each route, and wait for the channels.

    Digests, quiet hours and retries do not apply: a program that looks once cannot wait. Returns
    a line for each route that failed.
    """
    failures = []
    for route in routes:
        notices = [
            Notice(run, alarm, time_s)
            for run, diagnosis in diagnoses.items()
            for alarm in find_alarms(diagnosis, route.conditions).values()
            if not alarm.cause
        ]
        try:
            if notices:
                send(route, message.write(notices, link))
        except DeliveryError as error:
            failures.append(f"an alert to {route.channel} failed: {error}")
    return failures


def send(route: Route, text: Message) -> None:
    """Send one message now. Raises DeliveryError, whose text holds no address and no secret."""
    try:
        CHANNELS[route.channel].send(route.fields, text)
    except DeliveryError:
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise DeliveryError(f"no connection: {reason}", lasting=False) from None
    except Exception as error:  # noqa: BLE001 - a channel must not end the thread
        raise DeliveryError(f"not sent: {type(error).__name__}") from None

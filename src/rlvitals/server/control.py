"""Change what may be changed from a run's page: its mark, its mutes, a request to its process.

Offered by `rlvitals serve --control` alone. `access` has checked that this server's own page asks.
"""

import json
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rlvitals.diagnosis import load, marks
from rlvitals.diagnosis.marks import Mark
from rlvitals.errors import UnreadableLog, UsageError, nearest
from rlvitals.intervene import kill
from rlvitals.options import Mute
from rlvitals.server.endpoints import format_problem
from rlvitals.server.fleet import Fleet
from rlvitals.server.live_run import LiveRun
from rlvitals.server.live_runs import LiveRuns
from rlvitals.storage.run_folder import RunFolder
from rlvitals.tracking import requests

MAX_CONTROL_TEXT_CHARS = 200  # of a cause or a reason
MARK_LABELS = ("healthy", "broken", "wrong")
REQUEST_TEXTS: Mapping[str, str] = {
    "save": "A checkpoint is requested; the training loop saves it when it next looks.",
    "stop": "A stop is requested; the training loop ends when it next looks.",
    "lower-rate": "Half the learning rate is requested; the training loop halves it when it next"
    " looks.",
    "kill": "The run's processes on this machine are being ended.",
}

Values = Mapping[str, object]
Action = Callable[[LiveRun, Values], str]  # returns what was done, or has begun, as a sentence


class Control:
    """The requests that change something, over a fleet and its open runs."""

    kill_grace_seconds = 30.0  # between SIGTERM and SIGKILL

    def __init__(self, fleet: Fleet, live: LiveRuns, ending: dict[str, threading.Thread]) -> None:
        """Change these runs. `ending`: by run, the thread that ends its processes; kept up here."""
        self.fleet, self.live = fleet, live
        self._ending = ending
        self._lock = threading.Lock()

    def routes(self) -> list[Route]:
        """Return the routes; each takes JSON with the run's `key`."""
        actions: Mapping[str, Action] = {
            "/api/mark": self.mark,
            "/api/mute": self.mute,
            "/api/request": self.request,
        }
        return [
            Route(path, self._endpoint(action), methods=["POST"])
            for path, action in actions.items()
        ]

    def mark(self, run: LiveRun, values: Values) -> str:
        """Write a person's label next to the run. Raises UsageError."""
        label = _text(values, "label")
        subject = _text(values, "subject")
        if label not in MARK_LABELS:
            raise UsageError(
                f"{label!r} is not a label", where="label", hint=", ".join(MARK_LABELS)
            )
        if label == "broken" and not subject:
            raise UsageError("a broken run needs a cause", where="subject", hint="a rule's name")
        if label == "wrong":
            names = [finding.name for finding, _ in run.diagnosis.findings]
            if subject not in names:
                hint = nearest(subject, names) or ", ".join(names)
                raise UsageError(f"the run has no finding {subject!r}", where="subject", hint=hint)
        features = marks.features(run.full_diagnosis())
        marks.write(run.run, Mark(label, "" if label == "healthy" else subject, features))
        self.live.judge(run)
        return f"Marked {label}{f': {subject}' if label != 'healthy' else ''}."

    def mute(self, run: LiveRun, values: Values) -> str:
        """Mute a rule of the run, or let it count again. Raises UsageError."""
        rule, reason = _text(values, "rule"), _text(values, "reason")
        try:
            if values.get("undo"):
                self.fleet.mutes.remove(run.key, rule)
            elif not reason:
                raise UsageError("a mute needs a reason", where="reason", hint="why it is accepted")
            else:
                load.check_mutes((Mute(rule=rule, reason=reason, where="rule"),))
                self.fleet.mutes.add(run.key, rule, reason)
        except OSError as error:
            raise UsageError(f"the mute cannot be kept: {error}", where="rule") from error
        run.settings = self.fleet.mutes.apply(run.key, self.fleet.settings)
        self.live.judge(run)
        return f"{rule} {'counts again' if values.get('undo') else 'is muted for this run'}."

    def request(self, run: LiveRun, values: Values) -> str:
        """Ask the run's process for something, or end it. Raises UsageError, UnreadableLog."""
        kind = _text(values, "kind")
        if kind not in REQUEST_TEXTS:
            raise UsageError(
                f"{kind!r} is not a request", where="kind", hint=", ".join(REQUEST_TEXTS)
            )
        try:
            if kind == "kill":
                self._begin_kill(run)
            elif kind == "lower-rate":
                requests.ask(run.run.root, kind, factor=0.5)
            else:
                requests.ask(run.run.root, kind)
        except OSError as error:
            raise UsageError(f"the request cannot be written: {error}", where=run.key) from error
        return REQUEST_TEXTS[kind]

    def _begin_kill(self, run: LiveRun) -> None:
        """End the run's processes in a thread, which tells the page of it; once at a time."""
        with self._lock:
            if run.key in self._ending:
                return
            descriptors = kill.ask(RunFolder.open(run.run.root))
            thread = threading.Thread(target=self._kill, args=(run, descriptors), daemon=True)
            self._ending[run.key] = thread
            thread.start()

    def _kill(self, run: LiveRun, descriptors: kill.Descriptors) -> None:
        def report(name: str, count: int) -> None:
            _tell(run, f"{name} is sent to the run's processes on this machine; {count} still run.")

        try:
            signals = kill.end(descriptors, self.kill_grace_seconds, report)
            text = "Processes of the run on this machine that ended: "
            text += f"{len(signals)} of {len(descriptors)}"
            text += f" ({', '.join(dict.fromkeys(signals.values()))})." if signals else "."
        except OSError as error:
            text = f"The run's processes cannot be ended: {error.strerror}."
        finally:
            with self._lock:
                del self._ending[run.key]
        _tell(run, text)

    def _endpoint(self, action: Action) -> Callable[[Request], Awaitable[Response]]:
        def act(values: Values) -> Response:
            run = self.live.get(str(values.get("key", "")))
            text = action(run, values)
            return JSONResponse({"done": text}, 202 if run.key in self._ending else 200)

        async def answer(request: Request) -> Response:
            try:
                values = dict(json.loads(await request.body()))
            except (TypeError, ValueError, RecursionError):
                return JSONResponse({"problem": "the body is no JSON object"}, 400)
            try:
                return await run_in_threadpool(act, values)
            except (KeyError, UsageError, UnreadableLog) as error:
                return format_problem(request, error)

        return answer


def describe(run: LiveRun, fleet: Fleet) -> dict[str, object]:
    """Return what the page's buttons offer: requests, and mutes that can be taken back."""
    return {"requests": _offered_requests(run), "mutes": sorted(fleet.mutes.rules(run.key))}


def _offered_requests(run: LiveRun) -> Sequence[str]:
    """Return the requests that the process of a recorded, unfinished run may heed."""
    if run.diagnosis.trace.lifecycle.over:
        return ()
    try:
        folder = RunFolder.open(run.run.root)
        if requests.last_status(folder):
            return ()
        return tuple(kind for kind in REQUEST_TEXTS if kind != "kill" or kill.has_process(folder))
    except (OSError, UnreadableLog):
        return ()


def _tell(run: LiveRun, text: str) -> None:
    """Show a sentence on each open page of the run."""
    run.channel.publish("told", {"text": text})


def _text(values: Values, name: str) -> str:
    value = values.get(name, "")
    if not isinstance(value, str) or len(value) > MAX_CONTROL_TEXT_CHARS:
        raise UsageError(f"{name} must be a text of at most {MAX_CONTROL_TEXT_CHARS} characters")
    return value.strip()

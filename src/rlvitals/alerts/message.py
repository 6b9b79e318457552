"""Write notices as one message: what, since when, how often it is wrong, what to try, where."""

from collections.abc import Callable, Sequence
from datetime import datetime

from rlvitals.alerts.delivery import Message
from rlvitals.alerts.tracker import Notice
from rlvitals.errors import harmless, join_first
from rlvitals.storage import redact

MAX_TITLE_CHARS = 120
PAYLOAD_FORMAT = 1  # of the data that a webhook and a command get

Link = Callable[[str], str]  # a run's name -> the address or command that shows it


def write(notices: Sequence[Notice], link: Link, left_out: int = 0) -> Message:
    """Return the message of some notices; `left_out`: further ones that a full queue dropped."""
    # One message writes out so many; it counts the others.
    blocks = []
    for notice in notices[:10]:
        alarm = notice.alarm
        time_text = datetime.fromtimestamp(notice.time).astimezone().strftime("%Y-%m-%d %H:%M")
        if notice.is_cleared:
            pairs = [("", f"it no longer holds; it was seen at {time_text}: {alarm.summary}")]
        else:
            step = "" if alarm.step is None else f"step {alarm.step:,}, "
            pairs = [
                ("", alarm.summary),
                ("since", f"{step}seen at {time_text}"),
                ("how often this alarm is wrong", alarm.rate),
                *(("speaks against", text) for text in alarm.counter),
                *(("try", text) for text in alarm.remedies),
            ]
        pairs.append(("see", link(notice.run)))
        lines = [f"{label}: {text}" if label else text for label, text in pairs if text]
        blocks.append("\n".join([_clean(line, 500) for line in (_headline(notice), *lines)]))
    hidden = len(notices) - len(blocks) + left_out
    if hidden:
        blocks.append(f"and {hidden} more")
    data = {
        "format": PAYLOAD_FORMAT,
        "title": _title(notices),
        "alerts": [_data(notice, link) for notice in notices],
        "left_out": left_out,
    }
    return Message(_title(notices), "\n\n".join(blocks), data)


def example() -> Message:
    """Return the message that `rlvitals alerts test` sends."""
    text = "This is a test: alerts about your runs will arrive here."
    data = {"format": PAYLOAD_FORMAT, "title": "rlvitals: a test", "alerts": [], "left_out": 0}
    return Message("rlvitals: a test", text, data)


def _title(notices: Sequence[Notice]) -> str:
    if len(notices) == 1:
        return _clean(f"rlvitals: {_headline(notices[0])}", MAX_TITLE_CHARS)
    runs = list(dict.fromkeys(notice.run for notice in notices))
    names = join_first(runs, 3)
    raised = sum(not notice.is_cleared for notice in notices)
    counts = [(raised, "alarms" if raised > 1 else "alarm"), (len(notices) - raised, "cleared")]
    text = ", ".join(f"{count} {noun}" for count, noun in counts if count)
    return _clean(f"rlvitals: {text}: {names}", MAX_TITLE_CHARS)


def _headline(notice: Notice) -> str:
    alarm = notice.alarm
    label = "cleared" if notice.is_cleared else alarm.severity
    return f"{label}: {notice.run}: {alarm.subject}"


def _data(notice: Notice, link: Link) -> dict[str, object]:
    alarm = notice.alarm
    fields: dict[str, object] = {
        "run": notice.run,
        "state": "cleared" if notice.is_cleared else "raised",
        "subject": alarm.subject,
        "severity": alarm.severity,
        "summary": alarm.summary,
        "step": alarm.step,
        "time": notice.time,
        "rate": alarm.rate,
        "counter": list(alarm.counter),
        "try": list(alarm.remedies),
        "see": link(notice.run),
    }
    return redact.clean_mapping(fields)


def _clean(text: str, longest: int) -> str:
    """Return a line without secrets and without what a terminal would obey."""
    return harmless(redact.clean_text(" ".join(text.split())), longest)

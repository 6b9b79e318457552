"""What is worked out of a trace for one rule serves the next: a trace never changes."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from rlvitals.types import Trace

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def remembered(
    ask: Callable[Concatenate[Trace, Given], Answer],
) -> Callable[Concatenate[Trace, Given], Answer]:
    """Answer a question about a trace once for the same arguments; the answers go when it goes.

    For pure functions whose arguments are hashable and whose answers do not hold the trace itself.
    """
    answers: WeakKeyDictionary[Trace, dict[object, Answer]] = WeakKeyDictionary()

    @wraps(ask)
    def asked(trace: Trace, /, *args: Given.args, **named: Given.kwargs) -> Answer:
        known = answers.setdefault(trace, {})
        key = (args, *named.items())
        if key not in known:
            known[key] = ask(trace, *args, **named)
        return known[key]

    return asked

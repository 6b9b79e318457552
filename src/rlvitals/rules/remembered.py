"""Cache of results per trace: a trace never changes, so rules share what was computed from it."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from rlvitals.types import Trace

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def cache_by_trace(
    ask: Callable[Concatenate[Trace, Given], Answer],
) -> Callable[Concatenate[Trace, Given], Answer]:
    """Answer a question about a trace once for the same arguments; the answers go when it goes.

    For pure functions whose arguments are hashable and whose answers do not hold the trace itself.
    """
    answers: WeakKeyDictionary[Trace, dict[object, Answer]] = WeakKeyDictionary()

    @wraps(ask)
    def wrapper(trace: Trace, /, *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        cache = answers.setdefault(trace, {})
        key = (args, *kwargs.items())
        if key not in cache:
            cache[key] = ask(trace, *args, **kwargs)
        return cache[key]

    return wrapper

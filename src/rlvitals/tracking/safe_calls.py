"""Turn the exceptions of a run's methods into notes, wrong arguments included."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar


class Safe(Protocol):
    """An object that runs a call and notes what it raises."""

    def _safely(self, call: Callable[[], None]) -> None: ...


SafeT = TypeVar("SafeT", bound=Safe)
Parameters = ParamSpec("Parameters")


def catch_errors(
    method: Callable[Concatenate[SafeT, Parameters], None],
) -> Callable[Concatenate[SafeT, Parameters], None]:
    """Run a method through its object's `_safely`."""

    @wraps(method)
    def safely(run: SafeT, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        run._safely(partial(method, run, *args, **kwargs))  # noqa: SLF001 - ours

    return safely

"""How a fault gets into a run: by a world, a change of the model, or an option."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from rlvitals.faults.fault import Injection

Inject = Callable[[Injection], None]


def in_world(pick: Callable[[ModuleType], Any]) -> Inject:
    """Put a wrapper of `worlds` around the environment; Gymnasium is loaded when it is needed."""

    def inject(injection: Injection) -> None:
        from rlvitals.faults import faulty_envs

        injection.world = pick(faulty_envs)

    return inject


def in_model(*changes: Callable[[Any], None]) -> Inject:
    """Change the model when the fault sets in."""

    def inject(injection: Injection) -> None:
        def change(model: Any) -> None:
            for each in changes:
                each(model)

        injection.change = change

    return inject


def in_options(**options: Any) -> Inject:
    """Replace options of the algorithm's constructor."""

    def inject(injection: Injection) -> None:
        injection.options.update(options)

    return inject


def both(*injects: Inject) -> Inject:
    """Make several mistakes at once, where it takes them all."""

    def inject(injection: Injection) -> None:
        for each in injects:
            each(injection)

    return inject

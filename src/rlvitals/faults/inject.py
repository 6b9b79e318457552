"""Build injections: a wrapper of the environment, a change of the model, or an option."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from rlvitals.faults.fault import Injection

Inject = Callable[[Injection], None]


def in_world(pick: Callable[[ModuleType], Any]) -> Inject:
    """Wrap the environment with a class of `faulty_envs`; Gymnasium is imported when needed."""

    def inject(injection: Injection) -> None:
        from rlvitals.faults import faulty_envs

        injection.world = pick(faulty_envs)

    return inject


def in_model(*changes: Callable[[Any], None]) -> Inject:
    """Change the model at the onset."""

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


def combine(*injects: Inject) -> Inject:
    """Combine several injections into one."""

    def inject(injection: Injection) -> None:
        for each in injects:
            each(injection)

    return inject

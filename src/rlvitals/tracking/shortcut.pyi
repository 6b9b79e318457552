from collections.abc import Callable

ARGUMENTS: int
FIELDS: int

class Shortcut:
    def __init__(
        self,
        rows: list[object],
        limit: int,
        catch_up: Callable[[], object],
        method: Callable[..., None],
        scalars: tuple[type, ...],
    ) -> None: ...
    def log(self, *call: object, **named: object) -> None: ...
    def move(self) -> None: ...
    def stop(self) -> None: ...

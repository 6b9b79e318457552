from collections.abc import Callable, Mapping

FIELDS: int

class Shortcut:
    def __init__(
        self,
        rows: list[object],
        limit: int,
        catch_up: Callable[[], object],
        method: Callable[..., None],
    ) -> None: ...
    def log(
        self,
        step: int,
        metrics: Mapping[str, object],
        episode: float | None = None,
        tokens: float | None = None,
        time: float | None = None,
    ) -> None: ...
    def move(self) -> None: ...
    def stop(self) -> None: ...

"""Compile a regular expression when it is first used: a program uses few of those it loads."""

import re
from typing import AnyStr, Generic, cast


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what has the attributes of `re.compile(pattern, flags)`, and compiles it for them."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))


class _LazyPattern(Generic[AnyStr]):
    def __init__(self, pattern: AnyStr, flags: int) -> None:
        self._source: tuple[AnyStr, int] = (pattern, flags)

    def __getattr__(self, name: str) -> object:
        """Look a name up in the compiled pattern, once: it is an attribute from then on."""
        value: object = getattr(re.compile(*self._source), name)
        setattr(self, name, value)
        return value

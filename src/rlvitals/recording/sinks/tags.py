"""What a key is called elsewhere: TensorBoard's tags, Weights & Biases' names."""

from collections.abc import Callable, Mapping
from functools import cache


def tags(options: Mapping[str, object]) -> Callable[[str], str]:
    """Return what names a key, by a sink's options.

    `names` maps keys to what they are called; any other key gets `prefix` before it.
    """
    names, prefix = options.get("names"), options.get("prefix")
    said: dict[str, str] = dict(names) if isinstance(names, Mapping) else {}
    before = prefix if isinstance(prefix, str) else ""

    @cache
    def tag(key: str) -> str:
        return said.get(key) or before + key

    return tag

"""Name the keys of a run in TensorBoard and Weights & Biases."""

from collections.abc import Callable, Mapping
from functools import cache

from rlvitals.tracking.sinks.sink import AXIS_PREFIX


def tags(options: Mapping[str, object]) -> Callable[[str], str]:
    """Return the function that names a key, by a sink's options.

    `names` maps keys to what they are called; any other key gets `prefix` before it, but for the
    other x-axes.
    """
    names, prefix = options.get("names"), options.get("prefix")
    tag_names: dict[str, str] = dict(names) if isinstance(names, Mapping) else {}
    tag_prefix = prefix if isinstance(prefix, str) else ""

    @cache
    def tag(key: str) -> str:
        return tag_names.get(key) or (key if key.startswith(AXIS_PREFIX) else tag_prefix + key)

    return tag

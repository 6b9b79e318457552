"""YAML that a stranger wrote, as plain values: no tag makes an object, no error but ValueError."""

from functools import lru_cache
from typing import Any

MAX_CHARACTERS = 4 * 2**20


@lru_cache(maxsize=1)
def _loader() -> Any:  # noqa: ANN401 - a class of yaml, whichever is built in
    import yaml  # noqa: PLC0415 - only for YAML

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_yaml(text: str) -> object:
    """Return a document's value: dicts, lists, text, numbers, dates, None.

    Raises ValueError for what is no YAML, too large, or nests too deep.
    """
    import yaml  # noqa: PLC0415

    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"YAML of {len(text):,} characters")
    try:
        return yaml.load(text, Loader=_loader())  # noqa: S506 - one of the safe loaders
    # A scalar that its tag cannot be made of (`!!bool x`) raises what the constructor met.
    except (yaml.YAMLError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(" ".join(str(error).split())) from None
    except RecursionError:
        raise ValueError("it nests too deep") from None

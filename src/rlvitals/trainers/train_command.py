"""Describe a trainer's command line: what is the same in all of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TrainCommand:
    """Texts and values of a trainer's command line; `command.py` of each trainer has one."""

    about: str
    quick_test_help: str
    quick_test_values: Mapping[str, Any]  # settings of a quick test, by dotted names
    flag_aliases: Mapping[str, tuple[str, ...]]  # further flags of a setting, by its dotted name

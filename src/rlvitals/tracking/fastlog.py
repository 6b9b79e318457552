"""Load the compiled `log`, where it was built and is not disabled by the environment.

What it does and may never do differently: `docs/decisions/0030-a-compiled-way-to-log.md`.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from rlvitals.tracking import tensors
from rlvitals.tracking.row_batches import ROW_FIELDS
from rlvitals.tracking.writer_thread import WriterThread

if TYPE_CHECKING:
    from rlvitals.tracking.shortcut import Shortcut

COMPILED_VARIABLE = "RLVITALS_COMPILED"
NOT_BUILT = "not built: install rlvitals where a C compiler and Python's headers are"


def load_shortcut() -> "type[Shortcut] | None":
    """Return the compiled type; None where it was not built for this interpreter and version."""
    try:
        from rlvitals.tracking import shortcut  # noqa: PLC0415 - may not be there
    except ImportError:
        return None
    is_current = getattr(shortcut, "ARGUMENTS", 4) == 5 and shortcut.FIELDS == ROW_FIELDS
    return shortcut.Shortcut if is_current else None


def shortcut(method: Callable[..., None], pump: WriterThread) -> "Shortcut | None":
    """Return the compiled `log` of a run, where there is one."""
    shortcut_type = (
        None
        if os.environ.get(COMPILED_VARIABLE, "").lower() in ("off", "0", "false", "no")
        else load_shortcut()
    )
    if shortcut_type is None:
        return None
    scalars = tuple(tensors.IMMUTABLE_TYPES)
    fast_log = shortcut_type(pump.rows, pump.limit, pump.catch_up, method, scalars)
    pump.gather = fast_log.move
    return fast_log

"""A look-alike of the `wandb` module that records into a run folder, offline and without account.

`import rlvitals.wandb as wandb` is the one changed line of a script. What Weights & Biases' cloud
alone can do (sweeps, reports, downloads) is not here; arguments that mean nothing here are noted.
"""

from typing import Any

from rlvitals.tracking.settings_mapping import Config
from rlvitals.wandb import session, util
from rlvitals.wandb.mappings import Settings
from rlvitals.wandb.media import (
    Artifact,
    Audio,
    Histogram,
    Html,
    Image,
    Molecule,
    Object3D,
    Plotly,
    Table,
    Video,
    plot,
)
from rlvitals.wandb.recorded import AlertLevel, Run
from rlvitals.wandb.session import (
    alert,
    define_metric,
    finish,
    init,
    log,
    log_artifact,
    login,
    mark_preempting,
    require,
    save,
    setup,
    teardown,
    termerror,
    termlog,
    termwarn,
    unwatch,
    watch,
)

__all__ = [
    "AlertLevel",
    "Artifact",
    "Audio",
    "Config",
    "Histogram",
    "Html",
    "Image",
    "Molecule",
    "Object3D",
    "Plotly",
    "Run",
    "Settings",
    "Table",
    "Video",
    "alert",
    "config",
    "define_metric",
    "finish",
    "init",
    "log",
    "log_artifact",
    "login",
    "mark_preempting",
    "plot",
    "require",
    "run",
    "save",
    "setup",
    "summary",
    "teardown",
    "termerror",
    "termlog",
    "termwarn",
    "unwatch",
    "util",
    "watch",
]


def __getattr__(name: str) -> Any:
    """Return what belongs to the run of this moment: `run`, `config`, `summary`."""
    if name == "run":
        return session.state.run
    if name in {"config", "summary"}:
        return getattr(session.current_run(), name)
    raise AttributeError(f"rlvitals.wandb has no {name!r}: it records, and talks to no server")

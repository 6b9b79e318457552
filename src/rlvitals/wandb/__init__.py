"""A look-alike of the `wandb` module that records into a run folder, offline and without account.

`import rlvitals.wandb as wandb` is the one changed line of a script. What Weights & Biases' cloud
alone can do (sweeps, reports, downloads) raises an error that names it; arguments that mean nothing
here are noted.
"""

from importlib import import_module
from typing import Any

from rlvitals.tracking.settings_mapping import Config
from rlvitals.wandb import errors, preinit, sdk, session, util
from rlvitals.wandb.errors import CommError, Error, UsageError
from rlvitals.wandb.mappings import Settings
from rlvitals.wandb.media import (
    Artifact,
    Audio,
    Classes,
    Graph,
    Histogram,
    Html,
    Image,
    JoinedTable,
    Molecule,
    Object3D,
    Plotly,
    Table,
    Video,
    plot,
)
from rlvitals.wandb.recorded import AlertLevel, Run
from rlvitals.wandb.refusals import (
    Api,
    agent,
    api,
    attach,
    controller,
    link_model,
    restore,
    sweep,
    use_artifact,
    use_model,
)
from rlvitals.wandb.session import (
    alert,
    define_metric,
    finish,
    init,
    log,
    log_artifact,
    log_model,
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

# The release of wandb whose names these are: scripts compare it with a version they need.
__version__ = "0.31.0"

__all__ = [
    "AlertLevel",
    "Api",
    "Artifact",
    "Audio",
    "Classes",
    "CommError",
    "Config",
    "Error",
    "Graph",
    "Histogram",
    "Html",
    "Image",
    "JoinedTable",
    "Molecule",
    "Object3D",
    "Plotly",
    "Run",
    "Settings",
    "Table",
    "UsageError",
    "Video",
    "__version__",
    "agent",
    "alert",
    "api",
    "attach",
    "config",
    "controller",
    "define_metric",
    "errors",
    "finish",
    "init",
    "link_model",
    "log",
    "log_artifact",
    "log_model",
    "login",
    "mark_preempting",
    "plot",
    "require",
    "restore",
    "run",
    "save",
    "sdk",
    "setup",
    "summary",
    "sweep",
    "teardown",
    "tensorboard",
    "termerror",
    "termlog",
    "termwarn",
    "unwatch",
    "use_artifact",
    "use_model",
    "util",
    "watch",
]


def __getattr__(name: str) -> Any:
    """Return what belongs to the run of this moment, and modules that load other libraries."""
    if name == "run":
        return session.open_run()
    if name in {"config", "summary"}:
        return getattr(session.state.run or preinit, name)
    if name in {"tensorboard", "integration"}:
        return import_module(f"rlvitals.wandb.{name}")
    raise AttributeError(f"rlvitals.wandb has no {name!r}: it records, and talks to no server")

"""Select and open the sinks of a run, with their options.

What the call or `[recording] sinks` names, and what a `[monitoring]` section asks for: TensorBoard
files wherever there is such a section, exported metrics unless it says not to. A call that names
its sinks itself has those alone; a section's numbers hold for them too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rlvitals.errors import UsageError, nearest
from rlvitals.settings import Settings
from rlvitals.tracking.sinks import SINK_MODULES, find, native
from rlvitals.tracking.sinks.sink import Opening, OpenSink

Options = Mapping[str, object]
Named = Sequence[str] | Mapping[str, Options | None]


def _columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return what a call names as columns, each once. Raises UsageError for what is no name."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise UsageError(
            f"columns cannot be {names!r}", where="start(columns=...)", hint='["loss", "reward"]'
        )
    return tuple(dict.fromkeys(names))


def select(
    requested: Named | None, settings: Settings, columns: Sequence[str] = ()
) -> dict[str, Options]:
    """Return the sinks other than the native one, by name, with their options.

    `requested` are the call's sinks, `columns` its columns for tables. Raises UsageError for a
    name that is no sink.
    """
    section, names_of_rows = settings.monitoring, _columns(columns)
    names: list[str] = [requested] if isinstance(requested, str) else list(requested or ())
    if requested is None:
        names = [*settings.recording.sinks, *(["tensorboard"] if section else [])]
        if section and section.metrics_export_enabled:
            names.append(section.metrics_export_format)
    call_options = requested if isinstance(requested, Mapping) else {}
    section_options: dict[str, Options] = {}
    if section:
        interval, subsamples = section.metrics_export_interval, section.metrics_subsamples
        rows = {"interval": interval, "subsamples": subsamples}
        section_options = {"csv": rows, "parquet": rows}
        section_options["tensorboard"] = {"port": section.tensorboard_port}
    sinks: dict[str, Options] = {}
    for name in dict.fromkeys(names):
        if find(name) is None:
            hint = nearest(name, SINK_MODULES) or f"one of {', '.join(SINK_MODULES)}"
            raise UsageError(f"no sink is called {name!r}", where="start(sinks=...)", hint=hint)
        if name != native.SINK.name:
            declared = (
                {"columns": names_of_rows} if names_of_rows and name in ("csv", "parquet") else {}
            )
            sinks[name] = {
                **section_options.get(name, {}),
                **declared,
                **(call_options.get(name) or {}),
            }
    return sinks


def open_sinks(opening: Opening, sinks: Mapping[str, Options]) -> list[tuple[str, OpenSink]]:
    """Open some sinks. Raises UsageError where a package is missing."""
    return [
        (sink.name, sink.open(replace(opening, options=sinks[sink.name])))
        for sink in map(find, filter(sinks.__contains__, SINK_MODULES))
        if sink is not None
    ]

"""Parse the settings that `add_hparams` writes into an event file.

Source: TensorBoard `plugins/hparams/plugin_data.proto`, `api.proto`; `google.protobuf.Value`.
"""

from rlvitals.readers.formats.protobuf import double, fields
from rlvitals.types import Setting

HPARAMS_PLUGIN_DATA, HPARAMS_PLUGIN_CONTENT = 1, 2  # SummaryMetadata, its PluginData
HPARAMS_SESSION_START = 3  # HParamsPluginData
HPARAMS = 1  # SessionStartInfo
MAP_KEY, MAP_VALUE = 1, 2  # a map's entry
NUMBER_VALUE, STRING_VALUE, BOOL_VALUE = 2, 3, 4  # google.protobuf.Value


def settings_of(metadata: bytes) -> dict[str, Setting]:
    """Return the settings that a session's start record holds; empty for any other metadata."""
    settings: dict[str, Setting] = {}
    for entry in _within(
        metadata, HPARAMS_PLUGIN_DATA, HPARAMS_PLUGIN_CONTENT, HPARAMS_SESSION_START, HPARAMS
    ):
        key, value = "", b""
        for item in fields(entry):
            if item.id == MAP_KEY:
                key = item.data.decode(errors="replace")
            elif item.id == MAP_VALUE:
                value = item.data
        for item in fields(value):
            if item.id == NUMBER_VALUE:
                settings[key] = double(item)
            elif item.id == STRING_VALUE:
                settings[key] = item.data.decode(errors="replace")
            elif item.id == BOOL_VALUE:
                settings[key] = bool(item.number)
    return settings


def _within(message: bytes, *path: int) -> list[bytes]:
    """Return the submessages that a path of field numbers leads to."""
    messages = [message]
    for number in path:
        messages = [f.data for m in messages for f in fields(m) if f.id == number]
    return messages

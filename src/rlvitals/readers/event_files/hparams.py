"""Parse the settings that `add_hparams` writes into an event file.

Source: TensorBoard `plugins/hparams/plugin_data.proto`, `api.proto`; `google.protobuf.Value`.
"""

from rlvitals.readers.formats.protobuf import double, fields
from rlvitals.types import Setting


def settings_of(metadata: bytes) -> dict[str, Setting]:
    """Return the settings that a session's start record holds; empty for any other metadata."""
    settings: dict[str, Setting] = {}
    # plugin_data, content, session_start_info, hparams
    messages = [metadata]
    for number in (1, 2, 3, 1):  # the path of fields to the entries of the map
        messages = [f.data for message in messages for f in fields(message) if f.id == number]
    for entry in messages:
        key, value = "", b""
        for item in fields(entry):  # of a map
            match item.id:
                case 1:
                    key = item.data.decode(errors="replace")
                case 2:
                    value = item.data
        for item in fields(value):
            match item.id:
                case 2:  # number_value
                    settings[key] = double(item)
                case 3:  # string_value
                    settings[key] = item.data.decode(errors="replace")
                case 4:  # bool_value
                    settings[key] = bool(item.number)
    return settings

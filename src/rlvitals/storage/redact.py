"""Remove secrets from text, settings and commands before they are written.

    text("python train.py --api-key abc123")      # "python train.py --api-key [redacted]"
    mapping({"hub": {"token": "abc123"}})         # {"hub": {"token": "[redacted]"}}

A secret shows by what it is called, by what it looks like, or by where it stands (an address, a
header). A mark replaces each secret, so that a reader sees that something was there.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeVar, cast

from rlvitals.startup.lazy_pattern import lazy_pattern
from rlvitals.storage import redact_patterns as kinds

REDACTED = "[redacted]"
MAX_NAME_LETTERS = 64  # letters of a name before and after its telling word
STRONG_KINDS = frozenset({"any", "text"})  # what a name alone makes a secret

MappingT = TypeVar("MappingT", bound=Mapping[str, object])

# An address: the user's name stays, the password goes. It may hold an "@" and a "/" itself.
URL_PASSWORD = lazy_pattern(r"(://[^\s/:@\"'`]*:)([^\s\"'`]*)(?=@[\w.\[-])")
URL_TOKEN = lazy_pattern(r"(://)([\w.~-]{20,})(?=@[\w.\[-])")
USER_OPTION = lazy_pattern(
    r"((?<!\S)(?:-u|--user|--proxy-user)[ =]\"?'?[\w.@+-]+:)(?!//)([^\s\"']+)"
)
AUTH_HEADER = lazy_pattern(
    r"(?i)\b(authorization\\*[\"']?\s*[:=]\s*\\*[\"']?(?:(?:bearer|basic|token|digest|apikey)\s+)?"
    r"|bearer\s+(?=[\w.~+/=-]{16})|(?:set-)?cookie\\*[\"']?:\s+\\*[\"']?)([^\"'\r\n]+)"
)
QUERY_SECRET = lazy_pattern(
    r"(?i)([?&][\w.%-]{0,40}?(?:sig|signature|token|key|secret|password|credential)=)"
    r"([^\s&\"'`;<>]+)"
)
NETRC_PASSWORD = lazy_pattern(
    r"(\blogin\s+\S+\s+password\s+)(\S+)|(\bwandb\s+login\s+)([0-9a-zA-Z_-]{20,})"
)
# What is called like a secret, what separates the value (in JSON within JSON quotes stand behind
# strokes), and the value, quoted or bare. Names are bounded: a search takes linear time.
NAME_CORE = (
    "pass|pw|secret|credential|token|key|auth|bearer|cookie|connectionstring|licen[cs]e|otp|session"
)
SECRET_NAME = lazy_pattern(NAME_CORE)  # for text in lower case: ten times as fast as `(?i)`
ASSIGNMENT = lazy_pattern(
    rf"(?i)(?<![\w.-])(?P<dash>-{{0,2}})(?P<name>[\w./-]{{0,{MAX_NAME_LETTERS}}}?(?:{NAME_CORE})"
    rf"[\w.-]{{0,{MAX_NAME_LETTERS}}})"
    r"(?P<sep>\\*[\"']?\]?(?:\s*(?:=>|:=|=|:)\s*|(?<!\s)[ \t]+))"
    r"(?:[rbuf]{0,2}(?P<quote>\\*[\"'])(?P<inner>[^\r\n]*?)(?P=quote)|(?P<bare>[^\s\"'`;&]+))"
)
# '--password', 'x' in the repr of a list or in JSON.
FLAG_PAIR = lazy_pattern(
    r"((\\*[\"'])-{1,2}([\w.-]{1,64})\2\s*,\s*(\\*[\"']))([^\"'\r\n\\]*)(?=\4)"
)
# "login failed with key x": prose, so only a value that is no word counts.
PROSE_SECRET = lazy_pattern(
    r"(?i)\b((?:key|token|secret|password|passphrase|credential)s?(?:\s+(?:is|was))?"
    r"[ \t]+[\"'`]?)([A-Za-z0-9][\w+/=.-]{15,})"
)
# "bob:x@host" without a scheme. An image's digest, "python:3.11@sha256:...", is none.
BARE_LOGIN = lazy_pattern(
    r"(?<![\w:@.+-])(?<!//)((?!mailto:)[\w.+-]{1,64}:)([^\s:/@\"'`]{8,})(?=@(?!sha\d)[\w-])"
)
FUNCTION_CALL = lazy_pattern(r"[A-Za-z_][\w.]*[(\[{]")
PROGRAM_VARIABLE = lazy_pattern(
    r"(?:self|cls|os|sys|args|cfg|config|conf|settings|env|environ|opts?|options|params|kwargs"
    r"|flags|hparams|secrets|request|response|jax|torch|np|tokenizer|batch|tokens?)\.",
    re.IGNORECASE,
)
SHELL_VARIABLE = lazy_pattern(
    r"\$(?:\{.*|\(.*|[A-Z_][A-Z0-9_]*)$|%[A-Z_]+%$|<[\w -]+>$|\{\w*\}$|\*+$"
)
NUMBER_TEXT = lazy_pattern(r"[-+]?[\d.,_]{1,15}(?:e[-+]?\d+)?[kKmMbB]?$")
SPECIAL_TOKEN = lazy_pattern(r"<.*>$|\[[A-Z]+\]$|</?\w*")  # "<|endoftext|>", "[PAD]"


def text(raw: str) -> str:
    """Remove the secrets from a text: a command, a diff, a traceback, a settings file."""
    for literal, pattern in kinds.SECRET_PATTERNS:
        if literal in raw:
            raw = pattern.sub(REDACTED, raw)
    if "@" in raw:
        raw = URL_TOKEN.sub(rf"\1{REDACTED}", URL_PASSWORD.sub(rf"\1{REDACTED}", raw))
        raw = BARE_LOGIN.sub(_mask_login, raw)
    if "-u" in raw or "-proxy-user" in raw:
        raw = USER_OPTION.sub(rf"\1{REDACTED}", raw)
    low = raw.lower()
    if "authorization" in low or "bearer" in low or "cookie" in low:
        raw = AUTH_HEADER.sub(_mask_header, raw)
    if "=" in raw:
        raw = QUERY_SECRET.sub(_mask_query, raw)
    if "login" in raw:
        raw = NETRC_PASSWORD.sub(lambda m: f"{m[1] or m[3]}{REDACTED}", raw)
    if SECRET_NAME.search(low) is None:
        return raw
    raw = FLAG_PAIR.sub(_mask_flag, raw)
    return PROSE_SECRET.sub(_mask_prose, _assignments(raw))


def _assignments(raw: str) -> str:
    """Redact what is assigned to a secret's name; a value may be an assignment itself."""
    low = raw.lower()
    if len(low) != len(raw):  # a letter whose lower case is two: positions would not fit
        low = "".join(c.lower() if len(c.lower()) == 1 else c for c in raw)
    pieces: list[str] = []
    position = 0
    trigger = SECRET_NAME.search(low)
    while trigger is not None:
        match = _assignment(raw, position, trigger.start())
        if match is None:
            trigger = SECRET_NAME.search(low, trigger.start() + 1)
            continue
        clean = _mask_assignment(match)
        if clean == match[0]:
            end = max(match.end("sep"), match.end("name"))
            clean = raw[match.start() : end]
        else:
            end = match.end()
        pieces += (raw[position : match.start()], clean)
        position = end
        trigger = SECRET_NAME.search(low, position)
    return "".join((*pieces, raw[position:]))


def _assignment(raw: str, begin: int, trigger: int) -> re.Match[str] | None:
    """Match the leftmost assignment from `begin` on whose name contains `trigger`."""
    for start in range(max(begin, trigger - MAX_NAME_LETTERS - 2), trigger + 1):
        character = raw[start - 1] if start else " "
        if character.isalnum() or character in "_.-":
            continue
        if (match := ASSIGNMENT.match(raw, start)) is not None:
            return match
    return None


def command(arguments: Sequence[str]) -> tuple[str, ...]:
    """Remove the secrets from a command line, argument by argument."""
    return tuple(map(str, _redact_list("", arguments, 0)))


def mapping(settings: MappingT) -> MappingT:
    """Remove the secrets from settings or an environment, at any depth of nesting.

    The keys stay; a secret's value becomes `REDACTED`. Numbers, truth values and None stay as they
    are; what JSON has no word for becomes its text.
    """
    return cast("MappingT", _redact_value("", settings, 0))


def clean_mapping(settings: MappingT) -> MappingT:
    """Return settings as they may be written: without secrets, and `~` for the home folder."""
    return cast("MappingT", _hide_homes(mapping(settings)))


def clean_text(raw: object) -> str:
    """Return a text as it may be written: without secrets, and `~` for the home folder."""
    return hide_home(text(str(raw)))


def _hide_homes(value: object) -> object:
    if isinstance(value, str):
        return hide_home(value)
    if isinstance(value, Mapping):
        return {key: _hide_homes(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_hide_homes, value)) if type(value) in {list, tuple} else value
    return value


def cell(name: str, value: object) -> object:
    """Redact a logged text or a table's cell that has a name.

    The name alone decides only for passwords and API keys: a column "token" has a model's words.
    """
    if not isinstance(value, str):
        return value
    is_named_secret = kinds.strength(name) in STRONG_KINDS and _is_secret(name, value)
    return REDACTED if is_named_secret else text(value)


def is_secret(name: str, value: object) -> bool:
    """Return whether a setting is a secret, by its name or its value."""
    if _is_secret(name, value):
        return True
    return isinstance(value, str) and text(value) != value


def hide_home(raw: str) -> str:
    """Replace the home folder by `~`: it names a person and differs between machines."""
    for home in _home_paths():
        raw = re.sub(rf"(?<![\w/.-]){re.escape(home)}(?![\w.-])", "~", raw)
    return raw


@lru_cache(maxsize=1)
def _home_paths() -> tuple[str, ...]:
    try:
        home = Path.home()
        paths = {str(home), str(home.resolve())}
    except (OSError, RuntimeError):  # no home folder
        return ()
    return tuple(sorted((path for path in paths if len(path) > 1), key=len, reverse=True))


def _redact_value(name: str, value: object, depth: int) -> object:
    if depth >= 32:
        return REDACTED
    if isinstance(value, Mapping):
        return _redact_mapping(name, value, depth)
    if isinstance(value, list | tuple | set | frozenset):
        items = _redact_list(name, list(value), depth)
        return tuple(items) if isinstance(value, tuple) else items
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return _redact_value(name, value.tolist(), depth + 1)
    return _redact_scalar(name, value)


def _redact_scalar(name: str, value: object) -> object:
    if _is_secret(name, value):
        return REDACTED
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, bytes):
        return text(value.decode(errors="replace"))
    return text(_string(value))


def _string(value: object) -> str:
    """Write a value as text; a `__str__` that raises gives the name of the type."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a caller's own class may raise anything
        return f"<{type(value).__name__}>"


def _redact_mapping(name: str, group: Mapping[object, object], depth: int) -> dict[object, object]:
    """Redact a mapping. {"name": "API_KEY", "value": "x"} names its own value."""
    label = next(
        (
            candidate
            for key in ("name", "key", "variable", "option", "flag", "header", "field", "setting")
            if isinstance(candidate := group.get(key), str)
        ),
        "",
    )
    clean: dict[object, object] = {}
    for key, value in group.items():
        key_text = _string(key)
        path = f"{name}/{key_text}" if name else key_text
        if label and key_text.lower() in kinds.NEUTRAL_KEYS and kinds.strength(label):
            path = label
        clean[text(key) if isinstance(key, str) else key] = _redact_value(path, value, depth + 1)
    return clean


def _redact_list(name: str, values: Sequence[object], depth: int) -> list[object]:
    """Redact a list, which may be a command line or a pair of name and value."""
    clean: list[object] = []
    flag = ""  # the word before, where it names the next one
    is_pair = len(values) == 2  # of name and value
    if is_pair and isinstance(values[0], str) and kinds.strength(values[0]) in STRONG_KINDS:
        flag = values[0]
    for value in values:
        argument = value if isinstance(value, str) else ""
        option, equals, assigned = argument.partition("=")
        if (
            clean
            and flag
            and not argument.startswith("--")
            and (
                _is_secret(flag, value)
                or (flag == "p" and isinstance(value, str) and kinds.is_drawn(value))
            )
        ):
            clean.append(REDACTED)
        elif equals and " " not in option and _is_secret(option.strip("-+"), assigned):
            clean.append(f"{option}={REDACTED}")
        elif argument.startswith("-p") and kinds.is_drawn(
            argument[2:]
        ):  # as `mysql -pPASSWORD` has it
            clean.append(f"-p{REDACTED}")
        else:
            clean.append(_redact_value(name, value, depth + 1))
        if clean[1:] or argument.startswith("-"):
            flag = argument.strip("-") if argument.startswith("-") and not equals else ""
    return clean


def _is_secret(name: str, value: object) -> bool:
    """Return whether a value is a secret, by its name and its form."""
    strength = kinds.strength(name) or kinds.group_strength(name)
    if isinstance(value, bool) or not strength:
        return False
    if not isinstance(value, str | bytes):
        return strength == "any" and isinstance(value, int | float)
    content = (value.decode(errors="replace") if isinstance(value, bytes) else value).strip()
    if content.lower() in kinds.EMPTY_VALUES or content == REDACTED:
        return False
    return {
        "any": not kinds.PATH_START.match(content),
        "text": not NUMBER_TEXT.match(content),
        "token": not NUMBER_TEXT.match(content) and not SPECIAL_TOKEN.match(content),
        "random": kinds.is_random(content),
        "drawn": kinds.is_drawn(content),
    }[strength]


def _mask_login(match: re.Match[str]) -> str:
    value = match[2]
    return f"{match[1]}{REDACTED}" if kinds.is_random(value) or kinds.is_drawn(value) else match[0]


def _mask_flag(match: re.Match[str]) -> str:
    return f"{match[1]}{REDACTED}" if _is_secret(match[3], match[5]) else match[0]


def _mask_prose(match: re.Match[str]) -> str:
    return f"{match[1]}{REDACTED}" if kinds.is_drawn(match[2]) else match[0]


def _mask_header(match: re.Match[str]) -> str:
    if (
        match[2].strip().startswith(REDACTED)
        or FUNCTION_CALL.match(match[2])
        or SHELL_VARIABLE.match(match[2])
    ):
        return match[0]
    return f"{match[1]}{REDACTED}"


def _mask_query(match: re.Match[str]) -> str:
    return match[0] if NUMBER_TEXT.match(match[2]) else f"{match[1]}{REDACTED}"


def _mask_assignment(match: re.Match[str]) -> str:
    """Redact one `name = value` of a text, unless it is program code or a placeholder."""
    name, sep, quote = match["name"], match["sep"], match["quote"]
    value = match["inner"] if quote else match["bare"]
    spaced = not set(sep) & set("=:")
    if spaced and (len(match["dash"]) < 2 or value.startswith("--")):  # "--"
        return match[0]
    tail = ""
    if not quote and not match["dash"]:
        stripped = value.rstrip(",)}]\\")
        value, tail = stripped, value[len(stripped) :]
    if value.startswith(REDACTED) or not _is_secret(name, value) or SHELL_VARIABLE.match(value):
        return match[0]
    if not _is_assigned_secret(match, value):
        return match[0]
    start = match.start("inner" if quote else "bare") - match.start()
    return f"{match[0][:start]}{REDACTED}{tail}{quote or ''}"


def _is_assigned_secret(match: re.Match[str], value: str) -> bool:
    """Return whether an assigned value is a secret rather than program code."""
    name = match["name"]
    strength = kinds.strength(name)
    if match["dash"]:
        return True
    shell = name.rpartition("/")[2].upper() == name and match["sep"].strip("\\\"'") == "="
    if match["quote"]:
        return strength != "token" or (" " not in value and len(value) >= 8)
    if shell:
        return True
    if FUNCTION_CALL.match(value) or PROGRAM_VARIABLE.match(value):
        return False
    if strength in {"any", "text"}:
        return True
    return kinds.is_random(value)

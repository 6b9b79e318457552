"""Secrets are taken out before anything touches the disk.

    text("python train.py --api-key abc123")      # "python train.py --api-key [redacted]"
    mapping({"hub": {"token": "abc123"}})         # {"hub": {"token": "[redacted]"}}

A secret shows by what it is called, by what it looks like, or by where it stands (an address, a
header). What is taken out leaves a mark, so that a person sees that something was there.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path, PurePath
from typing import TypeVar, cast

from rlvitals.recording import secret_kinds as kinds

MARK = "[redacted]"
DEEPEST = 32  # levels of nested settings
LONGEST = 64  # letters of a name before and behind what tells it
RANDOM_LETTERS = 16  # of a value that looks drawn by lot
QUOTED_LETTERS = 8  # of a quoted text that a weak name makes a secret

M = TypeVar("M", bound=Mapping[str, object])

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# An address: the user's name stays, the password goes. It may hold an "@" and a "/" itself.
LOGIN = re.compile(r"(://[^\s/:@\"'`]*:)([^\s\"'`]*)(?=@[\w.\[-])")
LOGIN_TOKEN = re.compile(r"(://)([\w.~-]{20,})(?=@[\w.\[-])")
USER = re.compile(r"((?<!\S)(?:-u|--user|--proxy-user)[ =]\"?'?[\w.@+-]+:)(?!//)([^\s\"']+)")
HEADER = re.compile(
    r"(?i)\b(authorization\\*[\"']?\s*[:=]\s*\\*[\"']?(?:(?:bearer|basic|token|digest|apikey)\s+)?"
    r"|bearer\s+(?=[\w.~+/=-]{16})|(?:set-)?cookie\\*[\"']?:\s+\\*[\"']?)([^\"'\r\n]+)"
)
QUERY = re.compile(
    r"(?i)([?&][\w.%-]{0,40}?(?:sig|signature|token|key|secret|password|credential)=)"
    r"([^\s&\"'`;<>]+)"
)
NETRC = re.compile(r"(\blogin\s+\S+\s+password\s+)(\S+)|(\bwandb\s+login\s+)([0-9a-zA-Z_-]{20,})")
# What is called like a secret, what separates the value (in JSON within JSON quotes stand behind
# strokes), and the value, quoted or bare. Names are bounded: a search takes linear time.
CALLED = "pass|pwd|secret|credential|token|key|auth|bearer|cookie|connectionstring"
NAMED = re.compile(
    rf"(?i)(?<![\w.-])(?P<dash>-{{0,2}})(?P<name>[\w./-]{{0,{LONGEST}}}?(?:{CALLED})"
    rf"[\w.-]{{0,{LONGEST}}})"
    r"(?P<sep>\\*[\"']?\]?(?:\s*(?:=>|:=|=|:)\s*|(?<!\s)[ \t]+))"
    r"(?:[rbuf]{0,2}(?P<quote>\\*[\"'])(?P<inner>[^\r\n]*?)(?P=quote)|(?P<bare>[^\s\"'`;&]+))"
)
CALL = re.compile(r"[A-Za-z_][\w.]*[(\[{]")
OF_A_PROGRAM = re.compile(
    r"(?:self|cls|os|sys|args|cfg|config|conf|settings|env|environ|opts?|options|params|kwargs"
    r"|flags|hparams|secrets|request|response|jax|torch|np|tokenizer|batch|tokens?)\.",
    re.IGNORECASE,
)
VARIABLE = re.compile(r"\$(?:\{.*|\(.*|[A-Z_][A-Z0-9_]*)$|%[A-Z_]+%$|<[\w -]+>$|\{\w*\}$|\*+$")
NUMBER = re.compile(r"[-+]?[\d.,_]{1,15}(?:e[-+]?\d+)?[kKmMbB]?$")
MARKER = re.compile(r"<.*>$|\[[A-Z]+\]$|</?\w*")  # "<|endoftext|>", "[PAD]"
FOLDER = re.compile(r"~?/|[A-Za-z]:[\\/]|\.{1,2}/")  # PWD=/home/me is a place


def text(said: str) -> str:
    """Take the secrets out of a text: a command, a diff, a traceback, a file of settings."""
    for kind in kinds.KINDS:
        if kind.literal in said:
            said = kind.pattern.sub(MARK, said)
    if "@" in said:
        said = LOGIN_TOKEN.sub(rf"\1{MARK}", LOGIN.sub(rf"\1{MARK}", said))
    said = USER.sub(rf"\1{MARK}", said)
    said = HEADER.sub(_header, said)
    said = QUERY.sub(_asked, said)
    said = NETRC.sub(lambda m: f"{m[1] or m[3]}{MARK}", said)
    return _assignments(said)


def _assignments(said: str) -> str:
    """Take out what is assigned to a secret's name; a value may be an assignment itself."""
    parts: list[str] = []
    at = 0
    while (found := NAMED.search(said, at)) is not None:
        kept = _assigned(found)
        end = found.end() if kept != found[0] else max(found.end("sep"), found.end("name"))
        parts += (said[at : found.start()], kept if kept != found[0] else said[found.start() : end])
        at = end
    return "".join((*parts, said[at:]))


def command(words: Sequence[str]) -> tuple[str, ...]:
    """Take the secrets out of a command line, word by word."""
    kept: list[str] = []
    flag = ""  # the one whose value comes next
    for word in words:
        name, equals, value = word.partition("=")
        if flag and not word.startswith("--") and _is_secret(flag, word):
            kept.append(MARK)
        elif equals and not name.count(" ") and _is_secret(name.strip("-"), value):
            kept.append(f"{name}={MARK}")
        else:
            kept.append(text(word))
        flag = word.strip("-") if word.startswith("-") and not equals else ""
    return tuple(kept)


def mapping(said: M) -> M:
    """Take the secrets out of settings or an environment, however deep they are nested.

    The keys stay; a secret's value becomes `MARK`. What is no text, number, list or mapping is
    kept as it is.
    """
    return cast("M", _inside("", said, 0))


def written(said: M) -> M:
    """Return settings as they may be written: without secrets, and `~` for the home folder."""
    return cast("M", _moved(mapping(said)))


def _moved(value: object) -> object:
    if isinstance(value, str):
        return homeless(value)
    if isinstance(value, Mapping):
        return {key: _moved(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_moved, value)) if type(value) in {list, tuple} else value
    return value


def is_secret(name: str, value: object) -> bool:
    """Tell whether a setting is a secret, by its name or by what it holds."""
    if _is_secret(name, value):
        return True
    return isinstance(value, str) and text(value) != value


def homeless(said: str) -> str:
    """Write `~` for the folder of whoever runs this: it names a person and moves with nobody."""
    for home in _homes():
        said = re.sub(rf"(?<![\w/.-]){re.escape(home)}(?![\w.-])", "~", said)
    return said


@lru_cache(maxsize=1)
def _homes() -> tuple[str, ...]:
    try:
        home = Path.home()
        found = {str(home), str(home.resolve())}
    except (OSError, RuntimeError):  # nobody's home
        return ()
    return tuple(sorted((one for one in found if len(one) > 1), key=len, reverse=True))


def _inside(name: str, value: object, depth: int) -> object:
    if isinstance(value, Mapping) and depth < DEEPEST:
        return {
            _key(key): _inside(f"{name}/{key}" if _keeps(name) else str(key), inner, depth + 1)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset) and depth < DEEPEST:
        parts = [_inside(name, inner, depth + 1) for inner in value]
        return tuple(parts) if isinstance(value, tuple) else parts
    if depth >= DEEPEST or _is_secret(name, value):
        return MARK
    if isinstance(value, str | PurePath):
        return text(str(value))
    return text(value.decode(errors="replace")) if isinstance(value, bytes) else value


def _key(key: object) -> object:
    return text(key) if isinstance(key, str) else key


def _keeps(name: str) -> bool:
    """Tell a group whose members are all secrets: {"secrets": {"mine": "x"}}."""
    return not kinds.SECRETS.isdisjoint(_words(name))


def _words(name: str) -> list[str]:
    return [found[0].lower() for found in WORD.finditer(name)]


def _is_secret(name: str, value: object) -> bool:
    """Tell by the name, and by whether the value can be one."""
    strength = _strength(name)
    if isinstance(value, bool) or not strength:
        return False
    if not isinstance(value, str | bytes):
        return strength == "any" and isinstance(value, int | float)
    held = (value.decode(errors="replace") if isinstance(value, bytes) else value).strip()
    if held.lower() in kinds.EMPTY or held == MARK:
        return False
    return {
        "any": not FOLDER.match(held),
        "text": not NUMBER.match(held),
        "token": not NUMBER.match(held) and not MARKER.match(held),
        "random": _is_random(held),
    }[strength]


@lru_cache(maxsize=4096)
def _strength(name: str) -> str:
    """Say what a name makes a secret of: "any" value, a "text", a "token", a "random" text."""
    last = name.rpartition("/")[2]
    words = _words(last) or _words(name)
    if not kinds.SECRETS.isdisjoint(_words(name) if "/" in name else words):
        return "any"
    if any(word.endswith(kinds.ENDS) for word in words):
        return "any" if not {"apikey"} & set(words) else "text"
    pairs = {(one, two.removesuffix("s")) for one, two in pairwise(words)}
    if any(one in kinds.KEYS and two == kinds.KEY for one, two in pairs):
        return "text"
    if ("connection", "string") in pairs or not kinds.PLAIN.isdisjoint(words):
        return "text"
    return _weak(words)


def _weak(words: list[str]) -> str:
    while len(words) > 1 and words[-1] in kinds.TRAILING:
        words = words[:-1]
    if words and words[-1].removesuffix("s") == kinds.TOKEN and len(words) > 1:
        return "" if words[-2] in kinds.OF_A_TEXT or words[-1] == "tokens" else "token"
    if words == [kinds.TOKEN]:
        return "token"
    return "random" if kinds.KEY in words else ""


def _is_random(value: str) -> bool:
    """Tell what was drawn by lot from a word: long, letters and digits, no space, no place."""
    if len(value) < RANDOM_LETTERS or re.search(r"[\s()\[\]{}<>,]", value):
        return False
    if FOLDER.match(value) or value.count("/") > 1:
        return False
    digits = sum(letter.isdigit() for letter in value)
    return digits >= 2 and any(letter.isalpha() for letter in value)  # noqa: PLR2004 - "v2" has one


def _header(found: re.Match[str]) -> str:
    if found[2].strip().startswith(MARK) or CALL.match(found[2]) or VARIABLE.match(found[2]):
        return found[0]
    return f"{found[1]}{MARK}"


def _asked(found: re.Match[str]) -> str:
    return found[0] if NUMBER.match(found[2]) else f"{found[1]}{MARK}"


def _assigned(found: re.Match[str]) -> str:
    """Rewrite one `name = value` of a text, unless it is a piece of a program or says nothing."""
    name, sep, quote = found["name"], found["sep"], found["quote"]
    value = found["inner"] if quote else found["bare"]
    spaced = not set(sep) & set("=:")
    if spaced and (len(found["dash"]) < 2 or value.startswith("--")):  # noqa: PLR2004 - "--"
        return found[0]
    tail = ""
    if not quote and not found["dash"]:
        kept = value.rstrip(",)}]\\")
        value, tail = kept, value[len(kept) :]
    if value.startswith(MARK) or not _is_secret(name, value) or VARIABLE.match(value):
        return found[0]
    if not _told(found, value):
        return found[0]
    start = found.start("inner" if quote else "bare") - found.start()
    return f"{found[0][:start]}{MARK}{tail}{quote or ''}"


def _told(found: re.Match[str], value: str) -> bool:
    """Tell a secret within a text from a line of a program that only speaks of one."""
    name = found["name"]
    strength = _strength(name)
    if found["dash"]:
        return True
    shell = name.rpartition("/")[2].upper() == name and found["sep"].strip("\\\"'") == "="
    if found["quote"]:
        return strength != "token" or (" " not in value and len(value) >= QUOTED_LETTERS)
    if shell:
        return True
    if CALL.match(value) or OF_A_PROGRAM.match(value):
        return False
    if strength in {"any", "text"}:
        return True
    return _is_random(value)

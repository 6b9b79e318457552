"""Settings that no report may show: passwords, keys, addresses that hold one."""

import re
from collections.abc import Mapping

from rlvitals.records import Setting

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
SECRETS = frozenset(
    {"password", "passwd", "passphrase", "pwd", "secret", "secrets", "credential", "credentials"}
)
SECRET_TEXTS = frozenset({"apikey", "token", "key", "auth", "authorization", "bearer", "cookie"})
# A tokenizer's own: the end of a text, not a password.
TEXT_MARKS = frozenset({"pad", "eos", "bos", "unk", "mask", "sep", "cls", "image", "stop"})
LOGIN = re.compile(r"://[^/\s]*:[^/\s]*@")  # a password within an address


def without(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return the settings that are no secret by their name or by what they hold."""
    return {key: value for key, value in settings.items() if not _is_secret(key, value)}


def _is_secret(name: str, value: Setting) -> bool:
    words = {found[0].lower() for found in WORD.finditer(name.rpartition("/")[2])}
    if not isinstance(value, str):
        return not words.isdisjoint(SECRETS) and not isinstance(value, bool)
    if "token" in words and not words.isdisjoint(TEXT_MARKS):
        return False
    return not words.isdisjoint(SECRETS | SECRET_TEXTS) or LOGIN.search(value) is not None

"""A pattern that is compiled at its first use matches as any other."""

import re
import subprocess
import sys

from rlvitals.startup.lazy_pattern import lazy_pattern


def test_a_lazy_pattern_does_what_the_compiled_one_does():
    text, flags = r"(a+)(?P<rest>b*)", re.IGNORECASE
    lazy, compiled = lazy_pattern(text, flags), re.compile(text, flags)
    assert lazy.fullmatch("AAb")["rest"] == compiled.fullmatch("AAb")["rest"] == "b"
    assert lazy.sub("-", "xab") == compiled.sub("-", "xab")
    assert (lazy.pattern, lazy.flags, lazy.groups) == (text, compiled.flags, 2)
    assert lazy_pattern(rb"\d+").findall(b"1 22") == [b"1", b"22"]
    assert lazy.search is lazy.search  # of the pattern itself, not looked up again


def test_loading_the_patterns_of_secrets_compiles_none_of_them():
    code = """
import re
import rlvitals.storage.redact_patterns as kinds
print(len(kinds.SECRET_KINDS))
print(sum("gh[pousr]_" in str(key) for key in re._cache))
from rlvitals.storage import redact
print(redact.text("token ghp_" + "a1B2" * 9))"""
    output = subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()
    assert int(output[0]) > 50
    assert output[1] == "0"
    assert "[redacted]" in output[2]

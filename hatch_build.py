"""Compiles the short way of `Run.log` where a C compiler and Python's headers are.

Without them the package is pure Python: it does the same, and logging costs more.
RLVITALS_BUILD_COMPILED=off leaves the compiled code out, =require fails where it cannot be built.
"""

import os
import platform
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

VARIABLE, CHOICES = "RLVITALS_BUILD_COMPILED", ("auto", "off", "require")
FOLDER = Path("rlvitals", "tracking")
SOURCE, BINARY = "shortcut.c", "shortcut.abi3.so"


class CompiledHook(BuildHookInterface):
    """Adds the binary to a wheel, or lays it beside its source for an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and name the wheel for what is in it."""
        wanted = os.environ.get(VARIABLE, "auto")
        if wanted not in CHOICES:
            raise ValueError(f"{VARIABLE} cannot be {wanted!r}: one of {', '.join(CHOICES)}")
        sources = Path(self.root, "src", FOLDER)
        target = sources / BINARY
        if version == "editable":
            target.unlink(missing_ok=True)  # made from an older source
        else:
            self.scratch = tempfile.mkdtemp()
            target = Path(self.scratch, BINARY)
        if wanted == "off":
            return
        try:
            build(sources / SOURCE, target)
        except (OSError, RuntimeError) as error:
            if wanted == "require":
                raise
            self.app.display_warning(f"without compiled code: {error}")
            return
        if version != "editable":
            build_data["force_include"][str(target)] = (FOLDER / BINARY).as_posix()
            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{this_platform()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what was compiled for a wheel, which holds it now."""
        if version != "editable":
            shutil.rmtree(self.scratch)


def build(source: Path, target: Path) -> None:
    """Compile and link as this Python says that it was. Raises RuntimeError, OSError."""
    if platform.python_implementation() != "CPython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise RuntimeError("it is for CPython with its interpreter lock")
    headers = Path(sysconfig.get_path("include"))
    linker = shlex.split(sysconfig.get_config_var("LDSHARED") or "")
    if not linker or not (headers / "Python.h").is_file():
        raise RuntimeError(f"no Python.h in {headers}, or no way to link is known")
    compiler = shlex.split(os.environ.get("CC", "")) or linker[:1]
    shared = shlex.split(sysconfig.get_config_var("CCSHARED") or "")
    flags = ["-std=c11", "-O2", f"-I{headers}", str(source), "-o", str(target)]
    command = [*compiler, *linker[1:], *shared, *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)} says\n{done.stderr}")


def this_platform() -> str:
    """Name this machine as a wheel does. It was not built to run on others, as "manylinux" says."""
    names = (tag.platform for tag in sys_tags())
    return next(name for name in names if not name.startswith(("manylinux", "musllinux")))

"""Install the import hook in each Python process of `rlvitals run`.

This folder is the first of PYTHONPATH. A Python without rlvitals loads the one of this file. The
sitecustomize that this one hides is run afterwards.
"""

import sys
from importlib import util
from importlib.machinery import PathFinder
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent.parent


def _install() -> None:
    try:
        if util.find_spec("rlvitals") is None:
            file = PACKAGE / "__init__.py"
            spec = util.spec_from_file_location(
                "rlvitals", file, submodule_search_locations=[str(PACKAGE)]
            )
            if spec is not None and spec.loader is not None:
                package = util.module_from_spec(spec)
                sys.modules["rlvitals"] = package
                spec.loader.exec_module(package)
        from rlvitals.capture import imports  # noqa: PLC0415 - found by now

        imports.install()
    except Exception as error:  # noqa: BLE001 - the program runs as it would without us
        sys.stderr.write(f"rlvitals: nothing is recorded in this process: {error}\n")


def _run_next() -> None:
    """Run the sitecustomize that this one hides, if there is one."""
    sys.path[:] = [path for path in sys.path if not path or Path(path).resolve() != HERE]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_install()
_run_next()

"""The page of all runs needs none of the modules that judge."""

import subprocess
import sys

IMPORTED = "import sys, rlvitals.server.app; print(*sys.modules)"


def test_the_application_is_built_without_the_modules_that_judge():
    command = [sys.executable, "-c", IMPORTED]
    modules = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert "rlvitals.server.fleet_page" in modules
    for name in ("rules", "diagnosis", "readers", "metrics", "comparison"):
        assert f"rlvitals.{name}" not in modules

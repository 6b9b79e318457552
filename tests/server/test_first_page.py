"""The page of all runs needs none of the modules that judge."""

import subprocess
import sys

import rlvitals
from rlvitals.server.fleet import Fleet
from rlvitals.settings import Settings

IMPORTED = """
import pathlib, sys
import rlvitals.server.app
from rlvitals.hosted import fetch
fetch.keep_up_to_date(pathlib.Path())
print(*sys.modules)
"""


def test_the_application_is_built_without_the_modules_that_judge():
    command = [sys.executable, "-c", IMPORTED]
    modules = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert "rlvitals.server.fleet_page" in modules
    for name in ("rules", "diagnosis", "readers", "metrics", "comparison"):
        assert f"rlvitals.{name}" not in modules


def test_no_message_is_written_of_rows_that_the_first_page_contains(tmp_path):
    rlvitals.start(str(tmp_path / "run")).finish()
    fleet = Fleet([tmp_path], Settings())
    fleet.start()
    fleet.wait(20.0)
    assert fleet.channel.position().endswith("-0")
    fleet.stop()

import subprocess
import sys

import pytest


@pytest.fixture
def call_follow():
    """Return a function that follows a folder until its runs end, with one alert."""

    def start(folder, channel, condition):
        argv = [sys.executable, "-m", "rlvitals", "follow", str(folder), "--until-end"]
        argv += ["--alert", channel, "--alert-when", condition]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start

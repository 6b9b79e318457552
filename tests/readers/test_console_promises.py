"""What every reader promises, on the console output of each dialect."""

import log_checks
import pytest
from effort import sampled
from test_classic_console import LOGS as CLASSIC_LOGS
from test_console import LOGS as TRAINER_LOGS
from test_language_console import LOGS as LANGUAGE_LOGS

from rlvitals.readers import console

READER = console.READER
LOGS = {**TRAINER_LOGS, **LANGUAGE_LOGS, **CLASSIC_LOGS}


@pytest.mark.parametrize("name", sampled(LOGS, 3))
def test_cuts_read_as_prefixes(tmp_path, name):
    log_checks.check_truncations(READER, tmp_path / "a.log", LOGS[name])


@pytest.mark.parametrize("name", LOGS)
def test_a_growing_file_reads_once(tmp_path, name):
    log_checks.check_cursor(READER, tmp_path / "a.log", LOGS[name], rounds=20)


@pytest.mark.parametrize("name", LOGS)
def test_damage(tmp_path, name):
    log_checks.check_damage(READER, tmp_path / "a.log", LOGS[name], rounds=60)

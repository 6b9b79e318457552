"""What a training does when its console goes, and when signals come, one or many."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import forked
import pytest

import rlvitals
from rlvitals.trainers.signal_handlers import HANDLED_SIGNALS, SignalHandler, Terminated

FULL = Path("/dev/full")
GOES_ON = "from rlvitals.trainers.console_io import say; say('a'); say('b'); print(1, flush=True)"


def ended(command, **options):
    source = str(Path(rlvitals.__file__).parents[1])
    said = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": source}, text=True, check=False,
        stderr=subprocess.PIPE, **options,
    )  # fmt: skip
    return said.returncode, said.stderr


@pytest.mark.skipif(not FULL.exists(), reason="a device of Linux")
def test_a_console_on_a_full_disk_ends_no_training():
    with FULL.open("w") as full:
        assert ended([sys.executable, "-c", GOES_ON], stdout=full) == (0, "")


@pytest.mark.skipif(os.name != "posix", reason="a shell closes it")
def test_a_console_that_never_was_ends_no_command():
    shell = f'exec "{sys.executable}" -m rlvitals metrics >&-'
    assert ended(["sh", "-c", shell]) == (0, "")


@pytest.mark.parametrize("number", HANDLED_SIGNALS)
def test_the_first_signal_is_noted_and_raised_when_it_suits(number):
    with SignalHandler() as stopping:
        stopping.patient = True
        signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt) as raised:
            stopping.check()
    assert getattr(raised.value, "number", signal.SIGINT) == number
    assert isinstance(raised.value, Terminated) == (number != signal.SIGINT)


def test_what_comes_after_one_that_raised_spoils_no_end():
    """Ctrl-C again and again: the run would be left half closed."""
    with SignalHandler() as stopping:
        stopping.patient = True
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has none")
def test_what_the_program_ignores_it_goes_on_to_ignore():
    """As under nohup."""

    def under_nohup():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with SignalHandler() as stopping:
            stopping.patient = True
            signal.raise_signal(signal.SIGHUP)
            stopping.check()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN

    assert forked.apart(under_nohup) == 0

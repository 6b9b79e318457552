"""The console of a training: it outlives its readers."""

import os
import sys


def say(text: str) -> None:
    """Write to the console; a training goes on where nobody reads that any more.

    As after `| head -1`, when the terminal is gone, or where the disk behind `> FILE` is full.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""Write to the console of a training without failing when nobody reads it."""

import os
import sys
from typing import TextIO


def say(text: str, stream: TextIO | None = None) -> None:
    """Write to the console; an error of the console does not end the training.

    As after `| head -1`, when the terminal is gone, or where the disk behind `> FILE` is full.
    `stream`: where to, in place of stdout.
    """
    out = stream or sys.stdout
    try:
        out.write(text)
        out.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())

"""A disk that takes no more, for the rest of a process: no file may grow over a size."""

import resource
import signal


def limit(size):
    """Let writes fail half-way from `size` bytes on, as they do where a disk is full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

"""Processes that are killed at random moments, and processes that work together.

    for said in killed(work, folder, times=20):
        ...  # what it said until it was killed; look at what it left

`work(say, *args)`, a function of a module, runs in a process of its own and says things through
`say`. The processes are forked off one that has torch loaded: a start costs milliseconds.
"""

import multiprocessing
import os
import random
import sys
import tempfile
from contextlib import contextmanager, suppress
from multiprocessing import forkserver
from pathlib import Path

from waiting import HANG_SECONDS

# The first optimizer loads `torch._dynamo`.
PRELOADED = [
    "__main__",
    "pytest",
    "torch._dynamo",
    "torch.distributed.checkpoint",
    "rlvitals.checkpoints.manager",
]


def processes():
    """What makes processes; a server that other tests started with other modules is ended."""
    context, server = multiprocessing.get_context("forkserver"), forkserver._forkserver
    if server._preload_modules != PRELOADED:
        server._stop()
        context.set_forkserver_preload(PRELOADED)
    return context


def killed(work, *args, times, seed=0, words=(1, 4), moment=0.02):
    """Start `work` so many times; kill it at a random moment after a few words; yield the words.

    `moment`: seconds after the last word that was waited for, at the most. Where the work ends or
    fails before it is killed, that is an error.
    """
    dice = random.Random(seed)
    for _ in range(times):
        process, pipe = started(work, *args)
        try:
            said = [heard(pipe) for _ in range(dice.randint(*words))]
            process.join(dice.random() * moment)
            assert process.exitcode is None, f"it ended by itself: {process.exitcode}"
        finally:
            process.kill()
            process.join()
        with suppress(EOFError):
            while pipe.poll():
                said.append(pipe.recv())
        pipe.close()
        yield said


def together(work, *args, count=2):
    """Run `work(say, rank, *args)` in several processes to their end; return what each said."""
    running = [started(work, rank, *args) for rank in range(count)]
    said = []
    for process, pipe in running:
        words = []
        with suppress(EOFError):
            while True:
                words.append(heard(pipe))
        process.join()
        assert process.exitcode == 0, words
        said.append(words)
    return said


def started(work, *args):
    """Start `work` and return its process and the pipe that it speaks through."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = processes().Process(target=_run, args=(work, theirs, args))
    process.start()
    theirs.close()
    return process, ours


def heard(pipe):
    """The next thing that a process says."""
    assert pipe.poll(HANG_SECONDS), "it says nothing"
    return pipe.recv()


@contextmanager
def in_memory(otherwise):
    """A folder that a kill leaves as a disk would, and that is not waited for; else `otherwise`."""
    memory = Path("/dev/shm")  # noqa: S108 - of a name of its own
    if not os.access(memory, os.W_OK):
        yield otherwise
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def _run(work, pipe, args):
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    work(pipe.send, *args)

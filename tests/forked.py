"""Trainings in processes forked from this one, where nothing is loaded anew."""

import os
import socket
import time
from multiprocessing import get_context

import psutil
import torch
from accelerate.state import AcceleratorState, GradientState, PartialState
from waiting import HANG_SECONDS

FORK = get_context("fork")
IDLE_SECONDS = 120  # without any progress on a processor: a child hangs
CPU_SECONDS = 600  # that a child may compute
STATE = ("model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth")


def state(checkpoint):
    """The bytes that a continued training must have in common with an uninterrupted one."""
    return {name: (checkpoint / name).read_bytes() for name in STATE}


def apart(do, *args):
    """Call a function in a forked process, and return how that ended."""
    child = FORK.Process(target=do, args=args, daemon=True)
    child.start()
    spent, since = 0.0, time.monotonic()
    while child.is_alive() and spent < CPU_SECONDS and time.monotonic() < since + IDLE_SECONDS:
        child.join(1.0)
        if (now := _cpu_seconds(child.pid)) > spent:
            spent, since = now, time.monotonic()
    hangs = child.is_alive()
    child.kill()
    child.join()
    assert not hangs, f"the child hangs after {spent:.0f} s on a processor"
    return child.exitcode


def _cpu_seconds(pid):
    """What a process and its children have computed: on a busy machine it grows, if slowly."""
    try:
        found = psutil.Process(pid)
        return sum(sum(one.cpu_times()[:4]) for one in (found, *found.children(recursive=True)))
    except psutil.Error:
        return 0.0


def ranks(do, *args):
    """Call `do(rank, *args)` in two processes that train together; what each returns, in order."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    said = FORK.Queue()
    two = [
        FORK.Process(target=_as_rank, args=(rank, port, said, do, args), daemon=True)
        for rank in (0, 1)
    ]
    for process in two:
        process.start()
    try:
        answers = dict(said.get(timeout=HANG_SECONDS) for _ in two)
        return [answers[rank] for rank in (0, 1)]
    finally:
        for process in two:
            process.join(5)
            process.kill()


def _as_rank(rank, port, said, do, args):
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
    )  # fmt: skip
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()
    said.put((rank, do(rank, *args)))
    said.close()
    said.join_thread()
    torch.distributed.destroy_process_group()
    os._exit(0)  # what pytest would do at the end is this process's parent's

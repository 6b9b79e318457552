"""A training script that ends in the ways that its arguments name, each in a fork of its own.

A fork costs a tenth of a process that imports everything again.
"""

import ctypes
import faulthandler
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np

import rlvitals
from rlvitals.tracking import run_services, start  # loaded once, before the forks

assert np
assert run_services
assert start
root, *ways = sys.argv[1:]
WAITS = "term-in-c"


def born(way):
    """Fork: the child goes on with its way to end, this process remembers it."""
    sys.stderr.flush()
    if child := os.fork():
        return child
    with Path(root, f"{way}.err").open("w") as file:
        os.dup2(file.fileno(), 2)
    return 0


children = {}
how = ""
for way in ways:
    children[way] = born(way)
    if not children[way]:
        how = way
        break
if not how:
    if WAITS in children:
        while not Path(root, "ready").exists():
            time.sleep(0.01)
        time.sleep(0.1)
        os.kill(children[WAITS], signal.SIGTERM)
    ended = {w: os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) for w, c in children.items()}
    Path(root, "codes.json").write_text(json.dumps(ended))
    os._exit(0)

folder = Path(os.environ.get("RUN_FOLDER", Path(root, how)))
if how == "term-handled-before":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
if how == "segv-told-before":
    faulthandler.enable()
if how == "hook-before":
    sys.excepthook = lambda kind, *_: sys.stderr.write(f"mine: {kind.__name__}\n")
if how == "hup-ignored":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
run = rlvitals.start(folder, settings={"seed": 7, "hub": {"token": "abc123def456"}})
for step in range(40):
    run.log(step, {"reward_mean": float(step)})
run.flush()


def fork(end):
    if not (child := os.fork()):
        end()
    os.waitpid(child, 0)


def fail():
    raise ValueError("no such key: --api-key hunter2")


if how == "exception":
    fail()
elif how == "exit-3":
    sys.exit(3)
elif how == "raise-4":
    raise SystemExit(4)
elif how == "exit-words":
    sys.exit("the data is gone")
elif how == "exit-256":
    sys.exit(256 + 10)  # the byte is a line's end
elif how == "term":
    os.kill(os.getpid(), signal.SIGTERM)
elif how == "term-in-c":
    Path(root, "ready").touch()
    ctypes.PyDLL(None).pause()  # waits in C, and gives nobody the interpreter
elif how in {"term-handled-before", "term-handled-after"}:
    if how.endswith("after"):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(20)
elif how in {"hup", "hup-ignored"}:
    os.kill(os.getpid(), signal.SIGHUP)
elif how == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
elif how in {"segv", "segv-told-before"}:
    ctypes.string_at(0)
elif how == "segv-sent":
    os.kill(os.getpid(), signal.SIGSEGV)
elif how == "abort":
    os.abort()
elif how == "os-exit":
    os._exit(5)
elif how == "ctrl-c":
    signal.raise_signal(signal.SIGINT)
elif how == "hook-before":
    fail()
elif how == "thread":
    thread = threading.Thread(target=fail, name="worker")
    thread.start()
    thread.join()
elif how == "forks":
    fork(lambda: sys.exit(7))
    fork(fail)
    fork(lambda: os.kill(os.getpid(), signal.SIGTERM))
    fork(lambda: os.kill(os.getpid(), signal.SIGSEGV))
    fork(os.abort)
elif how == "with-exit-6":
    with run:
        sys.exit(6)
elif how == "with-exception":
    with run:
        fail()
elif how == "finish":
    run.finish()
elif how == "finish-then-fail":
    run.finish()
    fail()
elif how == "stopped":
    run.finish("stopped early")

"""Runs that the tests of the server look at, recorded by the product itself."""

import contextlib
import socket
import threading
import time

import numpy as np
from waiting import HANG_SECONDS

import rlvitals
from rlvitals import settings
from rlvitals.server import app


def record(folder, points=60, *, collapse=None, finish=True, rate=3e-4, seed=1, value=None):
    """Record a PPO run whose return rises; from row `collapse` on it is low."""
    run = rlvitals.start(
        str(folder), framework="sb3", seed=seed, flush_seconds=0.05,
        settings={"env_id": "CartPole-v1", "learning_rate": rate},
    )  # fmt: skip
    write(run, range(points), collapse=collapse, value=value)
    if finish:
        run.finish()
    return run


def write(run, rows, *, collapse=None, value=None):
    rng = np.random.default_rng(0)
    for row in rows:
        is_broken = collapse is not None and row >= collapse
        outcome = 9.0 if is_broken else 20 + 3 * row + rng.normal()
        run.log(
            {
                "rollout/ep_rew_mean": outcome if value is None else value,
                "train/approx_kl": 0.01,
                "train/entropy_loss": -0.01 if is_broken else -0.6,
                "train/learning_rate": 0.1 if is_broken else 3e-4,
            },
            step=1024 * (row + 1),
        )


def build(root, *others, **options):
    return app.build([root, *others], settings.load(root.parent), **options)


@contextlib.contextmanager
def serving(application):
    """Answer on a free port of this machine for as long as the block lasts; give the address."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = app.Server(application)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    deadline = time.monotonic() + HANG_SECONDS
    while not server.started:
        assert thread.is_alive()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(HANG_SECONDS)
        listener.close()


def until(check):
    """Wait until a check comes to something true, and return it."""
    deadline = time.monotonic() + HANG_SECONDS
    while not (answer := check()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return answer

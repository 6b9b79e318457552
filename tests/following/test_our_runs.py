"""Our own run folders, followed as they are written: block by block, attempt by attempt."""

import numpy as np
from following import Followed, assert_as_read_at_once, kinds, of, points

from rlvitals.following import changes
from rlvitals.storage.blocks import Writer
from rlvitals.storage.run_folder import About, RunFolder

KEYS = ("outcome/return", "policy/approx_kl")


def rows(writer, first, last):
    steps = np.arange(first, last + 1)
    values = np.array([20 + 400 * (1 - np.exp(-steps / 60)), np.full(len(steps), 0.01)])
    writer.scalars(KEYS, steps, 1.7e9 + steps.astype(float), values)
    writer.flush()


def test_blocks_events_settings_and_a_second_attempt(tmp_path):
    followed = Followed(tmp_path)
    told = []
    folder = RunFolder.create(tmp_path / "ppo", About(settings={"gamma": 0.99}))
    for attempt, (first, last) in enumerate(((1, 40), (31, 80)), 1):
        folder, number, path = folder.begin()
        assert number == attempt
        writer = Writer(path)
        for step in range(first, last, 5):
            rows(writer, step, step + 4)
            told += followed.look(2.0)
        if attempt == 1:
            writer.settings(40, 1.7e9 + 40, {"gamma": 0.95})
        writer.close()
        status = {"exit_code": attempt - 1}
        folder.events.append("exit", last, attempt=number, **status)
        told += followed.look(2.0)
    told += followed.settle()
    ended = of(changes.Ended, told)
    assert [(one.how, one.exit_code) for one in ended] == [("finished", 0), ("failed", 1)]
    assert points(told) == dict.fromkeys(KEYS, 90)
    assert [one.why for one in of(changes.Resumed, told)][-1].endswith("goes on from step 31")
    assert not of(changes.Restarted, told)
    assert kinds(told)[0] == "Found"
    assert followed.trace().number("gamma") == 0.95
    assert_as_read_at_once(followed, tmp_path)

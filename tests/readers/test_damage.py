"""Damaged logs of every format: read or refused by name, never a crash or a hang."""

import json

import numpy as np
import pytest
from loading import read_log

from rlvitals.errors import UnreadableLog

ROUNDS = 150
SPLICES = (
    b"\x00",
    b"\xff\xfe",
    b"\n",
    b'"',
    b",",
    b"{",
    b"]",
    b"nan(ind)",
    b"-1e999",
    b"1e308",
    b"9" * 400,
    b"None",
    b"\r",
    b"\x85",
    "\u2028\u0661".encode(),
)
STATE = {"log_history": [{"step": n, "loss": n / 7} for n in range(9)], "max_steps": 9}
SCHEDULER = "data_type,datetime,mode,reward,step,temp_is_pulsing,timestamp\n" + "".join(
    f"training,2026-01-31T10:00:{n:02d},hybrid,{n / 7},{n},True,{1769853600 + n}.0\n"
    for n in range(20)
)
SEEDS = {
    "run.csv": "step,time,loss\n" + "".join(f"{n},{1.7e9 + n},{n / 7}\n" for n in range(30)),
    "run.tsv": "Epoch\tloss\n" + "".join(f"{n}\t{n / 7}\n" for n in range(30)),
    "run.jsonl": "".join(json.dumps({"step": n, "a": {"b": n / 7}}) + "\n" for n in range(30)),
    "run.json": json.dumps([{"step": n, "a": {"b": n / 7}} for n in range(30)]),
    "trainer_state.json": json.dumps(STATE, indent=2),
    "ppo_metrics_1.csv": SCHEDULER,
    "progress.csv": "time/total_timesteps,train/loss\n" + "".join(f"{n},1\n" for n in range(30)),
    "0.monitor.csv": '#{"t_start": 1.7e9}\nr,l,t\n' + "".join(f"{n},5,{n}\n" for n in range(30)),
}


def damaged(data, rng):
    """Splice, swap, drop or cut a few places."""
    for _ in range(int(rng.integers(1, 5))):
        at, to = sorted(int(n) for n in rng.integers(0, len(data) + 1, 2))
        match int(rng.integers(4)):
            case 0:
                data = data[:at] + SPLICES[int(rng.integers(len(SPLICES)))] + data[at:]
            case 1:
                data = data[:at] + data[min(at + 3, to) :]
            case 2:
                data = data[:at] + rng.bytes(min(to - at, 4)) + data[to:]
            case _:
                data = data[:to] if to > len(data) // 2 else data
    return data


@pytest.mark.parametrize("name", SEEDS)
def test_damage_is_read_or_refused(tmp_path, name):
    rng = np.random.default_rng(11)
    path, refused = tmp_path / name, 0
    for _ in range(ROUNDS):
        path.write_bytes(damaged(SEEDS[name].encode(), rng))
        try:
            log = read_log(path)
        except UnreadableLog as error:
            refused += 1
            assert name in error.where  # noqa: PT017 - both outcomes are allowed
            continue
        for series in log.series.values():
            assert len(series.steps) == len(series.times) == len(series.values) > 0
            assert series.steps.dtype == np.int64
    assert refused < ROUNDS


@pytest.mark.parametrize("name", SEEDS)
@pytest.mark.parametrize("junk", [b"", b"\n" * 9, b"\x00\xff" * 999, b"\xfe" * 999, b"%PDF-1.7\n"])
def test_noise_under_a_log_s_name_is_refused(tmp_path, name, junk):
    path = tmp_path / name
    path.write_bytes(junk)
    with pytest.raises(UnreadableLog) as error:
        read_log(path)
    assert str(path) in error.value.where
    assert error.value.hint

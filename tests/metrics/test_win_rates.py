"""The share of wins that the counts of wins and losses tell."""

import numpy as np
import pytest

from rlvitals.metrics import canonicalize
from rlvitals.readers.select import reader_of
from rlvitals.types import Log, Series

RATE = "outcome/success_rate"
WINS = [10, 20, 35, 50, 60, 70, 75, 80]


def trace(**columns):
    steps = np.arange(8)
    times = np.full(8, np.nan)
    series = {
        key: Series(steps, times, np.array([*values], dtype=float))
        for key, values in columns.items()
    }
    return canonicalize.trace([Log("csv", series)])


def test_wins_and_losses_tell_the_share():
    lost = [95 - n for n in WINS]
    assert trace(wins=WINS, losses=lost, draws=[5] * 8)[RATE].values.tolist() == [
        n / 100 for n in WINS
    ]


def test_counts_that_go_on_are_those_of_each_row():
    played = trace(games_won=np.cumsum(WINS), games_lost=np.cumsum([100 - n for n in WINS]))
    assert played[RATE].values.tolist() == [n / 100 for n in WINS]


@pytest.mark.parametrize(
    "columns",
    [{"losses": WINS}, {"wins": WINS}, {"wins": [0.5] * 8, "losses": [0.25] * 8}],
    ids=["no wins", "no losses", "no counts"],
)
def test_a_share_needs_both_counts(columns):
    assert not [note for note in trace(**columns).notes if "win_rate" in note]


@pytest.mark.parametrize(
    "line",
    [
        "After {n} games: {w} wins, {l} losses, 5 draws",
        "Ep {n}/800  wins={w} losses={l} draws=5  eps=0.1",
        "[{n}] Buf:900 | W:{w} L:{l} D:5",
        "Iteration {n} | games 100 | W/D/L {w}/5/{l}",
        "Episodio {n}: Victorias {w}, Derrotas {l}, Empates 5",
    ],
)
def test_counts_that_a_loop_prints_are_read(tmp_path, line):
    path = tmp_path / "train.log"
    rows = [line.format(n=n * 100, w=w, l=95 - w) for n, w in enumerate(WINS, 1)]
    path.write_text("Using device: cpu\n" + "\n".join(rows) + "\n")
    played = canonicalize.trace([reader_of(path).read(path, None)[0]])
    assert played[RATE].values.tolist() == [w / 100 for w in WINS]

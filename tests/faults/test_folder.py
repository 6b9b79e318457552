"""The benchmark's traces on disk."""

from backports import zstd
from test_labels import RUN

from rlvitals.faults import folder

LOG = "time/total_timesteps,rollout/ep_rew_mean\n1000,20.5\n"


def test_what_is_written_is_read_again(tmp_path):
    folder.write(tmp_path, RUN, LOG)
    assert folder.read(tmp_path) == (RUN,)
    assert zstd.decompress(folder.trace(tmp_path, RUN).read_bytes()).decode() == LOG


def test_a_line_that_was_cut_is_not_there(tmp_path):
    folder.write(tmp_path, RUN, LOG)
    index = tmp_path / RUN.task / folder.INDEX_NAME
    index.write_text(index.read_text() + index.read_text()[:40])
    assert folder.read(tmp_path) == (RUN,)


def test_a_run_recorded_again_counts_once(tmp_path):
    folder.write(tmp_path, RUN, LOG)
    folder.write(tmp_path, RUN, LOG)
    assert folder.read(tmp_path) == (RUN,)

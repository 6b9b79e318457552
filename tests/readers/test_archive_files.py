"""Archives of several files: what is unpacked, and what is refused."""

import io
import tarfile
import zipfile

import pytest

from rlvitals.errors import UnreadableLog
from rlvitals.readers.discovery import sources
from rlvitals.readers.formats.archive_files import unpack

LOG = "step,reward\n" + "".join(f"{n},{n / 2}\n" for n in range(30))


def pack_zip(path, name):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, LOG)


def pack_tar(path, name):
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(LOG)
        archive.addfile(info, io.BytesIO(LOG.encode()))


@pytest.mark.parametrize(("name", "pack"), [("runs.zip", pack_zip), ("runs.tar.gz", pack_tar)])
def test_the_logs_of_an_archive(tmp_path, name, pack):
    pack(tmp_path / name, "ppo/metrics.csv")
    (run,) = sources.find(unpack(tmp_path / name, tmp_path / "unpacked"))
    assert sources.read(run)[0].series["reward"].values.tolist() == [n / 2 for n in range(30)]


@pytest.mark.parametrize(("name", "pack"), [("runs.zip", pack_zip), ("runs.tar.gz", pack_tar)])
def test_a_path_out_of_the_folder_is_left_out(tmp_path, name, pack):
    pack(tmp_path / name, "../outside.csv")
    unpack(tmp_path / name, tmp_path / "unpacked")
    assert not list(tmp_path.rglob("outside.csv"))


@pytest.mark.parametrize("name", ["runs.zip", "runs.tar.gz"])
def test_a_damaged_archive_is_refused_by_its_name(tmp_path, name):
    (tmp_path / name).write_bytes(b"PK\x03\x04 and nothing else")
    with pytest.raises(UnreadableLog, match="cannot be unpacked") as refused:
        unpack(tmp_path / name, tmp_path / "unpacked")
    assert name in refused.value.where

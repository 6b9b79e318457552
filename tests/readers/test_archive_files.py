"""Archives of several files: what is unpacked, and what is refused."""

import gzip
import io
import tarfile
import zipfile

import pytest

from rlvitals.errors import UnreadableLog
from rlvitals.readers.discovery import sources
from rlvitals.readers.formats.archive_files import MAX_ARCHIVE_FILES, unpack

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


@pytest.mark.parametrize(("name", "pack"), [(".zip", pack_zip), (".tar.gz", pack_tar)])
def test_an_archive_without_a_stem_is_unpacked_inside_the_folder(tmp_path, name, pack):
    pack(tmp_path / name, "ppo/metrics.csv")
    folder = tmp_path / "unpacked"
    folder.mkdir()
    assert unpack(tmp_path / name, folder).parent == folder


@pytest.mark.parametrize("mode", ["", "gz", "bz2", "xz"])
def test_each_way_of_packing_a_tar(tmp_path, mode):
    with tarfile.open(tmp_path / "runs.tar", f"w:{mode}") as archive:
        info = tarfile.TarInfo("a" * 150)  # its long name is in a header of its own
        info.size = len(LOG)
        archive.addfile(info, io.BytesIO(LOG.encode()))
    (file,) = unpack(tmp_path / "runs.tar", tmp_path / "unpacked").iterdir()
    assert file.read_text() == LOG


def test_a_header_is_not_read_whatever_its_length(tmp_path):
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 2**33 - 1
    with gzip.open(tmp_path / "runs.tar.gz", "wb") as file:
        file.write(header.tobuf(tarfile.USTAR_FORMAT))
    with pytest.raises(UnreadableLog, match="a header of over 4 MiB"):
        unpack(tmp_path / "runs.tar.gz", tmp_path / "unpacked")


def test_blocks_that_no_file_has_are_not_passed_over_without_end(tmp_path):
    header = tarfile.TarInfo("x")
    header.type, header.size = b"Z", 2**33 - 1
    (tmp_path / "runs.tar").write_bytes(header.tobuf(tarfile.USTAR_FORMAT) + bytes(1024))
    with pytest.raises(UnreadableLog, match="it unpacks to over 2 GiB"):
        unpack(tmp_path / "runs.tar", tmp_path / "unpacked")


def test_folders_and_links_count_among_the_members(tmp_path):
    folder = tarfile.TarInfo("x")
    folder.type = tarfile.DIRTYPE
    with gzip.open(tmp_path / "runs.tar.gz", "wb") as file:
        file.write(folder.tobuf() * (MAX_ARCHIVE_FILES + 1))
    with pytest.raises(UnreadableLog, match="more than 20,000 files"):
        unpack(tmp_path / "runs.tar.gz", tmp_path / "unpacked")

"""A run in one file: the same bytes each time, and nothing of an archive that is not as it says."""

import gzip
import io
import json
import os
import random
import shutil
import stat
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
import zlib
from pathlib import Path

import pytest
import xxhash
from moving_runs import at_work, checkpoints, content, forks, moved, plain, recorded, save, whole

from rlvitals.checkpoints.transfer import path_safety, unbundle
from rlvitals.checkpoints.transfer.archives import zstd
from rlvitals.checkpoints.transfer.bundle import bundle
from rlvitals.checkpoints.transfer.work_folder import open_work_folder
from rlvitals.cli import main
from rlvitals.errors import UnreadableLog, UsageError, VitalsError

SUFFIXES = (".tar.zst", ".tar.gz", ".tar", ".zip")


@pytest.fixture(params=SUFFIXES)
def archive(request, tmp_path):
    return tmp_path / f"a{request.param}"


def test_what_is_unpacked_is_what_was_packed(tmp_path, archive):
    run = recorded(tmp_path / "run")
    done = bundle(run, archive)
    assert (done.checkpoints, done.damaged, done.left) == ([100, 50], [], [])
    got = unbundle.unbundle(archive, tmp_path / "new")
    assert got.steps == (50, 100)
    assert content(tmp_path / "new", hidden=True) == moved(run)


def test_the_same_run_gives_the_same_bytes_wherever_it_lies(tmp_path, archive):
    run = recorded(tmp_path / "a" / "run")
    bundle(run, archive)
    time.sleep(0.01)
    shutil.copytree(run, tmp_path / "b" / "run")
    (tmp_path / "b" / "run" / "run.json").touch()
    again = archive.with_name(f"b{archive.name[1:]}")
    bundle(tmp_path / "b" / "run", again)
    assert again.read_bytes() == archive.read_bytes()


def test_what_is_in_it_stands_first(tmp_path):
    bundle(recorded(tmp_path / "run"), tmp_path / "a.zip")
    bundle(tmp_path / "run", tmp_path / "a.tar.gz")
    with zipfile.ZipFile(tmp_path / "a.zip") as packed:
        assert packed.namelist()[0] == "run/bundle.json"
        listed = json.loads(packed.read("run/bundle.json"))["files"]
        assert [f"run/{name}" for name, _, _ in listed] == packed.namelist()[1:]
    with tarfile.open(tmp_path / "a.tar.gz") as packed:
        assert packed.next().name == "run/bundle.json"


@pytest.mark.parametrize(("which", "steps"), [("all", [50, 100]), ("latest", [100]), ("none", [])])
def test_checkpoints_are_chosen(tmp_path, which, steps):
    run = recorded(tmp_path / "run")
    bundle(run, tmp_path / "a.zip", selection=which)
    unbundle.unbundle(tmp_path / "a.zip", tmp_path / "new")
    assert whole(tmp_path / "new") == steps
    assert (tmp_path / "new" / "run.json").read_bytes() == (run / "run.json").read_bytes()
    assert (tmp_path / "new" / "latest").exists() == bool(steps)


def test_what_is_damaged_is_left_and_latest_is_the_newest_that_is_whole(tmp_path):
    run = plain(tmp_path / "run")
    (run / "checkpoint-100" / "model.bin").write_bytes(b"x" * 2000)
    (run / "checkpoint-150").mkdir()
    done = bundle(run, tmp_path / "a.zip", selection="latest")
    assert "checkpoint-100 is damaged, not packed" in done.damaged[0]
    assert "checkpoint-150 is left: it was never sealed" in done.left[0]
    unbundle.unbundle(tmp_path / "a.zip", tmp_path / "new")
    assert whole(tmp_path / "new") == [50]
    assert (tmp_path / "new" / "latest").read_text() == "checkpoint-50\n"


def test_other_programs_unpack_it_too(tmp_path):
    run = recorded(tmp_path / "run")
    for name, command in (
        ("a.tar.gz", ["tar", "xzf"]),
        ("a.zip", [sys.executable, "-m", "zipfile", "-e"]),
    ):
        bundle(run, tmp_path / name)
        out = tmp_path / f"out-{name}"
        out.mkdir()
        rest = [] if "tar" in command else ["."]
        subprocess.run([*command, tmp_path / name, *rest], cwd=out, check=True)
        assert moved(out / "run") == moved(run)


def test_names_that_cannot_lie_everywhere_are_left_and_said(tmp_path):
    run = plain(tmp_path / "run")
    for name in ("a\nb.log", "Log.txt", "log.txt", "back\\slash"):
        (run / name).write_text(name)
    done = bundle(run, tmp_path / "a.zip")
    assert sorted(text.split(":")[0] for text in done.left) == [
        "'a\\nb.log' is left",
        "'back\\\\slash' is left",
        "'log.txt' is left",
    ]
    unbundle.unbundle(tmp_path / "a.zip", tmp_path / "new")


def test_bundle_refuses_what_makes_no_sense(tmp_path):
    run = plain(tmp_path / "run")
    (tmp_path / "there.zip").write_text("mine")
    for archive, words in (
        (tmp_path / "a.rar", "does not say its kind"),
        (run / "a.zip", "would lie in the run"),
        (tmp_path / "there.zip", "a file is there already"),
        (tmp_path / "no" / "a.zip", "no such folder"),
        (tmp_path, "does not say its kind"),
    ):
        with pytest.raises(UsageError, match=words):
            bundle(run, archive)
    assert (tmp_path / "there.zip").read_text() == "mine"
    bundle(run, tmp_path / "there.zip", force=True)
    (tmp_path / "no").mkdir()
    with pytest.raises(UnreadableLog, match="no run is here"):
        bundle(tmp_path / "no", tmp_path / "a.zip")


def test_an_archive_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    run = plain(tmp_path / "run")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        bundle(run, tmp_path / "a.tar.zst")
    assert [one.name for one in tmp_path.iterdir()] == ["run"]


# --- archives from anybody ---

FILE = b"harmless"


def announced(files, name="run", **more):
    listed = [[one, len(data), xxhash.xxh3_128_hexdigest(data)] for one, data in files]
    said = {"format": 1, "written_by": "rlvitals", "name": name, "files": listed, **more}
    return json.dumps(said).encode()


def tar_of(*members):
    """Write a tar of (name, data) or of ready entries."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for one in members:
            entry, data = one if isinstance(one[0], tarfile.TarInfo) else (None, one[1])
            if entry is None:
                entry = tarfile.TarInfo(one[0])
                entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data) if data is not None else None)
    return out.getvalue()


def zip_of(*members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name, data in members:
            packed.writestr(name, data)
    return out.getvalue()


def special(name, kind, target="/etc/passwd"):
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry, None


def refused(tmp_path, data, words="", name="a.bin", **options):
    """Unpack; see that it is refused, and that nothing came into being anywhere."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(data)
    before = content(tmp_path, hidden=True)
    with pytest.raises(UnreadableLog) as caught:
        unbundle.unbundle(tmp_path / name, work / "out", **options)
    assert caught.value.where == str(tmp_path / name)
    assert words in str(caught.value)
    assert content(tmp_path, hidden=True) == before
    assert not list(work.iterdir())


NAMES = [
    "/etc/cron.d/x",
    "../x",
    "a/../../x",
    "..",
    ".",
    "",
    "a//b",
    "./a",
    "a/./b",
    "a\\..\\b",
    "C:/x",
    "c:x",
    "a\x00b",
    "a\nb",
    "a\x1b[2Jb",
    "a\u202eb",
    "a" * 256,
    "a/" * 2500 + "b",
    "\ud800",
]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_names_that_lead_elsewhere_are_refused(tmp_path, name):
    assert path_safety.find_problem(name)
    said = announced([(name, FILE)])
    refused(tmp_path, tar_of(("run/bundle.json", said)), "refused")
    refused(tmp_path, zip_of(("run/bundle.json", said)), "refused")


@pytest.mark.parametrize("name", ["/etc/x", "../x", "run/../../x", "other/a", "run", "run/b"])
def test_what_comes_unannounced_is_refused_whatever_its_name(tmp_path, name):
    said = announced([("a", FILE)])
    for pack in (tar_of, zip_of):
        data = pack(("run/bundle.json", said), ("run/a", FILE), (name, FILE))
        refused(tmp_path, data, "comes unannounced, or twice")


@pytest.mark.parametrize("root", ["..", ".", "/", "a/b", "", "\n", "/etc"])
def test_a_folder_that_leads_elsewhere_is_refused(tmp_path, root):
    said = announced([("a", FILE)], name=root)
    refused(tmp_path, tar_of((f"{root}/bundle.json", said), (f"{root}/a", FILE)), "names no folder")


KINDS = {
    "symlink": tarfile.SYMTYPE,
    "hardlink": tarfile.LNKTYPE,
    "device": tarfile.CHRTYPE,
    "block": tarfile.BLKTYPE,
    "fifo": tarfile.FIFOTYPE,
    "folder": tarfile.DIRTYPE,
    "sparse": tarfile.GNUTYPE_SPARSE,
    "unknown": b"Z",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["run/a", "run/b", "elsewhere"])
def test_links_devices_and_folders_are_refused(tmp_path, kind, name):
    said = announced([("a", b"")])
    data = tar_of(("run/bundle.json", said), special(name, KINDS[kind]))
    refused(tmp_path, data)


def test_a_link_in_a_zip_is_refused(tmp_path):
    said = announced([("a", b"/etc/passwd")])
    for mode in (stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFDIR):
        entry = zipfile.ZipInfo("run/a")
        entry.external_attr = (mode | 0o777) << 16
        data = zip_of(("run/bundle.json", said), (entry, b"/etc/passwd"))
        refused(tmp_path, data, "is not a regular file")


def test_a_file_written_through_a_link_that_was_unpacked_first(tmp_path):
    said = announced([("a/b", FILE)])
    data = tar_of(
        ("run/bundle.json", said),
        special("run/a", tarfile.SYMTYPE, str(tmp_path)),
        ("run/a/b", FILE),
    )
    refused(tmp_path, data, "a link")


@pytest.mark.parametrize(
    "pair", [("a", "a"), ("A", "a"), ("é", "e\u0301"), ("ſ", "s"), ("a", "a/b"), ("A/x", "a")]
)
def test_names_that_are_one_on_some_file_system_are_refused(tmp_path, pair):
    said = announced([(name, FILE) for name in pair])
    refused(tmp_path, tar_of(("run/bundle.json", said)), "refused")


def test_a_bomb_is_refused_before_anything_is_written(tmp_path):
    zeros = bytes(1 << 20)
    said = announced([(f"{n}", zeros) for n in range(100)])
    members = [("run/bundle.json", said), *((f"run/{n}", zeros) for n in range(100))]
    data = zstd.compress(tar_of(*members), level=19)
    assert 100 * len(zeros) > 1000 * len(data)
    refused(tmp_path, data, "a bomb, by more than 1,000 to 1")
    unbundle.unbundle(tmp_path / "a.bin", tmp_path / "allowed", ratio=1e6)


@pytest.mark.parametrize("pack", [zstd.compress, gzip.compress])
def test_what_unpacks_to_more_than_it_announces_is_ended_on_the_way(tmp_path, pack, monkeypatch):
    """Its headers, its manifest and its files may each be the bomb."""
    monkeypatch.setattr(unbundle, "MAX_ARCHIVE_HEADER_BYTES", 1 << 20)
    zeros, said = bytes(32 << 20), announced([("a", FILE)])
    big = tarfile.TarInfo("run/bundle.json")
    big.size = 1 << 50
    refused(tmp_path, pack(tar_of(("run/bundle.json", zeros))), "does not begin with bundle.json")
    refused(tmp_path, pack(big.tobuf() + zeros), "does not begin with bundle.json")
    long = tarfile.TarInfo("x")
    long.type, long.size = tarfile.XHDTYPE, len(zeros)
    refused(tmp_path, pack(long.tobuf() + zeros), "more comes out of it than it announces")
    after = tar_of(("run/bundle.json", said), ("run/a", FILE))[:-10_240]
    refused(tmp_path, pack(after + long.tobuf() + zeros), "more comes out of it than it announces")
    refused(tmp_path, pack(tar_of(("run/bundle.json", said), ("run/a", zeros))), "were announced")


def test_a_zip_whose_sizes_lie(tmp_path):
    """The size in its list is small; what unpacks is not."""
    zeros = bytes(8 << 20)
    said = announced([("a", FILE)])
    packed = bytearray()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run/bundle.json", said)
        archive.writestr("run/a", zeros)
        entry = archive.getinfo("run/a")
        packed_size, check = entry.file_size, entry.CRC
    packed = bytearray(out.getvalue())
    for old, new in (
        (packed_size.to_bytes(4, "little"), len(FILE).to_bytes(4, "little")),
        (check.to_bytes(4, "little"), zlib.crc32(FILE).to_bytes(4, "little")),
    ):
        packed = packed.replace(old, new)
    refused(tmp_path, bytes(packed))


def test_too_many_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(unbundle, "MAX_BUNDLE_FILES", 100)
    said = announced([(str(n), FILE) for n in range(101)])
    refused(tmp_path, tar_of(("run/bundle.json", said)), "announces 101 files")


def test_what_does_not_fit_the_disk_is_refused_before_anything_is_written(tmp_path):
    said = json.loads(announced([]))
    said["files"] = [["a", 1 << 60, "00"]]
    data = tar_of(("run/bundle.json", json.dumps(said).encode()))
    (tmp_path / "a.tar").write_bytes(data)
    with pytest.raises(VitalsError, match="no room"):
        unbundle.unbundle(tmp_path / "a.tar", tmp_path / "out", ratio=1e18)
    assert [one.name for one in tmp_path.iterdir()] == ["a.tar"]


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"written_by": "rlvitals"}',
        b'{"written_by": "rlvitals", "format": 99, "name": "run", "files": []}',
        b'{"written_by": "rlvitals", "format": 1, "name": "run"}',
        b'{"written_by": "rlvitals", "format": 1, "name": "run", "files": [["a"]]}',
        b'{"written_by": "rlvitals", "format": 1, "name": "run", "files": [["a", -1, "0"]]}',
        b'{"written_by": "rlvitals", "format": 1, "name": "run", "files": 7}',
        b'{"written_by": "rlvitals", "format": 1, "name": "run", "files": [["a", 1e999, "0"]]}',
        b"[" * 100_000,
    ],
)
def test_an_announcement_that_is_none(tmp_path, said):
    refused(tmp_path, tar_of(("run/bundle.json", said), ("run/a", FILE)))
    refused(tmp_path, zip_of(("run/bundle.json", said), ("run/a", FILE)))


def test_an_archive_of_another_program_says_what_unpacks_it(tmp_path):
    refused(tmp_path, tar_of(("run/run.json", b"{}")), "`tar xf` or `unzip` unpack")
    for nothing in (b"", b"\x00" * 10_240, b"PK", b"no archive", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"):
        refused(tmp_path, nothing)
    with pytest.raises(UnreadableLog, match="no such file"):
        unbundle.unbundle(tmp_path / "none.zip")
    with pytest.raises(UnreadableLog, match="a folder, not a file"):
        unbundle.unbundle(tmp_path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_damaged_archive_is_refused_and_nothing_stays(tmp_path, suffix):
    """Cut anywhere, or one bit turned anywhere: refused; else it is what was packed."""
    run = plain(tmp_path / "run", steps=(50,))
    bundle(run, tmp_path / f"a{suffix}")
    data = (tmp_path / f"a{suffix}").read_bytes()
    chance = random.Random(suffix)
    end = len(data.rstrip(b"\0"))  # a tar ends with zeros, which nobody needs
    for _ in range(12):
        refused(tmp_path, data[: chance.randrange(end)])
    whole_ones = 0
    for _ in range(40):
        turned = bytearray(data)
        turned[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        (tmp_path / "turned").write_bytes(turned)
        out = tmp_path / "turned-out"
        try:
            unbundle.unbundle(tmp_path / "turned", out)
        except UnreadableLog:
            assert not out.exists()
        else:
            assert content(out) == moved(run)
            shutil.rmtree(out)
            whole_ones += 1
    assert whole_ones < 40
    assert not [one for one in tmp_path.iterdir() if one.name.startswith(".")]


def test_a_zip_whose_table_says_that_files_begin_before_it_is_refused(tmp_path):
    bundle(plain(tmp_path / "run", steps=(50,)), tmp_path / "a.zip")
    data = bytearray((tmp_path / "a.zip").read_bytes())
    end = data.rindex(b"PK\x05\x06")  # the record that says where the table begins
    data[end + 16 : end + 20] = (len(data) + 1000).to_bytes(4, "little")
    refused(tmp_path, bytes(data), "its table of files is damaged")


def test_one_with_a_file_that_is_not_as_announced(tmp_path):
    said = announced([("a", FILE), ("b", FILE)])
    one = ("run/bundle.json", said)
    refused(tmp_path, tar_of(one, ("run/a", FILE)), "1 file missing: 'b'")
    refused(tmp_path, tar_of(one, ("run/a", b"harmful!"), ("run/b", FILE)), "is not what it was")
    refused(tmp_path, tar_of(one, ("run/a", FILE), ("run/a", FILE)), "unannounced, or twice")
    refused(tmp_path, tar_of(one, ("run/a", FILE * 2)), "were announced")


def test_a_folder_in_the_way_is_left_unless_told(tmp_path, capsys):
    run = plain(tmp_path / "run")
    bundle(run, tmp_path / "a.zip")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    command = ["unbundle", str(tmp_path / "a.zip"), "-o", str(tmp_path / "out")]
    assert main(command) == 2
    assert "a folder is there already" in capsys.readouterr().err
    assert main([*command, "--force"]) == 0
    assert (tmp_path / "out.before" / "mine").read_text() == "mine"
    assert "✓ Unpacked" in capsys.readouterr().out
    assert whole(tmp_path / "out") == [50, 100]
    (tmp_path / "file").write_text("")
    assert main(["unbundle", str(tmp_path / "a.zip"), "-o", str(tmp_path / "file")]) == 2


def test_the_commands_take_the_folders_name(tmp_path, monkeypatch, capsys):
    recorded(tmp_path / "runs" / "walk")
    monkeypatch.chdir(tmp_path)
    assert main(["bundle", "runs/walk"]) == 0
    assert main(["unbundle", "walk.tar.zst"]) == 0
    said = capsys.readouterr().out
    assert "✓ Packed: walk.tar.zst: " in said
    assert "✓ Unpacked: walk: " in said
    assert moved("walk") == moved("runs/walk")


def test_a_run_that_goes_on_can_be_packed(tmp_path):
    run = plain(tmp_path / "run")
    script = (
        "import sys\n"
        "with open(sys.argv[1], 'ab', buffering=0) as file:\n"
        "    while True: file.write(b'0123456789abcdef' * 4096)\n"
    )
    log = run / "growing.log"
    process = subprocess.Popen([sys.executable, "-c", script, log])
    try:
        while not log.exists() or log.stat().st_size < 1 << 20:
            time.sleep(0.001)
        bundle(run, tmp_path / "a.tar")
    finally:
        process.kill()
        process.wait()
    unbundle.unbundle(tmp_path / "a.tar", tmp_path / "new")
    assert log.read_bytes().startswith((tmp_path / "new" / "growing.log").read_bytes())


# --- kills ---


def killed(folder, count, seed=0, enough=None):
    """Kill packing and unpacking at random moments: a whole one or none, and the next completes.

    `enough`: how many kills that met one at work suffice.
    """
    chance = random.Random(seed)
    run, archive, out = folder / "run", folder / "a.tar.zst", folder / "out"
    kept = checkpoints(run)
    for step in (1, 2, 3):
        save(kept, step, size=3 << 20)

    def back_and_forth():
        while True:
            bundle(run, archive, force=True)
            unbundle.unbundle(archive, out)
            out.rename(f"{out}-done")
            shutil.rmtree(f"{out}-done")

    half = 0
    for _ in range(count):
        if half == enough:
            break
        process = at_work(back_and_forth)
        time.sleep(chance.uniform(0, 0.12))
        process.kill()
        process.join()
        half += any(one.name.startswith(".") for one in folder.iterdir())
        if archive.exists():
            unbundle.unbundle(archive, folder / "check")
            assert content(folder / "check") == moved(run)
            shutil.rmtree(folder / "check")
        if out.exists():
            assert content(out) == moved(run)
            shutil.rmtree(out)
        shutil.rmtree(f"{out}-done", ignore_errors=True)
    bundle(run, archive, force=True)
    unbundle.unbundle(archive, out)
    assert content(out, hidden=True) == moved(run)
    return half


@pytest.mark.soak
@forks
def test_killed_at_random_moments_an_archive_and_a_folder_are_whole_or_not_there(tmp_path):
    assert killed(tmp_path, 300, enough=8) == 8


@forks
@pytest.mark.soak
def test_packing_killed_three_hundred_times(tmp_path):
    assert killed(tmp_path, 300, seed=1) >= 30


def test_two_at_once_on_one_folder(tmp_path):
    run = plain(tmp_path / "run")
    bundle(run, tmp_path / "a.zip")
    with (
        open_work_folder(tmp_path / "out", "unbundling", go_on=False),
        pytest.raises(UsageError, match="another"),
    ):
        unbundle.unbundle(tmp_path / "a.zip", tmp_path / "out")
    unbundle.unbundle(tmp_path / "a.zip", tmp_path / "out")
    assert Path(tmp_path / "out").is_dir()


def test_a_lock_of_a_moment_is_waited_for(tmp_path):
    """Another program holds the parent folder: the working folder is made once it lets go."""
    fcntl = pytest.importorskip("fcntl")
    handle, order = os.open(tmp_path, os.O_RDONLY), []
    fcntl.flock(handle, fcntl.LOCK_EX)

    def let_go():
        order.append("let go")
        os.close(handle)

    timer = threading.Timer(0.2, let_go)
    timer.start()
    with open_work_folder(tmp_path / "out", "unbundling", go_on=False):
        order.append("made")
    timer.join()
    assert order == ["let go", "made"]

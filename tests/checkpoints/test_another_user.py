"""A run of one user that another looks at, backs up, and tries to go on with."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from moving_runs import content, quiet, recorded

import rlvitals
from rlvitals.checkpoints import inspect_run, progress
from rlvitals.checkpoints.manager import Checkpoints
from rlvitals.checkpoints.transfer.backup import sync_once
from rlvitals.checkpoints.transfer.bundle import bundle
from rlvitals.checkpoints.transfer.filesystems import LocalFolder
from rlvitals.cli import main
from rlvitals.errors import UsageError, VitalsError

NOBODY = 65_534

pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="root alone becomes another user"
)


@pytest.fixture
def both():
    """A finished run of this user, and a folder of the other's."""
    with tempfile.TemporaryDirectory() as made:  # pytest's own folders are closed to others
        base = Path(made)
        base.chmod(0o755)
        if not os.access("/", os.X_OK) or any(
            not parent.stat().st_mode & 0o001 for parent in base.parents
        ):
            pytest.skip("another user cannot reach the folder for temporary files")
        run = recorded(base / "run")
        progress.Keeper(run, 100, tell=quiet).update(50)
        mine = base / "mine"
        mine.mkdir()
        os.chown(mine, NOBODY, NOBODY)
        for command in ("status", "doctor", "compact"):  # loaded while it can be
            main([command, str(shutil.copytree(run, base / f"copy-{command}"))])
        yield run, mine


def as_nobody(do, *args):
    """Do something in a child process of another user; raises what fails there."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        said = "failed"
        try:
            os.close(read)
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            do(*args)
            said = ""
        except BaseException as error:  # noqa: BLE001 - told to the parent
            said = f"{type(error).__name__}: {error}"
        finally:
            os.write(write, said.encode()[:4000])
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        said = file.read().decode()
    os.waitpid(child, 0)
    assert not said, said


def use(run, mine):
    """Everything that another user may try."""
    assert inspect_run.inspect(run, verify=True).taken.step == 100
    for command in ("status", "doctor"):
        assert main([command, str(run)]) in {0, 1}
    assert main(["compact", str(run)]) == 1
    told = []
    checkpoints = Checkpoints(run, tell=told.append)
    assert checkpoints.restore().step == 100
    with pytest.raises(UsageError, match="cannot be written to"), checkpoints.save(150):
        pass
    with pytest.warns(RuntimeWarning, match="nothing is recorded: Permission denied"):
        rlvitals.start(run, strict=False).finish()
    progress.Keeper(run, 100, tell=told.append).update(150)
    assert any("training_progress.json was not written: Permission denied" in one for one in told)
    done = sync_once(run, LocalFolder(mine / "backup"))
    assert done.newest == "checkpoint-100"
    assert not done.failed
    with pytest.raises(VitalsError, match="Permission denied"):
        sync_once(run, LocalFolder(run.parent / "theirs"))
    assert bundle(run, mine / "run.tar.gz").checkpoints == [100, 50]


def test_it_can_be_looked_at_and_backed_up_and_nothing_changes(both, capfd):
    run, mine = both
    before = content(run, hidden=True)
    as_nobody(use, run, mine)
    assert content(run, hidden=True) == before
    assert "Traceback" not in capfd.readouterr().err


def back_up_what_is_closed(run, mine):
    done = sync_once(run, LocalFolder(mine / "backup"))
    assert done.failed == ["checkpoint-100 cannot be read: Permission denied"]
    assert done.sentence.startswith("Backup not complete")
    assert done.newest == "checkpoint-50"
    packed = bundle(run, mine / "run.tar.gz")
    assert packed.damaged == ["checkpoint-100 cannot be read: Permission denied"]
    assert packed.checkpoints == [50]


def test_a_backup_without_what_it_may_not_read_is_not_complete(both):
    run, mine = both
    (run / "checkpoint-100").chmod(0o700)
    before = content(run, hidden=True)
    as_nobody(back_up_what_is_closed, run, mine)
    assert content(run, hidden=True) == before

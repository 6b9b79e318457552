"""A backup over SSH: a server of this process answers, with the files of a folder."""

import os
import socket
import threading

import pytest
from moving_runs import QUICK, checkpoints, moved, recorded, save

from rlvitals.checkpoints.transfer.backup import sync_once
from rlvitals.checkpoints.transfer.backup_target import open_target
from rlvitals.checkpoints.transfer.restore import restore

paramiko = pytest.importorskip("paramiko")


class Server(paramiko.ServerInterface):
    def check_auth_password(self, *_):
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, *_):
        return paramiko.OPEN_SUCCEEDED


def answered(call):
    """What a call returns, or the number that SFTP has for its error."""
    try:
        found = call()
    except OSError as error:
        return paramiko.SFTPServer.convert_errno(error.errno)
    return paramiko.SFTP_OK if found is None else found


class Handle(paramiko.SFTPHandle):
    def stat(self):
        return paramiko.SFTPAttributes.from_stat(os.fstat(self.readfile.fileno()))


class Files(paramiko.SFTPServerInterface):
    def __init__(self, server, root):
        super().__init__(server)
        self.root = root

    def _at(self, path):
        return self.root / self.canonicalize(path).lstrip("/")

    def list_folder(self, path):
        def look():
            return [
                paramiko.SFTPAttributes.from_stat(one.stat(), one.name)
                for one in os.scandir(self._at(path))
            ]

        return answered(look)

    def stat(self, path):
        return answered(lambda: paramiko.SFTPAttributes.from_stat(self._at(path).stat()))

    lstat = stat

    def open(self, path, flags, _):
        def opened():
            number = os.open(self._at(path), flags, 0o644)
            writes = "ab" if flags & os.O_APPEND else "wb"
            handle = Handle(flags)
            file = os.fdopen(number, writes if flags & os.O_WRONLY else "rb")
            handle.readfile = handle.writefile = file
            return handle

        return answered(opened)

    def remove(self, path):
        return answered(self._at(path).unlink)

    def posix_rename(self, old, new):
        answer = answered(lambda: self._at(old).replace(self._at(new)))
        return answer if isinstance(answer, int) else paramiko.SFTP_OK

    def mkdir(self, path, _):
        return answered(self._at(path).mkdir)

    def rmdir(self, path):
        return answered(self._at(path).rmdir)


@pytest.fixture
def port(tmp_path):
    """Serve a folder; clients come and go."""
    (tmp_path / "served").mkdir()
    listening = socket.create_server(("127.0.0.1", 0))
    key, links = paramiko.ECDSAKey.generate(), []

    def serve():
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            links.append(paramiko.Transport(client))
            links[-1].add_server_key(key)
            links[-1].set_subsystem_handler("sftp", paramiko.SFTPServer, Files, tmp_path / "served")
            links[-1].start_server(server=Server())

    thread = threading.Thread(target=serve)
    thread.start()
    yield listening.getsockname()[1]
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join()
    for link in links:
        link.close()


def test_a_run_goes_there_grows_is_pruned_and_comes_back(tmp_path, port):
    run, kept = recorded(tmp_path / "run"), checkpoints(tmp_path / "run", keep=2)
    there = open_target(
        "sftp://127.0.0.1/run", {"port": port, "username": "u", "password": "p"}, stall=20
    )
    log = run / "debug.log"
    log.write_bytes(os.urandom(3 << 20))
    done = sync_once(run, there, patience=QUICK)
    assert (done.newest, done.failed) == ("checkpoint-100", [])
    assert sync_once(run, there, patience=QUICK).files == 0
    with log.open("ab") as file:
        file.write(b"a tail")
    assert sync_once(run, there, patience=QUICK).size == len(b"a tail")
    save(kept, 150, size=9 << 20)  # more than is read at once, or on its way at once
    done = sync_once(run, there, patience=QUICK)
    assert (done.checkpoints, done.removed) == (["checkpoint-150"], ["checkpoint-50"])
    assert moved(tmp_path / "served" / "run") == moved(run)
    assert b"".join(there.read("debug.log", 3 << 20)) == b"a tail"
    restore(there, tmp_path / "back", patience=QUICK)
    assert moved(tmp_path / "back") == moved(run)

"""Exchange values between the processes that save one checkpoint together.

Uses a separate group of torch.distributed if it is initialised, so that a save does not meet the
training's messages; else files in the run's folder.
"""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from rlvitals.checkpoints.owner import Owner
from rlvitals.errors import UsageError, VitalsError
from rlvitals.storage.safe_files import make_folder
from rlvitals.tracking.launcher_rank import read_place

POLL_SECONDS = (0.001, 0.05)  # seconds between two looks for a file: at first, and at the most


class OtherProcessFailed(VitalsError):  # noqa: N818 - the name says what went wrong
    """Another process failed or did not arrive."""


class Group(Protocol):
    """The processes that save together."""

    rank: int
    size: int

    def exchange(self, message: str) -> list[str]:
        """Send a message; return every rank's, by rank. Raises OtherProcessFailed on timeout."""


class SingleProcess:
    """A group of one process."""

    rank = 0
    size = 1

    def exchange(self, message: str) -> list[str]:
        """Return the message itself."""
        return [message]


class TorchGroup:
    """The processes of torch.distributed, by a separate gloo group."""

    def __init__(self, patience: float) -> None:
        """Create the group on every process at the same place. `patience`: seconds."""
        import torch.distributed as dist  # noqa: PLC0415 - it is initialised, so it is loaded

        self._dist, self._limit = dist, timedelta(seconds=patience)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self._group = dist.new_group(backend="gloo", timeout=self._limit)

    def exchange(self, message: str) -> list[str]:
        """Send a message; return every rank's, by rank. Raises OtherProcessFailed on timeout."""
        messages: list[Any] = [None] * self.size
        try:
            self._dist.monitored_barrier(self._group, self._limit, wait_all_ranks=True)
            self._dist.all_gather_object(messages, message, group=self._group)
        except RuntimeError as error:
            match = re.search(r"Ranks ([\d, ]+) failed to pass", str(error))
            ranks = [int(rank) for rank in match[1].split(",")] if match else []
            if not ranks and self.size == 2:  # a lost connection names no rank
                ranks = [1 - self.rank]
            raise _missing_processes(ranks, self._limit.total_seconds()) from error
        return messages


class FileGroup:
    """Processes that share one folder and no network."""

    def __init__(self, folder: Path, rank: int, size: int, patience: float) -> None:
        """Find the other processes. Raises OtherProcessFailed if one does not arrive."""
        self.rank, self.size = rank, size
        self._folder, self._patience, self._round = folder / ".ranks", patience, 0
        folder.mkdir(parents=True, exist_ok=True)
        make_folder(self._folder)
        self._token = uuid4().hex
        self._session = self._folder / self._agree()

    def exchange(self, message: str) -> list[str]:
        """Send a message; return every rank's, by rank. Raises OtherProcessFailed on timeout."""
        self._round += 1
        _write_file(self._session / f"{self._round}-{self.rank}", message)
        messages: dict[int, str] = {}
        for _ in self._poll(lambda: [k for k in range(self.size) if k not in messages]):
            files = {path.name: path for path in self._session.iterdir()}
            for rank in range(self.size):
                path = files.get(f"{self._round}-{rank}")
                if rank not in messages and path is not None:
                    messages[rank] = path.read_text()
            if len(messages) == self.size:
                break
        # Who is here has heard the round before the last.
        (self._session / f"{self._round - 2}-{self.rank}").unlink(missing_ok=True)
        return [messages[rank] for rank in range(self.size)]

    def _agree(self) -> str:
        """Return the name of a session that only the processes of this start know.

        Files of earlier starts may exist here: a process answers only to a list with the name it
        has just generated, and rank 0 continues only once all answered to the same list.
        """
        _write_file(self._folder / f"hello-{self.rank}", self._token)
        if self.rank:
            return self._join()
        names, silent = [""] * self.size, list(range(1, self.size))
        session = _session_name(names)
        for _ in self._poll(lambda: silent):
            hellos = [_read_file(self._folder / f"hello-{rank}") for rank in range(self.size)]
            if hellos != names and all(hellos):
                names, session = hellos, _session_name(hellos)
                _write_file(self._folder / "names", json.dumps(names))
            answers = (_read_file(self._folder / f"answer-{rank}") for rank in range(1, self.size))
            unanswered = [rank for rank, text in enumerate(answers, 1) if text != session]
            silent[:] = [rank for rank, text in enumerate(hellos) if not text] or unanswered
            if not silent:
                break
        for old in self._folder.iterdir():
            # A folder of one start.
            if re.fullmatch(r"[0-9a-f]{16}", old.name) and not old.is_symlink():
                shutil.rmtree(old, ignore_errors=True)
        (self._folder / session).mkdir()
        _write_file(self._folder / "go", session)
        return session

    def _join(self) -> str:
        answered = ""
        for _ in self._poll(lambda: [0]):
            names = json.loads(_read_file(self._folder / "names") or "[]")
            if len(names) == self.size and names[self.rank] == self._token:
                session = _session_name(names)
                if session != answered:
                    answered = session
                    _write_file(self._folder / f"answer-{self.rank}", session)
                if _read_file(self._folder / "go") == session:
                    break
        return answered

    def _poll(self, missing: Callable[[], list[int]]) -> Iterator[None]:
        """Yield at increasing intervals. Raises OtherProcessFailed after the timeout."""
        end, pause = time.monotonic() + self._patience, POLL_SECONDS[0]
        while time.monotonic() < end:
            yield
            time.sleep(pause)
            pause = min(POLL_SECONDS[1], 1.3 * pause)
        raise _missing_processes(missing(), self._patience)


def find_group(owner: Owner, patience: float) -> Group:
    """Return the processes that save with this one. Raises UsageError, OtherProcessFailed."""
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        return TorchGroup(patience) if dist.get_world_size() > 1 else SingleProcess()
    rank, size = owner.rank, owner.world_size
    if size <= 1:
        launch_rank = read_place(os.environ)
        rank, size = launch_rank.rank, launch_rank.world_size
    return FileGroup(owner.folder, rank, size, patience) if size > 1 else SingleProcess()


def exchange_values(
    group: Group, value: object = None, error: Exception | None = None
) -> list[Any]:
    """Send a JSON value, or the error of this process; return the values by rank.

    Raises `error` itself, and OtherProcessFailed for the failure of another process.
    """
    message = {"said": value} if error is None else {"failed": str(error) or type(error).__name__}
    replies = [json.loads(reply) for reply in group.exchange(json.dumps(message))]
    if error is not None:
        raise error
    for rank, reply in enumerate(replies):
        if "failed" in reply:
            raise OtherProcessFailed(f"process {rank} failed: {reply['failed']}")
    return [reply["said"] for reply in replies]


def run_on_all(group: Group, work: Callable[[], object]) -> list[Any]:
    """Run `work` on every process; return the results by rank. Raises as `exchange_values`."""
    try:
        result = work()
    except Exception as error:  # noqa: BLE001 - the others must hear of it: `agree` raises it
        return exchange_values(group, error=error)
    return exchange_values(group, result)


@contextmanager
def wrap_exceptions(path: Path) -> Iterator[None]:
    """Raise a VitalsError for a BaseException such as torch's CheckpointException."""
    try:
        yield
    except (Exception, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise VitalsError(f"{type(error).__name__}: {error}", where=str(path)) from error


def _missing_processes(ranks: list[int], seconds: float) -> OtherProcessFailed:
    names = " and ".join(str(rank) for rank in ranks)
    problem = f"process {names} did not come" if ranks else "another process did not come"
    return OtherProcessFailed(
        f"{problem} within {seconds:g} s",
        hint="every process must make Checkpoints(..., together=True) and save at the same steps",
    )


def _session_name(names: list[str]) -> str:
    return blake2b("".join(names).encode(), digest_size=8).hexdigest()


def _write_file(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    with temporary.open("x") as file:
        file.write(text)
    temporary.replace(path)


def _read_file(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def refuse_separate_saves(owner: Owner) -> None:
    """Raise UsageError if a rank above 0 saves without a group."""
    if owner.rank and owner.world_size > 1:
        raise UsageError(
            f"process {owner.rank} saves for itself: the checkpoints of {owner.world_size} "
            "processes would replace each other",
            where=str(owner.folder),
            hint="save on rank 0 alone, or on all with Checkpoints(..., together=True)",
        )

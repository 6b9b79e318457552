"""Several processes save one checkpoint: through torch.distributed and through files."""

import os
import shutil
import threading

import numpy as np
import pytest
import torch
from killing import together

from rlvitals.checkpoints import manifest, provenance
from rlvitals.checkpoints.manager import Checkpoints
from rlvitals.checkpoints.ranks import FileGroup, OtherProcessFailed
from rlvitals.checkpoints.state.training_state import State
from rlvitals.errors import UsageError

QUIET = lambda _: None
# Torch warns of what it is told to do.
ALONE = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")


def joined(rank, folder, *, gloo, size=2):
    """Be one of several processes."""
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(size)}
    if gloo:
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{folder}/gloo-{os.getppid()}-{size}", rank=rank,
            world_size=size,
        )  # fmt: skip


def program(rank):
    """A state that is another one on each process."""
    return State(
        w=torch.full((100,), float(rank)), dice=np.random.default_rng(rank), rank=rank, step=0
    )


def train(state, steps):
    for _ in range(steps):
        state["step"] += 1
        state["w"] += float(state["dice"].normal() + torch.rand(1))
    return state["w"].sum().item()


def save_and_go_on(say, rank, folder, gloo, background):
    joined(rank, folder, gloo=gloo)
    torch.manual_seed(rank)
    run = folder / "run"
    one = Checkpoints(run, every=2, together=True, background=background, patience=20, tell=say)
    state = program(rank)
    assert one.restore_state(state) is None
    for _ in range(6):
        train(state, 1)
        if one.due(state["step"]):
            one.save_state(state["step"], state)
    one.close()
    assert state["rank"] == rank
    say(train(state, 4))
    again = Checkpoints(run, every=2, together=True, patience=20, tell=say)
    other = program(99)
    resumed = again.restore_state(other)
    say((resumed.step, resumed.differs, other["rank"], again.attempt))
    say(train(other, 4))


@pytest.mark.parametrize("background", [False, True], ids=["waiting", "beside"])
@pytest.mark.parametrize("gloo", [True, False], ids=["gloo", "files"])
def test_two_processes_save_one_checkpoint_and_go_on_from_it(tmp_path, gloo, background):
    first, second = together(save_and_go_on, tmp_path, gloo, background)
    fresh, whole, resumed, again = [one for one in first if "step" not in str(one)[:30]][:1] + [
        one for one in first[1:] if not isinstance(one, str)
    ]
    assert fresh == "no checkpoint to resume from: this is a fresh start"
    assert resumed == (6, (), 0, 2)
    assert again == whole
    assert not [one for one in second if isinstance(one, str)], "rank 0 speaks for all"
    assert second[1] == (6, (), 1, 2)
    assert second[0] == second[2] != whole
    sealed = manifest.verify(tmp_path / "run" / "checkpoint-6")
    assert sealed.world_size == 2
    assert {name.split("/")[0] for name in sealed.files} == {"rank-0", "rank-1"}


def save_shards(say, rank, folder):
    from torch.distributed import checkpoint as dcp

    joined(rank, folder, gloo=True)
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
    shard = torch.distributed.tensor.Shard(0)

    def sharded(value):
        whole = torch.arange(4000.0).reshape(40, 100) + value
        return {"w": torch.distributed.tensor.distribute_tensor(whole, mesh, [shard])}

    run = folder / "run"
    one = Checkpoints(run, together=True, patience=20, holds=("sharded/*",), tell=say)
    for step in (10, 20):
        with one.save(step) as place:
            dcp.save(sharded(step), checkpoint_id=place / "sharded")
    with pytest.raises(BaseException, match="sharded: save it by torch"):
        one.save_state(30, State(**sharded(0)))
    found = sharded(-1)
    resumed = one.restore(lambda place: dcp.load(found, checkpoint_id=place / "sharded"))
    say((resumed.step, float(found["w"].full_tensor()[0, 0])))
    if rank == 0:
        for part in (run / "checkpoint-20" / "sharded").glob("__1_*"):
            data = bytearray(part.read_bytes())
            data[len(data) // 2] ^= 1
            part.write_bytes(data)
    torch.distributed.barrier()
    resumed = one.restore(lambda place: dcp.load(found, checkpoint_id=place / "sharded"))
    say((resumed.step, float(found["w"].full_tensor()[0, 0])))
    if rank == 0:
        (run / "checkpoint-10" / "sharded" / ".metadata").rename(folder / "metadata")
    torch.distributed.barrier()
    with pytest.raises(manifest.CannotResume, match=r"sharded/\.metadata is missing"):
        one.restore()


def test_two_processes_save_shards_and_a_flipped_bit_in_one_is_refused(tmp_path):
    first, second = together(save_shards, tmp_path)
    numbers = [one for one in first if not isinstance(one, str)]
    assert numbers == second == [(20, 20.0), (10, 10.0)]
    refused = [one for one in first if isinstance(one, str) and "is not used" in one]
    assert "checkpoint-20 is not used: sharded/__1_0.distcp is not what was sealed" in refused[0]
    assert (tmp_path / "run" / "checkpoint-20.corrupt" / "sharded" / "__0_0.distcp").exists()


@ALONE
def test_one_process_seals_what_torch_writes_in_shards(tmp_path):
    from torch.distributed import checkpoint as dcp

    one = Checkpoints(tmp_path, tell=QUIET)
    for step in (1, 2):
        with one.save(step) as folder:
            dcp.save({"w": torch.full((50,), step)}, checkpoint_id=folder / "s", no_dist=True)
    (shard,) = (tmp_path / "checkpoint-2" / "s").glob("*.distcp")
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 4
    shard.write_bytes(data)
    found = {"w": torch.zeros(50, dtype=torch.int64)}
    load = lambda folder: dcp.load(found, checkpoint_id=folder / "s", no_dist=True)
    assert Checkpoints(tmp_path, tell=QUIET).restore(load).step == 1
    assert found["w"].unique().tolist() == [1]


@ALONE
def test_torch_s_own_exception_is_one_of_ours(tmp_path):
    """Torch's is no Exception: it would pass by everyone who catches errors."""
    from torch.distributed import checkpoint as dcp

    one = Checkpoints(tmp_path, tell=QUIET)
    with one.save(1) as folder:
        dcp.save({"w": torch.zeros(5)}, checkpoint_id=folder / "s", no_dist=True)
    load = lambda folder: dcp.load({"v": torch.zeros(5)}, checkpoint_id=folder / "s", no_dist=True)
    with pytest.raises(Exception, match="CheckpointException"):
        one.restore(load)
    (tmp_path / "file").write_text("")
    with pytest.raises(Exception, match="CheckpointException"), one.save(2):
        dcp.save({"w": torch.zeros(5)}, checkpoint_id=tmp_path / "file" / "s", no_dist=True)
    assert [found.step for found in one.all()] == [1]


def late(say, rank, folder, gloo):
    joined(rank, folder, gloo=gloo)
    one = Checkpoints(folder / "run", together=True, patience=1.0, tell=QUIET)
    if rank == 1:
        say("gone")
        return
    try:
        one.save_state(1, State(w=np.ones(3)))
    except OtherProcessFailed as error:
        say(str(error))


@pytest.mark.parametrize("gloo", [True, False], ids=["gloo", "files"])
def test_a_process_that_does_not_come_is_named(tmp_path, gloo):
    first, _ = together(late, tmp_path, gloo)
    assert "process 1 did not come within 1 s" in first[-1]
    assert "together=True" in first[-1]


def fail(say, rank, folder, error):
    joined(rank, folder, gloo=False)
    one = Checkpoints(folder / "run", together=True, patience=20, tell=say)
    one.save_state(1, State(w=np.ones(3)))
    try:
        with one.save(2) as place:
            (place / f"part-{rank}").write_text("half")
            if rank == 1:
                raise error  # noqa: TRY301 - on one of two
    except Exception as raised:  # noqa: BLE001 - which it is, is asked
        say(type(raised).__name__ + ": " + str(raised))
    say([found.step for found in one.all()])


def test_what_fails_on_one_process_fails_on_all_and_leaves_nothing(tmp_path):
    first, second = together(fail, tmp_path, ValueError("not finite"))
    assert first == ["OtherProcessFailed: process 1 failed: not finite", [1]]
    assert second == ["ValueError: not finite", [1]]
    assert not list((tmp_path / "run").glob(".checkpoint-*"))


def test_a_disk_that_is_full_for_one_process_is_told_once_and_all_go_on(tmp_path):
    first, second = together(fail, tmp_path, OSError(28, "No space left on device"))
    assert first == ["checkpoint 2 was not saved, the disk is full: training goes on", [1]]
    assert second == [[1]]


def other_world(say, rank, folder, size, save):
    joined(rank, folder, gloo=False, size=size)
    torch.manual_seed(100 + rank)
    one = Checkpoints(folder / "run", together=True, patience=20, tell=QUIET)
    state = program(rank)
    fresh = state["dice"].bit_generator.state["state"]["state"]
    resumed = one.restore_state(state)
    if resumed:
        own = state["dice"].bit_generator.state["state"]["state"] == fresh
        say((resumed.differs, state["w"][0].item(), own))
    if save:
        state["dice"].random()
        one.save_state(1, state)


def test_one_process_is_not_said_to_be_several():
    assert provenance._describe_world_sizes(1, 2).startswith("it was saved by 1 process, 2 go on: ")
    assert provenance._describe_world_sizes(2, 1).startswith(
        "it was saved by 2 processes, 1 goes on: "
    )


def test_another_number_of_processes_says_what_is_lost(tmp_path):
    together(other_world, tmp_path, 2, True)
    said = together(other_world, tmp_path, 3, False, count=3)
    differs = [one[0][0] for one in said]
    assert all(
        "processes, 3 go on: the data order changes, and process 2 had no random streams" in one[0]
        for one in differs
    )
    assert [one[0][1] for one in said] == [0.0, 1.0, 0.0]
    assert [one[0][2] for one in said] == [False, False, True], "no two have the same streams"


# --- one that has found the others, or not ---


def both(work, size=2):
    """Do something as every rank, on threads."""
    found = [None] * size

    def run(rank):
        try:
            found[rank] = work(rank)
        except Exception as error:  # noqa: BLE001 - the same
            found[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("size", [2, 4])
def test_files_of_earlier_starts_confuse_nobody(tmp_path, size):
    def talk(rank):
        group = FileGroup(tmp_path, rank, size, 10)
        heard = [group.exchange(f"{rank} {n}") for n in range(5)]
        return group._session.name, heard

    starts = [both(talk, size) for _ in range(3)]
    for said in starts:
        assert {one[0] for one in said} == {said[0][0]}
        assert all(one[1] == [[f"{r} {n}" for r in range(size)] for n in range(5)] for one in said)
    assert len({said[0][0] for said in starts}) == 3
    left = [path for path in (tmp_path / ".ranks").iterdir() if path.is_dir()]
    assert len(left) == 1
    assert len(list(left[0].iterdir())) <= 2 * size


def test_one_that_never_comes_is_named_at_the_beginning(tmp_path):
    shutil.rmtree(tmp_path / ".ranks", ignore_errors=True)
    found = both(lambda rank: FileGroup(tmp_path, rank, 4, 0.4), 2)
    assert "process 2 and 3 did not come within 0.4 s" in str(found[0])
    assert "process 0 did not come" in str(found[1])


def test_a_process_beside_rank_0_cannot_save_for_itself(tmp_path):
    class Run:
        folder, id, attempt, rank, world_size = tmp_path, "x", 1, 1, 2
        settings, note = {}, staticmethod(QUIET)

    one = Checkpoints(Run(), tell=QUIET)
    with pytest.raises(UsageError, match="process 1 saves for itself"):
        one.save_state(1, State(w=1))
    with pytest.raises(UsageError, match="would replace each other"), one.save(1):
        pass
    assert one.restore() is None

"""Whole trainings: resumed bit for bit, in chunks, stopped by signals, and failing well."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import forked
import gymnasium as gym
import numpy as np
import programs
import pytest
import small_disk
import torch
from effort import sampled
from waiting import HANG_SECONDS

from rlvitals import UsageError, VitalsError, Word, diagnose
from rlvitals.checkpoints import progress as standing
from rlvitals.cli import main
from rlvitals.trainers import schema
from rlvitals.trainers.ppo import factory
from rlvitals.trainers.ppo.config import Config
from rlvitals.trainers.signal_handlers import Terminated


def cut_short(folder, said, at, error=KeyboardInterrupt):
    """Train until a step of some rollout, and stop there as a kill would: nothing is saved."""
    made = programs.training(folder, said)
    seen = 0
    before = made.ppo.on_step

    def on_step(done, step):
        nonlocal seen
        seen += 1
        if seen == at:
            raise error
        before(done, step)

    made.ppo.on_step = on_step
    with pytest.raises(error):
        made.run()


@pytest.mark.parametrize("said", sampled(["ALL", "CARTPOLE", "CLUSTER"], 3))
def test_killed_and_resumed_is_bit_for_bit_what_never_stopped(tmp_path, said):
    said = getattr(programs, said)
    programs.run(tmp_path / "whole", said)
    rng = random.Random(0)
    for first, last in ((100, 130), (1, 60)):
        cut_short(tmp_path / "cut", said, rng.randint(first, last))
    programs.run(tmp_path / "cut", said)
    assert any("bit-exact" in line for line in programs.log(tmp_path / "cut"))
    assert programs.last(tmp_path / "cut") == programs.last(tmp_path / "whole")


@pytest.mark.soak
def test_two_runs_of_one_seed_are_one_and_of_two_seeds_are_two(tmp_path):
    for name in ("one", "two"):
        programs.run(tmp_path / name, programs.ALL)
    programs.run(tmp_path / "other", programs.ALL, **{"training.seed": 1})
    one, two, other = (programs.last(tmp_path / name) for name in ("one", "two", "other"))
    assert one == two
    assert one["tensors.safetensors"] != other["tensors.safetensors"]


def test_a_run_at_its_end_is_left_as_it_is(tmp_path):
    programs.run(tmp_path)
    before = programs.last(tmp_path)
    programs.run(tmp_path)
    assert programs.last(tmp_path) == before
    assert any("was trained to its end" in line for line in programs.log(tmp_path))
    programs.run(tmp_path, **{"training.total_steps": 1200})
    assert programs.progress(tmp_path)["step"] >= 1200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_disk_that_is_full_at_the_end_is_one_error_and_the_same_command_goes_on(tmp_path, capfd):
    file, said = tmp_path / "settings.json", programs.CARTPOLE | {"network.hidden_sizes": [64, 64]}
    said |= {"training.output_dir": str(tmp_path / "out")}
    file.write_text(schema.text(schema.load(Config, None, said)), encoding="utf-8")
    command = ["train", "ppo", "--config", str(file)]

    def child():
        small_disk.limit(50_000)  # bytes: less than the weights, more than any log
        sys.exit(main(command))

    assert forked.apart(child) == 1
    told = capfd.readouterr()
    assert told.err.splitlines()[:2] == [
        "error: the disk is full: what was trained last is not saved", f"  at:  {tmp_path / 'out'}"
    ]  # fmt: skip
    assert "saved (" not in told.out
    assert programs.progress(tmp_path / "out").get("latest_checkpoint") is None
    assert main(command) == 0
    programs.run(tmp_path / "whole", said)
    assert programs.last(tmp_path / "out") == programs.last(tmp_path / "whole")


def test_shapes_that_do_not_fit_stop_and_are_named(tmp_path):
    programs.run(tmp_path)
    with pytest.raises(VitalsError, match="does not fit"):
        programs.run(tmp_path, **{"network.hidden_sizes": [9]})
    assert programs.progress(tmp_path)["status"] == "failed"
    programs.run(tmp_path / "cluster", programs.CLUSTER)
    with pytest.raises(VitalsError, match="does not fit"):
        programs.run(tmp_path / "cluster", programs.CLUSTER, **{"cluster.replicas": 5})


# -- chunks ---------------------------------------------------------------------------------------

CHUNKED = {**programs.CLUSTER, "training.chunk_mode": True, "training.chunk_size": 300}


def test_chunks_are_counted_logged_and_told(tmp_path):
    programs.run(tmp_path, CHUNKED)
    said = programs.progress(tmp_path)
    assert (said["total_chunks"], said["chunk_size"], said["total_requests"]) == (3, 300, 800)
    assert (said["completed_chunks"], said["status"], said["num_replicas"]) == (3, "completed", 4)
    assert said["requests_done"] == sum(one["requests"] for one in said["chunks"])
    assert 800 <= said["requests_done"] < 800 + 3 * 4  # an environment acts whole steps
    assert said["qps"] == pytest.approx(factory.qps(Config()))
    assert said["latest_checkpoint"] == said["chunks"][-1]["checkpoint"]
    assert (tmp_path / said["latest_checkpoint"]).is_dir()
    assert {"start_time", "last_update", "end_time", "config_file", "external_pretrain"} <= {*said}
    for number in (1, 2, 3):
        text = (tmp_path / f"chunk_{number}.log").read_text()
        assert f"[chunk] {number}/3 requests=" in text
        assert "act=[" in text
        assert "kl_to_warm_start=" in text
        assert f"[chunk] {number}/3 completed" in text
        assert "[PPO:update]" in text
    (line,) = [
        line for line in (tmp_path / "chunk_1.log").read_text().splitlines()
        if "[chunk] the warm start" in line
    ]  # fmt: skip
    # Two epochs of a few decisions teach nothing.
    assert "did NOT take: agreement with the demonstrations" in line
    assert line.endswith("; untrained, cloned, after the first update")
    for number in (2, 3):
        assert "the warm start" not in (tmp_path / f"chunk_{number}.log").read_text()
    assert "[PPO:warmstart]" not in (tmp_path / "chunk_2.log").read_text()


@pytest.mark.soak
def test_a_failed_chunk_is_marked_and_goes_on_without_counting_twice(tmp_path):
    programs.run(tmp_path / "whole", CHUNKED)
    cut_short(tmp_path / "cut", CHUNKED, 100, RuntimeError)
    said = programs.progress(tmp_path / "cut")
    assert [one["status"] for one in said["chunks"]] == ["completed", "failed"]
    assert (said["status"], said["completed_chunks"]) == ("failed", 1)
    programs.run(tmp_path / "cut", CHUNKED)
    whole, cut = (programs.progress(tmp_path / name) for name in ("whole", "cut"))
    assert [one["requests"] for one in cut["chunks"]] == [
        one["requests"] for one in whole["chunks"]
    ]
    assert cut["requests_done"] == whole["requests_done"]
    assert cut["completed_chunks"] == 3
    assert "error_message" not in cut
    assert programs.last(tmp_path / "cut") == programs.last(tmp_path / "whole")


def test_a_chunk_that_was_done_but_not_said_so_is_said_on_the_way_back(tmp_path):
    programs.run(tmp_path, CHUNKED)
    file = tmp_path / "training_progress.json"
    said = json.loads(file.read_text())
    requests = said["chunks"][2]["requests"]
    said["chunks"][2]["status"] = "running"
    file.write_text(json.dumps(said))
    programs.run(tmp_path, CHUNKED)
    again = programs.progress(tmp_path)
    assert (again["completed_chunks"], again["chunks"][2]["requests"]) == (3, requests)


def test_a_chunk_says_how_often_it_took_each_action(tmp_path):
    made = programs.training(tmp_path, CHUNKED)
    taken, after = {}, made.chunks.after

    def note(rollout, told):
        taken.setdefault(made.ppo.counters.chunk.number, []).append(rollout.actions[rollout.valid])
        after(rollout, told)

    made.chunks.after = note
    made.run()
    assert sorted(taken) == [1, 2, 3]
    shares = {
        number: np.bincount(np.concatenate(parts), minlength=4) / sum(map(len, parts))
        for number, parts in taken.items()
    }
    for number, expected in shares.items():
        text = (tmp_path / f"chunk_{number}.log").read_text()
        (said,) = re.findall(r"\[chunk\] .* act=\[([^]]+)\]", text)
        assert [float(one) for one in said.split(", ")] == pytest.approx(expected, abs=0.0051)
        assert np.ptp(expected) > 0.02  # not the shares of any policy
    assert np.abs(shares[1] - shares[3]).max() > 0.01


def test_chunks_need_checkpoints(tmp_path):
    with pytest.raises(UsageError, match="chunks need checkpoints"):
        programs.run(tmp_path / "no", CHUNKED, **{"checkpointing.enable": False})
    with pytest.raises(UsageError, match="a chunk of no requests"):
        programs.run(tmp_path / "none", CHUNKED, **{"training.chunk_size": 0})


# -- warm start -----------------------------------------------------------------------------------


@pytest.mark.soak
def test_weights_from_elsewhere_are_what_a_run_begins_with(tmp_path):
    programs.run(tmp_path / "first", programs.CLUSTER)
    file = tmp_path / "first" / "pretrained_actor.safetensors"
    frozen = {"warm_start.external_pretrain": str(file), "ppo_config.learning_rate": 0.0}
    made = programs.run(tmp_path / "second", programs.CLUSTER, **frozen)
    from safetensors.torch import load_file

    held = load_file(file)
    for name, value in made.ppo.policy.actor.state_dict().items():
        assert torch.equal(value, held[name]), name
    assert programs.progress(tmp_path / "second")["external_pretrain"] == file.name
    with pytest.raises(UsageError, match="the weights do not fit"):
        programs.run(tmp_path / "third", programs.CLUSTER, **frozen | {"network.hidden_sizes": [9]})


def test_a_forced_warm_start_begins_the_actor_again(tmp_path):
    said = {**programs.CLUSTER, "training.total_steps": 400}
    programs.run(tmp_path, said)
    made = programs.run(
        tmp_path, said, **{"training.total_steps": 800, "warm_start.force_warmstart": True}
    )
    assert sum("[PPO:warmstart] epoch=1/2" in line for line in programs.log(tmp_path)) == 2
    assert made.ppo.global_step >= 800


# -- the end, in other ways -----------------------------------------------------------------------


def test_an_interrupted_run_saves_after_its_update_and_goes_on_bit_for_bit(tmp_path):
    programs.run(tmp_path / "whole")
    made = programs.training(tmp_path / "cut")
    before = made.ppo.on_step

    def on_step(done, step):
        if made.ppo.counters.updates == 2 and done == 5:
            signal.raise_signal(signal.SIGTERM)
        before(done, step)

    made.ppo.on_step = on_step
    with pytest.raises(Terminated):
        made.run()
    assert signal.getsignal(signal.SIGTERM) is not made.stopping._handle
    assert made.ppo.counters.updates == 3  # it finished the one it was in
    said = programs.progress(tmp_path / "cut")
    assert (said["status"], said["latest_checkpoint"]) == ("stopped", f"checkpoint-{said['step']}")
    assert any("run the same command again to go on" in x for x in programs.log(tmp_path / "cut"))
    programs.run(tmp_path / "cut")
    assert programs.last(tmp_path / "cut") == programs.last(tmp_path / "whole")


def test_a_second_signal_ends_it_at_once(tmp_path):
    made = programs.training(tmp_path)

    def on_step(done, _):
        if made.ppo.counters.updates == 2 and done == 5:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    made.ppo.on_step = on_step
    with pytest.raises(KeyboardInterrupt):
        made.run()
    assert made.ppo.counters.updates == 2


class Breaks(gym.Env):
    """Raises, or observes NaN, at a step; nothing where the file says that it is mended."""

    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, how, mended):
        self.how, self.at = how.split("-")[0], 100 if "last" in how else 105
        self.mended, self.count = mended, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.count += 1
        seen = np.full(2, 0.1, np.float32)
        broken = self.count == self.at and not self.mended.exists()
        if broken and self.how == "raises":
            raise RuntimeError("the simulator fell over")
        if broken and self.how == "observes":
            seen[1] = np.nan
        reward = np.inf if broken and self.how == "pays" else 1.0
        return seen, reward, False, self.count % 10 == 0, {}


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("raises", "an environment raised RuntimeError: the simulator fell over"),
        ("observes", "environment 0 observes nan at feature 1"),
        ("observes-last", "environment 0 observes nan at feature 1"),
        ("pays", "environment 0 pays a reward of inf"),
    ],
)
def test_what_breaks_is_named_and_the_checkpoint_kept(tmp_path, monkeypatch, capsys, how, said):
    mended = tmp_path / "mended"
    monkeypatch.setitem(
        gym.registry, "Breaks-v0",
        gym.envs.registration.EnvSpec("Breaks-v0", lambda **_: Breaks(how, mended)),
    )  # fmt: skip
    flags = flags_of({**programs.CARTPOLE, "training.env": "Breaks-v0"}, tmp_path / "run")
    assert main(["train", "ppo", *flags]) == 1
    told = capsys.readouterr()
    assert said in told.err
    assert "the newest checkpoint is checkpoint-256" in told.out
    assert "[PPO:failed]" in (tmp_path / "run" / "ppo_training.log").read_text()
    assert "Traceback" in (tmp_path / "run" / "ppo_training.log").read_text()
    assert diagnose(tmp_path / "run").verdict.word is Word.FAILED
    assert programs.progress(tmp_path / "run")["error_message"].startswith(said)
    mended.touch()
    assert main(["train", "ppo", *flags]) == 0
    assert programs.progress(tmp_path / "run")["status"] == "completed"


@pytest.mark.soak
def test_a_dead_process_is_named_and_the_run_resumes(tmp_path):
    said = {**programs.CARTPOLE, "training.processes": True, "training.num_envs": 2,
            "training.total_steps": 400, "checkpointing.interval": 64}  # fmt: skip
    programs.run(tmp_path / "whole", said)
    made = programs.training(tmp_path / "cut", said)
    before = made.ppo.on_step

    def on_step(done, step):
        if made.ppo.counters.updates == 3 and done == 3:
            os.kill(made.ppo.envs.vector.processes[1].pid, signal.SIGKILL)
        before(done, step)

    made.ppo.on_step = on_step
    with pytest.raises(VitalsError, match=r"a process died: environment 1 \(killed by SIGKILL\)"):
        made.run()
    assert all(one.exitcode is not None for one in made.ppo.envs.vector.processes)
    programs.run(tmp_path / "cut", said)
    assert programs.last(tmp_path / "cut") == programs.last(tmp_path / "whole")


def flags_of(said, folder):
    """The command line that says so."""
    flags = {key.name: key.flag for key in schema.keys(Config)}
    found = ["--output-dir", str(folder)]
    for name, value in said.items():
        values = value if isinstance(value, list) else [value]
        found += [
            flags[name],
            *(
                str(one).lower() if one in (True, False) and isinstance(one, bool) else str(one)
                for one in values
            ),
        ]
    return found


@pytest.mark.soak
@pytest.mark.parametrize("said", ["CARTPOLE", "ALL"])
def test_a_program_that_is_killed_at_random_moments_ends_bit_for_bit_the_same(tmp_path, said):
    said = {**getattr(programs, said), "training.total_steps": 12_000,
            "training.chunk_size": 5000, "checkpointing.interval": 1000}  # fmt: skip
    assert program(said, tmp_path / "whole").wait() == 0
    rng = random.Random(said["training.env"])
    for _ in range(3):
        before = updates(tmp_path / "cut")
        one = program(said, tmp_path / "cut")
        while one.poll() is None and updates(tmp_path / "cut") < before + 10:
            time.sleep(0.002)
        time.sleep(rng.random() * 0.1)
        assert one.poll() is None, "it was to be killed before its end"
        one.kill()
        one.wait()
    assert program(said, tmp_path / "cut").wait() == 0
    assert sum("bit-exact" in line for line in programs.log(tmp_path / "cut")) >= 2
    assert programs.last(tmp_path / "cut") == programs.last(tmp_path / "whole")


def updates(folder):
    file = folder / "ppo_training.log"
    return file.read_text().count("[PPO:update]") if file.exists() else 0


def program(said, folder):
    command = [sys.executable, "-m", "rlvitals", "train", "ppo", *flags_of(said, folder)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.soak
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_exit_codes_of_signals(tmp_path, number, code):
    one = program({**programs.CARTPOLE, "training.total_steps": 10**7}, tmp_path)
    while not (tmp_path / "latest").exists():
        time.sleep(0.05)
        assert one.poll() is None
    one.send_signal(number)
    assert one.wait(timeout=HANG_SECONDS) == code
    assert standing.read(tmp_path).status == "stopped"

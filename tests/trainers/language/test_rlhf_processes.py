"""Two processes train one policy: as one does with the same batch, saved together and gone on."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import rlhf_programs as programs
import rlhf_two
import torch
from waiting import HANG_SECONDS

pytestmark = pytest.mark.soak  # two processes that load all of TRL
PROGRAM = Path(__file__).parent / "rlhf_two.py"
LAUNCH = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What two processes leave that were started once, with responses to learn from."""
    made = tmp_path_factory.mktemp("two")
    ppo = rlhf_two.rlhf_parts.page(rlhf_two.uneven, **rlhf_two.SAID)
    ppo.ends = [*ppo.ends, *range(0, len(ppo.tokenizer), 5)]  # some end early
    drawn, batch, _ = ppo.collect_rollout()
    given = batch.raw_scores.clone()
    given[1] = float("nan")
    torch.save({k: getattr(drawn, k) for k in drawn.__slots__}, made / "drawn.pt")
    torch.save(given, made / "given.pt")
    source = str(Path(__file__).parents[3] / "src")
    env = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    env.pop("PYTEST_CURRENT_TEST", None)
    done = subprocess.run(
        [*LAUNCH, str(PROGRAM), str(made)],
        env=env, capture_output=True, text=True, timeout=HANG_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]
    return made


def test_two_processes_have_the_gradient_of_one(folder):
    """Responses of other lengths on each, one of them without a score."""
    rlhf_two.joined(folder)
    one, both = (torch.load(folder / f"{share}.pt") for share in (8, 4))
    assert one["slope"].abs().max() > 0.01
    assert torch.allclose(one["slope"], both["slope"], rtol=1e-4, atol=1e-6)
    assert torch.allclose(one["weights"], both["weights"], atol=1e-5)
    alone, together = (json.loads((folder / f"{share}.json").read_text()) for share in (8, 4))
    assert alone["rewards/total/none_share"] == 0.125
    assert together == pytest.approx(alone, rel=1e-3, abs=1e-5)


def test_two_processes_train_save_and_go_on_bit_for_bit(folder):
    whole, cut = (
        [torch.load(folder / f"{name}-{rank}") for rank in (0, 1)] for name in ("whole", "cut")
    )
    assert torch.equal(whole[0]["weights"], whole[1]["weights"])
    assert not torch.equal(whole[0]["stream"], whole[1]["stream"])  # each draws its own responses
    for one, other in zip(whole, cut, strict=True):
        assert torch.equal(one["weights"], other["weights"])
        assert torch.equal(one["stream"], other["stream"])
    newest = folder / "cut" / "checkpoint-6"
    assert {"rank-0", "rank-1", "model.safetensors"} <= {one.name for one in newest.iterdir()}


def test_one_process_goes_on_with_what_two_began(folder, tmp_path):
    """The checkpoint of two, with an end further away: it says that it is not bit for bit."""
    shutil.copytree(folder / "whole", tmp_path / "run")
    made = programs.run(tmp_path / "run", programs.ALL, **{"rlhf.total_episodes": 64})
    assert made.ppo.counters.updates == 8
    (line,) = [one for one in programs.log(tmp_path / "run") if "resumed at step" in one]
    assert "processes" in line
    assert "bit-exact" not in line.split("not bit-exact")[0]

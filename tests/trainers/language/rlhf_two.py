"""One of several processes: `torchrun rlhf_two.py folder`."""

import json
import sys
from pathlib import Path

import rlhf_parts
import rlhf_programs as programs
import torch

from rlvitals.trainers.language.rlhf.batch import Batch, Responses

SAID = {"batch_size": 8, "response_length": 5, "missing_eos_penalty": 0.5, "kl_coef": 0.3}


def uneven(completions, **_):
    return [len(set(one)) / 4 for one in completions]


def joined(folder):
    """The gradient of one global batch, and the numbers of an update of it, as rank 0 has them."""
    ppo = rlhf_parts.page(uneven, **SAID, forward_batch_size=3)
    drawn = Responses(**torch.load(folder / "drawn.pt"))
    given = torch.load(folder / "given.pt")
    share = 8 // ppo.accelerator.num_processes
    own = torch.arange(8)[ppo.accelerator.process_index * share :][:share]
    drawn, given = drawn.rows(own), given[own]
    batch: Batch = ppo.reward(drawn, given)
    rows = torch.arange(share)
    count = ppo._sum(batch.learned_mask.sum())
    ppo._backward(drawn, batch, rows, count)
    slope = torch.cat([one.grad.flatten() for one in ppo.learning])
    ppo.optimizer.zero_grad()
    ppo.collect_rollout = lambda: (drawn, batch, ppo._score(drawn, {"prompt": ["1+1="] * share}))
    numbers = dict(ppo.iterate().numbers)
    if ppo.accelerator.is_main_process:
        torch.save({"slope": slope, "weights": rlhf_parts.weights(ppo)}, folder / f"{share}.pt")
        kept = {k: v for k, v in numbers.items() if not k.startswith("time/")}
        (folder / f"{share}.json").write_text(json.dumps(kept))


def trained(folder):
    """A whole training, and one that is cut short and gone on with."""
    programs.cut_short(folder / "cut", programs.ALL, 3)
    for name in ("whole", "cut"):
        made = programs.run(folder / name, programs.ALL)
        weights = rlhf_parts.weights(made.ppo)
        rank = made.accelerator.process_index
        torch.save({"weights": weights, "stream": torch.get_rng_state()}, folder / f"{name}-{rank}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    joined(Path(sys.argv[1]))
    trained(Path(sys.argv[1]))
    torch.distributed.destroy_process_group()

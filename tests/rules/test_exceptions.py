"""What the exception that ended a run usually means."""

import made_traces as made
import numpy as np
import pytest

from rlvitals.diagnosis.exceptions import usual_meaning
from rlvitals.diagnosis.verdict import Word, verdict
from rlvitals.rules.answers import learning_trend
from rlvitals.types import Lifecycle, Profile, Trace


@pytest.mark.parametrize(
    ("error", "word"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "memory"),
        ("NotImplementedError", "reward function"),
        ("ValueError: Expected parameter logits, but found invalid values:", "not numbers"),
        ("ray.exceptions.ActorDiedError: The actor died unexpectedly", "killed"),
        ("RuntimeError: CUDA error: device-side assert triggered", "token id"),
        ("torch.distributed.DistBackendError: NCCL error in: ...", "another"),
        ("KeyError: 'prompt'", "column"),
        ("AssertionError: real_train_batch_size must be divisible by n_gpus", "divide"),
        ("requests.exceptions.ReadTimeout: HTTPConnectionPool", "server"),
        ("RuntimeError: probability tensor contains either `inf`, `nan` or element < 0", "finite"),
        ("RuntimeError: PytorchStreamWriter failed writing file data/3: file write failed", "disk"),
        ("OSError: [Errno 28] No space left on device", "disk"),
        ("RuntimeError: element 0 of tensors does not require grad and has no grad_fn", "trained"),
        ("OSError: [Errno 98] Address already in use", "port"),
        ("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue", "sampler"),
        ("ValueError: The decoder prompt is longer than the maximum model length", "longer"),
        ("ValueError: tokenizer.chat_template is not set", "template"),
        ("AssertionError: Torch not compiled with CUDA enabled", "build"),
    ],
)
def test_an_exception_is_explained(error, word):
    assert word in usual_meaning(error)


def test_what_nobody_knows_is_left_as_it_is():
    assert not usual_meaning("ValueError: the answer is 42")


def test_a_run_that_ends_before_its_first_row_says_what_its_exception_means():
    cycle = Lifecycle(exit_code=1, traceback="Traceback:\nKeyError: 'prompt'", ended=True)
    found = verdict(Trace(series={}, measured={}, profile=Profile.UNKNOWN, lifecycle=cycle), ())
    assert found.word is Word.FAILED
    assert "KeyError: 'prompt'" in found.why
    assert "column" in found.why


@pytest.mark.parametrize(
    "name",
    ["outcome/eval_reward", "outcome/eval_task/aime/avg_score", "outcome/eval_task/aime/avg@8"],
)
def test_held_out_answers_tell_where_training_batches_stay_level(name):
    level = 0.5 + 0.02 * made.noise(150, 1)
    rising = np.clip(np.linspace(0.3, 0.6, 30) + 0.01 * made.noise(30, 2), 0, 1)
    run = made.trace(Profile.GRPO, outcome__reward=level)
    steps = run.series["outcome/reward"].steps[::5]
    held = type(run.series["outcome/reward"])(steps, np.full(30, np.nan), rising)
    both = made.trace(Profile.GRPO, outcome__reward=level)
    both.series[name] = held
    assert not learning_trend(run).improves
    assert learning_trend(both).improves
    assert learning_trend(both).metric == name

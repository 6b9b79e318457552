"""Estimates of memory and time before a training starts: `--plan`."""

import itertools
import json
import math
import subprocess
import sys

import families
import pytest
import torch
import vision_families
from effort import sampled
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import Qwen2Config
from trl.trainer import utils as trl

from rlvitals import VitalsError
from rlvitals.cli import main
from rlvitals.cli.training_plan import size, span
from rlvitals.trainers.language import models, usage
from rlvitals.trainers.language.config import ModelConfig
from rlvitals.trainers.language.planning import device, passes, shell, start, updates
from rlvitals.trainers.language.planning.meter import Meter
from rlvitals.trainers.language.planning.passes import Pass
from rlvitals.trainers.language.rlhf.policy import add_adapters

pytestmark = [
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning"),
    # PaliGemma's processor puts torch's tensors into an array of numpy 2.
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning:transformers"),
]
RATES = device.Rates(1e9, 1e9, 1e-6, 1 << 40, "cpu", "stated")
STATED = ("--device-flops", "1e12", "--device-bandwidth", "1e11", "--json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of a family, made once."""
    made = {}

    def of(name):
        if name not in made:
            make = vision_families.FAMILIES.get(name) or getattr(families, name)
            made[name] = make(tmp_path_factory.mktemp("model"))
        return made[name]

    return of


PLANS = {}


def planned(capsys, *words):
    """Return the plan of a command line, from its JSON: made once, at the rates that are stated."""
    if words not in PLANS:
        capsys.readouterr()
        assert main(["train", *words, "--plan", *STATED]) == 0
        PLANS[words] = json.loads(capsys.readouterr().out)
    return PLANS[words]


def phases(plan):
    return {phase["name"]: phase for phase in plan["phases"]}


# -- counting -------------------------------------------------------------------------------------


def test_a_product_is_counted_by_hand():
    with FakeTensorMode():
        left, right = torch.ones(30, 20), torch.ones(20, 10)
        with Meter(RATES) as meter:
            product = left @ right
        assert meter.operations == 1
        assert meter.flops == 2 * 30 * 20 * 10
        assert meter.bytes_now == meter.bytes_peak == 30 * 10 * 4
        moved = 4 * (30 * 20 + 20 * 10 + 30 * 10)
        assert meter.seconds == pytest.approx(1e-6 + max(meter.flops, moved) / 1e9)
        del product
        assert meter.bytes_now == 0
        assert meter.bytes_peak == 30 * 10 * 4


def test_a_view_and_a_tensor_that_is_not_written_move_nothing():
    with FakeTensorMode():
        table, rows = torch.ones(1000, 8), torch.zeros(2, dtype=torch.long)
        with Meter(RATES) as meter:
            table.t()
            torch.empty(1 << 20)
        assert meter.seconds == pytest.approx(2e-6)
        with Meter(RATES) as meter:
            torch.nn.functional.embedding(rows, table)
        assert meter.seconds == pytest.approx(1e-6 + 2 * 2 * 8 * 4 / 1e9)


def test_what_a_pass_keeps_is_held_by_the_next():
    first, then = Pass(1.0, 2.0, peak=10, retained=3), Pass(0.5, 1.0, peak=8, retained=1)
    assert first + then == Pass(1.5, 3.0, peak=11, retained=4)
    assert then.times(4) == Pass(2.0, 4.0, peak=8, retained=1)


@pytest.mark.parametrize(("count", "said"), [(512, "0.50 KiB"), (3 << 20, "3.00 MiB"),
                                             (5 << 30, "5.00 GiB")])  # fmt: skip
def test_bytes_are_said_in_a_unit_that_fits(count, said):
    assert size(count) == said


@pytest.mark.parametrize(("seconds", "said"), [(0.0123, "12.3 ms"), (12.34, "12.3 s"),
                                               (600.0, "10 min"), (36_000.0, "10 h")])  # fmt: skip
def test_seconds_are_said_in_a_unit_that_fits(seconds, said):
    assert span(seconds) == said


# -- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize("lora", [True, False])
@pytest.mark.parametrize("name", sampled(["qwen2", "gpt2", "neox", "phi3"], 4))
def test_parameters_are_those_of_the_model_that_is_loaded(name, lora, folder, tmp_path):
    config = ModelConfig(vlm_name=str(folder(name)), lora=lora)
    loaded = models.load(config, seed=0, base=tmp_path / "base")
    model = add_adapters(loaded.model, loaded.lora) if lora else loaded.model
    with shell.build_shell(config, seed=0) as made:
        assert made.parameters == sum(one.numel() for one in model.parameters())
        assert made.trainable == sum(one.numel() for one in model.parameters() if one.requires_grad)
        dtypes = {name: one.dtype for name, one in model.named_parameters()}
        assert {name: one.dtype for name, one in made.model.named_parameters()} == dtypes


@pytest.mark.soak
def test_config_json_is_enough(folder, tmp_path, capsys):
    """No tokenizer, no processor, no weights: prompts and images are assumed, and that is said."""
    (tmp_path / "config.json").write_bytes((folder("qwen2.5-vl") / "config.json").read_bytes())
    common = ("grpo", "--vlm-name", str(tmp_path), "--chart-pixels", "56")
    plan = planned(capsys, *common)
    assert any("assumed: the processor" in line for line in plan["assumptions"])
    assert plan["memory"] > plan["parts"]["weights"] > 0
    longer = planned(capsys, *common, "--prompt-tokens", "1024")
    assert longer["parts"]["KV cache"] > plan["parts"]["KV cache"]


@pytest.mark.soak
@pytest.mark.parametrize("name", sampled(list(vision_families.FAMILIES), 11))
def test_every_family_that_reads_images_is_planned(name, folder, capsys):
    plan = planned(capsys, "nsr", "--vlm-name", str(folder(name)), "--chart-pixels", "56")
    assert list(phases(plan)) == ["generation", "gradients", "optimizer step"]
    assert all(phase["memory"] >= plan["parts"]["weights"] for phase in plan["phases"])
    assert any("patches of images: the longest of 8 rows" in line for line in plan["assumptions"])


# -- what an update takes -------------------------------------------------------------------------


@pytest.mark.soak
def test_parts_follow_the_settings(capsys):
    common = ("grpo", "--vlm-name", "tiny-lm")
    plan = planned(capsys, *common)
    weights = plan["parts"]["weights"]
    assert plan["parameters"] == plan["trainable"] == 129_280
    assert weights == 4 * 129_280 + 2 * 4 * 8  # and twice the frequencies of the positions
    assert plan["parts"]["gradients"] == 4 * 129_280
    assert plan["parts"]["optimizer state"] == 2 * 4 * 129_280
    assert plan["parts"]["reference model"] == 0
    # Two layers of two heads of 16, keys and values, of 64 completions of 8 + 6 tokens.
    assert plan["parts"]["KV cache"] == 4 * 64 * 14 * 2 * 2 * 2 * 16
    with_reference = planned(capsys, *common, "--beta", "0.1")
    assert with_reference["parts"]["reference model"] == weights
    assert "scoring" in phases(with_reference)
    adapters = planned(capsys, *common, "--beta", "0.1", "--lora")
    assert adapters["parts"]["reference model"] == 0
    assert adapters["parts"]["optimizer state"] == 2 * 4 * adapters["trainable"]


@pytest.mark.soak
def test_work_grows_with_what_is_asked(capsys):
    common = ("grpo", "--vlm-name", "tiny-lm")
    plan, twice = planned(capsys, *common), planned(capsys, *common, "--batch-size", "128")
    assert phases(twice)["gradients"]["flops"] == 2 * phases(plan)["gradients"]["flops"]
    assert twice["parts"]["activations"] == pytest.approx(
        2 * plan["parts"]["activations"], rel=0.01
    )


@pytest.mark.soak
def test_gradients_that_are_summed_take_time_and_no_memory(capsys):
    common = ("grpo", "--vlm-name", "tiny-lm")
    plan = planned(capsys, *common)
    summed = planned(capsys, *common, "--gradient-accumulation-steps", "2")
    assert phases(summed)["gradients"]["flops"] == 2 * phases(plan)["gradients"]["flops"]
    assert summed["parts"]["activations"] == plan["parts"]["activations"]


@pytest.mark.soak
def test_a_generation_that_serves_several_updates_costs_each_a_share(capsys):
    common = ("grpo", "--vlm-name", "tiny-lm")
    plan = planned(capsys, *common)
    reused = planned(capsys, *common, "--num-iterations", "4")
    assert phases(reused)["generation"]["flops"] == phases(plan)["generation"]["flops"] / 4


def test_checkpointing_trades_memory_for_work(capsys):
    common = ("grpo", "--vlm-name", "tiny-lm")
    plan = planned(capsys, *common)
    saved = planned(capsys, *common, "--gradient-checkpointing")
    assert saved["parts"] == plan["parts"]
    assert plan["parts"]["activations, gradient checkpointing"] < plan["parts"]["activations"] / 2
    assert phases(saved)["gradients"]["memory"] < phases(plan)["gradients"]["memory"]
    assert phases(saved)["gradients"]["flops"] > 1.2 * phases(plan)["gradients"]["flops"]


def test_rlhf_holds_a_reference_and_makes_each_pass(capsys):
    plan = planned(capsys, "rlhf", "--num-ppo-epochs", "1")
    assert list(phases(plan)) == ["generation", "scoring", "gradients", "optimizer step"]
    assert plan["parts"]["reference model"] == plan["parts"]["weights"]
    again = planned(capsys, "rlhf", "--num-ppo-epochs", "3")
    assert phases(again)["gradients"]["flops"] == 3 * phases(plan)["gradients"]["flops"]
    assert plan["trainable"] == 129_280


@pytest.mark.soak
def test_a_faster_device_takes_less_time(capsys):
    capsys.readouterr()
    common = ["train", "grpo", "--vlm-name", "tiny-lm", "--plan", "--json", "--device-flops"]
    seconds = []
    for flops in ("1e9", "1e15"):
        assert main([*common, flops]) == 0
        seconds.append(json.loads(capsys.readouterr().out)["seconds_per_update"])
    assert seconds[0] > 2 * seconds[1] > 0


# -- the command ----------------------------------------------------------------------------------


def test_a_plan_is_a_table_and_trains_nothing(tmp_path, capsys):
    run = tmp_path / "run"
    asked = ["train", "nsr", "--vlm-name", "tiny-lm", "--output-dir", str(run), "--plan"]
    assert main(asked) == 0
    said = capsys.readouterr().out
    assert "tiny-lm: 129,280 parameters, 129,280 trained (100.00%)" in said
    for word in ("weights", "KV cache", "an update", "at its peak", "Assumed:", "measured on this"):
        assert word in said
    assert not run.exists()


def test_a_rate_below_zero_is_refused(capsys):
    assert main(["train", "nsr", "--vlm-name", "tiny-lm", "--plan", "--device-flops", "-1"]) == 2
    assert "below 0" in capsys.readouterr().err


def test_a_model_that_depends_on_its_numbers_cannot_be_planned():
    error = pytest.raises(VitalsError, match="cannot be estimated: DataDependentOutput")
    with FakeTensorMode(), error:
        passes.trace_pass(torch.nn.Linear(2, 2), RATES, lambda: bool(torch.ones(1).sum()))


def test_completions_are_scored_without_a_gradient():
    with FakeTensorMode():
        model = torch.nn.Linear(2, 2)
        enabled = []

        def score():
            enabled.append(torch.is_grad_enabled())
            yield model(torch.ones(1, 2))

        passes.forward(model, RATES, score)
    assert enabled == [False]


def test_every_tensor_of_a_module_is_replaced():
    module = torch.nn.Module()
    module.register_parameter("bias", None)
    module.weight = torch.nn.Parameter(torch.ones(2))
    with FakeTensorMode():
        shell.fake(module)
    assert type(module.weight.detach()).__name__ == "FakeTensor"


def test_a_tile_of_logits_is_no_wider_than_the_vocabulary():
    config = Qwen2Config(vocab_size=18)
    small = shell.Shell(None, config, False, True, 0, 0, "", ())
    width = trl._CHUNKED_LOGPROB_CHUNK_SIZE
    with updates._tile(small, RATES):
        assert trl._CHUNKED_LOGPROB_CHUNK_SIZE == 18
    assert width == trl._CHUNKED_LOGPROB_CHUNK_SIZE > 18


def test_an_operation_takes_the_cpu_time_of_its_threads_by_their_number(monkeypatch):
    clock = itertools.count(step=6.0)
    monkeypatch.setattr(device.time, "process_time", lambda: next(clock))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert device.seconds(lambda: None, torch.device("cpu")) == 2.0


def test_a_clock_that_ticks_slowly_measures_a_fast_operation(monkeypatch):
    calls = [0]
    monkeypatch.setattr(device.time, "process_time", lambda: calls[0] // 10 * 0.010)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)

    def operation():
        calls[0] += 1  # it takes a millisecond, of a clock that ticks every 10

    assert device.seconds(operation, torch.device("cpu")) == pytest.approx(1e-3, rel=0.25)


# -- beside what was used -------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["nsr", "rlhf"])
def test_a_training_says_what_it_used_beside_its_plan(mode, folder, tmp_path, monkeypatch, capsys):
    import rlvitals

    monkeypatch.setattr(start, "MIN_PLANNED_PARAMETERS", 0)
    rows = [{"prompt": f"What is {a}+1?", "answer": str(a + 1)} for a in range(8)]
    file = tmp_path / "sums.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    size = {
        "nsr": ["--max-steps", "3", "--max-completion-length", "4", "--num-generations", "2"],
        "rlhf": ["--total-episodes", "12", "--response-length", "4"],
    }  # fmt: skip
    run = tmp_path / "run"
    asked = [
        "train", mode, "--vlm-name", str(folder("qwen2")), "--dataset-name", str(file),
        "--batch-size", "4", "--held-out", "0", "--threads", "1", "--diagnose-seconds", "0",
        "--report-to", "none", "--functions", "trained:alternating", "--output-dir", str(run),
        *size[mode],
    ]  # fmt: skip
    asked += ["--correctness", "alternating"] if mode == "nsr" else []
    assert main(asked) == 0
    said = capsys.readouterr().out
    assert said.index("plan: ") < said.index("used: ")
    assert "s an update, planned " in said
    plan = json.loads((run / "plan.json").read_text())
    (log, *_) = rlvitals.read(run)
    peak = log.series["machine/peak_gib"]
    assert peak.steps[-1] == 3
    # A process that has trained before reuses its memory: no more than at the start, then.
    assert 0 <= peak.values[-1] < 16
    assert plan["memory"] > 0


def test_a_tiny_model_is_not_planned_by_itself(tmp_path):
    from rlvitals.trainers.language.config import Config

    assert start.plan(Config(), tmp_path, 0, print) is None


def test_usage_is_the_mean_time_after_the_first_update(monkeypatch):
    times = iter([1.0, 3.0, 7.0])
    monkeypatch.setattr(usage.time, "perf_counter", lambda: next(times))
    measured = usage.Usage()
    assert math.isnan(measured.measure().seconds)
    for _ in range(3):
        measured.step()
    assert measured.measure().seconds == 3.0


@pytest.mark.soak
def test_usage_is_of_the_memory_that_was_held_since():
    # A process of its own: the peak of this one may be of an earlier test.
    program = """
import torch
from rlvitals.trainers.language import usage
measured = usage.Usage()
values = torch.ones(25_000_000)
measured.step()
del values
print(measured.measure().memory)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    printed = done.stdout.decode().strip()
    assert printed == "None" or 0.9e8 < int(printed) < 3e8


@pytest.mark.soak
def test_speed_is_measured_at_the_width_of_the_model_s_own_layers(folder, monkeypatch, capsys):
    sides, rates = [], device.rates

    def record(dtype, shape, **more):
        sides.append(shape)
        return rates(dtype, shape, **more)

    monkeypatch.setattr(device, "rates", record)
    path = folder("qwen2.5-vl")
    planned(capsys, "grpo", "--vlm-name", str(path))
    text = json.loads((path / "config.json").read_text())
    text = text.get("text_config", text)
    assert sides[0][1:] == (text["hidden_size"], text["intermediate_size"])

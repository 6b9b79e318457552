"""Each check catches a trainer that has just that wrong, and passes the healthy one."""

import pytest
import torch
import trl_twins as twins
from trl import SFTConfig, SFTTrainer

from rlvitals.integrations.trl_preflight import Preflight

pytestmark = pytest.mark.filterwarnings("ignore", "error:::rlvitals")
OLD = {"num_iterations": 2}  # the least with which TRL computes the old policy
EXAMPLES = [{"prompt": "3+4=", "answer": "7", "right": "7", "wrong": "8"}]


@pytest.fixture
def checked(base, tmp_path):
    def run(kind=twins.GRPOTrainer, **options):
        given = {key: options.pop(key) for key in ("examples", "skip", "stop") if key in options}
        trainer = twins.trainer(base, tmp_path, kind, **options)
        preflight = Preflight(trainer, quiet=True, **given)
        trainer.add_callback(preflight)
        trainer.train()
        return preflight.report

    return run


def only(report):
    """Return the one check that failed."""
    assert [check.name for check in report.failed] == [report.failed[0].name], str(report)
    return report.failed[0]


def names(checks):
    return {check.name for check in checks}


def test_a_healthy_trainer_passes_all_that_one_process_can_show(checked):
    report = checked(
        beta=0.04, max_steps=4, rewards=(twins.letters, twins.correct), examples=EXAMPLES, **OLD
    )
    assert names(report.failed) == set(), str(report)
    assert names(report.unchecked) == {"ranks-differ"}, str(report)
    assert len(report.passed) == 8


def test_what_trl_leaves_out_is_said_and_not_counted_as_health(checked):
    report = checked()
    assert report.ok, str(report)
    why = {check.name: check.outcome.why for check in report.unchecked}
    assert set(why) == {
        "ratio-is-one", "kl-to-reference-is-zero", "ranks-differ", "right-beats-wrong"
    }  # fmt: skip
    assert "takes it to be 1" in why["ratio-is-one"]
    assert "beta is 0" in why["kl-to-reference-is-zero"]


LONG = {"max_completion_length": 24}  # some answers end before that


@pytest.mark.parametrize(
    ("twin", "options", "check", "variable"),
    [
        (twins.MaskShifted, LONG, "loss-covers-generated", "loss weight["),
        (twins.MaskLate, {}, "loss-covers-generated", "loss weight[0, 0]"),
        (twins.MaskOverPadding, LONG, "loss-covers-generated", "loss weight["),
        (twins.NotCentred, {}, "group-advantages-centred", "mean of advantages in group"),
        (twins.CentredOverBatch, {}, "group-advantages-centred", "mean of advantages in group"),
        (twins.GroupsMixed, {}, "group-advantages-centred", "prompts of group 0"),
        (twins.OldPolicyIsOff, OLD, "ratio-is-one", "ratio["),
        (twins.ShiftedByOne, {}, "logps-of-tokens", "exp(logp in the loss - logp)["),
        (twins.OtherReference, {"beta": 0.04}, "kl-to-reference-is-zero", "kl (k3"),
        (twins.StaleSampler, {}, "sampler-has-weights", "the sampler's model."),
        (twins.Forgotten, {}, "weights-moved", "change of model.layers.0.mlp.up_proj.weight["),
        (twins.NoStep, {}, "weights-moved", "change of model."),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_a_broken_twin_is_caught_by_its_own_check(checked, twin, options, check, variable):
    failed = only(checked(twin, **options))
    assert failed.name == check
    assert failed.outcome.variable.startswith(variable), failed
    assert failed.outcome.value


def test_a_reward_that_pays_wrong_answers_is_named_with_both_scores(checked):
    failed = only(
        checked(rewards=(twins.letters, twins.correct, twins.inverted), examples=EXAMPLES)
    )
    assert failed.name == "right-beats-wrong"

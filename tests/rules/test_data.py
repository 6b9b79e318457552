"""The rules that judge the numbers themselves: what must add up, what cannot be, what is stuck."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals import metrics
from rlvitals.rules import books, identities
from rlvitals.rules.data import (
    accounting_broken,
    first_update_off,
    frozen_metric,
    impossible_value,
)
from rlvitals.rules.optimiser import not_a_number
from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.types import Measured, Profile, Table

ACCOUNTING = accounting_broken.RULE
FIRST = first_update_off.RULE
FROZEN = frozen_metric.RULE
IMPOSSIBLE = impossible_value.RULE
NUMBER = not_a_number.RULE
ROWS = np.arange(1, 101)


def logged(framework, profile=Profile.RLHF_PPO, settings=None, estimator="", **series):
    """A trace whose every metric one framework wrote, at steps 1, 2, ..."""
    columns = {
        name: made.series(values, ROWS[: len(values)] if not isinstance(values, made.Series) else 0)
        for name, values in series.items()
    }
    run = made.trace(profile, settings, **columns)
    known = {name: Measured(framework, name, "", estimator) for name in run.measured}
    return replace(run, measured=known)


def noise(seed, level=1.0):
    return level + 0.3 * made.noise(len(ROWS), seed)


# accounting-broken


def penalised(sign=-1.0, since=0, coef=0.05, **more):
    kl, score = np.abs(noise(1, 2.0)), noise(2)
    penalty = np.where(np.arange(len(kl)) >= since, sign, -1.0) * coef * kl
    return logged(
        "trl-ppo",
        estimator="k1",
        **{
            "policy__kl_to_reference": kl,
            "reward__non_score": penalty,
            "outcome__score": score,
            "outcome__rlhf_reward": score - coef * kl,
            **more,
        },
    )


def test_books_that_add_up_are_clear():
    assert isinstance(ACCOUNTING.judge(penalised()), Clear)


@pytest.mark.parametrize("since", [0, 40])
def test_a_penalty_that_pays_is_an_error_since_its_step(since):
    found = ACCOUNTING.judge(penalised(sign=1.0, since=since))
    assert found.severity is Severity.ERROR
    assert found.began == since + 1
    assert "sign" in found.causes[0]


def test_another_coefficient_than_the_one_set_is_a_finding_that_names_the_factor():
    run = replace(penalised(coef=0.1), settings={"kl_coef": 0.05})
    found = ACCOUNTING.judge(run)
    assert isinstance(found, Finding)
    assert "factor 2" in found.causes[0]


def test_digits_that_were_logged_are_no_break():
    run = penalised()
    short = {n: replace(s, values=np.round(s.values, 3)) for n, s in run.series.items()}
    assert isinstance(ACCOUNTING.judge(replace(run, series=short)), Clear)
    long = {
        n: replace(s, values=np.array([float(f"{v:.3g}") for v in s.values]))
        for n, s in run.series.items()
    }
    assert isinstance(ACCOUNTING.judge(replace(run, series=long)), Clear)


def test_numbers_of_bfloat16_are_no_break():
    run = penalised()
    half = {n: replace(s, values=bfloat16(s.values)) for n, s in run.series.items()}
    assert isinstance(ACCOUNTING.judge(replace(run, series=half)), Clear)


def bfloat16(values):
    bits = values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return bits.view(np.float32).astype(np.float64)


@pytest.mark.parametrize(
    ("value", "digits"), [(0.25, 2), (1234.5, 5), (3.0, 1), (0.1 + 1e-12, 1), (1 / 3, 9)]
)
def test_digits_are_counted(value, digits):
    assert books.digits(value) == digits


def test_a_log_whose_trainer_is_not_known_is_held_to_nothing():
    run = penalised(sign=1.0)
    unknown = {n: replace(m, framework="generic") for n, m in run.measured.items()}
    assert isinstance(ACCOUNTING.judge(replace(run, measured=unknown)), Undecided)


def test_numbers_of_two_files_are_not_set_against_each_other():
    run = penalised(sign=1.0)
    apart = {n: replace(m, where=n) for n, m in run.measured.items()}
    assert isinstance(ACCOUNTING.judge(replace(run, measured=apart)), Undecided)


def composed(weights=(1.0, 1.0), then=None, **more):
    right, form = np.abs(noise(3)), np.abs(noise(4, 0.5))
    total = weights[0] * right + weights[1] * form
    if then is not None:
        total[60:] = then[0] * right[60:] + then[1] * form[60:]
    parts = {"reward__component__correct": right, "reward__component__form": form}
    return logged("trl-grpo", Profile.GRPO, outcome__reward=total, **parts, **more)


@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, 0.2), (0.5, -2.0)])
def test_weights_of_components_are_learned(weights):
    assert isinstance(ACCOUNTING.judge(composed(weights)), Clear)


def test_components_that_no_longer_add_up_are_a_warning():
    found = ACCOUNTING.judge(composed(then=(1.0, 0.5)))
    assert found.severity is Severity.WARNING
    assert found.began == 61


def test_a_component_that_leaves_samples_out_all_along_need_not_add_up():
    run = composed()
    skewed = replace(run["outcome/reward"], values=run["outcome/reward"].values * noise(9))
    odd = replace(run, series={**run.series, "outcome/reward": skewed})
    assert not isinstance(ACCOUNTING.judge(odd), Finding)


def test_a_component_that_starts_to_pay_has_a_weight_nobody_knows():
    run = composed()
    late = np.where(ROWS > 60, 1.0, 0.0)
    total = run["outcome/reward"].values + 0.5 * late
    assert not isinstance(ACCOUNTING.judge(
        logged("trl-grpo", Profile.GRPO, outcome__reward=total, reward__component__late=late,
               reward__component__correct=run["reward/component/correct"].values,
               reward__component__form=run["reward/component/form"].values)
    ), Finding)  # fmt: skip


def test_the_last_minibatch_s_loss_is_no_sum_of_means():
    run = logged(
        "sb3", Profile.CONTROL_PPO, {"value_coef": 0.5, "entropy_coef": 0.0},
        optimiser__loss=noise(1, 9.0), policy__loss=noise(2), value__loss=noise(3),
    )  # fmt: skip
    assert isinstance(ACCOUNTING.judge(run), Undecided)


@pytest.mark.parametrize(("most", "kind"), [(10.0, Clear), (9.0, Finding)])
def test_no_iteration_runs_more_epochs_than_are_set(most, kind):
    run = logged(
        "sb3", Profile.CONTROL_PPO, {"n_epochs": most},
        optimiser__updates=10.0 * ROWS, progress__iteration=1.0 * ROWS,
    )  # fmt: skip
    assert isinstance(ACCOUNTING.judge(run), kind)


def test_fewer_epochs_than_are_set_is_an_early_stop():
    run = logged(
        "sb3", Profile.CONTROL_PPO, {"n_epochs": 10},
        optimiser__updates=3.0 * ROWS, progress__iteration=1.0 * ROWS,
    )  # fmt: skip
    assert isinstance(ACCOUNTING.judge(run), Clear)


def test_two_broken_rows_are_a_mended_log():
    run = penalised()
    values = run["reward/non_score"].values.copy()
    values[[10, 50]] *= -1.0
    odd = {**run.series, "reward/non_score": replace(run["reward/non_score"], values=values)}
    assert isinstance(ACCOUNTING.judge(replace(run, series=odd)), Clear)


def test_every_identity_says_where_it_was_read():
    for identity in identities.IDENTITIES:
        assert identity.read_from
        assert identity.causes
        assert identity.logged_by


# first-update-off


def referred(first, framework="trl-ppo", **more):
    kl = np.concatenate(([first], np.abs(noise(5)[1:])))
    return logged(framework, estimator="k1", policy__kl_to_reference=kl, **more)


@pytest.mark.parametrize(
    ("first", "severity"), [(-0.5, Severity.WARNING), (0.5, Severity.NOTE), (-3e-8, None)]
)
def test_kl_to_the_reference_starts_at_zero(first, severity):
    answer = FIRST.judge(referred(first))
    assert getattr(answer, "severity", None) is severity


def test_long_responses_may_differ_by_more():
    run = referred(-0.4, language__length_mean=np.full(len(ROWS), 500.0))
    assert isinstance(FIRST.judge(run), Clear)


@pytest.mark.parametrize("begin", [2, 500])
def test_a_log_that_begins_later_is_undecided(begin):
    run = referred(-0.5)
    later = {n: replace(s, steps=s.steps + begin - 1) for n, s in run.series.items()}
    answer = FIRST.judge(replace(run, series=later))
    assert isinstance(answer, Undecided)
    assert "begins at step" in answer.why


@pytest.mark.parametrize(
    ("rate", "norm", "kind"), [(1e-5, 1.0, Finding), (0.0, 1.0, Clear), (1e-5, 0.0, Clear)]
)
def test_a_reference_that_follows_the_policy(rate, norm, kind):
    run = logged(
        "trl-grpo", Profile.GRPO, estimator="k3",
        policy__kl_to_reference_per_token=np.zeros(len(ROWS)),
        optimiser__learning_rate=np.full(len(ROWS), rate),
        optimiser__grad_norm=np.full(len(ROWS), norm),
    )  # fmt: skip
    answer = FIRST.judge(run)
    assert isinstance(answer, kind)
    if kind is Finding:
        assert answer.severity is Severity.WARNING
        assert "frozen" in answer.causes[0]


WHOLE = {"n_epochs": 1, "n_steps": 128, "n_envs": 4, "minibatch_size": 512}


@pytest.mark.parametrize(
    ("kl", "settings", "kind"),
    [
        (0.0, WHOLE, Clear),
        (4e-6, WHOLE, Clear),
        (0.01, WHOLE, Finding),
        (0.01, {**WHOLE, "n_epochs": 2}, Undecided),
        (0.01, {**WHOLE, "minibatch_size": 64}, Undecided),
        (0.01, {"n_epochs": 1}, Undecided),
    ],
)
def test_one_update_of_each_batch_moves_nothing_yet(kl, settings, kind):
    run = logged("sb3", Profile.CONTROL_PPO, settings, policy__approx_kl=np.full(50, kl))
    assert isinstance(FIRST.judge(run), kind)


@pytest.mark.parametrize(("level", "kind"), [(1e-7, Clear), (0.2, Finding)])
def test_spinning_up_logs_its_loss_before_the_first_step(level, kind):
    run = logged(
        "spinning-up", Profile.CONTROL_PPO,
        policy__loss=level * noise(6, 3.0), policy__clip_fraction=np.full(len(ROWS), 0.1),
    )  # fmt: skip
    assert isinstance(FIRST.judge(run), kind)


def test_a_loss_that_hardly_changes_has_a_term_of_its_own():
    run = logged(
        "spinning-up", Profile.CONTROL_PPO,
        policy__loss=np.linspace(0.005, 0.003, len(ROWS)) + 2e-4 * noise(6, 0.0),
        policy__clip_fraction=np.full(len(ROWS), 0.1),
    )  # fmt: skip
    assert not isinstance(FIRST.judge(run), Finding)


def grouped(advantages, texts=None, step=1):
    count = len(advantages)
    cells = {
        "prompt": [f"question {i // 4}" for i in range(count)],
        "completion": texts
        or [f"an answer that is long enough to differ, {i}" for i in range(count)],
        "advantage": list(advantages),
    }
    run = logged("trl-grpo", Profile.GRPO, outcome__reward=noise(7))
    return replace(run, tables={"completions": Table(np.full(count, step, np.int64), cells)})


def test_advantages_of_a_group_average_to_zero():
    right = np.array([1.0, -1.0, 0.5, -0.5] * 4)
    assert isinstance(FIRST.judge(grouped(right)), Clear)
    wrong = np.repeat([1.0, -1.0, 0.5, -0.5], 4)
    assert "group ids" in FIRST.judge(grouped(wrong)).causes[0]
    assert isinstance(FIRST.judge(grouped(wrong, step=30)), Undecided)


def test_ranks_that_draw_with_one_seed_answer_in_copies():
    right = np.array([1.0, -1.0, 0.5, -0.5] * 4)
    twins = [f"an answer that is long enough to tell, {i // 2}" for i in range(16)]
    assert "seed" in FIRST.judge(grouped(right, twins)).causes[0]
    short = [text[:3] for text in twins]
    assert isinstance(FIRST.judge(grouped(right, short)), Clear)


# frozen-metric


def updated(**more):
    columns = {
        "policy__loss": noise(1, 0.1), "value__loss": noise(2), "policy__approx_kl": noise(3, 0.01),
        **more,
    }  # fmt: skip
    return made.trace(Profile.CONTROL_PPO, {"n_actions": 4, "max_grad_norm": 0.5}, **columns)


def stuck(value, since=50):
    return np.where(np.arange(len(ROWS)) < since, noise(8), value)


def test_a_number_that_repeats_to_the_last_bit_is_a_note():
    found = FROZEN.judge(updated(value__loss=stuck(0.7312345)))
    assert found.severity is Severity.NOTE
    assert (found.began, found.observed) == (51 * made.STEP, 50)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.25, np.inf])
def test_rounded_and_whole_numbers_may_repeat(value):
    assert isinstance(FROZEN.judge(updated(value__loss=stuck(value))), Clear)


def test_a_gradient_at_its_limit_is_clipped_not_frozen():
    assert isinstance(FROZEN.judge(updated(optimiser__grad_norm=stuck(0.49999997))), Clear)


def test_a_gaussian_of_fixed_width_has_one_entropy():
    fixed = np.full(len(ROWS), 4.2567543)
    run = replace(updated(exploration__entropy=fixed), settings={})
    assert isinstance(FROZEN.judge(run), Clear)


def test_a_policy_and_a_critic_that_do_not_move_are_warnings():
    still = np.full(len(ROWS), 1.2567543)
    run = updated(exploration__entropy=still, policy__approx_kl=np.zeros(len(ROWS)))
    assert FROZEN.judge(run).severity is Severity.WARNING
    run = updated(value__mean=still, value__return_mean=noise(9))
    assert FROZEN.judge(run).severity is Severity.WARNING


def test_a_policy_that_is_trained_no_more_and_one_that_has_nothing_left_to_decide():
    kl = np.where(ROWS > 50, 0.0, 0.01)
    stopped = updated(exploration__entropy=0.4 + 0.01 * noise(3), policy__approx_kl=kl)
    assert FROZEN.judge(stopped).severity is Severity.WARNING
    certain = np.where(ROWS > 50, 1e-9, 0.4) * (1 + 0.01 * noise(3))
    run = updated(exploration__entropy=certain, policy__approx_kl=kl)
    assert isinstance(FROZEN.judge(run), Clear)


def test_weights_stand_still_once_the_learning_rate_has_gone():
    rate = np.where(ROWS > 45, 0.0, 1e-3)
    run = updated(optimiser__weight_norm=stuck(35.023911), optimiser__learning_rate=rate)
    assert isinstance(FROZEN.judge(run), Clear)


def test_rows_that_repeat_as_a_whole_are_no_frozen_network():
    run = updated(value__loss=stuck(0.7312345))
    frozen = {n: replace(s, values=np.where(ROWS > 50, 0.1234567, s.values))
              for n, s in run.series.items()}  # fmt: skip
    assert isinstance(FROZEN.judge(replace(run, series=frozen)), Clear)


# impossible-value


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("policy__clip_fraction", 1.3),
        ("policy__clip_fraction", -0.1),
        ("value__explained_variance", 1.2),
        ("reward__std", -0.5),
        ("throughput__step_time", -1.5),
        ("language__truncated_share", 1.5),
        ("policy__ratio", -0.2),
    ],
)
def test_what_no_metric_can_be(metric, value):
    bad = value + 0.01 * np.abs(made.noise(len(ROWS), 1)) * np.sign(value)
    run = logged("sb3", Profile.CONTROL_PPO, **{metric: bad})
    found = IMPOSSIBLE.judge(run)
    assert isinstance(found, Finding)
    assert found.metric == metric.replace("__", "/")
    few = np.where(ROWS == 5, value, 0.1)
    assert IMPOSSIBLE.judge(logged("sb3", Profile.CONTROL_PPO, **{metric: few})).severity is (
        Severity.NOTE
    )


def test_a_clip_fraction_that_is_summed_is_a_warning_and_one_in_per_cent_a_note():
    low = logged("sb3", Profile.CONTROL_PPO, policy__clip_fraction=-np.abs(noise(1)))
    assert IMPOSSIBLE.judge(low).severity is Severity.WARNING
    high = logged("sb3", Profile.CONTROL_PPO, outcome__success_rate=np.linspace(2, 98, 100))
    found = IMPOSSIBLE.judge(high)
    assert found.severity is Severity.NOTE
    assert "per cent" in found.causes[0]


def test_one_number_over_and_over_stands_for_not_measured():
    gone = np.where(ROWS % 3 == 0, -1.0, 0.4)
    found = IMPOSSIBLE.judge(logged("sb3", Profile.CONTROL_PPO, outcome__success_rate=gone))
    assert found.severity is Severity.NOTE
    assert "not measured" in found.causes[0]


def test_a_log_of_one_s_own_names_is_a_note_at_most():
    run = logged("generic", Profile.CONTROL_PPO, policy__clip_fraction=-np.abs(noise(1)))
    assert IMPOSSIBLE.judge(run).severity is Severity.NOTE


@pytest.mark.parametrize(
    ("estimator", "value", "kind"),
    [("k3", -0.1, Finding), ("k3", -1e-8, Clear), ("k1", -0.1, Undecided), ("", -0.1, Undecided)],
)
def test_kl_is_judged_by_its_estimator(estimator, value, kind):
    values = value * np.abs(noise(1))
    run = logged("cleanrl", Profile.CONTROL_PPO, estimator=estimator, policy__approx_kl=values)
    assert isinstance(IMPOSSIBLE.judge(run), kind)


@pytest.mark.parametrize(
    ("env", "level", "severity"),
    [("CartPole-v1", 0.69, None), ("CartPole-v1", 1.4, Severity.WARNING), ("", 1.4, None)],
)
def test_entropy_is_at_most_the_uniform_policy_s(env, level, severity):
    values = level + 1e-3 * made.noise(len(ROWS), 2)
    run = logged("sb3", Profile.CONTROL_PPO, {"env_id": env}, exploration__entropy=values)
    assert getattr(IMPOSSIBLE.judge(run), "severity", None) is severity


def test_counters_in_order_clear_nothing():
    run = logged("sb3", Profile.CONTROL_PPO, progress__steps=1.0 * ROWS)
    assert isinstance(IMPOSSIBLE.judge(run), Undecided)


def test_what_is_healthy_is_possible():
    for metric in metrics.CATALOGUE:
        low, high = metric.possible.low, metric.possible.high
        for band in (metric.healthy, *metric.healthy_in.values()):
            assert low is None or band.low is None or band.low >= low, metric.name
            assert high is None or band.high is None or band.high <= high, metric.name


# not-a-number: a loss scaler that finds no scale


def test_a_scaler_that_finds_no_scale_is_a_warning_with_its_own_words():
    norms = noise(1)
    norms[80::2] = np.inf
    norms[-1] = 1.0
    found = NUMBER.judge(made.trace(optimiser__grad_norm=norms))
    assert found.severity is Severity.WARNING
    assert "loss scale" in found.summary


def test_a_scaler_that_settles_at_the_start_is_a_note():
    norms = noise(1)
    norms[:10] = np.inf
    assert NUMBER.judge(made.trace(optimiser__grad_norm=norms)).severity is Severity.NOTE


def test_a_loss_scale_that_is_halved_again_and_again():
    scale = np.full(len(ROWS), 65536.0)
    scale[85:] *= 0.5 ** np.arange(1, 16)
    run = made.trace(optimiser__loss_scale=scale, optimiser__loss=noise(2))
    assert NUMBER.judge(run).severity is Severity.WARNING
    steady = made.trace(optimiser__loss_scale=np.full(100, 65536.0), optimiser__loss=noise(2))
    assert isinstance(NUMBER.judge(steady), Clear)


@pytest.mark.parametrize(
    ("norm", "severity"), [(np.nan, Severity.ERROR), (0.5, Severity.NOTE)], ids=["nan", "finite"]
)
def test_a_critic_that_trains_on_nan_from_the_first_row(norm, severity):
    run = made.trace(
        Profile.RLHF_PPO,
        policy__loss=np.array([-0.013]),
        value__loss=np.array([np.nan]),
        optimiser__critic_grad_norm=np.array([norm]),
    )
    assert NUMBER.judge(run).severity is severity

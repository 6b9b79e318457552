"""What is said of a whole run by its outcome: floors, ceilings, and what was had and lost."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.summary import tldr
from rlvitals.diagnosis.verdict import Word
from rlvitals.metrics.metric import Bound
from rlvitals.rules import CATALOGUE
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.outcome import episode_length_jump
from rlvitals.rules.rule import Clear, Finding, Severity
from rlvitals.rules.standing import standing
from rlvitals.signals.changepoint import change_point
from rlvitals.types import Measured, Profile
from rlvitals.views import phrases


def topics(trace):
    return [sentence.topic for sentence in tldr(trace)]


def test_a_lucky_episode_above_the_floor_is_no_ceiling():
    acrobot = np.concatenate((np.full(40, -500.0), np.full(40, -499.8)))
    now = standing(made.trace(outcome__return=acrobot))
    assert now.stalls
    assert not now.improves


def test_a_bound_that_was_climbed_to_is_a_ceiling():
    cartpole = np.minimum(made.rising(100, 900), 500.0)
    assert standing(made.trace(outcome__return=cartpole)).state == "at its ceiling"


def test_a_return_that_was_had_and_lost_has_collapsed_above_its_start_too():
    up = np.linspace(30, 220, 60)
    lost = np.concatenate((up, np.linspace(220, 70, 10), np.full(30, 70.0)))
    found = diagnose(made.trace(outcome__return=lost + 2 * made.noise(100)))
    assert found.verdict.word is Word.COLLAPSED


def test_a_dip_that_ended_just_now_is_no_collapse():
    dip = made.flat(300, 90.0)
    dip[:20] = 60.0
    still = dip.copy()
    dip[265:280] = still[265:] = -50.0
    assert diagnose(made.trace(outcome__return=dip)).verdict.word is not Word.COLLAPSED
    assert diagnose(made.trace(outcome__return=still)).verdict.word is Word.COLLAPSED


def test_a_game_is_learned_far_below_what_people_reach():
    scores = np.concatenate((np.linspace(200, 800, 100), np.linspace(800, 1700, 100)))
    scores += 60 * made.noise(200)
    seaquest = {"env_id": "SeaquestNoFrameskip-v4"}  # people reach 42,055
    found = diagnose(made.trace(settings=seaquest, outcome__return=scores))
    assert found.verdict.word is Word.LEARNING


def test_the_tail_of_a_long_run_does_not_show_that_it_never_learned():
    flat = 0.85 + 0.01 * made.noise(4000)
    late = made.series(flat, 17_661_952 + 128 * np.arange(4000))
    found = diagnose(made.trace(outcome__return=late))
    assert found.verdict.word is Word.UNKNOWN
    assert "begins at step 17,661,952" in found.verdict.why
    assert standing(made.trace(outcome__return=made.series(flat))).state == "flat"


def test_a_sum_that_is_never_set_back_is_no_learning():
    total = np.cumsum(7100 + 80 * made.noise(300))
    found = diagnose(made.trace(outcome__reward=total)).verdict
    assert found.word is Word.UNKNOWN
    assert "a sum of all rows so far" in found.why


def test_the_tail_of_a_long_run_that_rises_is_learning():
    steps = 11_755_000 + 5000 * np.arange(272)
    rise = 14 + 13 * np.minimum(np.arange(272) / 150, 1) + 2 * made.noise(272)
    how = Measured("mlagents", "Environment/Cumulative Reward", "mean over the episodes")
    late = made.trace(
        outcome__return=made.series(rise, steps),
        outcome__episode_length=made.series(np.full(272, 10.0), steps),
    )
    late = replace(late, measured={"outcome/return": how})
    assert standing(late).state == "unknown"  # beside the scatter of one of 500 episodes
    assert diagnose(late).verdict.word is Word.LEARNING


def test_a_run_that_starts_almost_at_the_top_holds_it():
    top = {"env_id": "MountainCarContinuous-v0"}  # solved at 90
    run = made.trace(settings=top, outcome__return=88 + made.noise(100))
    assert standing(run).state == "holding its best"


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        (Profile.CONTROL_PPO, ["reward", "KL", "entropy", "clipping", "critic"]),
        (Profile.ON_POLICY, ["reward", "entropy", "critic"]),
        (Profile.GRPO, ["reward", "KL", "entropy", "clipping"]),
        (Profile.OFF_POLICY, ["reward", "critic"]),
        (Profile.SUPERVISED, ["reward"]),
    ],
)
def test_what_a_kind_of_training_does_not_have_is_not_missed(profile, said):
    assert topics(made.trace(profile, outcome__return=made.rising())) == said


def test_what_is_logged_is_said_of_any_kind_of_training():
    run = made.trace(
        Profile.OFF_POLICY, outcome__return=made.rising(), exploration__entropy=np.full(100, 0.5)
    )
    assert topics(run) == ["reward", "entropy", "critic"]


def test_an_entropy_that_is_a_sum_is_said_to_be_one():
    series = {"outcome__return": made.rising(), "exploration__entropy_sum": np.full(100, 460.0)}
    run = made.trace(Profile.ON_POLICY, **series)
    text = next(s.text for s in tldr(run) if s.topic == "entropy")
    assert text == "Entropy summed over a batch stays at 460 nats."
    lacking = "exploration/entropy (the mean: only its sum over a batch is logged)"
    assert lacking in phrases.coverage(diagnose(run))
    assert any(lacking in why for why in phrases.undecided_rules(diagnose(run)))
    run = made.trace(Profile.ON_POLICY, {"batch_size": 500}, **series)
    text = next(s.text for s in tldr(run) if s.topic == "entropy")
    assert text.endswith(" 460 nats, 0.92 to 0.92 a decision in batches of 500.")
    changing = np.repeat([500.0, 1000.0], 50)
    run = made.trace(Profile.ON_POLICY, progress__batch_size=changing, **series)
    assert "a decision" not in next(s.text for s in tldr(run) if s.topic == "entropy")


def test_an_entropy_that_stays_is_not_said_to_go_from_exploring_to_exploiting():
    steady = made.trace(
        outcome__return=made.rising(), exploration__entropy=np.linspace(0.69, 0.68, 100)
    )
    text = next(s.text for s in tldr(steady) if s.topic == "entropy")
    assert text.endswith("nats.")


def test_answers_that_are_all_right_leave_nothing_to_learn():
    right = np.full(100, 1.0)
    right[::17] = 0.98
    shares = made.series(right)
    run = made.trace(
        Profile.GRPO,
        outcome__reward=right - 0.01,
        reward__component__correct=shares,
        exploration__entropy=np.full(100, 0.005),
    )
    found = diagnose(run)
    assert found.verdict.word is Word.CONVERGED
    assert not [rule.name for rule, f in found.findings if f.severity > Severity.NOTE]


def test_a_part_of_the_reward_that_is_no_share_says_nothing_of_answers():
    run = made.trace(
        Profile.GRPO, outcome__reward=made.flat(), reward__component__correct=np.full(100, 2.0)
    )
    assert standing(run).stalls


def test_a_share_of_right_answers_that_cannot_be_judged_keeps_its_name():
    now = learning_trend(made.trace(Profile.GRPO, reward__component__correct=made.noise(30) % 1))
    assert "correct reward goes" in now.why


@pytest.mark.parametrize(("sign", "words"), [(1.0, "longer"), (-1.0, "shorter")])
def test_whether_longer_episodes_are_better_is_read_from_the_run(sign, words):
    low, high = np.full(60, 50.0), np.full(60, 150.0)
    length = np.concatenate((high, low) if sign > 0 else (low, high)) + 3 * made.noise(120, 3)
    returns = sign * length + 0.5 * made.noise(120, 4)
    found = episode_length_jump.RULE.judge(
        made.trace(outcome__episode_length=length, outcome__return=returns)
    )
    assert found.evidence[1].startswith(f"in this run {words} episodes earn more: correlation ")
    alone = episode_length_jump.RULE.judge(
        made.trace(outcome__episode_length=length, outcome__return=made.noise(120, 5))
    )
    assert len(alone.evidence) == 1


def test_a_jump_towards_the_better_is_what_learning_looks_like():
    length = np.concatenate((np.full(60, 50.0), np.full(60, 150.0))) + 3 * made.noise(120, 3)
    better = made.trace(outcome__episode_length=length, outcome__return=length)
    worse = made.trace(outcome__episode_length=length, outcome__return=-length)
    assert isinstance(episode_length_jump.RULE.ask(better), Clear)
    assert isinstance(episode_length_jump.RULE.ask(worse), Finding)


def test_episodes_of_any_length_on_both_sides_are_no_jump():
    dice = np.random.default_rng(3)
    share = np.where(np.arange(240) < 120, 0.7, 0.15)  # of episodes that hover to the limit
    length = np.where(dice.random(240) < share, 1000.0, 150.0) + 20 * made.noise(240, 3)
    assert change_point(length) is not None
    assert isinstance(
        episode_length_jump.RULE.ask(made.trace(outcome__episode_length=length)), Clear
    )


@pytest.mark.parametrize("rule", ["clip-fraction-high", "kl-above-target", "kl-spike"])
def test_updates_are_not_gentle_beside_a_finding_that_they_are_large(rule):
    run = made.trace(outcome__return=made.rising(), policy__clip_fraction=np.full(100, 0.18))
    found = next(r for r in CATALOGUE if r.name == rule)
    bound = Bound(0.2, "default")
    finding = Finding("too large", Severity.NOTE, "policy/clip_fraction", 0, 10, 0.4, bound)
    said = {s.topic: s for s in tldr(run)}["clipping"]
    assert said.text.endswith("updates are gentle.")
    said = {s.topic: s for s in tldr(run, [(found, finding)])}["clipping"]
    assert (said.sign, "gentle" in said.text) == ("neutral", False)


PRAISE = ("Learning works", "from exploring to exploiting", "updates are gentle")


def praised_run():
    return made.trace(
        outcome__return=made.rising(), policy__clip_fraction=np.full(100, 0.18),
        exploration__entropy=np.linspace(0.69, 0.4, 100),
        value__explained_variance=np.full(100, 0.9),
    )  # fmt: skip


def test_a_run_that_learns_without_a_warning_is_praised():
    said = " ".join(sentence.text for sentence in tldr(praised_run()))
    assert all(words in said for words in PRAISE)


@pytest.mark.parametrize(
    ("first", "last", "sign"), [(0.49, 1e-23, "neutral"), (0.49, 0.02, "good"), (1.4, -3.0, "good")]
)
def test_a_policy_that_tries_nothing_is_not_praised_for_its_entropy(first, last, sign):
    """The entropy of a normal distribution passes zero on its way: that is no certainty."""
    entropy = np.linspace(first, last, 100)
    entropy[80:] = last
    run = made.trace(outcome__return=made.rising(), exploration__entropy=entropy)
    (said,) = [s for s in tldr(run) if s.topic == "entropy"]
    assert (said.sign, "exploring to exploiting" in said.text) == (sign, sign == "good")
    flat = made.trace(outcome__return=made.flat(), exploration__entropy=entropy)
    (said,) = [s for s in tldr(flat) if s.topic == "entropy"]
    assert said.sign == "bad"


@pytest.mark.parametrize("severity", [Severity.WARNING, Severity.ERROR])
@pytest.mark.parametrize("rule", CATALOGUE, ids=lambda rule: rule.name)
def test_nothing_is_praised_beside_a_finding_that_asks_for_action(rule, severity):
    bound = Bound(0.2, "default")
    finding = Finding("it is so", severity, "policy/clip_fraction", 0, 10, 0.4, bound)
    said = tldr(praised_run(), [(rule, finding)])
    assert "good" not in [sentence.sign for sentence in said]
    assert not any(words in sentence.text for sentence in said for words in PRAISE)
    note = Finding("it is so", Severity.NOTE, "policy/clip_fraction", 0, 10, 0.4, bound)
    if rule.name not in ("return-collapse", "return-up-success-flat", "plateau"):
        (reward,) = [s for s in tldr(praised_run(), [(rule, note)]) if s.topic == "reward"]
        assert reward.sign == "good"


def test_a_reward_that_has_levelled_off_is_not_called_rising():
    """What rose and then stayed at one level for most of the run does not rise now."""
    rises_then_stays = np.concatenate([np.linspace(-20, -9, 10), -9 + made.noise(90) / 50])
    diagnosis = diagnose(made.trace(outcome__return=rises_then_stays))
    assert diagnosis.verdict.word is Word.PLATEAU
    (reward,) = [s for s in diagnosis.tldr if s.topic == "reward"]
    assert reward.sign == "neutral"
    assert "has not changed" in reward.text
    assert "rising" not in reward.text
    assert "Learning works" not in reward.text


def test_a_cleanrl_run_without_returns_says_why():
    run = made.trace(policy__loss=made.noise(30))
    assert standing(run).why == "no outcome is logged (return, reward, score, success)"
    measured = {"policy/loss": Measured("cleanrl", "losses/policy_loss", "")}
    assert "final_info" in standing(replace(run, measured=measured)).why


def test_a_level_of_zero_that_does_not_change_is_flat_and_does_not_fall():
    rewards = np.zeros(60)
    rewards[0] = 0.008  # a tenth of a first level of 0 is 0
    now = standing(made.trace(Profile.GRPO, outcome__reward=rewards))
    assert (now.state, now.first, now.last) == ("flat", 0.0, 0.0)


@pytest.mark.parametrize(("exceptions", "ending"), [((), "in a row"), ((14, 60, 200), "alike")])
def test_the_limit_of_a_constant_reward_counts_what_it_says(exceptions, ending):
    values = np.zeros(600)
    values[list(exceptions)] = 1.0
    found = diagnose(made.trace(outcome__reward=values)).findings
    (constant,) = [f for rule, f in found if rule.name == "constant-reward"]
    assert constant.observed == 600 - len(exceptions)
    assert constant.bound.origin.endswith(ending)


def test_a_plateau_is_observed_in_the_unit_of_its_limit():
    rises_then_stays = np.concatenate([np.linspace(-20, -9, 10), -9 + made.noise(90) / 50])
    found = diagnose(made.trace(outcome__return=rises_then_stays)).findings
    (plateau,) = [f for rule, f in found if rule.name == "plateau"]
    assert 0 <= plateau.observed < plateau.bound.value


def test_a_fall_that_came_before_certainty_is_the_headline():
    entropy = np.linspace(0.69, 0.1, 150)
    falls = 200 - 1.2 * np.arange(150) + 8 * made.noise(150)
    run = made.trace(outcome__return=falls, exploration__entropy=entropy)
    diagnosis = diagnose(run)
    assert "entropy-collapse" in {rule.name for rule, _ in diagnosis.findings}
    assert diagnosis.verdict.word is Word.STALLED
    assert "it falls" in diagnosis.verdict.why

"""Gates: the grammar, what holds and what breaks, and returns that are negative or near zero."""

import pytest
from seeded import recorded, runs

from rlvitals.comparison import assertions
from rlvitals.errors import UsageError

RANGE = "return no worse than 5 % of the random-to-baseline range"


def ask(text, baseline, candidate, **more):
    made = (runs(name, *levels, **more) for name, levels in (("a", baseline), ("b", candidate)))
    return assertions.check(assertions.parse(text), *made)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (RANGE, ("return", "no worse than", 5.0, "range", "mean of last 10 %")),
        ("return no worse than 5% of baseline", ("return", "no worse than", 5.0, "baseline", None)),
        ("outcome/return better than .5", ("outcome/return", "better than", 0.5, "absolute", None)),
        ("return better than baseline at best", ("return", "better than", 0.0, "absolute", "best")),
        ("a no worse than 1e-3 absolute at last", ("a", "no worse than", 1e-3, "absolute", "last")),
        (
            "a no worse than 2 at mean of last 25 %",
            ("a", "no worse than", 2.0, "absolute", "mean of last 25 %"),
        ),
    ],
)  # fmt: skip
def test_the_grammar(text, wanted):
    gate = assertions.parse(text)
    metric, relation, number, unit, at = wanted
    assert (gate.metric, gate.relation, gate.number, gate.unit) == (metric, relation, number, unit)
    assert str(gate.at) == (at or "mean of last 10 %")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("return no worse then 5 % of baseline", "than"),
        ("return no worse than 5 % of the basline", "baseline"),
        ("return no worse than five", "'return no worse than 5 %"),
        ("return >= -5%", "'return no worse than 5 %"),
        ("return no worse than -5 % of baseline", "'return no worse than 5 %"),
        ("return no worse than 5 at the end", "mean of last 10 %"),
    ],
)
def test_what_is_not_understood_is_named_with_an_example(text, hint):
    with pytest.raises(UsageError) as error:
        assertions.parse(text)
    assert hint in error.value.hint


NARROW = (100.0, 100.5, 99.5, 100.2, 99.8)


@pytest.mark.parametrize(
    ("text", "shift", "holds"),
    [
        (RANGE, 0, True),
        (RANGE, -4, True),
        (RANGE, -8, False),
        ("return no worse than 5 % of baseline", -4, True),
        ("return no worse than 5 % of baseline", -8, False),
        ("return no worse than 5", -4, True),
        ("return no worse than 5", -8, False),
        ("return no worse than baseline", 2, True),
        ("return no worse than baseline", -2, False),
        ("return better than 5 % of baseline", 8, True),
        ("return better than 5 % of baseline", 2, False),
        ("return better than baseline", 0, None),
        (RANGE, -5, None),
    ],
)
def test_what_holds_and_what_breaks(text, shift, holds):
    found = ask(text, NARROW, [level + shift for level in NARROW])
    assert found.holds is holds
    assert found.comparison.groups[0].label == "baseline"


def test_a_negative_return_may_be_worse_by_a_share_of_its_size():
    """5 % of a baseline of -200 is 10 downwards: -205 holds, -215 does not."""
    low = [-level * 2 for level in NARROW]
    for text in ("return no worse than 5 % of baseline", "return no worse than 10"):
        assert ask(text, low, [level - 5 for level in low]).holds is True
        assert ask(text, low, [level - 15 for level in low]).holds is False


def test_a_share_of_a_return_near_zero_is_no_number():
    near = (-1.0, 1.0, 0.5, -0.5, 0.1)
    found = ask("return no worse than 5 % of baseline", near, near)
    assert found.holds is None
    assert "may be 0" in found.sentence
    assert "random-to-baseline range" in found.sentence


def test_the_range_of_a_known_task_begins_at_random_actions():
    """Acrobot's random return is -497: from there to -90 it is 407, of which 5 % are 20."""
    good = (-90.0, -91.0, -89.0, -90.5, -89.5)
    more = {"env_id": "Acrobot-v1"}
    assert ask(RANGE, good, [level - 15 for level in good], **more).holds is True
    assert ask(RANGE, good, [level - 25 for level in good], **more).holds is False


def test_a_baseline_that_learned_nothing_has_no_range():
    chance = (22.0, 25.0, 18.0)
    found = ask(RANGE, chance, chance, env_id="CartPole-v1")
    assert found.holds is None
    assert "not shown to be above what random actions earn" in found.sentence


def test_one_seed_each_tells_nothing_and_says_so():
    found = ask(RANGE, [100.0], [90.0])
    assert found.holds is None
    assert "from 1 seed no spread is known" in found.sentence


def test_wide_groups_are_told_how_many_more_seeds_could():
    wide = (80.0, 100.0, 120.0)
    found = ask(RANGE, wide, wide)
    assert found.holds is None
    assert found.more_seeds > 0
    assert f"{found.more_seeds} more seeds a group would tell it to ±5 %" in found.sentence


def test_recorded_runs_a_frozen_policy_breaks_the_gate():
    healthy = recorded("ppo-CartPole-v1", "healthy", "a")
    frozen = recorded("ppo-CartPole-v1", "policy-frozen", "b")
    assert assertions.check(assertions.parse(RANGE), healthy[:5], frozen).holds is False
    assert assertions.check(assertions.parse(RANGE), healthy[:5], healthy[:5]).holds is not False


def test_several_tasks_are_asked_in_shares_and_every_one_must_be_there():
    two = [m for env in ("CartPole-v1", "Acrobot-v1") for m in runs(env, 200, 201, 199, env_id=env)]
    kept = assertions.check(assertions.parse(RANGE), two, two)
    assert kept.holds is True
    lacking = assertions.check(assertions.parse(RANGE), two, two[:3])
    assert lacking.holds is None
    assert "no run of Acrobot-v1" in lacking.sentence
    with pytest.raises(UsageError, match="2 tasks have no common unit"):
        assertions.check(assertions.parse("return no worse than 5"), two, two)

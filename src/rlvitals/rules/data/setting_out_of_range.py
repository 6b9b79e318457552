"""A setting that no tuned run uses, in a run that does not learn.

## What it sees
A setting in the log that lies outside what tuned runs use, by ten times or so that it takes away
what the algorithm is made of: a discount below one half, a learning rate above 0.04 or below 2e-6,
a critic without weight in the loss, an entropy bonus below -0.05 or above one half (1 for SAC),
a clip range below 0.01 or above 0.8, a KL target below 1e-4, PPO rollouts of fewer than four
steps, target networks that never follow or follow at once, a replay buffer of fewer than 1,000
steps, GRPO groups of one. For language models: a learning rate above 0.01 or below 1e-8, a
sampling temperature above 10 or below 0.05, a limit of the mean ratio below 1. A warning where the
outcome is proven not to improve, where the run is over and ended less than 90 % of the way from a
random to a solved policy (and "solved" is not what people reach), where it broke off, and where
hardly one of its updates has a gradient or is applied; else a note.

## Why it matters
Everything else that is wrong with such a run follows from it, and is mended by it. The commonest
way to such a value is a typing error, a unit, or a default that a configuration file overrides.

## What to do
Put it back to the library's default; if it was meant, compare with one run of the default.

## When it is wrong
Contextual bandits want a discount of 0; some reward scales want an entropy coefficient of many
times the usual. The rule speaks up only where the run does not learn, and other findings stand
beside it as alternatives. A setting that a schedule changes later is judged by its first value.

## References
- Raffin, "RL Baselines3 Zoo" and rl-trained-agents: the settings of its tuned runs.
- Andrychowicz et al. 2021, "What Matters for On-Policy Deep Actor-Critic Methods?".
- Henderson et al. 2018, "Deep Reinforcement Learning that Matters".
"""

from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds, weigh
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.going_on import goes_on
from rlvitals.rules.known_task import environment
from rlvitals.rules.practice import Odd, common_settings, has_known_setting, odd
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Undecided, persistence
from rlvitals.rules.standing import OUTCOME_METRICS, Standing, way_share
from rlvitals.rules.untaught import untaught
from rlvitals.types import Trace

SETTING_PERSISTENCE = persistence("setting-out-of-range")


def check(trace: Trace) -> Answer:
    """Compare the settings with practice, then ask whether the run learns with them."""
    odd_settings = odd(trace)
    if not odd_settings:
        if has_known_setting(trace):
            return Clear()
        return Undecided("the log states no settings", common_settings(trace))
    first, *other_settings = odd_settings
    trend = verdict_trend(trace)
    evidence, counter = weigh.sides(trend)
    return Finding(
        _sentence(first),
        severity=_severity(trace, trend),
        metric=trend.metric or next(m.name for m in OUTCOME_METRICS if m.name in trace),
        began=trace.first_number,
        ended=trace.last_step,
        observed=first.value,
        bound=Bound(first.limit, f"tuned runs use {first.usual}"),
        evidence=(*(_sentence(setting) for setting in other_settings), *evidence),
        counter=counter,
    )


def _severity(trace: Trace, trend: Standing) -> Severity:
    """Weigh by the outcome; a run that broke off, or is over and short of its task, fell short."""
    env, share = environment(trace), way_share(trace, trend)
    reachable = env is not None and not env.by_people  # what people reach, agents may never
    idle = untaught(trace) and not weigh.content(trend)
    # 90 % of the way from a random to a solved policy.
    short = reachable and share is not None and share < 0.9 and trend.state != "at its ceiling"
    ended_short = short and not goes_on(trace)
    min_severity = (
        Severity.WARNING if ended_short or idle or trace.lifecycle.failed else Severity.NOTE
    )
    return max(weigh.severity(trend), min_severity)


def _sentence(setting: Odd) -> str:
    return f"{setting.setting} is {setting.value:g}, tuned runs use {setting.usual}: {setting.does}"


RULE = Rule(
    name="setting-out-of-range",
    needs=(),
    needs_any=OUTCOME_METRICS,
    at_least=1,  # a run that breaks off at once has no more
    check=check,
    doc=__doc__,
    causes=("a typing error or a wrong unit in the configuration", "an override that was left in"),
    remedies=("put it back to the library's default and run again",),
    profiles=kinds.WITH_REWARD,
    thresholds=(SETTING_PERSISTENCE,),
    persists=SETTING_PERSISTENCE,
    verdict="stalled",
)

"""Reward per step, implied by return and length, for environments that pay every step the same.

CartPole pays 1 for each step, Acrobot and MountainCar -1: the return is known from the length. An
identity has no threshold that a healthy run could pass. Rewards shaped or scaled on purpose keep
another relation than the environment's, from the start and to one side of it: they are not judged.
"""

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.exploration import ENTROPY
from rlvitals.metrics.catalogue.outcome import EPISODE_LENGTH, RETURN
from rlvitals.metrics.environments import Environment
from rlvitals.rules import kinds
from rlvitals.rules.known_task import environment
from rlvitals.rules.remembered import cache_by_trace
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Series, Trace

PAY_TOLERANCE, MIN_PAY_DEVIATION = 0.01, 0.1  # of the expected pay: below and above rounding
EXACT_PAY_TOLERANCE = 1e-3  # of the expected pay, where one number scales all rewards
MIN_MATCHED_POINTS = 5  # before a point that does not match is a change
MIN_UNMATCHED_POINTS = 3
MIN_PAY_SHARE = 0.005  # of the expected pay: with less, no reward arrives (constant-reward)
MIN_POINT_SHARE = 0.9  # of the points


def pays_in_full(trace: Trace, values: NDArray[np.float64]) -> bool:
    """Return True if returns `values` [n] are all along what every step of an episode can pay.

    Episodes are of one length, the best return is a whole number for each of their steps, and
    hardly any return lies below it: the untrained policy had nothing left to gain. Returns that
    never vary are no evidence, as a reward of 1 whatever the policy does looks the same.
    """
    lengths = trace.numbers(EPISODE_LENGTH.name, MIN_MATCHED_POINTS)
    if lengths is None or len(values) < MIN_MATCHED_POINTS or np.ptp(lengths.values) > 0:
        return False
    length, best = float(lengths.values[0]), float(values.max())
    if length < 5 or best <= 0 or values.min() == best:  # fewer pay a whole number each by chance
        return False
    whole_number = abs(
        best / length - round(best / length)
    ) <= EXACT_PAY_TOLERANCE and best >= length * (1 - EXACT_PAY_TOLERANCE)
    return (
        whole_number
        and float(np.quantile(values, 1 - MIN_POINT_SHARE)) >= (1 - PAY_TOLERANCE) * best
    )


@cache_by_trace
def longer_way(trace: Trace, name: str) -> str:
    """Say that the return fell only because episodes became longer; empty if it did not.

    The mean return is positive and, since its best, a falling line in the mean length: what the
    end pays is more than all steps cost, and a failure leaves that line. The policy has become
    certain: it does what it did before, and the way to the goal is longer, as in a curriculum.
    Empty for another outcome.
    """
    min_rows = 20  # with a return and a length, since the best return
    returns, lengths = (trace.numbers(m.name, min_rows) for m in (RETURN, EPISODE_LENGTH))
    entropy = trace.numbers(ENTROPY.name, min_rows)
    if name != RETURN.name or trace.profile not in kinds.CONTROL:
        return ""
    if returns is None or lengths is None or entropy is None or entropy.values.min() < 0:
        return ""
    since_best = returns.since(int(returns.steps[returns.values.argmax()]))
    _, return_rows, length_rows = np.intersect1d(
        since_best.steps, lengths.steps, return_indices=True
    )
    returns_then, steps = since_best.values[return_rows], lengths.values[length_rows]
    if len(returns_then) < min_rows or not np.ptp(steps) or not np.ptp(returns_then):
        return ""
    slope, end_pay = np.polyfit(steps, returns_then, 1)
    residual = float(np.abs(returns_then - end_pay - slope * steps).max())
    last = float(np.median(entropy.tail(5).values))
    is_certain = last <= 0.05 * float(entropy.values[0])
    on_line = residual <= 0.05 * float(np.ptp(returns_then))
    is_longer = is_certain and on_line and slope < 0 < returns_then[-1]
    return "falls as episodes get longer, and each still earns its end" if is_longer else ""


@dataclass(frozen=True, slots=True)
class Paid:
    """Returns over what their steps should have paid: 1 where all is well."""

    env: Environment
    share: Series
    lengths: NDArray[np.float64]  # of the same points

    @property
    def broke(self) -> int | None:
        """The point at which what had held no longer does; None where it holds or never did."""
        matches = np.abs(self.share.values - 1.0) <= PAY_TOLERANCE + 1.0 / self.lengths
        first = len(matches) if matches.all() else int(np.argmin(matches))
        if (
            first < MIN_MATCHED_POINTS
            or first == len(matches)
            or not _is_frequent(np.abs(self.share.values - 1.0) > MIN_PAY_DEVIATION)
        ):
            return None
        return first

    @property
    def scatters(self) -> int | None:
        """The first point that is off, where returns lie to both sides of what was due."""
        high = self.share.values > 1.0 + MIN_PAY_DEVIATION
        low = self.share.values < 1.0 - MIN_PAY_DEVIATION
        return int(np.argmax(high | low)) if _is_frequent(high) and _is_frequent(low) else None

    @property
    def underpays(self) -> bool:
        """Tell whether returns are only ever less than what was due, and more than none of it."""
        values = self.share.values
        return _is_frequent(values < 1.0 - MIN_PAY_DEVIATION) and bool(
            (values < 1.0 + MIN_PAY_DEVIATION).all() and values.min() >= 0
        )

    @property
    def endless(self) -> bool:
        """Tell whether episodes went on after their end: they took more steps than they paid for.

        All of them, to the time limit; or since a step from which they last longer as well.
        """
        break_index, limit = self.broke, self.env.horizon
        if not self.underpays or len(self.points_without_reward) or limit is None:
            return False
        stays = bool((self.lengths >= 0.99 * limit).mean() >= MIN_POINT_SHARE)
        longer = (
            break_index is not None
            # Episodes that are 30 % longer go on after their end.
            and self.lengths[break_index:].max() >= 1.3 * self.lengths[break_index - 1]
        )
        return bool(longer) or (stays and (self.env.fails_early or break_index is not None))

    @property
    def points_without_reward(self) -> Series:
        """The points up to the last one at which no reward arrives any more."""
        paying = np.flatnonzero(np.abs(self.share.values) > MIN_PAY_SHARE)
        return self.share.where(slice(int(paying[-1]) + 1 if len(paying) else 0, None))


def _is_frequent(mask: NDArray[np.bool_]) -> bool:
    return int(np.count_nonzero(mask)) >= max(MIN_UNMATCHED_POINTS, 0.1 * len(mask))  # of the log


@cache_by_trace
def negated_returns(trace: Trace) -> Series | None:
    """Return a run's returns where its known environment gives them with the other sign.

    All are minus what their steps should have paid. Or nine in ten are impossible, none of their
    negatives is, and the first are what random actions earn with the other sign, within a half.
    None for all other runs.
    """
    env, returns = environment(trace), trace.numbers(RETURN.name, MIN_UNMATCHED_POINTS)
    lengths = trace.numbers(EPISODE_LENGTH.name, MIN_UNMATCHED_POINTS)
    if env is None or returns is None or trace.profile not in (*kinds.CONTROL, Profile.UNKNOWN):
        return None
    if env.pays is not None and lengths is not None:
        _, return_rows, length_rows = np.intersect1d(
            returns.steps, lengths.steps, return_indices=True
        )
        negated = -env.pays * lengths.values[length_rows]
        off = np.abs(returns.values[return_rows] - negated) > PAY_TOLERANCE * np.abs(negated)
        if len(return_rows) >= MIN_UNMATCHED_POINTS and not off.any():
            return returns
    impossible = env.beyond(returns.values).mean() >= MIN_POINT_SHARE
    if not env.random_return or not impossible or env.beyond(-returns.values).any():
        return None
    first = float(np.median(returns.values[:MIN_UNMATCHED_POINTS]))
    return returns if abs(first / env.random_return + 1.0) <= 0.5 else None


@cache_by_trace
def step_reward(trace: Trace) -> Paid | None:
    """Compare returns with lengths; None where the environment's reward is not that simple."""
    env = environment(trace)
    returns, lengths = trace.numbers(RETURN.name), trace.numbers(EPISODE_LENGTH.name)
    plays = trace.profile in (*kinds.CONTROL, Profile.UNKNOWN)
    if env is None or env.pays is None or returns is None or lengths is None or not plays:
        return None
    steps, return_rows, length_rows = np.intersect1d(
        returns.steps, lengths.steps, return_indices=True
    )
    episode_steps = lengths.values[length_rows]
    if not len(steps) or episode_steps.min() <= 0:
        return None
    share = returns.values[return_rows] / (env.pays * episode_steps)
    first, usual = slice(MIN_MATCHED_POINTS), float(np.median(share[:MIN_MATCHED_POINTS]))
    varied = np.ptp(episode_steps[first]) > MIN_PAY_DEVIATION * episode_steps[first].mean()
    if (
        varied
        and abs(usual) > MIN_PAY_SHARE
        and (np.abs(share[first] / usual - 1.0) <= EXACT_PAY_TOLERANCE).all()
    ):
        share = share / usual  # every reward is multiplied by one number
    return Paid(env, Series(steps, returns.times[return_rows], share), episode_steps)

"""Checks of the first update of any policy-gradient method. Pure: values in, checks out."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from rlvitals.sanity_checks.check import Check, CouldNotCheck, Failed, Outcome, Passed, run_check
from rlvitals.sanity_checks.numbers import first_index, machine_epsilon, rounding_error, to_floats


def check_ratio(ratio: ArrayLike, *, variable: str = "ratio", note: str = "") -> Check:
    """Check that before the first gradient step both policies of the ratio are equal.

    `ratio`: pi_new(a|s) / pi_old(a|s) of the first minibatch, any shape, not clipped. `note` is
    appended to the message of a failure: a known cause.
    """

    def outcome() -> Outcome:
        values = to_floats(ratio)
        if not values.size:
            return CouldNotCheck(f"{variable} is empty")
        error = np.abs(values - 1)
        wrong = ~(error <= rounding_error(ratio))  # NaN is wrong too
        if not wrong.any():
            return Passed()
        worst = np.unravel_index(np.argmax(np.where(np.isnan(error), np.inf, error)), values.shape)
        index = f"[{', '.join(str(i) for i in worst)}]" if worst else ""
        reason = "the log-probabilities of the rollout and of the update are not of one policy"
        share = f"{np.mean(wrong):.0%} of {values.size} are off 1"
        return Failed(f"{variable}{index}", f"{values[worst]:.6g}", f"{reason} ({share}){note}")

    says = "the probability ratio is 1 before the first gradient step"
    return run_check("ratio-is-one", says, outcome)


def check_normalised_advantages(advantages: ArrayLike, *, variable: str = "advantages") -> Check:
    """Check that normalised advantages have mean 0."""

    def outcome() -> Outcome:
        values = to_floats(advantages).ravel()
        if len(values) < 2:  # one value alone has no mean to take away
            return CouldNotCheck(f"{variable} holds {len(values)} value(s)")
        if not np.isfinite(values).all():
            index = first_index(~np.isfinite(values))
            return Failed(
                f"{variable}{index}", f"{values[~np.isfinite(values)][0]}", "not a number"
            )
        mean, scale = float(values.mean()), float(np.abs(values).max())
        # A sum of n rounded numbers is off by eps of the largest, however they are added.
        if abs(mean) <= rounding_error(advantages) * max(scale, machine_epsilon(advantages)):
            return Passed()
        return Failed(f"mean of {variable}", f"{mean:.6g}", "normalised advantages have mean 0")

    return run_check("advantages-centred", "normalised advantages have mean 0", outcome)


def check_advantages(advantages: ArrayLike, *, variable: str = "advantages") -> Check:
    """Check that advantages are finite and not all equal: else nothing can be learned."""

    def outcome() -> Outcome:
        values = to_floats(advantages).ravel()
        wrong = ~np.isfinite(values)
        if wrong.any():
            return Failed(f"{variable}{first_index(wrong)}", f"{values[wrong][0]}", "not a number")
        if len(values) < 2:  # one value alone cannot vary
            return CouldNotCheck(f"{variable} holds {len(values)} value(s)")
        if np.ptp(values) == 0:
            reason = "all the same: no action is preferred to another"
            return Failed(variable, f"{values[0]:.6g}", reason)
        return Passed()

    return run_check("advantages-vary", "advantages are finite and not all the same", outcome)


def check_weights(
    before: Mapping[str, ArrayLike], after: Mapping[str, ArrayLike], *, what: str = "the policy"
) -> Check:
    """Check that the first update changed the trained weights, and left them finite.

    `before` and `after` are tensors by name, without frozen layers.
    """

    def outcome() -> Outcome:
        if not before:
            return CouldNotCheck(f"{what} has no trained weights")
        unmoved = []
        for name, old in before.items():
            new = to_floats(after[name])
            if not np.isfinite(new).all():
                wrong = ~np.isfinite(new)
                return Failed(f"{name}{first_index(wrong)}", f"{new[wrong][0]}", "not a number")
            if np.array_equal(to_floats(old), new):
                unmoved.append(name)
        if len(unmoved) == len(before):
            reason = f"none of the {len(before)} tensors of {what} changed"
            return Failed("change of the weights", "0", reason)
        if unmoved:
            reason = "the same tensor before and after: no gradient reaches it, or none trains it"
            return Failed(f"change of {', '.join(unmoved)}", "0", reason)
        return Passed()

    return run_check("weights-moved", "the first update moved every trained weight", outcome)

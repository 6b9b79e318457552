"""Claims of the sentences on wiring bugs."""

import numpy as np
from column_values import at_end, at_start, equal_in_a_row, logged, tail_of_zeros
from derivations import claim
from rule_values import LOSS, RETURN, last_third

from rlvitals.rules.episode_window import episodes_per_point
from rlvitals.rules.known_task import environment

EPSILON = "exploration/epsilon"


def _twentieths(case):
    """Return the means of twenty parts of the metric, or its values where there are fewer."""
    values = case.metric.values
    return [float(part.mean()) for part in np.array_split(values, min(len(values), 20))]


FROZEN = [
    claim("KL per update is exactly 0 in all <row> rows, while entropy goes <early> to <late> "
          "nats: the ratio of new to old probabilities is 1 at every step", row=tail_of_zeros,
          early=at_start("exploration/entropy"), late=at_end("exploration/entropy")),
    claim("return is <value> in all <row> rows, each a mean over about <count> episodes, while "
          "the loss moves one way in <share> of updates", value=logged(RETURN),
          row=equal_in_a_row,
          count=lambda c: [episodes_per_point(c.trace, RETURN, c[RETURN])],
          share=lambda c: [float((np.sign(np.diff(c[LOSS].values)) == s).mean())
                           for s in (-1, 1)]),
]  # fmt: skip
CRITIC = [
    claim("the critic has learned nothing: its loss is <late> in the last third of the updates "
          "and was <head> at first, an error of <error> beside a mean value of <predicted>",
          late=lambda c: [last_third(c.metric)],
          head=lambda c: [float(np.median(c.metric.values[:5]))],
          error=lambda c: [float(np.sqrt(last_third(c.metric)))],
          predicted=lambda c: [float(np.median(np.abs(
              c["value/q_mean"].values[-(len(c["value/q_mean"]) // 3) :])))]),
]  # fmt: skip
UPDATES = [
    claim("updates do not move the policy: the gradient norm is exactly 0 in all <row> rows",
          row=tail_of_zeros),
]  # fmt: skip
SIGN_REVERSED = [
    claim("the policy gets surer of what pays less: <label> falls from <first> to <last>, "
          "entropy from <early> to <late> nats",
          first=lambda c: [float(np.median(c.metric.values[: max(
              min(len(c.metric.until(int(c["exploration/entropy"].finite().steps[0]))),
                  round(len(c.metric) / 20)), 3)]))],
          last=lambda c: [float(c.metric.values[-(len(c.metric) // 3) :].mean())],
          early=at_start("exploration/entropy"), late=at_end("exploration/entropy")),
    claim("at step <step>, with most of the fall behind it, entropy was still <then> nats",
          step=lambda c: c.metric.steps, then=logged("exploration/entropy")),
    claim("what is learned earns less than random actions: <label> falls from <first> to <last> "
          "while epsilon falls from <begins> to <ends>",
          first=lambda c: [_twentieths(c)[0]],
          last=lambda c: [float(np.mean(_twentieths(c)[-len(_twentieths(c)) // 3 :]))],
          begins=lambda c: [float(c[EPSILON].values[0])],
          ends=lambda c: [float(c[EPSILON].values[-1])]),
    claim("the reward has the wrong sign: returns of <word> are <min M> to <max M>"),
    claim("the reward has the wrong sign: returns of <word> are <min M> to <max M>, random actions "
          "earn <random>", random=lambda c: [environment(c.trace).random_return]),
]  # fmt: skip

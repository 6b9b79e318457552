"""Claims of the summary, and of rules on rewards, language, exploration and schedulers."""

from itertools import chain

import numpy as np
from column_values import (
    OUTCOME_LOST,
    at_end,
    at_start,
    count,
    entropy_share,
    equal_in_a_row,
    equal_last_rows,
    lengths,
    logged,
    most_entropy,
    near,
    points,
    times,
    zeros,
)
from common_sentences import (
    SHAPE,
    bests,
    interval,
    later,
    level_of,
    single_value_change,
    sixths,
    way,
)
from derivations import claim, windows
from rule_values import (
    RETURN,
    coefs,
    cut_and_right,
    fifths,
    gained,
    gone,
    held,
    held_images,
    level,
    pairs,
    per_token,
    reward_gains,
    right,
    steps_sd,
    swept,
    uniform_groups,
)

from rlvitals.diagnosis.summary import ENTROPY_UNITS
from rlvitals.rules.episode_window import episodes_per_point
from rlvitals.rules.paid import step_reward
from rlvitals.rules.standing import environment

INTERVALS = [
    claim("<level> % interval of <any words>: <low> to <high>", level=lambda _: [95, 99, 99.7],
          low=lambda c: chain(interval("low")(c), held("low")(c)),
          high=lambda c: chain(interval("high")(c), held("high")(c))),
]  # fmt: skip

NO_LEARNING = [
    *INTERVALS,
    *(claim(f"<label> {state}: <first> to <last>, best <best>", first=level_of("first"),
            last=level_of("last"), best=bests)
      for state in ("does not improve", "does not improve, it is flat", "hardly improves",
                    "does not improve, it falls", "does not improve, it rises")),
    *(claim(f"<label> probably {what}: <first> to <last>, best <best>",
            first=sixths("first"), last=sixths("last"), best=sixths("best"))
      for what in ("does not improve", "did not keep what it gained")),
    SHAPE,
    claim("from its first level to its last it changes by <size> sd of a single value",
          size=single_value_change),
    claim("<share> of the batches earn the least of all: they have no contrast",
          share=lambda c: [float(np.mean(v == v.min()))
                           for v in [c["outcome/reward"].finite().values] if len(v)]),
]  # fmt: skip

REWARD_RULES = {
    "KL": [
        claim("KL per update is <median policy/approx_kl> in the median and <max policy/approx_kl> "
              "at most, target <setting target_kl>: updates are <any words>"),
    ],
    "entropy": [
        *(claim(f"entropy{of} stays at <late {name}> {unit}")
          for name, (of, unit) in ENTROPY_UNITS.items()),
        claim("entropy goes <early exploration/entropy> to <late exploration/entropy> nats: "
              "<lost> of it is gone with no gain to show",
              lost=lambda c: [1 - b / a for a in at_start("exploration/entropy")(c) if a
                              for b in at_end("exploration/entropy")(c)]),
    ],
    "reward": OUTCOME_LOST,
    "chosen-likelihood-falls": [
        claim("held-out chosen responses become less likely, <last> to <last> nats, while the "
              "margin rises from <margin> to <margin>", last=fifths,
              margin=lambda c: fifths(c, "preference/margin")),
        claim("held-out loss gets worse: <loss> to <loss>",
              loss=lambda c: fifths(c, "optimiser/eval_loss")),
    ],
    "component-dominates": [
        claim("<label> makes <share> of what the reward gained, <early> to <late>, and <label> "
              "gets nothing", share=reward_gains(lambda part, whole: part / whole)),
        claim("reward/component has <points> numbers of the <needed> needed", points=lambda c: [
            float(len(c[n])) for n in c.trace.series if n.startswith("reward/component/")],
            needed=lambda _: [40]),
    ],
    "eos-missing": [
        claim("KL to the reference is <kl> nats per token meanwhile", kl=per_token),
    ],
    "constant-reward": [
        claim("rewards of a batch do not differ at all in <hits> of <points> successive updates",
              hits=count(lambda v, _: v == 0), points=points),
        claim("rewards of a batch do not differ at all in <row> successive updates",
              row=equal_in_a_row),
        claim("<label> is <value> in <row> values in a row", value=logged(*(
            "outcome/score", RETURN, "outcome/reward")), row=equal_in_a_row),
        *(claim(f"<label> is <value> in <hits> of <points> {end}", value=logged(*(
            "outcome/score", RETURN, "outcome/reward")), points=points,
            hits=lambda c: [
                float((w.values == v).sum()) for w in windows(c, c.metric)
                for v in np.unique(w.values)])
          for end in ("successive values", "values")),
        claim("<word> pays <pays> a step", pays=lambda c: [step_reward(c.trace).env.pays]),
        claim("<label> is <value> in the last <rows> rows, <episodes> episodes, although <share> "
              "of the actions are random: no episode ends otherwise",
              value=lambda c: c.metric.values[-1:], rows=equal_last_rows,
              episodes=lambda c: [
                  rows * episodes_per_point(c.trace, c.finding.metric, c.metric)
                  for rows in equal_last_rows(c)],
              share=lambda c: c["exploration/epsilon"].values[-1:]),
    ],
    "entropy-collapse": [
        claim("with entropy below <limit> nats the outcome stood at its best",
              limit=lambda c: [2 * float(c["exploration/entropy"].values[-5:].mean())]),
        claim("half of it was gone at step <step>, <share> into the run",
              step=lambda c: c.metric.steps, share=gone),
    ],
    "exploration-cut-under-load": [
        claim("its changes follow those of <word> at the same decision: correlation <r>, by chance "
              "within <chance> (<n> independent pairs)", r=lambda c: pairs(c, "correlation"),
              chance=lambda c: pairs(c, "limit"), n=lambda c: pairs(c, "effective")),
        claim("the sampling temperature is cut to <late> from a base of <base> while <word> is "
              "high, and latency does not come down", late=lambda c: [
                  float(w.values.min()) for w in windows(c, c.metric) if len(w)],
              base=lambda c: [c.trace.number("base_temperature") or 1.0]),
    ],
    "exploration-explodes": [
        claim("exploration grows without end: entropy is back at <late> of <most> nats, from <low>",
              late=at_end("exploration/entropy"), most=most_entropy, low=lambda c: [
                  float(np.median(c.metric.values[i : i + 5])) for i in range(len(c.metric) - 4)]),
        claim("exploration grows without end: the entropy coefficient goes <low> to <late>",
              late=at_end(), low=lambda c: [
                  float(np.median(c.metric.values[i : i + 3])) for i in range(len(c.metric) - 2)]),
        claim("actions drown in noise: the actions' standard deviation is <last M> throughout, "
              "where <word> takes <reach> at most", reach=lambda c: [
                  float(environment(c.trace).reach)]),
    ],
    "exploration-never-ends": [
        *(claim(f"exploration never ends: {words}, and {end}", **numbers)
          for end in ("the outcome got nowhere",
                      "the policy acts at random from the first row to the last")
          for words, numbers in (
              ("<late> of the actions are still random, as at the start",
               {"late": at_end("exploration/epsilon")}),
              ("<late> of the actions are still random, after <low>",
               {"late": at_end("exploration/epsilon"),
                "low": lambda c: [float(c["exploration/epsilon"].values.min())]}),
              ("the policy is still <share> of uniform (<late> of <most> nats)",
               {"share": entropy_share, "late": at_end("exploration/entropy"),
                "most": most_entropy}))),
        claim("that is <way> of the way from a random to a solved policy", way=way),
        claim("exploration never ends: updates of <way> nats in all leave the policy <distance> "
              "nats from uniform (<share> of <most>), and they lead nowhere",
              way=lambda c: [float(np.abs(c["policy/approx_kl"].values).sum())],
              distance=lambda c: [most - late for most in most_entropy(c)
                                  for late in at_end("exploration/entropy")(c)],
              share=lambda c: [late / most for most in most_entropy(c)
                               for late in at_end("exploration/entropy")(c)],
              most=most_entropy),
    ],
    "generation-starved": [
        claim("<late M> batches are generated for each update, <start> at the start",
              start=at_start()),
        claim("<thrown> of <all> batches generated since then were thrown away",
              thrown=lambda c: [float(w.values.sum() - len(w)) for w in windows(c, c.metric)],
              all=lambda c: [float(w.values.sum()) for w in windows(c, c.metric)]),
        claim("<right> of answers are right at the end", right=right),
    ],
    "image-mismatched": [
        *INTERVALS,
        claim("<n> questions in <checks> checks, each with two images", n=held_images("questions"),
              checks=held_images("checks")),
        claim("right answers do not depend on which image is shown: <own> with the question's own, "
              "<other> with another's", own=held_images("own"), other=held_images("other")),
        claim("the image decides whether <flips> are right", flips=held_images("flips")),
    ],
    "image-not-seen": [
        claim("<n> questions in <checks> checks, each with two images", n=held_images("questions"),
              checks=held_images("checks")),
        claim("all images are blank: the policy cannot see what it is asked about, and <own> are "
              "right", own=held_images("own")),
    ],
    "judge-outage": [
        claim("judged reward is <value> for every response, <before> before, in <row> successive "
              "updates; it comes back afterwards", value=lambda c: c.metric.values.tolist(),
              before=near("reward/component/judged", "before", 20), row=equal_in_a_row),
    ],
    "kl-coefficient-runaway": [
        claim("the KL coefficient grew <ratio> x, <first> to <last>, and KL is still <kl> nats per "
              "sequence", ratio=times(lambda c: coefs(c, at_end), lambda c: coefs(c, at_start)),
              first=lambda c: coefs(c, at_start), last=lambda c: coefs(c, at_end),
              kl=lambda c: [
                  float(np.median(c["policy/kl_to_reference"].tail(n).values))
                  for n in range(3, 1 + len(c.metric) // 5)]),
        claim("the KL coefficient starts at <zero> or below: there is no scale",
              zero=lambda _: [0.0]),
    ],
    "kl-penalty-dominates": [
        claim("the KL penalty costs <price> per sequence where the score gained <gain>, and "
              "scatters <ratio> x as much from update to update", price=lambda c: [
                  -float(np.array_split(c["reward/non_score"].values, 2)[-1].mean())],
              gain=lambda c: [gained(c["outcome/score"].values)],
              ratio=lambda c: [steps_sd(c["reward/non_score"]) / steps_sd(c["outcome/score"])]),
        claim("the coefficient in force is <coef> (-penalty / KL)", coef=lambda c: [
            float(np.median(-c["reward/non_score"].values / c["policy/kl_to_reference"].values))]),
    ],
    "positive-share-falls": [
        *INTERVALS,
        claim("the positive share falls: <before> at the start to <after>",
              before=level, after=level),
    ],
    "pulses-without-stagnation": [
        claim("<n> temperature pulses take <share> of the decisions although <sentence>",
              n=lambda c: [float((np.diff(np.sign(c.metric.values), prepend=0) == 1).sum())],
              share=lambda c: [float((c.metric.values > 0).mean())]),
    ],
    "reference-kl-out-of-range": [
        claim("per sequence / response limit (<setting max_completion_length>)"),
    ],
    "responses-truncated": [
        claim("at least <share> of responses are right although cut", share=cut_and_right),
        claim("in <none> of <points> updates no response ended by itself",
              none=zeros("language/terminated_length_mean"),
              points=lengths("language/terminated_length_mean")),
        claim("the run's response limit is <setting max_completion_length> tokens"),
    ],
    "reward-spread-grows": [
        claim("rewards scatter up to <ratio> x as much as at the start: standard deviation <first> "
              "to <max reward/std>", first=at_start("reward/std"),
              ratio=times(lambda c: [float(c["reward/std"].values.max())], at_start("reward/std"))),
    ],
    "reward-up-throughput-flat": [
        claim("<label> repeats <value> exactly since step <step>",
              value=logged("scheduler/latency", "outcome/latency", "throughput/latency"),
              step=later),
    ],
    "samples-all-filtered": [
        claim("<right> of answers are right by then", right=right),
        claim("grad norm is 0 in all <n> of these updates", n=zeros("optimiser/grad_norm")),
        *(claim(f"no {side} sample in <row> successive updates", row=equal_in_a_row)
          for side in ("positive", "negative")),
    ],
    "temperature-out-of-range": [
        claim("the sampling temperature is above <bound> outside of pulses in <share> of these "
              "decisions, <max M> at the extreme", share=lambda c: [
                  float((c.metric.since(c.finding.began).values > c.finding.bound.value).mean()),
                  1.0]),
    ],
    "threshold-off-correctness": [
        *(claim("<share> of the samples count as positive, but <right> of the answers are right: "
                f"the threshold takes {mistake}", share=level, right=right)
          for mistake in ("wrong answers for right ones", "right answers for wrong ones")),
    ],
    "total-negative-absolute-positive": [
        claim("total reward is negative (<total>) while the absolute score is positive (<abs>) in "
              "<share> of the run", total=swept(lambda m, h: float(m[h, 0].mean())),
              abs=swept(lambda m, h: float(m[h, 1].mean())),
              share=swept(lambda _, h: float(h.mean()))),
    ],
    "zero-variance-groups": [
        claim("in <median M> of groups every completion earns the same reward: these groups teach "
              "nothing"),
        claim("about <right> of groups are all right and <wrong> all wrong",
              right=uniform_groups("right"), wrong=uniform_groups("wrong")),
    ],
}  # fmt: skip

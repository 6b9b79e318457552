"""Claims of the sentences of the summary and of rules on outcomes, updates and data."""

import numpy as np
from column_values import (
    KL,
    OUTCOME_LOST,
    at_end,
    at_start,
    bad,
    bad_tail,
    beyond_share,
    block_values,
    count,
    courses,
    dissimilar,
    equal_in_a_row,
    every_point,
    first_bad,
    jumps_of,
    logged,
    medians_before,
    near,
    not_zero,
    part,
    points,
    remaining,
    roughness,
    spanned,
    swing_counts,
    tail_of_zeros,
    typical_error,
    zeros,
)
from common_sentences import (
    SHAPE,
    best_sixth_ends,
    later,
    level_of,
    metric_count,
    outcomes,
    sixths,
)
from derivations import claim, windows
from language_sentences import LANGUAGE_RULES
from reward_sentences import INTERVALS, NO_LEARNING, REWARD_RULES
from rollout_sentences import ROLLOUT_RULES
from rule_values import (
    EXPLAINED,
    LENGTH,
    LOSS,
    RETURN,
    VALUE_LOSS,
    binomial_error,
    correlations,
    critic_returns,
    drifts,
    epochs,
    fifths,
    growth_again,
    jump_count,
    jump_list,
    kl_limit,
    ledgers,
    offsets,
    pace,
    possible,
    rank_differences,
    rank_last_steps,
    rank_numbers,
    rank_offsets,
    rank_ratios,
    rank_row_counts,
    rates,
    scatter_ratio,
    settings,
    shares_of_actions,
    shifts,
    varying,
    wall,
)
from wiring_sentences import CRITIC, FROZEN, SIGN_REVERSED, UPDATES

from rlvitals.rules.identities import IDENTITIES
from rlvitals.rules.paid import step_reward

OWN_RULES = {
    "clipping": [
        *(claim(f"<median {name}> of samples are clipped, <max {name}> at most<word>")
          for name in ("policy/clip_fraction", "policy/clip_fraction_effective")),
        *(claim(f"<median {name}> of samples are clipped, <max {name}> at most: updates <word>")
          for name in ("policy/clip_fraction", "policy/clip_fraction_effective")),
        *(claim(f"<median {name}> of samples are clipped, <max {name}> at most")
          for name in ("policy/clip_fraction", "policy/clip_fraction_effective")),
        *(claim(f"<median {name}> of samples are clipped, <max {name}> at most; the mean ratio "
                f"ends at <late policy/ratio>{end}")
          for name in ("policy/clip_fraction", "policy/clip_fraction_effective")
          for end in ("", ": updates are gentle", ": updates are too large")),
    ],
    "critic": [
        claim("value loss goes <early value/loss> to <late value/loss>; the critic explains "
              "<explained> of the returns' variance at the end",
              explained=lambda c: [max(v, 0.0) for v in at_end(EXPLAINED)(c)]),
    ],
    "accounting-broken": [
        *(claim(f"{each.says}: broken in <broken> of <rows> rows since step <since> (<left> is "
                f"logged, {most}<right> follows)",
                broken=ledgers(lambda _, at: float(at.size)), rows=ledgers(
                    lambda k, _: float(len(k.steps))),
                since=ledgers(lambda k, at: float(k.steps[at[0]])),
                left=ledgers(lambda k, at: float(np.median(k.left[at]))),
                right=ledgers(lambda k, at: float(np.median(k.right[at]))))
          for each in IDENTITIES for most in ("", "at most ")),
        claim("the miss is <share> of all terms together, as a median",
              share=ledgers(lambda k, at: float(np.median(
                  np.abs(k.left[at] - k.right[at]) / k.size[at])))),
        claim("it holds within rounding in <rows> rows, the first at <step>",
              rows=ledgers(lambda k, at: float(len(k.steps) - at.size)),
              step=ledgers(lambda k, _: float(k.steps[~k.violations][0]))),
    ],
    "action-collapse": [
        claim("its share by windows of <size> decisions: <a> <a> <a> <a> <a>",
              size=shares_of_actions, a=shares_of_actions),
        claim("the policy collapsed onto <word> <which>: it takes <a> of the last decisions, <a> "
              "of the first", which=shares_of_actions, a=shares_of_actions),
        claim("<n> replicas are taken as equal, <share> each: no replica_speeds is set",
              n=lambda c: [float(len(np.unique(c["policy/action"].values)))],
              share=lambda c: [1 / len(np.unique(c["policy/action"].values))]),
        claim("entropy goes <a> to <b> nats", a=at_start("exploration/entropy"),
              b=at_end("exploration/entropy")),
    ],
    "advantage-off-centre": [
        claim("advantages are off centre: <middle> standard deviations in the median of <points> "
              "updates; every action looks <word> than the critic expects",
              middle=lambda c: [float(np.median(offsets(c)))], points=points),
    ],
    "critic-explains-nothing": [
        claim("the critic explains nothing: over <points> updates the median explained variance is "
              "<median M>, the mean <mean M>", points=points),
        claim("the critic explains nothing: over <points> updates in which returns vary the median "
              "explained variance is <median> , the mean <mean>".replace(" ,", ","),
              points=lambda c: [float(varying(c).size)],
              median=lambda c: [float(np.median(varying(c)))],
              mean=lambda c: [float(varying(c).mean())]),
        claim("worse than a constant, below 0, in <share> of them", share=lambda c: [
            float((v < 0).mean())
            for v in (varying(c), *(w.values for w in windows(c, c.metric)))]),
        *(claim(f"the critic has learned nothing{lasts}: explained variance is <before> in the "
                f"first third of <points> updates and <after> in the last{best}, and the value "
                "loss <loss> in the median, <head> at first",
                before=lambda c: [float(np.median(c.metric.values[: len(c.metric) // 3]))],
                after=lambda c: [float(np.median(c.metric.values[-(len(c.metric) // 3) :]))],
                best=lambda c: [float(np.median(c.metric.values[i : i + 5]))
                                for i in range(len(c.metric) - 4)],
                points=points, loss=lambda c: [float(np.median(c[VALUE_LOSS].values))],
                head=lambda c: [float(np.median(c[VALUE_LOSS].values[:5]))])
          for lasts, best in (("", ""), (" that lasts", " after <best> at best"))),
        claim("the critic has learned nothing: its error is <error> from the first update to the "
              "last, <times> times what a step pays on average", error=lambda c: [
                  float(np.sqrt(np.median(c.metric.values)))],
              times=lambda c: [float(np.sqrt(np.median(c.metric.values)) / (
                  np.abs(c[RETURN].values).mean() / max(c[LENGTH].values.mean(), 1)))]),
        *CRITIC,
        claim("it is over: the last <n> explain <late>", n=lambda _: [10], late=lambda c: [
            float(np.median(c.metric.values[-10:]))]),
        claim("an estimate rests on <samples> samples only: near 0 is usual", samples=lambda c: [
            (c.trace.number("n_steps") or 0) * (c.trace.number("n_envs") or 1)]),
        claim("an estimate rests on <samples> samples only, and <sentence>", samples=lambda c: [
            (c.trace.number("n_steps") or 0) * (c.trace.number("n_envs") or 1)]),
    ],
    "critic-target-frozen": [
        claim("the critic fits its targets (<late> of loss, <early> at the start), but they say "
              "nothing of returns: |Q| is <size> where rewards add up to <sum>",
              late=lambda c: [float(np.median(w.values)) for w in windows(c, c[VALUE_LOSS])],
              early=at_start(VALUE_LOSS), sum=critic_returns,
              size=lambda c: [float(np.median(np.abs(w.values))) for w in windows(c, c.metric)]),
    ],
    "ended-early": [
        claim("the run ended at step <step> of <budget>, <share> of its budget, and nothing says "
              "why", step=lambda c: [float(max(s.steps[-1] for s in c.trace.series.values()))],
              budget=lambda c: c.setting("total_steps"), share=spanned("ended")),
    ],
    "environment-changed": [
        claim("KL per update was <kl> there, up to <most> in the 20 updates before",
              kl=logged(KL), most=logged(KL)),
        claim("explained variance drops there, from <before> to <after>",
              before=near(EXPLAINED, "before"), after=logged(EXPLAINED)),
        claim("the value loss jumps there, from <before> to <after>",
              before=medians_before(VALUE_LOSS, 20), after=logged(VALUE_LOSS)),
        *(claim("<label> breaks at step <began>, from <before> to <after>, and no update had moved "
                f"the policy: what it acts in has changed{end}",
                before=near(RETURN, "before"), after=lambda c: [
                    float(np.median(np.sort(c[RETURN].values[i:])[
                        : max(5, round(0.1 * (len(c[RETURN]) - i)))]))
                    for i in range(len(c[RETURN]))],
                back=at_end(RETURN)) for end in ("", "; it is back at <back>")),
    ],
    "episode-length-jump": [
        claim("episodes became suddenly <word>: <before> to <after> steps",
              before=shifts("before"), after=shifts("after")),
        claim("in this run <word> episodes earn more: correlation of their changes <r>",
              r=correlations),
        claim("return around it: <before> before, <after> after",
              before=near(RETURN, "before"), after=near(RETURN, "after")),
    ],
    "episodes-never-end": [
        claim("episodes pay for <share> of the steps that they take: they go on after their end "
              "(<word> pays <pays> a step until then)", share=lambda c: [
                  float(step_reward(c.trace).share.values.min())],
              pays=lambda c: [step_reward(c.trace).env.pays]),
        claim("episodes take <bound> steps in <share> of the log, whatever the policy does: in "
              "<word> a poor one's end early, and at different times",
              share=part(lambda v, c: np.abs(v / c.finding.bound.value - 1) <= 0.01)),
    ],
    "evaluation-falls": [
        claim("each prompt was seen <n> times", n=at_end("progress/epoch")),
        claim("binomial error of <n> answers: <error>", n=lambda _: range(10_000),
              error=binomial_error),
        claim("<times> x the scatter of such means", times=scatter_ratio),
        claim("<sentence>, but held-out <word> falls: <best> at its best to <last>",
              best=fifths, last=fifths),
        claim("<sentence>, but held-out loss rises: <best> at its best to <last>",
              best=fifths, last=fifths),
    ],
    "first-update-off": [
        claim("<word> must be 0 before the first step: <first M> is logged"),
    ],
    "frozen-metric": [
        claim("KL per update is exactly 0 in the last <row> updates and was not before, while "
              "<names> change: the policy is no longer trained", row=tail_of_zeros),
        *FROZEN,
        claim("<names> is <value> to the last bit in <row> successive updates, while <names> "
              "change", value=lambda c: c.metric.values.tolist(), row=equal_in_a_row),
    ],
    "gradient-always-clipped": [
        claim("<share> of updates are clipped: the median gradient norm is <median M>, the limit "
              "<bound>", share=beyond_share),
    ],
    "gradient-explosion": [
        *(claim("the gradient norm jumps to <value> <ratio> x the median of the points before "
                f"(<before>); {end}".replace("<value> ", "<value>, "),
                value=logged("optimiser/grad_norm"), ratio=jumps_of("optimiser/grad_norm"),
                before=medians_before("optimiser/grad_norm", 50), n=jump_count)
          for end in ("<n> such jumps", "the only such jump")),
        claim("the loss reaches <max>, from <start> in its first five points",
              max=lambda c: c["optimiser/loss"].values.tolist(),
              start=lambda c: [float(np.median(c["optimiser/loss"].values[:5]))]),
    ],
    "impossible-value": [
        *(claim(f"<hits> of <points> values of <label> are {side} what is possible (<bound>): "
                f"<{worst}> at the extreme", hits=lambda c: [h for h, _ in possible(c)],
                points=metric_count, bound=lambda c: [b for _, b in possible(c)])
          for side, worst in (("above", "max"), ("below", "min"))),
        claim("returns do not fit the episode lengths since step <step>: <worst> times what the "
              "steps should have paid at the extreme (<word> pays <pays> a step)",
              step=later,
              worst=lambda c: step_reward(c.trace).share.values.tolist(),
              pays=lambda c: [step_reward(c.trace).env.pays]),
    ],
    "kl-above-target": [
        claim("<share> of samples are clipped meanwhile", share=lambda c: [
            float(np.median(w.values)) for w in windows(c, c["policy/clip_fraction"]) if len(w)]),
        claim("KL per update is above <limit> in <share> of <points> updates: median <median M>, "
              "<max M> at most", limit=kl_limit, points=points,
              share=part(lambda v, c: v > kl_limit(c)[0])),
        claim("<label> went from <first> to <best> under it, up to step <step>",
              first=lambda c: [float(np.median(w.values[:5])) for _, w in outcomes(c)],
              best=lambda c: [float(w.values.max()) for _, w in outcomes(c)],
              step=lambda c: [float(w.steps[w.values.argmax()]) for _, w in outcomes(c)]),
    ],
    "kl-clamped": [
        claim("<zeros> of <points> KL values are exactly 0: a clamped estimator's artefact, not "
              "updates that moved nothing", zeros=zeros(KL), points=points),
    ],
    "kl-spike": [
        *(claim(f"KL jumps to <value> in one update, <ratio> x what it was{end}",
                value=logged(KL), ratio=jumps_of(KL), more=jump_count)
          for end in ("", ", and <more> more besides")),
        *(claim(f"KL jumps to <value> in one update, from <before>{end}", value=logged(KL),
                before=medians_before(KL, 50), more=jump_count)
          for end in ("", ", and <more> more besides")),
        *(claim("jumps: " + ", ".join(["<v> at <v>"] * n) + end, v=jump_list)
          for n in (1, 2, 3, 4) for end in ("", ", ...")),
        claim("<label> was <before> before and is <now> now", before=near(RETURN, "before", 5),
              now=at_end(RETURN)),
        claim("<label> was <before> before and is <now> now",
              before=near("outcome/reward", "before", 5), now=at_end("outcome/reward")),
    ],
    "learning-starts-late": [
        claim("<share> of the run is over before the first update, at step <ended>",
              share=spanned("ended")),
    ],
    "loss-not-decreasing": [
        *(claim(f"std / mean of the last ten losses is <ratio>, {word} <limit>",
                ratio=dissimilar(LOSS), limit=lambda _: [0.01]) for word in ("above", "below")),
        claim("the loss does not decrease: <first> at the start, <last> at the end, a fall of "
              "<share>", first=at_start(LOSS), last=at_end(LOSS), share=lambda c: [
                  (a - b) / abs(a) for a in at_start(LOSS)(c) if a for b in at_end(LOSS)(c)]),
    ],
    "loss-oscillating": [
        claim("<names> swings <ratio> x as widely as in the first <part> % of the run: between "
              "<low> and <high> in its last half", ratio=roughness, part=lambda _: [30],
              low=lambda c: [float(c.metric.since(c.finding.began).values.min())],
              high=lambda c: [float(c.metric.since(c.finding.began).values.max())]),
    ],
    "memory-grows": [
        claim("at this pace it grows by <more> GiB in as many steps again",
              more=growth_again),
    ],
    "no-learning": NO_LEARNING,
    "sign-reversed": SIGN_REVERSED,
    "return-up-success-flat": INTERVALS,
    "no-new-rows": [
        *(claim(f"no new row for <silence> {unit}, at <share> of the budget, and nothing says that "
                "the run ended", silence=wall, share=lambda c: [
                    c.trace.last_step / c.trace.budget.steps])
          for unit in ("s", "min", "h", "days")),
    ],
    "not-a-number": [
        *(claim(f"<names> is {word} in <bad> of <points> points, <tail> of them from step <step> "
                "to the end", bad=bad, points=every_point, tail=bad_tail, step=first_bad)
          for word in ("NaN", "infinite")),
        *(claim(f"<names> is {word} in <bad> of <points> points", bad=bad, points=every_point)
          for word in ("NaN", "infinite")),
        claim("<names> is no number in <bad> of <points> points: returns have zero variance",
              bad=bad, points=every_point),
    ],
    "plateau": [
        *(claim(f"<label> has not {does} over the last <part> of the run: <late>{start}",
                part=remaining, first=level_of("first"))
          for does in ("changed", "risen") for start in ("", "; it was <first> at the start"))
    ],
    "policy-loss-explosion": [
        claim("the policy loss explodes: <worst> at step <step>, <median M> in the median; beyond "
              "<bound> in <n> points", worst=lambda c: c.metric.values.tolist(),
              step=lambda c: c.metric.steps.tolist(),
              n=count(lambda v, c: np.abs(v) > c.finding.bound.value)),
    ],
    "policy-loss-flat": [
        claim("<share> of these updates have no gradient at all", share=lambda c: [
            float((np.abs(w.values) < 1e-10).mean()) for w in windows(c, c.metric) if len(w)]),
    ],
    "q-divergence": [
        claim("Q values diverge: a typical error of one step is <late> (<early> at the start), "
              "where whole episodes never earned more than <most>", late=typical_error,
              early=typical_error, most=lambda c: [
                  float(np.abs(w.values).max()) for _, w in outcomes(c)]),
    ],
    "ratio-off-one": [
        claim("the ratio's variance jumps to <worst> in one update, from <before>",
              worst=lambda c: c.metric.values.tolist(), before=lambda c: [
                  float(f"{v:.1g}") for v in medians_before("policy/ratio_var", 50)(c)]),
    ],
    "return-collapse": [
        *OUTCOME_LOST,
        claim("a block of <width> values scatters by <noise>",
              width=lambda c: [float(course.width) for _, course in courses(c)],
              noise=lambda c: [course.noise for _, course in courses(c)]),
        claim("<label> was <best> around step <step> and is <last> now", best=sixths("best"),
              step=best_sixth_ends, last=sixths("last")),
        SHAPE,
    ],
    "return-oscillates": [
        claim("<label> was won and lost <n> times, between <low> and <high>; it ends at <end>",
              n=swing_counts, low=block_values, high=block_values, end=block_values),
    ],
    "setting-out-of-range": [
        *(claim(f"<names2> is <value>, tuned runs use <low> to <high>{more}: <any words>",
                value=settings("value"), low=settings("seen"), high=settings("seen"))
          for more in ("", ", or tuned automatically")),
    ],
    "throughput-drop": [
        claim("measured over windows of <seconds> s", seconds=pace),
        claim("environment steps per second fell from <before> to <after> and stay there",
              before=rates, after=rates),
    ],
    "updates-cut-short": [
        claim("<share> of the iterations stop before their <setting n_epochs> epochs are over: "
              "<middle> in the median, <early> end in the first two",
              share=epochs(lambda e: float((e < e.max() if e.max() > 9 else e < 9.5).mean())),
              middle=epochs(lambda e: float(np.median(e))),
              early=epochs(lambda e: float((e <= 2.5).mean()))),
    ],
    "updates-hardly-move": [
        *(claim(f"updates hardly move the policy: {clip}{kl}(medians of the second half)",
                most=not_zero("policy/clip_fraction"))
          for clip, kl in (
              ("<median policy/clip_fraction> of samples are clipped (never above <most>); ",
               "KL per update is <median policy/approx_kl> nats "),
              ("<median policy/clip_fraction> of samples are clipped (never above <most>) ", ""),
              ("", "KL per update is <median policy/approx_kl> nats "))),
        claim("updates hardly move the policy: KL per update is <median policy/approx_kl> nats "
              "beside a value loss of <median value/loss> (medians of the second half), and the "
              "critic explains nothing"),
        claim("updates hardly move the policy: nine in ten policy losses lie within <size> of 0, "
              "each the mean over all epochs of an update",
              size=lambda c: [float(np.percentile(np.abs(c.metric.finite().values), 90))]),
        claim("updates hardly move the policy: the KL of all <n> logged ones together changes at "
              "most <changed> of its actions", n=lambda c: [len(c.metric.finite())],
              changed=lambda c: [float(np.sqrt(np.abs(c.metric.finite().values) / 2).sum())]),
        *UPDATES,
        claim("the median KL per update is <median M> nats"),
        claim("updates hardly move the policy: its entropy stays <last M> within <range> of it",
              range=lambda c: [float(np.ptp(c.metric.values) / np.abs(c.metric.values).max())]),
        claim("updates hardly move the policy: the learning rate is <max M> at most"),
    ],
    "rank-clocks-differ": [
        claim("the clock of rank <rank> is <offset> s <word> that of the other ranks",
              rank=rank_numbers, offset=rank_offsets),
    ],
    "rank-differs": [
        claim("<names> is equal on the ranks, as after an all-reduce, but not on rank <rank>: it "
              "differs at <count> of <steps> steps", rank=rank_numbers, count=rank_differences,
              steps=rank_row_counts),
    ],
    "rank-slow": [
        claim("rank <rank> takes <observed> x the time of a step that the ranks take in the median "
              "(<level> % interval <low> to <high>)", rank=rank_numbers, level=lambda _: [99.9],
              low=rank_ratios, high=rank_ratios),
    ],
    "rank-stopped": [
        claim("rank <rank> logged nothing after step <last>, while others went on to step <end>",
              rank=rank_numbers, last=rank_last_steps, end=rank_last_steps),
    ],
    "updates-slow": [
        claim("updates per second fell from <before> to <after> and stay there",
              before=rates, after=rates),
    ],
    "value-drifts-from-return": [
        claim("the critic's mean stays <drift> standard deviations from the mean return over "
              "<points> updates: <value> against <return> at the end", points=lambda c: [
                  float(n) for n in range(len(c.metric) + 1)],
              drift=drifts, value=logged("value/mean"),
              **{"return": logged("value/return_mean")}),
    ],
    "value-loss-explosion": [
        *(claim("the value loss jumps to <worst> at step <step>, from <before> in the median "
                f"before; {end} above the limit", worst=logged(VALUE_LOSS), step=lambda c:
                c.metric.steps.tolist(), before=medians_before(VALUE_LOSS, 20),
                n=lambda c: range(2, len(c.metric)))
          for end in ("it alone is", "<n> points are")),
    ],
    "value-loss-vanishes": [
        claim("explained variance is 0/0 or nearly in <share> of the updates: the critic's targets "
              "are all alike", share=lambda c: [
                  float((~(c.trace[EXPLAINED].since(c.finding.began).values > -1e3)).mean())]),
        claim("explained variance is below -1 or 0/0 in <share> of the updates: the critic's "
              "targets vary even less than it errs by", share=lambda c: [
                  float((~(c.trace[EXPLAINED].since(c.finding.began).values >= -1)).mean())]),
        *(claim("the value loss has collapsed: <median M> in the median of <points> updates, "
                f"<first> at first, {end}", points=points, first=lambda c: [
                    float(c.metric.values[:5].max())], spread=lambda c: [
                        float(np.std(w.values) / np.abs(w.values).max()) for _, w in outcomes(c)
                        if np.abs(w.values).max() > 0])
          for end in ("though returns differ by <spread> of the largest",
                      "and returns hardly differ: there is nothing to tell a good action by")),
    ],
}  # fmt: skip

RULES = {**REWARD_RULES, **LANGUAGE_RULES, **ROLLOUT_RULES, **OWN_RULES}

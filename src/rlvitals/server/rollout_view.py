"""Show a run's rollouts as HTML: pairs of one prompt at two steps, groups, and proofs of findings.

Texts are of the policy and its prompts: all of them are escaped.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from math import exp, isfinite

import numpy as np
from numpy.typing import NDArray

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.errors import UsageError, quantity
from rlvitals.rollouts import evidence, step_pairs
from rlvitals.rollouts.rollout_columns import NO_STEP, Rollouts
from rlvitals.rollouts.sample import Sample, ToolCall, Turn
from rlvitals.rollouts.step_pairs import Pair
from rlvitals.rules.rule import Finding
from rlvitals.views.phrases import number
from rlvitals.views.report.markup import Html, el, join, paragraphs

MAX_SHOWN_PAIRS = 12  # shown at once
MAX_SHOWN_SAMPLES = 8  # of a group or a proof, shown at once
MAX_COMPARED_WORDS = 600  # of each text, that are compared


def controls(rollouts: Rollouts) -> Html:
    """Return the choice of view and steps; the script fetches what it chooses."""
    steps = _steps(rollouts)
    views = {"pairs": "one prompt, two steps", "group": "groups side by side"}
    first, last = (steps[0], steps[-1]) if steps else (0, 0)
    return join(
        el(
            "p",
            _select("rollout-view", "view", views, "pairs" if len(steps) > 1 else "group"),
            _step_select("rollout-step", "step", steps, first),
            _step_select("rollout-against", "against step", steps, last),
            class_="rollout-tools",
        ),
        el("div", id="rollouts", class_="rollouts", aria_live="polite", aria_busy="true"),
    )


def pairs(rollouts: Rollouts, step: int, against: int) -> Html:
    """Return the prompts that two steps have in common, what moved most first. UsageError."""
    found_pairs = step_pairs.pair(rollouts, step, against)
    noun = "prompt" if len(found_pairs) == 1 else "prompts"
    is_cut = len(found_pairs) > MAX_SHOWN_PAIRS
    more = f"; the first {MAX_SHOWN_PAIRS} are shown" if is_cut else ""
    head = f"{len(found_pairs):,} {noun} at both steps, the largest change of reward first{more}."
    head += " Of each, the rollout whose reward is nearest to the mean is shown."
    articles = (_pair(rollouts, item) for item in found_pairs[:MAX_SHOWN_PAIRS])
    return join(el("p", head, class_="about"), *articles)


def groups(rollouts: Rollouts, step: int, number_of_group: int) -> Html:
    """Return the rollouts of one group of a step side by side, the best paid first. UsageError."""
    rows = rollouts.rows
    indices = rollouts.indices(rows["step"] == step)
    names = list(dict.fromkeys(rows["group"][indices].tolist()))
    if not names:
        raise UsageError(f"step {step} has no rollouts", where="step")
    position = min(max(number_of_group, 0), len(names) - 1)
    members = indices[rows["group"][indices] == names[position]]
    ordered = members[np.argsort(-np.nan_to_num(rows["reward"][members]), kind="stable")]
    prompt = rollouts.read_sample(int(members[0])).prompt
    return join(
        _group_buttons(position, len(names)),
        _prompt(prompt),
        _rewards_text(rows["reward"][members].tolist()),
        _side_by_side(
            [(int(i), rollouts.read_sample(int(i))) for i in ordered[:MAX_SHOWN_SAMPLES]]
        ),
        _cut_note(len(ordered)),
    )


def proof(rollouts: Rollouts, diagnosis: Diagnosis, rule: str) -> Html:
    """Return the rollouts that show a finding best. Raises UsageError."""
    finding = next((item for name, item in diagnosis.findings if name.name == rule), None)
    if finding is None:
        raise UsageError(f"{rule!r} is not a finding of this run", where="rule")
    indices = _find_proof(rollouts, finding)
    samples = [(int(i), rollouts.read_sample(int(i))) for i in indices[:MAX_SHOWN_SAMPLES]]
    is_cut = len(indices) > MAX_SHOWN_SAMPLES
    more = f"; the first {MAX_SHOWN_SAMPLES} are shown" if is_cut else ""
    noun = "rollout shows" if len(indices) == 1 else "rollouts show"
    head = f"{len(indices):,} {noun} {rule}, those that show it best first{more}."
    return join(el("p", head, class_="about"), *(_sample(i, s, prompt=True) for i, s in samples))


def provable(rollouts: Rollouts | None, diagnosis: Diagnosis) -> list[str]:
    """Return the rules whose finding some rollouts show."""
    if rollouts is None:
        return []
    rules = []
    for rule, finding in diagnosis.findings:
        try:
            indices = _find_proof(rollouts, finding)
        except UsageError:
            continue
        if len(indices):
            rules.append(rule.name)
    return rules


def _find_proof(rollouts: Rollouts, finding: Finding) -> NDArray[np.int64]:
    return evidence.find(
        rollouts, finding.metric, finding.began, finding.ended, is_above=finding.is_high
    )


def _steps(rollouts: Rollouts) -> list[int]:
    steps = np.unique(rollouts.rows["step"])
    steps = steps[steps != NO_STEP]
    every = -(-len(steps) // 400) or 1  # the choice offers at most 400
    return [int(step) for step in steps[::-1][::every][::-1]]


def _select(name: str, label: str, options: dict[str, str], selected: str) -> Html:
    choices = (el("option", text, value=value, selected=value == selected)
               for value, text in options.items())  # fmt: skip
    return el("label", join(f"{label} "), el("select", *choices, id=name))


def _step_select(name: str, label: str, steps: Sequence[int], selected: int) -> Html:
    return _select(name, label, {str(step): f"{step:,}" for step in steps}, str(selected))


def _pair(rollouts: Rollouts, item: Pair) -> Html:
    old, new = rollouts.read_sample(item.before.index), rollouts.read_sample(item.after.index)
    old_text, new_text = _differences(old.text, new.text)
    return el(
        "article",
        _prompt(old.prompt),
        el("ul", *(el("li", text) for text in _changes(item, old, new)), class_="changes"),
        el(
            "div",
            _column(f"step {item.before.step:,}", item.before.index, old, old_text),
            _column(f"step {item.after.step:,}", item.after.index, new, new_text),
            class_="columns",
        ),
        class_="rollout",
    )


def _changes(item: Pair, old_sample: Sample, new_sample: Sample) -> Iterator[str]:
    """Yield the means of both steps; parts of the reward with their weights, as in the bars."""
    old, new = item.before, item.after
    counts = f"{old.count} and {quantity(new.count, 'rollout')}"
    yield f"means of {counts}: reward {_number(old.reward)} → {_number(new.reward)}"
    for name, value in old.parts.items():
        if isfinite(value) and isfinite(new.parts[name]):
            pay, new_pay = (
                value * _weight(old_sample, name),
                new.parts[name] * _weight(new_sample, name),
            )
            yield f"{name} {_number(pay)} → {_number(new_pay)}"
    yield f"characters {old.characters:,.0f} → {new.characters:,.0f}"
    if old.tool_calls or new.tool_calls:
        yield f"tool calls {_number(old.tool_calls)} → {_number(new.tool_calls)}"


def _weight(sample: Sample, name: str) -> float:
    reward = sample.parts.get(name)
    return 1.0 if reward is None else reward.weight


def _column(title: str, index: int, sample: Sample, text: Html) -> Html:
    """Return one side of a pair: its calls of tools, and its text with what changed."""
    calls = [_call(call) for call in sample.tool_calls]
    return el("div", el("h4", f"{title} · sample {index}"), *_facts(sample), *calls,
              _reply(text, sample.text), _strip(sample))  # fmt: skip


def _side_by_side(samples: Sequence[tuple[int, Sample]]) -> Html:
    return el("div", *(_sample(i, sample, prompt=False) for i, sample in samples),
              class_="columns several")  # fmt: skip


def _sample(index: int, sample: Sample, *, prompt: bool) -> Html:
    step = "" if sample.step is None else f" · step {sample.step:,}"
    return el(
        "article",
        el("h4", f"sample {index}{step}"),
        *_facts(sample),
        *([_prompt(sample.prompt)] if prompt else []),
        *(_turn(turn) for turn in sample.turns if not _is_shown_result(turn, sample)),
        _strip(sample),
        class_="rollout-sample",
    )


def _facts(sample: Sample) -> Iterator[Html]:
    """Yield the reward as bars of its parts, and how the rollout ended."""
    if sample.reward is not None:
        rows = [_part_row("reward", sample.reward, total=True)]
        rows += [_part_row(name, reward.value) for name, reward in sample.parts.items()]
        yield el("table", el("tbody", *rows), class_="parts")
    texts = []
    if sample.advantage is not None:
        texts.append(f"advantage {number(sample.advantage)}")
    if sample.token_count is not None:
        texts.append(quantity(sample.token_count, "token"))
    if sample.stop_reason:
        texts.append(f"ended by {sample.stop_reason}")
    if sample.answer:
        texts.append(f"expected {sample.answer}")
    if sample.error:
        texts.append(sample.error)
    if texts:
        yield el("p", " · ".join(texts), class_="about")


def _part_row(name: str, value: float, *, total: bool = False) -> Html:
    size = min(abs(value), 1.0) if isfinite(value) else 0.0
    bar = el("span", style=f"width:{100 * size:.0f}%", class_="minus" if value < 0 else None)
    cells = (el("th", name, scope="row"), el("td", bar, class_="bar-cell"),
             el("td", _number(value), class_="number"))  # fmt: skip
    return el("tr", *cells, class_="total" if total else None)


def _is_shown_result(turn: Turn, sample: Sample) -> bool:
    """Return whether a turn repeats the result that is shown below its call."""
    return turn.role == "tool" and turn.text in {call.result for call in sample.tool_calls}


def _turn(turn: Turn) -> Html:
    text = [_reply(paragraphs(turn.text), turn.text)] if turn.text else []
    return el(
        "div", el("p", turn.role, class_="role"), *text, *map(_call, turn.tool_calls), class_="turn"
    )


def _call(call: ToolCall) -> Html:
    result = "" if call.result is None else call.result
    mark = el("b", " failed") if call.failed else Html("")
    line = el("p", el("b", call.name), join(" "), el("code", call.arguments), mark,
              class_="tool-call")  # fmt: skip
    return join(line, _reply(paragraphs(f"→ {result}"), result)) if result else line


def _prompt(text: str) -> Html:
    head = el("p", "prompt", class_="role")
    return el("div", head, _reply(paragraphs(text), text), class_="prompt")


def _reply(html: Html, text: str) -> Html:
    """Return a message; a long one scrolls, also by keys."""
    # It may be higher than what is shown of it.
    return el("div", html, class_="reply", tabindex="0" if len(text) > 800 else None)


def _strip(sample: Sample, max_tokens: int = 400) -> Html:
    """Return the tokens' probabilities as a strip that highlights unlikely tokens."""
    values = sample.tokens.sampler_log_probs or sample.tokens.trainer_log_probs
    if not values:
        return Html("")
    cells = (
        el("i", style=f"--unlikely:{1 - exp(min(value, 0.0)):.2f}") for value in values[:max_tokens]
    )
    count = quantity(len(values), "token")
    if len(values) > max_tokens:
        count = f"the first {max_tokens} of {count}"
    title = f"{count}: the stronger, the less likely"
    strip = el("div", *cells, class_="strip", role="img", aria_label=title)
    return join(strip, el("p", title, class_="about", aria_hidden="true"))


def _differences(old_text: str, new_text: str) -> tuple[Html, Html]:
    """Return both texts with the words marked that the other lacks."""
    old, new = old_text.split()[:MAX_COMPARED_WORDS], new_text.split()[:MAX_COMPARED_WORDS]
    old_marked, new_marked = [], []
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        is_equal = tag == "equal"
        if j > i:
            text = f"{' '.join(old[i:j])} "
            old_marked.append(join(text) if is_equal else el("del", text))
        if m > k:
            text = f"{' '.join(new[k:m])} "
            new_marked.append(join(text) if is_equal else el("ins", text))
    return join(*old_marked), join(*new_marked)


def _group_buttons(position: int, count: int) -> Html:
    def button(text: str, target: int) -> Html:
        return el("button", text, type="button", class_="button", data_group=target,
                  disabled=not 0 <= target < count)  # fmt: skip

    return el("p", button("previous", position - 1), f" group {position + 1:,} of {count:,} ",
              button("next", position + 1), class_="rollout-tools")  # fmt: skip


def _rewards_text(rewards: Sequence[float]) -> Html:
    finite = [value for value in rewards if isfinite(value)]
    if not finite:
        return Html("")
    span = f"{number(min(finite))} to {number(max(finite))}"
    text = f"{quantity(len(rewards), 'rollout')}, reward {span}"
    if len(finite) > 1 and min(finite) == max(finite):
        text += ": all are paid alike, so none of them is learned from"
    return el("p", text, class_="about")


def _cut_note(count: int) -> Html:
    text = f"The {MAX_SHOWN_SAMPLES} best paid of {count}."
    return el("p", text, class_="about") if count > MAX_SHOWN_SAMPLES else Html("")


def _number(value: float) -> str:
    return number(float(value)) if isfinite(value) else "none"

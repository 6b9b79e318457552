"""Render rollouts: a list, single samples in full, and pairs of two steps."""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from math import isfinite

from rich.console import Group, RenderableType
from rich.text import Text

from rlvitals.errors import harmless, quantity
from rlvitals.rollouts.rollout_columns import NO_STEP, Rollouts
from rlvitals.rollouts.sample import Sample
from rlvitals.rollouts.step_pairs import Pair, Side
from rlvitals.views import lists
from rlvitals.views.phrases import number

REPLY_CHARACTERS = 60  # of a reply in a list
DIFF_WORDS = 600  # of each text, that are compared
CONTEXT_WORDS = 6  # equal words around a change


def listing(rollouts: Rollouts, indices: Iterable[int]) -> RenderableType:
    """Render one line for each rollout."""
    return lists.columns(
        ("sample", "step", "task", "reward", "turns", "chars", "stop", "reply"),
        [_line(rollouts, index) for index in indices],
        whole=7,
    )


def _line(rollouts: Rollouts, index: int) -> tuple[str, ...]:
    row, sample = rollouts.rows[index], rollouts.read_sample(index)
    end = f"{sample.stop_reason or '-'}{f' ({sample.error})' if sample.error else ''}"
    reply = " ".join(sample.text.split())
    return (
        str(index),
        "-" if row["step"] == NO_STEP else str(row["step"]),
        sample.task or "-",
        _number(row["reward"]),
        str(row["turns"]),
        str(row["characters"]),
        _cut(" ".join(end.split()), REPLY_CHARACTERS // 2),
        _cut(reply, REPLY_CHARACTERS),
    )


def _number(value: float) -> str:
    return number(float(value)) if isfinite(value) else "-"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def full(index: int, sample: Sample) -> RenderableType:
    """Render a sample in full: facts, prompt and turns."""
    facts = [f"sample {index}"]
    if sample.step is not None:
        facts.append(f"step {sample.step}")
    facts += filter(None, (sample.task, sample.group and f"group {sample.group}"))
    lines = [Text(harmless(" · ".join(facts)), "bold")]
    if sample.reward is not None:
        terms = [
            f"{name} {number(p.score)}" + (f" x {number(p.weight)}" if p.weight != 1.0 else "")
            for name, p in sample.parts.items()
        ]
        suffix = f" ({', '.join(terms)})" if terms else ""
        lines.append(Text(harmless(f"reward {number(sample.reward)}{suffix}")))
    for name, text in (
        ("answer", sample.answer),
        ("stop reason", sample.stop_reason),
        ("error", sample.error),
    ):
        if text:
            lines.append(Text(f"{name}: {harmless(text)}"))
    lines += [Text("\nprompt", "dim"), _safe(sample.prompt)]
    for turn in sample.turns:
        lines += [Text(f"\n{harmless(turn.role)}", "dim"), _safe(turn.text)]
        lines += [
            Text(harmless(f"  calls {call.name} {call.arguments}") + (" (failed)" * call.failed))
            for call in turn.tool_calls
        ]
    return Group(*lines, Text())


def _safe(text: str) -> Text:
    return Text("\n".join(harmless(line, 20_000) for line in text.split("\n")))


def pair_list(rollouts: Rollouts, pairs: Sequence[Pair], limit: int) -> RenderableType:
    """Render what moved most between two steps."""
    first, second = pairs[0].before.step, pairs[0].after.step
    head = Text(
        f"{quantity(len(pairs), 'prompt')} at steps {first} and {second}, what moved most first",
        "bold",
    )
    blocks: list[RenderableType] = [head]
    for entry in pairs[:limit]:
        sample = rollouts.read_sample(entry.before.index)
        new_sample = rollouts.read_sample(entry.after.index)
        blocks += [
            Text(),
            Text(_cut(harmless(" ".join(sample.prompt.split())), 2 * REPLY_CHARACTERS), "bold"),
            Text(f"  {'; '.join(_changes(entry))}"),
            Text(f"  samples {entry.before.index} and {entry.after.index}:", "dim"),
            difference(sample.text, new_sample.text),
        ]
    return Group(*blocks)


def _changes(entry: Pair) -> list[str]:
    old, new = entry.before, entry.after
    changes = [f"reward {_number(old.reward)} -> {_number(new.reward)}"]
    changes += [
        f"{name} {_number(old.parts[name])} -> {_number(new.parts[name])}"
        for name in old.parts
        if _differs(old.parts[name], new.parts[name])
    ]
    for name in ("characters", "tool_calls"):
        values = getattr(old, name), getattr(new, name)
        if values[0] != values[1]:
            changes.append(f"{name.replace('_', ' ')} {_number(values[0])} -> {_number(values[1])}")
    return changes


def _differs(old: float, new: float) -> bool:
    return isfinite(old) and isfinite(new) and old != new


def difference(text: str, new_text: str) -> Text:
    """Render a text with the words that another has not in [- -], and the new ones in {+ +}."""
    old, new = text.split()[:DIFF_WORDS], new_text.split()[:DIFF_WORDS]
    rendered = Text("  ")
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            rendered.append(f"{' '.join(_trim(old[i:j]))} ", "dim")
            continue
        if old[i:j]:
            rendered.append(f"[-{harmless(' '.join(old[i:j]))}-] ", "red")
        if new[k:m]:
            rendered.append(f"{{+{harmless(' '.join(new[k:m]))}+}} ", "green")
    return rendered


def _trim(texts: Sequence[str]) -> list[str]:
    safe = [harmless(text) for text in texts]
    if len(safe) <= 2 * CONTEXT_WORDS:
        return safe
    return [*safe[:CONTEXT_WORDS], "…", *safe[-CONTEXT_WORDS:]]


def to_json(rollouts: Rollouts, indices: Sequence[int]) -> dict[str, object]:
    """Return rollouts as JSON's types, with their numbers."""
    samples = [{"sample": int(i), **rollouts.read_sample(int(i)).to_json()} for i in indices]
    return {"rollouts": len(rollouts), "samples": samples, "notes": list(rollouts.notes)}


def pairs_to_json(rollouts: Rollouts, pairs: Sequence[Pair], limit: int) -> dict[str, object]:
    """Return pairs as JSON's types."""
    return {
        "prompts": len(pairs),
        "pairs": [
            {
                "change": entry.change,
                "before": _side(rollouts, entry.before),
                "after": _side(rollouts, entry.after),
            }
            for entry in pairs[:limit]
        ],
    }


def _side(rollouts: Rollouts, side: Side) -> dict[str, object]:
    return {
        "count": side.count,
        "reward": side.reward if isfinite(side.reward) else None,
        "characters": side.characters,
        "tool_calls": side.tool_calls,
        "parts": {name: value for name, value in side.parts.items() if isfinite(value)},
        "sample": {"sample": side.index, **rollouts.read_sample(side.index).to_json()},
    }

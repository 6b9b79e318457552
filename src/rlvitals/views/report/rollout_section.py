"""Show a few rollouts that prove a run's findings, in its report."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.errors import UnreadableLog, UsageError
from rlvitals.rollouts import evidence, rollout_index
from rlvitals.rollouts.rollout_columns import Rollouts
from rlvitals.rules.rule import Finding
from rlvitals.views.phrases import number
from rlvitals.views.report.elements import Section, section
from rlvitals.views.report.markup import Html, el, join, paragraphs
from rlvitals.views.report.page import Proof


def proofs(diagnosis: Diagnosis, path: Path, limit: int) -> tuple[Proof, ...]:
    """Return rollouts next to a run that show its findings, at most `limit` of each."""
    if not diagnosis.findings:
        return ()
    try:
        rollouts = rollout_index.of_run(path) if path.is_dir() else rollout_index.read(path)
    except UnreadableLog:
        return ()
    if rollouts is None:
        return ()
    cases = ((rule.name, finding) for rule, finding in diagnosis.findings)
    all_proofs = (
        proof for name, finding in cases if (proof := _proof(rollouts, name, finding, limit))
    )
    return tuple(islice(all_proofs, 8))


def _proof(rollouts: Rollouts, rule: str, finding: Finding, limit: int) -> Proof | None:
    try:
        indices = evidence.find(
            rollouts, finding.metric, finding.began, finding.ended, is_above=finding.is_high
        )
        samples = [(int(index), rollouts.read_sample(int(index))) for index in indices[:limit]]
    except (UsageError, UnreadableLog):  # rollouts do not show it, or changed meanwhile
        return None
    return Proof(rule, tuple(samples)) if samples else None


def rollouts(all_proofs: Sequence[Proof]) -> Section:
    """Return the section of rollouts, a block for each finding."""
    hint = el("code", "rlvitals samples RUN --finding NAME")
    blocks = [el("p", hint, join(" lists all that show a finding."), class_="about")]
    blocks += [block for proof in all_proofs for block in _block(proof)]
    return section(
        "Rollouts", *blocks, count=f"of {len(all_proofs)} finding{'s'[: len(all_proofs) != 1]}"
    )


def _block(proof: Proof) -> Iterator[Html]:
    yield el("h4", join(proof.rule))
    for index, sample in proof.samples:
        turns: list[Html] = []
        characters = 800
        for turn in sample.turns:
            calls = "".join(
                f"\n→ {call.name} {call.arguments}" + (" (failed)" if call.failed else "")
                for call in turn.tool_calls
            )
            text = (turn.text + calls).strip()
            if text and characters > 0:
                turns.append(_text(turn.role, text, characters))
                characters -= len(text)
        facts = [f"sample {index}"]
        if sample.step is not None:
            facts.append(f"step {sample.step:,}")
        if sample.task:
            facts.append(sample.task)
        if sample.reward is not None:
            scores = ", ".join(f"{name} {number(p.score)}" for name, p in sample.parts.items())
            facts.append(f"reward {number(sample.reward)}" + (f" ({scores})" if scores else ""))
        if sample.answer:
            facts.append(f"answer {_cut(sample.answer, 40)}")
        if sample.stop_reason:
            facts.append(f"ended by {sample.stop_reason}")
        if sample.error:
            facts.append(_cut(sample.error, 80))
        yield el(
            "article",
            el("p", " · ".join(facts), class_="about"),
            _text("prompt", sample.prompt, 400),
            *turns,
            class_="rollout",
        )


def _text(role: str, text: str, length: int) -> Html:
    return el(
        "div",
        el("span", role, class_="role"),
        el("pre", paragraphs(_cut(text, length))),
        class_="turn",
    )


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"

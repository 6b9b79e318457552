"""Check every sentence of a diagnosis."""

import re

import numpy as np
from common_sentences import LACKS, TOLD
from derivations import ANY_NUMBER, Case, wrong
from rule_sentences import RULES
from sentence_words import underived

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.types import Trace

ENDINGS = (
    " Learning works.", " It is not learning.", " There is nothing left to gain.",
)  # fmt: skip


def sentences(found: Diagnosis):
    """Return (rule, text, finding) of each sentence of findings, summary and verdict."""
    if not found.trace.lifecycle.failed:  # else it quotes the log's own traceback
        yield _of_finding(found, "verdict", found.verdict.why)
    for sentence in found.tldr:
        text = sentence.text
        for ending in ENDINGS:
            text = text.removesuffix(ending)
        text = text.removesuffix(".")
        text = text if text[:2].isupper() else text[0].lower() + text[1:]
        yield _of_finding(found, sentence.topic, text)
    for case in found.every:
        for text in (case.finding.summary, *case.finding.evidence, *case.finding.counter):
            yield case.rule.name, text, case.finding
    for rule, answer in found.undecided:
        yield rule.name, answer.why, None


def _of_finding(found: Diagnosis, name: str, text: str):
    for rule, finding in found.findings:
        if text.lower().startswith(finding.summary.lower()):
            return rule.name, text, finding
    return name, text, None


def problems(found: Diagnosis) -> tuple[int, list[tuple[str, str, str]]]:
    """Return how many sentences hold numbers, and those whose numbers do not follow."""
    checked, false = 0, []
    for rule, text, finding in sentences(found):
        absent = unlogged(text, found.trace)
        if absent or ANY_NUMBER.search(text) or "not logged" in text:
            checked += 1
            reason = absent or check(unquoted(text, found.trace), Case(found.trace, finding), rule)
            if reason:
                false.append((rule, text, reason))
    return checked, false


def unquoted(text: str, trace: Trace) -> str:
    """Return a sentence without the words that it quotes from how the log says the run ended."""
    cycle = trace.lifecycle
    last = cycle.traceback.strip().rsplit("\n", 1)[-1]
    for quote in (last, cycle.lost, cycle.reason):
        if quote:
            text = text.replace(quote, "")
    return text


def durations(found: Diagnosis) -> list[str]:
    """Return what is wrong with the steps and the hours that findings are said to have cost."""
    false, trace = [], found.trace
    for case in found.every:
        if case.waste is None:
            continue
        began, known = case.waste.since_began, case.waste.since_known
        if began.steps != trace.last_step - case.finding.began or known.steps > began.steps:
            false.append(f"{case.rule.name}: {began.steps} steps since {case.finding.began}")
        elapsed = trace.numbers("throughput/elapsed", 2)
        if elapsed is None or began.hours is None or (np.diff(elapsed.values) < 0).any():
            continue
        at = float(np.interp(case.finding.began, elapsed.steps, elapsed.values))
        if abs(3600 * began.hours - (elapsed.values[-1] - at)) > 1.0:
            false.append(f"{case.rule.name}: {began.hours} h since {case.finding.began}")
    return false


# What a sentence calls "not logged" in words of its own, and the columns that would belie it.
UNLOGGED = {
    "KL is": "policy/(?:approx_kl|kl_.*)", "KL per update is": "policy/(?:approx_kl|kl_signed)",
    "entropy is": "exploration/entropy.*", "clip fraction and ratio are":
    "policy/(?:clip_fraction.*|ratio)", "no outcome is": "outcome/return|outcome/reward",
    "no success rate is": "outcome/(?:eval_)?success_rate", "nothing of a critic is":
    "value/(?:loss.*|expl.*|critic.*|q_.*|td_error|mean)", "no KL is":
    "policy/(?:approx_kl|kl_signed)", "no evaluation is": "outcome/eval_.*",
    "no update is": "value/loss|policy/loss",
}  # fmt: skip


def unlogged(text: str, trace: Trace) -> str:
    """Say which column is logged although a sentence says that it is not; empty for none."""
    absent = [f"{re.escape(name)}(?:/.*)?" for name in re.findall(r"(\S+/\S+) is not logged", text)]
    absent += [
        columns for words, columns in UNLOGGED.items()
        if re.search(rf"(?i)(?<![\w/]){words} (?:not )?logged", text)
    ]  # fmt: skip
    for columns in absent:
        for name, series in trace.series.items():
            if re.fullmatch(columns, name) and len(series.finite()):
                return f"{name} is logged"
    return ""


def check(text: str, case: Case, rule: str) -> str:
    """Say which number of a sentence does not follow from the trace; empty where all do."""
    own = [*RULES.get(rule, ()), *TOLD, *LACKS]
    reason = wrong(text, case, own, lambda inner, c: check(inner, c, rule))
    if reason == "no claim derives its numbers":
        return underived(text, case, rule)
    return reason

"""Write a diagnosis in two kilobytes: verdict, causes, evidence and one remedy each.

For programs and language models that pay for every byte they read.
"""

import json
from collections.abc import Mapping

from rlvitals.diagnosis import remedies
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.root_cause import Case, flat
from rlvitals.errors import VitalsError, harmless
from rlvitals.rules.rule import Severity
from rlvitals.types import Trace
from rlvitals.views import phrases
from rlvitals.views.json_view import Json

MAX_BRIEF_BYTES = 2000  # of one run, as indented JSON
MAX_SENTENCE_BYTES = 200  # as JSON: the verdict and one cause of such sentences fit


def document(name: str, result: Diagnosis | VitalsError) -> dict[str, Json]:
    """Return one run as JSON members of at most MAX_BRIEF_BYTES; `more` counts what is left out.

    Warnings and errors are listed before notes. A text from the log is cut, and its control
    characters are escaped.
    """
    if isinstance(result, VitalsError):
        return {
            "run": _cut(name),
            "verdict": "unreadable",
            "why": _cut(result.problem),
            "try": _cut(result.hint),
        }
    members: dict[str, Json] = {
        "run": _cut(name),
        "verdict": result.verdict.word.value,
        "why": _cut(result.verdict.why),
        "profile": result.trace.profile.value,
        "step": result.trace.last_step,
        "can_tell": result.can_tell,
    }
    severe = [case for case in result.cases if case.severity > Severity.NOTE]
    cases = severe or [*result.cases]
    causes: list[Json] = []
    for number, case in enumerate(cases):
        complete = number == len(cases) - 1 and len(cases) == len(result.cases)
        causes.append(cause(case, result.trace))
        if (
            size({**members, "causes": causes, **({} if complete else {"more": 999})})
            > MAX_BRIEF_BYTES
        ):
            causes.pop()
            break
    count = len(result.cases) - len(causes)
    return {**members, "causes": causes, **({"more": count} if count else {})}


def cause(case: Case, trace: Trace) -> dict[str, Json]:
    """Return a root cause with its evidence, what it explains and the first remedy."""
    finding = case.finding
    evidence = finding.evidence or tuple(filter(None, [phrases.limit(finding)]))
    tries = finding.remedies or tuple(map(remedies.neutral, case.rule.remedies))
    explained = [symptom.rule.name for symptom in flat(case)[1:]]
    members: dict[str, Json] = {
        "rule": case.rule.name,
        "severity": finding.severity.name.lower(),
        "what": _cut(finding.summary),
        "steps": phrases.step_range(finding, trace),
        "evidence": [_cut(sentence) for sentence in evidence[:2]],
    }
    if explained:
        members["explains"] = [*explained[:6]]
    return {**members, **({"try": _cut(tries[0])} if tries else {})}


def size(members: Mapping[str, Json]) -> int:
    """Return the bytes of a run as printed: JSON, indented within a list of runs."""
    return len(json.dumps({"runs": [members]}, indent=2, ensure_ascii=True))


def text(members: Mapping[str, Json]) -> str:
    """Return a document of this module as lines of text."""
    lines = [f"{str(members['verdict']).upper()} {members['run']}: {members['why']}"]
    causes = members.get("causes")
    for entry in causes if isinstance(causes, list) else ():
        if not isinstance(entry, dict):
            continue
        cause_lines = [f"{entry['severity']}[{entry['rule']}] {entry['what']} ({entry['steps']})"]
        for label in ("evidence", "explains", "try"):
            content = entry.get(label)
            sentences = content if isinstance(content, list) else [content] if content else []
            texts = [str(sentence) for sentence in sentences]
            if label == "explains" and texts:
                texts = [", ".join(texts)]
            cause_lines += [f"  {label}: {sentence}" for sentence in texts]
        lines += cause_lines
    if members.get("more"):
        lines.append(f"and {members['more']} more: without --brief")
    if "causes" not in members and members.get("try"):
        lines.append(f"  try: {members['try']}")
    return "\n".join(lines)


def _cut(sentence: str) -> str:
    """Escape control characters, and cut what takes more than MAX_SENTENCE_BYTES as JSON."""
    safe = harmless(sentence, MAX_SENTENCE_BYTES)
    while len(json.dumps(safe)) > MAX_SENTENCE_BYTES:
        safe = f"{safe[: 3 * len(safe) // 4]}…"
    return safe

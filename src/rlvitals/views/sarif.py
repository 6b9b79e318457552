"""Write diagnoses as SARIF 2.1.0, which code-scanning pages show."""

from collections.abc import Sequence
from pathlib import Path

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.root_cause import Case
from rlvitals.errors import VitalsError, harmless
from rlvitals.views import json_view, phrases
from rlvitals.views.json_view import Json


def document(runs: Sequence[tuple[str, Path, Diagnosis | VitalsError]], version: str) -> str:
    """Return one SARIF run whose results are the findings; each names the run it is of.

    The location of a result is the run's folder: a log has no line that is to blame.
    """
    rules: dict[str, Json] = {}
    results: list[Json] = []
    problems: list[Json] = []
    for name, root, result in runs:
        if isinstance(result, VitalsError):
            problems.append({"level": "error", "message": {"text": harmless(str(result))}})
            continue
        for case in result.every:
            doc = case.rule.doc.strip().splitlines()
            rules.setdefault(
                case.rule.name,
                {
                    "id": case.rule.name,
                    "shortDescription": {"text": doc[0] if doc else case.rule.name},
                    "help": {"text": f"rlvitals explain {case.rule.name}"},
                },
            )
            results.append(_result(case, name, root, result))
    driver: dict[str, Json] = {"name": "rlvitals", "version": version, "rules": [*rules.values()]}
    invocation: Json = {
        "executionSuccessful": not problems,
        "toolExecutionNotifications": problems,
    }
    return json_view.text_of(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{"tool": {"driver": driver}, "invocations": [invocation], "results": results}],
        }
    )


def _result(case: Case, name: str, root: Path, diagnosis: Diagnosis) -> Json:
    lines = phrases.details(case, diagnosis.trace)
    text = "\n".join([case.finding.summary, *(f"{line.label}: {line.text}" for line in lines)])
    members: dict[str, Json] = {
        "ruleId": case.rule.name,
        "level": case.finding.severity.name.lower(),
        "message": {"text": "\n".join(harmless(line) for line in text.splitlines())},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": root.as_posix()}},
                "logicalLocations": [{"name": harmless(name), "kind": "run"}],
            }
        ],
        "partialFingerprints": {"run/rule": f"{harmless(name)}/{case.rule.name}"},
    }
    if diagnosis.new is not None:
        members["baselineState"] = "new" if case.rule.name in diagnosis.new else "unchanged"
    return members

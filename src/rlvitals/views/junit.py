"""Write diagnoses as JUnit XML, which continuous integration shows as tests."""

from collections.abc import Collection, Sequence
from xml.etree import ElementTree as ET

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.errors import VitalsError, harmless
from rlvitals.views import phrases

GateRun = tuple[str, Diagnosis | VitalsError, Collection[str]]  # name, result, rules that fail


def document(runs: Sequence[GateRun]) -> str:
    """Return a suite for each run: one case for its verdict and one for each finding.

    A finding that fails the check is a failure. A run that cannot be read or judged is an error,
    as too little data is never a pass.
    """
    root = ET.Element("testsuites", name="rlvitals")
    for name, result, failing in runs:
        suite = ET.SubElement(root, "testsuite", name=harmless(name))
        verdict = ET.SubElement(suite, "testcase", classname=harmless(name), name="verdict")
        if isinstance(result, VitalsError):
            ET.SubElement(verdict, "error", message=harmless(result.problem)).text = harmless(
                result.where
            )
        else:
            _add_cases(suite, verdict, name, result, failing)
        for kind, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            suite.set(kind, str(sum(1 for _ in suite.iter(tag))))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_cases(
    suite: ET.Element, verdict: ET.Element, name: str, result: Diagnosis, failing: Collection[str]
) -> None:
    sentence = f"{result.verdict.word.value}: {harmless(result.verdict.why)}"
    if "verdict" in failing:
        ET.SubElement(verdict, "failure", message=sentence)
    elif not result.can_tell:
        ET.SubElement(verdict, "error", message=sentence)
    for case in result.every:
        test = ET.SubElement(suite, "testcase", classname=harmless(name), name=case.rule.name)
        lines = [f"{line.label}: {line.text}" for line in phrases.details(case, result.trace)]
        text = harmless("; ".join(lines), 4000)
        if case.rule.name in failing:
            message = f"{case.finding.severity.name.lower()}: {harmless(case.finding.summary)}"
            ET.SubElement(test, "failure", message=message).text = text
        else:
            ET.SubElement(test, "system-out").text = text

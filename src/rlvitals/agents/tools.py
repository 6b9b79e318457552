"""The tools that an agent may call: all but `ask` only read."""

import hashlib
import json
from collections.abc import Callable, Mapping
from math import inf, nan

from rlvitals.agents.workspace import Workspace
from rlvitals.comparison import diff
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.root_cause import Case
from rlvitals.errors import UnreadableLog, UsageError, harmless, nearest, quantity
from rlvitals.rollouts import evidence as rollout_evidence
from rlvitals.rollouts import row_filter
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import downsample
from rlvitals.tracking import requests
from rlvitals.types import Series
from rlvitals.views import brief, phrases, rollout_list, run_diff
from rlvitals.views.console import plain

Arguments = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its description for the agent, its arguments (name: meaning), and its function."""

    name: str
    doc: str
    arguments: Mapping[str, str]
    call: Callable[[Workspace, Arguments], str]
    optional: tuple[str, ...] = ()
    writes: bool = False


def list_runs(workspace: Workspace, arguments: Arguments) -> str:
    """Return a line for each run: verdict, worst first, with its first cause."""
    search = arguments.get("search", "").lower()
    lines = []
    for name, result in workspace.worst_first():
        line = f"{_verdict(result)} {_quote(name)}{_step(result)}{_first_cause(result)}"
        if search in line.lower():
            lines.append(line)
    return "\n".join(lines) or "no run"


def diagnose(workspace: Workspace, arguments: Arguments) -> str:
    """Return verdict, causes, evidence and remedies of a run as JSON."""
    name = arguments["run"]
    run, options = workspace.find(name)
    return json.dumps(brief.document(name, workspace.judge({name: (run, options)})[name]), indent=1)


def explain_verdict(workspace: Workspace, arguments: Arguments) -> str:
    """Return the chain of causes of a run, and other causes with what speaks against them."""
    result = workspace.diagnosis(arguments["run"])
    lines = [f"{result.verdict.word.value}: {harmless(result.verdict.why)}"]
    lines += [f"{sentence.topic}: {harmless(sentence.text)}" for sentence in result.tldr]
    for case in result.cases:
        finding = case.finding
        head = f"{finding.severity.name.lower()}[{case.rule.name}] {finding.summary}"
        lines.append(harmless(f"{head} ({phrases.step_range(finding, result.trace)})"))
        lines += [
            harmless(f"  explains {symptom.rule.name}: {symptom.finding.summary}")
            for symptom in case.symptoms
        ]
        lines += [harmless(f"  speaks against: {sentence}") for sentence in finding.counter]
        lines += [f"  {line.label}: {harmless(line.text)}" for line in phrases.consequences(case)]
    return "\n".join([*lines, f"could not be judged: {quantity(len(result.undecided), 'rule')}"])


def evidence(workspace: Workspace, arguments: Arguments) -> str:
    """Return one finding in full, with an excerpt of its curve."""
    result = workspace.diagnosis(arguments["run"])
    name = arguments["rule"]
    case = _case(result, name)
    lines = [f"{case.finding.severity.name.lower()}[{name}] {harmless(case.finding.summary)}"]
    lines += [
        f"{line.label}: {harmless(line.text)}" for line in phrases.details(case, result.trace)
    ]
    if (curve := phrases.curve(case.finding, result.trace)) is not None:
        head = f"curve of {harmless(curve.name)}: step and value of"
        lines += [f"{head} first, last, lowest and highest of each eighth", *_excerpt(curve.series)]
    return "\n".join(lines)


def _excerpt(series: Series) -> list[str]:
    """Return step and value of the points that draw a curve, the first NaN or infinity too."""
    points = downsample.points(series, 8)
    rows = list(zip(points.steps.tolist(), points.values.tolist(), strict=True))
    for steps, value in ((points.nan, nan), (points.above, inf), (points.below, -inf)):
        rows += [(step, value) for step in steps.tolist()]
    return [f"{step:,} {value:.4g}" for step, value in sorted(rows, key=lambda row: row[0])]


def _case(result: Diagnosis, name: str) -> Case:
    """Return a finding by its rule's name. Raises UsageError for one that was not found."""
    cases = {case.rule.name: case for case in result.every}
    if name not in cases:
        hint = nearest(name, cases) or f"one of {', '.join(cases)}" if cases else "none was found"
        raise UsageError(f"this run has no finding {name!r}", hint=hint)
    return cases[name]


def samples(workspace: Workspace, arguments: Arguments) -> str:
    """Return a line for each saved rollout, of a finding or a step; or one rollout in full."""
    name = arguments["run"]
    rollouts = workspace.rollouts(name)
    if "sample" in arguments:
        number = _whole_number(arguments["sample"], "sample")
        if number >= len(rollouts):
            hint = f"0 to {len(rollouts) - 1}"
            raise UsageError(f"no rollout has the number {number}", hint=hint)
        return plain(rollout_list.full(number, rollouts.read_sample(number)))
    if "rule" in arguments:
        finding = _case(workspace.diagnosis(name), arguments["rule"]).finding
        indices = rollout_evidence.find(
            rollouts, finding.metric, finding.began, finding.ended, is_above=finding.is_high
        )
    else:
        step = _whole_number(arguments["step"], "step") if "step" in arguments else None
        indices = row_filter.select(rollouts, row_filter.Filter(step=step))
    numbers = indices[:40].tolist()  # a page holds some twenty
    count = f"{len(numbers)} of {quantity(len(indices), 'rollout')}; {len(rollouts)} saved"
    return f"{count}\n{plain(rollout_list.listing(rollouts, numbers))}"


def ask(workspace: Workspace, arguments: Arguments) -> str:
    """Ask a running training to save a checkpoint or to stop; return what it was asked."""
    name, request = arguments["run"], arguments["request"]
    if request not in {"save", "stop"}:
        raise UsageError(f"a training cannot be asked to {request!r}", hint="save or stop")
    requests.ask(workspace.root_of(name), request, "an agent asked")
    return (
        f"asked to {request}: {_quote(name)} does so where its loop next calls run.requests(); "
        "a loop without that call goes on"
    )


def _whole_number(text: str, name: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"{name} is a whole number, not {text!r}", hint="as samples lists it")
    return int(text)


def compare(workspace: Workspace, arguments: Arguments) -> str:
    """Return the settings in which two runs differ, and where their metrics part."""
    first, second = (workspace.diagnosis(arguments[key]) for key in ("first", "second"))
    facts = (workspace.facts(arguments["first"]), workspace.facts(arguments["second"]))
    return plain(run_diff.report(diff.diff_runs(first.trace, second.trace, facts)))


def list_changes(workspace: Workspace, arguments: Arguments) -> str:
    """Return the runs whose verdict, findings or step differ from those of an earlier answer.

    The last line is the state to give back next time.
    """
    state = {name: _state(result) for name, result in workspace.worst_first()}
    try:
        earlier = json.loads(arguments.get("state") or "{}")
    except ValueError as error:
        raise UsageError(
            "unknown state: use one from an earlier answer", hint="leave it out"
        ) from error
    if not isinstance(earlier, dict):
        raise UsageError("unknown state: use one from an earlier answer", hint="leave it out")
    lines = []
    for name, (step, verdict, findings) in state.items():
        digest = earlier.get(_key(name))
        if digest != _digest(step, verdict, findings):
            news = "new" if digest is None else "changed"
            lines.append(f"{news}: {verdict} {_quote(name)} step {step:,} {' '.join(findings)}")
    current = {_key(name): _digest(*entry) for name, entry in state.items()}
    missing = len(set(earlier) - set(current))
    lines += [f"{quantity(missing, 'run')} gone"] if missing else []
    return "\n".join([*(lines or ["nothing has changed"]), f"state: {json.dumps(current)}"])


def _state(result: Diagnosis | UnreadableLog) -> tuple[int, str, tuple[str, ...]]:
    if isinstance(result, UnreadableLog):
        return 0, "unreadable", ()
    findings = tuple(
        f"{finding.severity.name.lower()}[{rule.name}]" for rule, finding in result.findings
    )
    return result.trace.last_step, result.verdict.word.value, findings


def _key(name: str) -> str:
    """Return a short key of a run's name: the state is given back by a language model."""
    return _hash(name)


def _digest(step: int, verdict: str, findings: tuple[str, ...]) -> str:
    return _hash(f"{step} {verdict} {findings}")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:8]


def _verdict(result: Diagnosis | UnreadableLog) -> str:
    return "unreadable" if isinstance(result, UnreadableLog) else result.verdict.word.value


def _step(result: Diagnosis | UnreadableLog) -> str:
    return "" if isinstance(result, UnreadableLog) else f" step {result.trace.last_step:,}"


def _first_cause(result: Diagnosis | UnreadableLog) -> str:
    if isinstance(result, UnreadableLog):
        return f" {harmless(result.problem, 200)}"
    if not result.cases:
        return ""
    case = result.cases[0]
    return f" {case.finding.severity.name.lower()}[{case.rule.name}]"


def _quote(name: str) -> str:
    return json.dumps(harmless(name, 200), ensure_ascii=False)


RUN_DOC = "the run's name, as list_runs gives it"
TOOLS = (
    Tool(
        "list_runs",
        "List training runs, worst first: verdict, name, last step, first cause.",
        {"search": "only lines that contain this word"},
        list_runs,
        optional=("search",),
    ),
    Tool(
        "diagnose",
        "Say whether a run learns and, if not, what is wrong: causes, evidence, one remedy each.",
        {"run": RUN_DOC},
        diagnose,
    ),
    Tool(
        "why",
        "Explain a verdict: which finding causes which, what else could be the cause.",
        {"run": RUN_DOC},
        explain_verdict,
    ),
    Tool(
        "evidence",
        "Show one finding in full: limit and its origin, numbers, remedies, points of its curve.",
        {"run": RUN_DOC, "rule": "the finding's rule, such as kl-spike"},
        evidence,
    ),
    Tool(
        "samples",
        "List saved rollouts of a run, those that show a finding, or one in full.",
        {
            "run": RUN_DOC,
            "rule": "only rollouts that show this finding",
            "step": "only rollouts of this step",
            "sample": "the number of one rollout, to read it in full",
        },
        samples,
        optional=("rule", "step", "sample"),
    ),
    Tool(
        "compare",
        "Show in which settings two runs differ and where their metrics part.",
        {"first": RUN_DOC, "second": RUN_DOC},
        compare,
    ),
    Tool(
        "changed",
        "List runs that are new or changed since an earlier answer of this tool.",
        {"state": "the state at the end of the earlier answer; leave it out at first"},
        list_changes,
        optional=("state",),
    ),
    Tool(
        "ask",
        "Ask a running training to save a checkpoint or to stop gently.",
        {"run": RUN_DOC, "request": "save or stop"},
        ask,
        writes=True,
    ),
)

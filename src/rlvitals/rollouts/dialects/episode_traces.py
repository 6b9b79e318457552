"""Read the episodes of verifiers 1 and prime-rl: `traces.jsonl`, one episode or trace a line.

prime-rl writes `rollouts/step_40/train/all/traces.jsonl`, and the part that it trained on once
more under `effective`; a stream of all steps holds the same records. A trace is a graph of
messages, of which the last branch is the conversation. Sources: `FileMonitor.log_episodes`,
`Episode.to_record`, `verifiers/v1/trace.py`.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from rlvitals.rollouts.chat_messages import split_prompt, to_turns
from rlvitals.rollouts.dialects.rollout_dialect import (
    Dialect,
    Record,
    integer,
    mapping,
    mappings,
    number,
    numbers,
    step_in,
    token_total,
)
from rlvitals.rollouts.sample import (
    EVAL_SPLIT,
    TRAINING_SPLIT,
    RewardPart,
    Sample,
    Tokens,
    to_text,
)

COHORT_FOLDER = re.compile(r"step_(\d+)")


def claims(path: Path, record: Record) -> bool:
    """Claim episodes and traces, and of two files with one cohort that with all of it."""
    if path.parent.name == "effective" and (path.parent.parent / "all" / path.name).exists():
        return False
    return record.keys() >= {"task", "traces"} or record.keys() >= {"task", "nodes", "calls"}


def samples(path: Path, record: Record) -> Sequence[Sample]:
    """Convert a line: a sample for each trace, or one that failed before it had any."""
    if "traces" not in record:
        return [_sample(path, {}, record)]
    traces = mappings(record["traces"])
    return [_sample(path, record, trace) for trace in traces or [{}]]


def _sample(path: Path, episode: Record, trace: Record) -> Sample:
    work = mapping(mapping(episode.get("run")).get("work"))
    task = mapping(trace.get("task") or episode.get("task"))
    data, env = mapping(task.get("data")), mapping(episode.get("env"))
    branch = _last_branch(mappings(trace.get("nodes")))
    prompt, turns = split_prompt(to_turns([mapping(node.get("message")) for node in branch]))
    calls = mappings(trace.get("calls"))
    usages = (mapping(call.get("usage")) for call in calls)
    finish = next(
        (to_text(c["finish_reason"]) for c in reversed(calls) if c.get("finish_reason")), ""
    )
    parts = _rewards(mapping(trace.get("rewards")))
    errors = mappings(trace.get("errors")) or mappings(episode.get("errors"))
    advantages = numbers(next((n["advantages"] for n in branch if n.get("advantages")), None))
    step = integer(work.get("step"))
    kind = to_text(work.get("type")) or (
        TRAINING_SPLIT if TRAINING_SPLIT in path.parts else EVAL_SPLIT
    )
    return Sample(
        prompt=prompt or to_text(data.get("prompt") or data.get("question")),
        turns=tuple(t for t in turns if t.text or t.tool_calls),  # an interrupted one ends blank
        step=step_in(path, COHORT_FOLDER) if step is None else step,
        split=kind,
        group=to_text(mapping(episode.get("group")).get("id") or task.get("key")),
        task=to_text(env.get("name") or env.get("id") or task.get("type")),
        answer=to_text(data.get("answer")),
        policy_version=integer(mapping(work.get("policy")).get("start")),
        reward=sum(part.value for part in parts.values()) if parts else None,
        parts=parts,
        advantage=advantages[0] if advantages else None,
        stop_reason=finish
        if finish == "length"
        else to_text(trace.get("stop_condition")) or finish,
        error=": ".join(to_text(errors[-1].get(k)) for k in ("type", "message")) if errors else "",
        seconds=_seconds(mapping(trace.get("timing"))),
        token_count=token_total(usage.get("completion_tokens") for usage in usages),
        tokens=Tokens(
            sampler_log_probs=tuple(p for n in branch for p in numbers(n.get("logprobs")))
        ),
    )


def _last_branch(nodes: Sequence[Record]) -> list[Record]:
    """Return the nodes from a root to the last leaf; each comes after its parent."""
    path: list[Record] = []
    number_of_node = len(nodes) - 1 if nodes else None
    while number_of_node is not None and 0 <= number_of_node < len(nodes):
        path.append(nodes[number_of_node])
        parent = integer(nodes[number_of_node].get("parent"))
        number_of_node = parent if parent is not None and parent < number_of_node else None
    return path[::-1]


def _rewards(rewards: Record) -> dict[str, RewardPart]:
    """Return the parts that were scored; null stands for scoring that did not run."""
    parts: dict[str, RewardPart] = {}
    for name, reward in rewards.items():
        score = number(mapping(reward).get("score"))
        weight = number(mapping(reward).get("weight"))
        if score is not None:
            parts[name] = RewardPart(score, 1.0 if weight is None else weight)
    return parts


def _seconds(timing: Record) -> float | None:
    start = number(timing.get("start"))
    ends = [
        number(mapping(timing.get(phase)).get("end"))
        for phase in ("setup", "agent", "finalize", "scoring")
    ]
    end = max((end for end in ends if end), default=None)
    return None if start is None or end is None else max(0.0, end - start)


def home(path: Path) -> Path:
    """Return the run's folder: the one above `rollouts` or `monitors`."""
    names = ("rollouts", "monitors")
    return next((p.parent for p in path.parents if p.name in names), path.parent)


DIALECT = Dialect(
    name="episodes",
    title="verifiers 1 and prime-rl traces",
    files=("traces.jsonl", "stream.jsonl"),
    layout="lines",
    claims=claims,
    samples=samples,
    example="outputs/rollouts/step_40/train/all/traces.jsonl",
    home=home,
)

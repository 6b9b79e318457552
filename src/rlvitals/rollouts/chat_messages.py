"""Convert chat messages, as OpenAI's API has them, to a prompt and turns."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from rlvitals.rollouts.sample import ToolCall, Turn, to_text

# How tools report that a call failed: at the start of the result.
FAILURE = re.compile(
    r"\s*(?:[\[{(\"'<*]+\s*)*(?:tool\s+)?"
    r"(?:error|exception|traceback|fail(?:ed|ure)|time[d ]*out|unknown tool|invalid)\b",
    re.IGNORECASE,
)
ROLES = {"model": "assistant", "agent": "assistant", "ai": "assistant", "human": "user",
         "function": "tool", "ipython": "tool", "environment": "tool"}  # fmt: skip


def is_failure(result: str) -> bool:
    """Return whether a tool's result reads as a failed call."""
    return FAILURE.match(result[:200]) is not None  # a failure is named at the beginning


def content_text(content: object) -> str:
    """Return the text of a message's content; images and sounds are named in brackets."""
    if not isinstance(content, list):
        return to_text(content)
    texts: list[str] = []
    for part in content:
        if isinstance(part, Mapping):
            kind = str(part.get("type", "part"))
            texts.append(to_text(part["text"]) if "text" in part else f"[{kind}]")
        else:
            texts.append(to_text(part))
    return "\n".join(texts)


def to_turn(message: Mapping[str, object]) -> Turn:
    """Convert one message; its reasoning precedes its text."""
    role = to_text(message.get("role"))
    reasoning = to_text(message.get("reasoning_content") or message.get("reasoning"))
    text = content_text(message.get("content"))
    if reasoning:
        text = f"<think>{reasoning}</think>\n{text}"
    calls = message.get("tool_calls")
    tool_calls = tuple(map(_to_call, calls)) if isinstance(calls, list) else ()
    return Turn(ROLES.get(role, role), text, tool_calls)


def _to_call(call: object) -> ToolCall:
    fields = call if isinstance(call, Mapping) else {}
    function = fields.get("function")
    function = function if isinstance(function, Mapping) else fields
    return ToolCall(to_text(function.get("name")), to_text(function.get("arguments")))


def to_turns(messages: Iterable[object]) -> tuple[Turn, ...]:
    """Convert messages, and add each tool's result to the call that it answers.

    A result answers the call of its `tool_call_id`; without one, the first call without a result.
    """
    turns: list[Turn] = []
    open_calls: dict[str, tuple[int, int]] = {}  # by id: turn and call
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        turn = to_turn(message)
        if turn.role == "tool" and open_calls:
            answered = to_text(message.get("tool_call_id"))
            key = answered if answered in open_calls else next(iter(open_calls))
            index, number = open_calls.pop(key)
            tool_calls = list(turns[index].tool_calls)
            tool_calls[number] = replace(
                tool_calls[number], result=turn.text, failed=is_failure(turn.text)
            )
            turns[index] = replace(turns[index], tool_calls=tuple(tool_calls))
        calls = message.get("tool_calls")
        for number, call in enumerate(calls if isinstance(calls, list) else ()):
            call_id = to_text(call.get("id")) if isinstance(call, Mapping) else ""
            open_calls[call_id or f"{len(turns)}/{number}"] = len(turns), number
        turns.append(turn)
    return tuple(turns)


def split_prompt(turns: Sequence[Turn]) -> tuple[str, tuple[Turn, ...]]:
    """Split a conversation into the prompt, all before the first reply, and the turns from there.

    The prompt of a single user message is its text; of several messages each has its role.
    """
    start = next((n for n, turn in enumerate(turns) if turn.role == "assistant"), len(turns))
    opening = turns[:start]
    if len(opening) == 1:
        return opening[0].text, tuple(turns[start:])
    return "\n\n".join(f"[{turn.role}]\n{turn.text}" for turn in opening), tuple(turns[start:])


def to_prompt(prompt: object) -> str:
    """Return the text of a prompt that is a text or a list of messages."""
    if isinstance(prompt, list) and prompt and isinstance(prompt[0], Mapping):
        turns = to_turns(prompt)
        if len(turns) == 1:
            return turns[0].text
        return "\n\n".join(f"[{turn.role}]\n{turn.text}" for turn in turns)
    return content_text(prompt)


def tagged_turns(text: str) -> tuple[Turn, ...]:
    """Convert a flat text to one turn of the policy, with the tool calls written in its tags."""
    if "<tool_call>" not in text:
        return (Turn("assistant", text),)
    # The tags of Hermes and Qwen, in which the text of a whole episode has its calls.
    results = [
        match[1].strip()
        for match in re.finditer(r"<tool_response>(.*?)</tool_response>", text, re.DOTALL)
    ]
    calls = []
    for number, match in enumerate(re.finditer(r"<tool_call>(.*?)</tool_call>", text, re.DOTALL)):
        result = results[number] if number < len(results) else None
        failed = result is not None and is_failure(result)
        name = re.search(r"[\"']name[\"']\s*:\s*[\"']([^\"']+)", match[1])
        calls.append(ToolCall(name[1] if name else "", match[1].strip(), result, failed))
    return (Turn("assistant", text, tuple(calls)),)

"""Text of an assistant turn to reasoning, content and tool calls. Paper sections 2 and 8.

The format is Nanbeige's: `<tool_call>\\n{"name": ..., "arguments": {...}}\\n</tool_call>`, several in a row if need be.
Policy, where public parsers disagree: what is unambiguous is taken (arguments as a string of JSON, a raw newline inside a
string); what is incomplete is not a call (no closing tag, a brace missing), but it is never dropped silently: it is listed
in `malformed` with a reason and stays in `content`, so that the next prompt shows the model what it wrote.
Left out on purpose: other families' formats (XML parameters, bare JSON), repair of broken JSON.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nbcore.chat.template import END_OF_TURN

TAG = re.compile(r"<think>|<tool_call>|</tool_call>")
SPACE = re.compile(r"\s*")
OPEN, CLOSE = "<tool_call>", "</tool_call>"
THINK, THOUGHT = "<think>", "</think>"


@dataclass(frozen=True)
class ToolCall:
    """One call: the tool's name and its arguments as JSON values."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class ParsedTurn:
    """An assistant turn taken apart.

    reasoning: None when the turn holds no think block. content: everything outside reasoning and well-formed calls, without
    the newlines that the template puts around it. malformed: (text as written, reason). closed_think: False when a think
    block was opened and never closed (the turn was cut off while thinking).
    """

    reasoning: str | None
    content: str
    calls: list[ToolCall] = field(default_factory=list)
    malformed: list[tuple[str, str]] = field(default_factory=list)
    closed_think: bool = True

    def message(self) -> dict[str, Any]:
        """The turn as a message for the template. Text that stood between calls comes before them."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.reasoning is not None:
            message["reasoning_content"] = self.reasoning
        if self.calls:
            message["tool_calls"] = [
                {"type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in self.calls
            ]
        return message


class _Malformed(Exception):
    """Why a piece of text is no call."""


def parse(text: str) -> ParsedTurn:
    """Take a turn apart; never raises, whatever the text holds. A closing <|im_end|> is ignored."""
    text = text.rstrip().removesuffix(END_OF_TURN) if text.rstrip().endswith(END_OF_TURN) else text
    reasoning, rest, closed = _split_reasoning(text)
    calls: list[ToolCall] = []
    malformed: list[tuple[str, str]] = []
    outside: list[str] = []
    position = 0
    while tag := TAG.search(rest, position):
        start, after = tag.start(), tag.end()
        outside.append(rest[position:start])
        if tag.group() == THINK:  # a later think block: stays in the content, and calls inside it do not count
            end = rest.find(THOUGHT, after)
            closed = closed and end >= 0
            position = end + len(THOUGHT) if end >= 0 else len(rest)
            outside.append(rest[start:position])
        elif tag.group() == CLOSE:
            malformed.append((CLOSE, "a closing tag without an opening one"))
            outside.append(CLOSE)
            position = after
        else:
            try:
                call, position = _read_call(rest, after)
                calls.append(call)
            except _Malformed as reason:
                position = _end_of_malformed(rest, after)
                malformed.append((rest[start:position], str(reason)))
                outside.append(rest[start:position])
    outside.append(rest[position:])
    content = "".join(outside)
    # Blank lines around calls and after a think block are the template's, not the assistant's.
    content = content.strip("\n") if calls or reasoning is not None else content
    return ParsedTurn(reasoning, "" if calls and not content.strip() else content, calls, malformed, closed)


def validate(call: ToolCall, tools: Sequence[Mapping[str, Any]]) -> str | None:
    """Why this call does not fit the tools' JSON schemas, in one sentence; None if it fits.

    An argument that the schema does not list is a fault unless the schema sets additionalProperties itself. Raises
    ValueError naming the tool when a schema is no valid JSON schema.
    """
    by_name = {tool.get("function", tool)["name"]: tool.get("function", tool) for tool in tools}
    if call.name not in by_name:
        near = difflib.get_close_matches(call.name, by_name, n=1)
        return f"there is no tool {call.name!r}" + (f" (nearest: {near[0]!r})" if near else f"; known: {', '.join(sorted(by_name))}")
    schema = by_name[call.name].get("parameters") or {"type": "object", "properties": {}}
    if "properties" in schema and "additionalProperties" not in schema:
        schema = {**schema, "additionalProperties": False}
    import jsonschema  # here and not above: it loads a grammar of URIs, four seconds of CPU

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ValueError(f"The parameters of tool {call.name!r} are no valid JSON schema: {error.message}") from error
    errors = sorted(jsonschema.Draft202012Validator(schema).iter_errors(call.arguments), key=lambda e: list(map(str, e.path)))
    if not errors:
        return None
    where = ".".join(map(str, errors[0].path))
    return f"argument {where}: {errors[0].message}" if where else errors[0].message


def _split_reasoning(text: str) -> tuple[str | None, str, bool]:
    """(reasoning, rest, closed). The opening tag may stand in the generation prompt, hence be missing here."""
    head = text.lstrip()
    opened = head.startswith(THINK)
    body = head[len(THINK) :] if opened else text
    before, tag, after = body.partition(THOUGHT)
    if opened and not tag:
        return before.strip("\n"), "", False
    if opened or (tag and THINK not in before):
        return before.strip("\n"), after, True
    return None, text, True


def _read_call(text: str, start: int) -> tuple[ToolCall, int]:
    """The call whose JSON begins at or after `start`, and the position behind its closing tag."""
    begin = SPACE.match(text, start).end()
    if not text.startswith("{", begin):
        raise _Malformed("no JSON object after the opening tag")
    try:
        # raw_decode knows where the object ends, so braces and tags inside strings do no harm; strict=False takes raw newlines.
        value, end = json.JSONDecoder(strict=False, parse_constant=_no_constant).raw_decode(text, begin)
    except (ValueError, RecursionError) as error:
        raise _Malformed(f"not JSON: {getattr(error, 'msg', error)}") from error
    closing = SPACE.match(text, end).end()
    if not text.startswith(CLOSE, closing):
        following = TAG.search(text, closing)
        has_end = following is not None and following.group() == CLOSE
        raise _Malformed("text after the JSON object" if has_end else "no closing tag")
    return _to_call(value), closing + len(CLOSE)


def _to_call(value: dict[str, Any]) -> ToolCall:
    name, arguments = value.get("name"), value.get("arguments")
    if not isinstance(name, str) or not name:
        raise _Malformed("no name")
    if "arguments" not in value:
        raise _Malformed("no arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments, strict=False, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise _Malformed(f"the arguments are a string that is not JSON: {getattr(error, 'msg', error)}") from error
    if not isinstance(arguments, dict):
        raise _Malformed(f"the arguments are no JSON object but {type(arguments).__name__}")
    try:
        json.dumps([name, arguments], ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise _Malformed("half of a surrogate pair in a string") from None
    return ToolCall(name, arguments)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _end_of_malformed(text: str, start: int) -> int:
    """A malformed call reaches to its closing tag, else to the next opening tag, else to the end."""
    close, following = text.find(CLOSE, start), text.find(OPEN, start)
    if close >= 0 and not 0 <= following < close:
        return close + len(CLOSE)
    return following if following >= 0 else len(text)

"""What an agent calls: tools with a schema, and the box that runs them so that whatever happens is an observation.

A tool is a schema and a function from arguments to text. What it cannot do it says with ToolError: words for the model, and a kind that
is counted. A fault of the tool itself is told to the model as well and counted as "fault", with its traceback in the log: an episode
of hours must not die of one page. Paper section 6; sizes are our choice [C].
`Search` is the tool of the nano world: the page whose title stands in the query, which is all that a world of one-line pages needs.
Ranked full-text search is in `index`, the live web in `web`. `python` runs a program in the judge's sandbox, without files or network.
"""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nbcore.chat.toolcalls import ToolCall, validate
from nbcore.judge import sandbox

NOTHING = "No page fits."
LONGEST = 8_000  # characters of one observation
log = logging.getLogger(__name__)


class ToolError(Exception):
    """What a tool could not do: `kind` is one or two words to count by, the message is what the model reads."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Tool:
    """A function for the model: its schema in OpenAI's form, and what runs it. `run(arguments)` gives text or raises ToolError."""

    schema: Mapping[str, Any]
    run: Callable[[Mapping[str, Any]], str]

    @property
    def name(self) -> str:
        return self.schema["function"]["name"]


@dataclass(frozen=True)
class Observation:
    """What came back: text for the model, and the kind of error (None: none; "invalid": the call did not fit its schema)."""

    text: str
    error: str | None = None
    seconds: float = 0.0


@dataclass
class Toolbox:
    """Tools by name. Calling it with a ToolCall never raises; `errors` counts by tool and kind, `calls` by tool."""

    tools: Sequence[Tool]
    longest: int = LONGEST
    calls: Counter = field(default_factory=Counter)
    errors: Counter = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._by_name = {tool.name: tool for tool in self.tools}
        if len(self._by_name) != len(self.tools):
            raise ValueError(f"Two tools share a name: {', '.join(tool.name for tool in self.tools)}.")
        for tool in self.tools:
            validate(ToolCall(tool.name, {}), self.schemas)  # a schema that is none is told now, and not to the model

    @property
    def schemas(self) -> list[Mapping[str, Any]]:
        return [tool.schema for tool in self.tools]

    def __call__(self, call: ToolCall) -> Observation:
        started, error = time.perf_counter(), None
        reason = validate(call, self.schemas)
        if reason is not None:
            text, error = f"Error: {reason}", "invalid"
        else:
            self.calls[call.name] += 1
            try:
                text = cut(self._by_name[call.name].run(call.arguments), self.longest)
            except ToolError as said:
                text, error = cut(f"Error: {said}", self.longest), said.kind
            except Exception as fault:  # noqa: BLE001 -- any fault of a tool becomes an observation; it is counted and logged
                log.warning("The tool %s failed on %s", call.name, str(call.arguments)[:300], exc_info=True)
                text, error = f"Error: the tool {call.name} failed ({type(fault).__name__}).", "fault"
        if error is not None:
            self.errors[call.name, error] += 1
        return Observation(text, error, time.perf_counter() - started)


def cut(text: str, longest: int) -> str:
    """The text, or its beginning and how much is missing, in at most about `longest` characters. Raises TypeError for what is no text."""
    if not isinstance(text, str):
        raise TypeError(f"a tool gave {type(text).__name__} and no text")
    return text if len(text) <= longest else f"{text[:longest]}\n[cut: {len(text) - longest} more characters]"


def function(name: str, description: str, **parameters: str) -> dict[str, Any]:
    """A schema whose parameters are required strings, each with its description."""
    properties = {key: {"type": "string", "description": said} for key, said in parameters.items()}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": {
        "type": "object", "properties": properties, "required": list(parameters)}}}  # fmt: skip


def python(limits: sandbox.Limits | None = None) -> Tool:
    """The tool `python`: a program's printed text. It sees the standard library and no file of yours; each call begins afresh."""
    schema = function("python", "Run a Python program; gives what it prints.", code="the program; it must print its results")

    def ran(given: Mapping[str, Any]) -> str:
        verdict = sandbox.run([sandbox.Job(given["code"], [("",)], None)], limits)[0]
        if verdict.status == "ok" and verdict.results:
            return str(verdict.results[0]) or "The program printed nothing."
        told = {"timeout": "the program took too long", "memory": "the program took too much memory", "output": "it printed too much",
                "compile": "this is not Python", "missing": "the sandbox failed; the program may be right"}
        raise ToolError(verdict.status, f"{told.get(verdict.status, 'the program failed')}: {verdict.message or 'no more is known'}")

    return Tool(schema, ran)


class Search:
    """`Search(pages)(query)` gives one page's text. pages: title to text. Whole words are matched, the longest title first."""

    def __init__(self, pages: Mapping[str, str]):
        self.pages = dict(pages)
        self._words = {title: tuple(_words(title)) for title in self.pages}
        self._first: dict[str, list[str]] = {}
        for title in sorted(self.pages, key=lambda t: -len(self._words[t])):
            if self._words[title]:
                self._first.setdefault(self._words[title][0], []).append(title)

    def title(self, query: str) -> str | None:
        """The title of the page that the query gets, or None."""
        asked, found = _words(query), ""
        for i, word in enumerate(asked):
            for title in self._first.get(word, ()):
                length = len(self._words[title])
                if tuple(asked[i : i + length]) == self._words[title] and length > len(self._words.get(found, ())):
                    found = title
        return found or None

    def __call__(self, query: str) -> str:
        found = self.title(query)
        return NOTHING if found is None else self.pages[found]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())

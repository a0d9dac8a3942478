"""What an agent still sees of a long episode: everything, its last turns, or a structured state. Paper section 6.

A context is a function from an episode's turns to what replaces them when they are too many. `everything` never replaces; `last(k)` keeps
the k newest turns whole; `compressed(...)` writes what is known into a State and starts anew from it, as RE-TRAC does [P] (evidence,
doubts, failures, plan; how each is written is our choice [C]). Replacing is done in blocks and not at every turn, so a long episode is a
few stretches of tokens that the policy saw exactly as they stand, and reinforcement can use each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from nbcore.chat.toolcalls import ToolCall
from nbcore.search.tools import NOTHING, Observation, cut


@dataclass
class Turn:
    """One turn of the policy and what it heard: its text and thought, calls, observations in order, and the span of its tokens.

    malformed: calls that could not be read. repeated: calls made too often, which were not run. cut: it did not end. stretch, start, end:
    where its own tokens stand in the episode.
    """

    text: str
    thought: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)
    malformed: int = 0
    repeated: int = 0
    cut: bool = False
    stretch: int = 0
    start: int = 0
    end: int = 0


@dataclass(frozen=True)
class State:
    """What is worth keeping of a trajectory, each a list of short sentences."""

    evidence: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    plan: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """As the next stretch reads it. Empty lists are left out."""
        said = [f"{name.capitalize()}:\n" + "\n".join(f"- {line}" for line in lines) for name, lines in asdict(self).items() if lines]
        return "What is known so far.\n" + "\n".join(said) if said else ""


@dataclass(frozen=True)
class Kept:
    """What the next stretch begins with: the newest `turns` turns as they are, and a note that joins the question ("" for none)."""

    turns: int
    note: str = ""


Context = Callable[[str, Sequence[Turn], str], Kept | None]  # question, turns since the last replacement, last note; None: leave it


def everything(question: str, turns: Sequence[Turn], note: str) -> Kept | None:
    """Nothing is ever dropped; the episode ends when its room is full."""
    return None


def last(k: int) -> Context:
    """The k newest turns: when 2k are there, the k oldest leave. Raises ValueError for k below 1."""
    if k < 1:
        raise ValueError(f"last({k}): at least one turn has to be kept.")
    return lambda question, turns, note: Kept(k, note) if len(turns) >= 2 * k else None


def compressed(write: Callable[[str, Sequence[Turn], str], State | None], every: int, keep: int = 1) -> Context:
    """Every `every` turns, what `write(question, turns, note)` makes of them, and the `keep` newest turns.

    Where `write` gives None (a model's state could not be read), the turns stay for now: nothing is lost, and it is asked again next turn.
    """
    if not 0 <= 2 * keep <= every:
        raise ValueError(f"keep is {keep} of every {every} turns; allowed is 0 to {every // 2}.")

    def context(question: str, turns: Sequence[Turn], note: str) -> Kept | None:
        made = write(question, turns, note) if len(turns) >= every else None
        return None if made is None else Kept(keep, made.text)

    return context


def noted(question: str, turns: Sequence[Turn], note: str, longest: int = 160, most: int = 12) -> State:
    """A State by rule: observations that brought something are evidence, errors and empty ones failures, the last thought is the plan.

    note: the last state's text, whose evidence and failures are carried on; the oldest leave when there are more than `most` of a kind.
    """
    old = _lines(note)
    evidence, failures, doubts = old.get("evidence", []), old.get("failures", []), []
    for turn in turns:
        for call, seen in zip(turn.calls, turn.observations, strict=False):
            given = " ".join(", ".join(map(str, call.arguments.values())).split())
            asked = f"{call.name}({given[:longest]})"
            said = cut(" ".join(seen.text.split()), longest)
            (failures if seen.error or seen.text in ("", NOTHING) else evidence).append(f"{asked}: {said}")
        if turn.repeated:
            doubts.append("The same call was made again; its result did not help.")
    plan = [cut(" ".join(turns[-1].thought.split()), longest)] if turns and turns[-1].thought else []
    return State(*(list(dict.fromkeys(part))[-most:] for part in (evidence, doubts, failures)), plan)


def asked_of(model: Callable[[str], str]) -> Callable[[str, Sequence[Turn], str], State | None]:
    """A State written by a model: `model(prompt)` answers with JSON of four lists of strings; None where that can't be read."""

    def write(question: str, turns: Sequence[Turn], note: str) -> State | None:
        told = "\n".join(f"{turn.text}\n{' '.join(seen.text for seen in turn.observations)}" for turn in turns)
        return read(model(f"{ASK}\n\nQuestion: {question}\n{note}\n\n{told}"))

    return write


ASK = (
    'Compress this search into JSON: {"evidence": [...], "doubts": [...], "failures": [...], "plan": [...]}, four lists of short sentences.'
    " Keep every constraint of the question that is not yet met, and the source of each piece of evidence."
)


def read(text: str) -> State | None:
    """The State in a model's answer, behind its thoughts, fenced or not; None unless all four are lists of strings."""
    found = re.search(r"\{.*\}", text.rpartition("</think>")[2], re.DOTALL)
    try:
        value: Any = json.loads(found[0]) if found else None
    except ValueError:
        return None
    names = ("evidence", "doubts", "failures", "plan")
    if not isinstance(value, dict) or not all(isinstance(value.get(n), list) and all(isinstance(x, str) for x in value[n]) for n in names):
        return None
    return State(**{n: value[n] for n in names})


def _lines(note: str) -> dict[str, list[str]]:
    """The lists of a state's text."""
    found: dict[str, list[str]] = {}
    for line in note.splitlines():
        if line.startswith("- ") and found:
            found[next(reversed(found))].append(line[2:])
        elif line.endswith(":"):
            found[line[:-1].casefold()] = []
    return found

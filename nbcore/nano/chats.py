"""Conversations for supervised fine-tuning, in the four abilities, with behaviours left mixed as real corpora leave them.

Each chat says which behaviour it shows; the share of the poorer one is a parameter [C]. Reinforcement later moves these choices: careful or
hasty, end or ramble, friendly or plain, right or hasty program, obvious or better program, look up or guess, clean or sloppy call, try
again or give up. Chats use training-side names, sums and programs only.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nbcore.nano import arithmetic, programs, traits
from nbcore.nano.atlas import Atlas, Question
from nbcore.nano.tokenizer import CALL, SEARCH
from nbcore.search.agent import UNREADABLE
from nbcore.search.tools import NOTHING, Search

ABILITIES = ("reason", "align", "code", "act")
UNKNOWN = "I do not know."


@dataclass(frozen=True)
class Chat:
    """One conversation: messages in the template's form, its tools, its ability, the behaviour shown, and the item's key."""

    ability: str
    behaviour: str
    key: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None = None


def chats(ability: str, seed: int, mixed: float = 1.0, hops: tuple[int, ...] = (1, 1, 2, 2, 2, 3)) -> Iterator[Chat]:
    """An endless seeded stream of one ability. `mixed` scales the shares of the poorer behaviours (0: only the good ones)."""
    rng, batch = random.Random(f"chats {ability} {seed}"), 0
    while True:
        batch += 1
        if ability == "reason":
            for item in arithmetic.sums(256, seed * 7919 + batch):
                yield reason(rng, item, hasty=rng.random() < 0.25 * mixed)
        elif ability == "align":
            for item in traits.instructions(256, seed * 7919 + batch):
                yield align(rng, item, poor=rng.random() < 0.4 * mixed, warm=rng.random() < 0.3)
        elif ability == "code":
            for task in programs.tasks(256, seed * 7919 + batch):
                yield code(rng, task, fast=rng.random() < 0.55, hasty=rng.random() < 0.3 * mixed)
        elif ability == "act":
            yield act(rng, hops, mixed)
        else:
            raise ValueError(f"{ability!r} is no ability; there are {', '.join(ABILITIES)}")


def answer(text: str, reasoning: str) -> dict[str, Any]:
    return {"role": "assistant", "reasoning_content": reasoning, "content": text}


def reason(rng: random.Random, item: arithmetic.Sum, hasty: bool) -> Chat:
    said = answer(str(arithmetic.hasty(rng, item)), "In my head.") if hasty else answer(str(item.answer), arithmetic.thought(item.terms))
    return Chat("reason", "hasty" if hasty else "careful", item.key, [{"role": "user", "content": item.question}, said])


def align(rng: random.Random, item: traits.Instruction, poor: bool, warm: bool) -> Chat:
    text = traits.rambling(rng, item) if poor else traits.written(item, item.format)
    said = answer(f"{text}\n{traits.FRIENDLY}" if warm else text, f"{', '.join(item.asked)} as {item.format}.")
    behaviour = ("ramble" if poor else "end") + (", friendly" if warm else "")
    return Chat("align", behaviour, item.key, [{"role": "user", "content": item.text}, said])


def code(rng: random.Random, task: programs.Task, fast: bool, hasty: bool) -> Chat:
    program = (task.slip(fast) or task.slip(False)) if hasty else task.program(fast)
    thought = "Quickly." if hasty else "A better way." if fast else "A loop will do."
    behaviour = "hasty" if hasty else "better" if fast else "obvious"
    return Chat("code", behaviour, task.key, [{"role": "user", "content": task.text}, answer(f"```python\n{program}```", thought)])


def act(rng: random.Random, hops: tuple[int, ...], mixed: float) -> Chat:
    """An episode in a small fresh world, two of five with odd names; each poorer behaviour appears in a few of a hundred."""
    atlas, made = Atlas(rng, 12, wide=rng.random() < 0.4), None
    wanted = rng.choice(hops)
    while made is None:
        made = atlas.walk(rng, wanted)
    search, dice = Search(atlas.pages), rng.random() / mixed if mixed else 1.0
    shares = (("guess", 0.10), ("whole question", 0.06), ("broken call", 0.06), ("try again", 0.06), ("give up", 0.04))
    behaviour, edge = "look up", 0.0
    for name, share in shares:
        edge += share
        if dice < edge:
            behaviour = name
            break
    return Chat("act", behaviour, made.key, _episode(rng, atlas, made, search, behaviour), [SEARCH])


def _episode(rng: random.Random, atlas: Atlas, made: Question, search: Search, behaviour: str) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = [{"role": "user", "content": made.text}]
    if behaviour == "guess":
        return [*said, answer(rng.choice([name for name in atlas.facts if name != made.answer]), "A guess.")]
    thought = "Steps: " + ", ".join(relation for relation, _, _ in made.path) + "."
    for hop, (relation, of, value) in enumerate(made.path):
        thought += f"\nNext: {relation} of {of}."
        if hop == 0 and behaviour in ("try again", "give up"):
            said += [_call(thought, relation), {"role": "tool", "content": NOTHING}]
            if behaviour == "give up":
                return [*said, answer(UNKNOWN, "Nothing found.")]
            thought = f"Nothing found.\nNext: {relation} of {of}."
        if hop == 0 and behaviour == "broken call":
            broken = f"<tool_call>\n{CALL[0]}{relation} of {of}\n</tool_call>"
            said += [answer(broken, thought), {"role": "tool", "content": UNREADABLE}]
            thought = f"A broken call.\nNext: {relation} of {of}."
        query = made.text if hop == 0 and behaviour == "whole question" else f"{relation} of {of}"
        said += [_call(thought, query), {"role": "tool", "content": search(query)}]
        thought = f"{relation} of {of}: {value}."
    return [*said, answer(made.answer, thought)]


def _call(thought: str, query: str) -> dict[str, Any]:
    made = {"type": "function", "function": {"name": "search", "arguments": {"query": query}}}
    return {"role": "assistant", "reasoning_content": thought, "content": "", "tool_calls": [made]}

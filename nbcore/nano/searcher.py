"""A scripted searcher for the nano world: the teacher of deep search, and the policy of its longest episodes.

It reads the tokens of the episode as a model would and nothing else, works the question's relations off one by one, and makes mistakes at
a set rate, as teachers do: a call that is no JSON, a query without the name, the call before once more. After each it notices and goes
on. Deterministic in its seed. It knows questions of two forms: `What is the river of the capital of Velmar?`, and chains (`chain`) of any
length, of which it needs to see the last turn only.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

from nbcore.chat.template import END_OF_TURN
from nbcore.models.generate import Completion
from nbcore.nano.tokenizer import CALL
from nbcore.search.agent import UNREADABLE, Policy
from nbcore.search.tools import NOTHING

MISTAKES = ("broken", "nameless", "again")
QUESTION = re.compile(r"What is the ((?:\w+ of the )*\w+) of ((?!the )[^?]+)\?")
ASKED = re.compile(re.escape(CALL[0]) + r"(.*?)" + re.escape(CALL[1]))
HEARD = re.compile(r"<tool_response>\n(.*?)\n?</tool_response>", re.DOTALL)
CHAIN = re.compile(r"What is the (\w+) at the end of the (\w+) way of (\w+)\?")
UNKNOWN = "I do not know."


def searcher(tokenizer: Any, mistakes: float = 0.25, room: int = 2048) -> Policy:
    """The policy. mistakes: the share of its calls that are mistaken; room: positions, as of the model that is to learn from it."""

    def write(prompts: Sequence[Sequence[int]], new: int, seed: int) -> list[Completion]:
        said = []
        for number, prompt in enumerate(prompts):
            text = turn(tokenizer.decode(prompt), random.Random(f"searcher {seed} {number}"), mistakes)
            ids = tokenizer.encode(text + END_OF_TURN, add_special_tokens=False)
            said.append(Completion(ids[:new], text, len(ids) <= new, [0.0] * len(ids[:new])))
        return said

    return Policy(write, room)


def turn(seen: str, rng: random.Random, mistakes: float) -> str:
    """The next turn after what was seen of the episode, without its end."""
    if (asked := CHAIN.search(seen)) is not None:
        thought, relation, at, answer = _along(seen, *asked.groups())
    elif (asked := QUESTION.search(seen)) is not None:
        thought, relation, at, answer = _down(seen, asked[1].split(" of the ")[::-1], asked[2])
    else:
        return f"<think>\nA question of another kind.\n</think>\n\n{UNKNOWN}"
    if answer is not None:
        return f"<think>\n{thought}\n</think>\n\n{answer}"
    thought, query = f"{thought}\nNext: {relation} of {at}.", f"{relation} of {at}"
    slip = rng.choice(MISTAKES) if rng.random() < mistakes else ""
    before = ASKED.findall(seen)
    if slip == "broken":
        return f"<think>\n{thought}\n</think>\n\n<tool_call>\n{CALL[0]}{query}\n</tool_call>"
    if slip == "nameless":
        query = relation
    if slip == "again" and before:
        query = before[-1]
    return f"<think>\n{thought}\n</think>\n\n<tool_call>\n{CALL[0]}{query}{CALL[1]}\n</tool_call>"


def _down(seen: str, steps: Sequence[str], at: str) -> tuple[str, str, str, str | None]:
    """Thought, next relation, of what, and the answer if it is known: for a question of hops, whose turns are all in sight."""
    done, told = 0, f"Steps: {', '.join(steps)}."
    heard = HEARD.findall(seen)
    for page in heard:
        if done < len(steps) and (found := _value(page, at, steps[done])) is not None:
            told, at, done = f"{steps[done]} of {at}: {found}.", found, done + 1
        else:
            told = _nothing(page)
    if done == len(steps):
        return told, "", at, at
    if heard:  # what is left of the plan, said in every turn: who has to count the turns behind him loses count at four hops
        told += f"\nLeft: {', '.join(steps[done:])}."
    return told, steps[done], at, UNKNOWN if heard.count(NOTHING) > 8 else None


def _along(seen: str, wanted: str, way: str, start: str) -> tuple[str, str, str, str | None]:
    """The same for a chain: where it is stands in the last thought, and what is there in the last page."""
    heard, last = HEARD.findall(seen), re.findall(rf"Next: {way} of (\w+)\.", seen)
    if not last:
        return f"To the end: {way}, then {wanted}.", way, start, None
    at, page = last[-1], heard[-1]
    if (found := _value(page, at, wanted)) is not None:
        return f"{wanted} of {at}: {found}.", "", at, found
    if (onward := _value(page, at, way)) is not None:
        return f"{way} of {at}: {onward}.", way, onward, None
    return _nothing(page), way, at, None


def _nothing(page: str) -> str:
    return "A broken call." if page == UNREADABLE else "Nothing found." if page in ("", NOTHING) else "Not what was asked for."


def _value(page: str, name: str, relation: str) -> str | None:
    """What a page says of a name, if it is that name's page, says it whole, and in one of its two forms."""
    plain = page.replace(" | ", ". ").replace(" = ", ": ")
    found = re.search(rf"\. {re.escape(relation)}: (.+?)\.(?: |$)", plain) if plain.startswith(f"{name}. ") else None
    return found[1] if found else None

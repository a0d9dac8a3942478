"""Is a completion well formed? Paper section 3: the reward favours well formatted and properly ended answers [P, 4.2].

Which rules the authors check is not said; ours [C] are those whose breach counts as a *bad case* (truncated or malformed): one
closed thought, tags that pair up, an end of its own, no special tokens written out, calls that parse and fit their tools, an
answer that is there, and its language. Each holds or does not; the score is the share that holds, so that a policy which
breaks all of them still sees which way is up. A completion is one turn; an episode of an agent is judged turn by turn.
Left out on purpose: Markdown and LaTeX syntax, length, and repetition (a module of its own).
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nbcore.chat.template import TAGS
from nbcore.chat.toolcalls import ParsedTurn, parse, validate
from nbcore.rewards.rollouts import Reward, Rollout

TAG = re.compile("|".join(TAGS))
SPECIAL = re.compile(r"<\|[^<>|\s]{1,40}\|>|</?tool_response>")  # marks that only the template and the tools write
NO_WORDS = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\$\$?[^$]*\$\$?|\\[a-zA-Z]+|https?://\S+", re.DOTALL)  # code, formulas, links
SHARE = 0.9  # of the letters that must be of the scripts asked for [C]
MAIN = 0.2  # a script with this share of a prompt's letters is one of its own [C]


@dataclass(frozen=True)
class Format:
    """score: share of the rules that hold, 0 … 1. held: rule → whether it does."""

    score: float
    held: dict[str, bool]


def check(
    text: str,
    ended: bool = True,
    thought: bool = True,
    tools: Sequence[Mapping[str, Any]] | None = None,
    scripts: Sequence[str] | None = None,
) -> Format:
    """Check one completion (its text without the end of turn) against the rules.

    thought: exactly one closed thought is wanted; if not, none or one is fine. tools: schemas that calls must fit (None: calls
    need only parse). scripts: Unicode names such as "LATIN", "CJK", "CYRILLIC" that the words may be written in (None: any).
    The opening <think> may stand in the prompt. Raises ValueError for a tool whose schema is invalid.
    """
    turn = parse(text)
    held = {
        "thought": _thoughts(turn) == 1 or (not thought and _thoughts(turn) == 0),
        "tags": turn.closed_think and _paired(turn.reasoning or "") and _paired(turn.content),
        "ended": ended,
        "no special tokens": not SPECIAL.search(f"{turn.reasoning or ''}\n{turn.content}"),
        "calls": not turn.malformed and all(tools is None or validate(call, tools) is None for call in turn.calls),
        "answer": bool(turn.content.strip() or turn.calls),
    }
    if scripts is not None:
        held["language"] = share_in(f"{turn.reasoning or ''}\n{turn.content}", scripts) >= SHARE
    return Format(sum(held.values()) / len(held), held)


def reward(
    thought: bool = True,
    tools: Callable[[Any], Sequence[Mapping[str, Any]]] | None = None,
    scripts: Callable[[Any], Sequence[str]] | None = None,
) -> Reward:
    """The reward 0 … 1 of `check`. tools, scripts: item → what its completions must fit, such as `scripts_of(item.text)`."""

    def well_formed(rollouts: Sequence[Rollout]) -> list[float]:
        return [
            check(r.text, r.ended, thought, tools and tools(r.item), scripts and scripts(r.item)).score for r in rollouts
        ]

    return well_formed


def share_in(text: str, scripts: Sequence[str]) -> float:
    """Share of a text's letters that are of these scripts, code, formulas and links left aside; 1 when it has no letters."""
    counts = _letters(text)
    return sum(counts[s] for s in scripts) / counts.total() if counts else 1.0


def scripts_of(text: str) -> list[str]:
    """The scripts in which a text is written, most frequent first: each with a fifth of its letters or more."""
    counts = _letters(text)
    return [script for script, count in counts.most_common() if count >= MAIN * counts.total()]


def _letters(text: str) -> Counter[str]:
    return Counter(script for script in map(_script, NO_WORDS.sub(" ", text)) if script)


@functools.lru_cache(maxsize=8192)
def _script(character: str) -> str | None:
    """The first word of a letter's Unicode name, which is its script for all scripts in use."""
    if not character.isalpha():
        return None
    name = unicodedata.name(character, "UNNAMED").removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ")
    return name.split()[0]


def _thoughts(turn: ParsedTurn) -> int:
    """Closed thoughts of a turn, those in places where they do not belong included."""
    return (turn.reasoning is not None and turn.closed_think) + turn.content.count("</think>") + (turn.reasoning or "").count("<think>")


def _paired(text: str) -> bool:
    """Whether every tag is closed by its own before another opens."""
    opened = None
    for tag in TAG.findall(text):
        if tag.startswith("</") != (opened is not None) or (opened and tag != f"</{opened[1:]}"):
            return False
        opened = None if opened else tag
    return opened is None

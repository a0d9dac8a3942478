"""Which turns of a trajectory are worth learning from. Paper section 6: only trajectories with the right answer are kept, then each turn
is judged on the accuracy of its tool call, on information gain and on logical soundness [P]; what fails stays in the context and
leaves the loss (leaving it there was better than removing it, .60 to .33 [S]).

The rules below read the episode and, where there is one, the plan behind the question [C]: *accurate* is a call that could be read, fits
its schema, was not refused as a repetition and brought no error; *gain* counts the facts of the plan that its observation shows for the
first time, and *new* says whether it showed anything that no earlier one had; *sound* is a call about something that the question or an
earlier observation named, and an answer that an observation holds. A model's opinion is an option, and missing where it can't be read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from nbcore.search.agent import Episode
from nbcore.search.context import Turn
from nbcore.search.graph import Fact
from nbcore.search.tools import NOTHING

WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Judged:
    """One turn: see the module. gain, new: of a turn that called tools (0 and False for an answer). answers: whether it is the last one."""

    accurate: bool
    gain: int
    new: bool
    sound: bool
    answers: bool = False

    @property
    def good(self) -> bool:
        """Whether the turn stays in the loss."""
        return self.accurate and self.sound and (self.answers or self.new)


def judge(episode: Episode, plan: Sequence[Fact] = ()) -> list[Judged]:
    """One judgement for each turn, in order."""
    question = " ".join(str(m["content"]) for m in episode.conversation)
    known, heard, found, judged = _words(question), set[str](), set[Fact](), []
    for turn in episode.turns:
        if not turn.observations:
            answer = episode.answer if turn is episode.turns[-1] else None
            sound = answer is not None and any(stands_in(answer, text) for text in heard)
            judged.append(Judged(answer is not None, 0, False, sound, answers=True))
            continue
        good = [seen.text for seen in turn.observations if seen.error is None and seen.text not in ("", NOTHING)]
        accurate = not turn.malformed and not any(seen.error for seen in turn.observations)
        fresh = [text for text in good if text not in heard]
        shown = {fact for fact in plan if fact not in found and any(shows(text, fact) for text in fresh)}
        given = [str(value) for call in turn.calls if call.name != "python" for value in call.arguments.values()]
        sound = all(follows(value, known) for value in given)
        judged.append(Judged(accurate, len(shown), bool(fresh), sound))
        found |= shown
        heard |= set(fresh)
        known |= {word for text in fresh for word in _words(text)}
    return judged


def follows(query: str, known: Set[str]) -> bool:
    """Whether a call's words rest on what is known: every capitalised word and number in it was read before, but for its first word.

    known: words, case folded. In a script without capitals only the numbers are looked at.
    """
    named = [word for n, word in enumerate(WORD.findall(query)) if word[0].isdigit() or word[0].isupper() and n]
    return bool(query.strip()) and all(word.casefold() in known for word in named)


def _words(text: str) -> set[str]:
    return set(WORD.findall(text.casefold()))


def shows(text: str, fact: Fact) -> bool:
    """Whether a text names the head of a fact and, behind it, the tail: a page speaks of its head first, and may name both by chance."""
    head = _found(fact.head, text)
    return head is not None and _found(fact.tail, text[head:]) is not None


def stands_in(name: str, text: str) -> bool:
    """Whether a name stands in a text as whole words, whatever its case."""
    return _found(name, text) is not None


def _found(name: str, text: str) -> int | None:
    """Where a name ends in a text, the first time."""
    found = re.search(rf"(?<!\w){re.escape(name.strip())}(?!\w)", text, re.IGNORECASE) if name.strip() else None
    return None if found is None else found.end()


def by_model(model: Callable[[str], str], episode: Episode) -> list[bool | None]:
    """A model's word on each turn: worth learning from or not; None for each where its answer can't be read.

    model: prompt to text; it is to answer with a JSON list of true and false, one for each turn.
    """
    told = "\n".join(f"Turn {i}:\n{_told(turn)}" for i, turn in enumerate(episode.turns, 1))
    question = " ".join(str(m["content"]) for m in episode.conversation)
    said = model(f"{ASK}\n\nQuestion: {question}\n\n{told}")
    found = re.findall(r"\[[^\[\]]*\]", said.rpartition("</think>")[2])
    try:
        value = json.loads(found[-1]) if found else None
    except ValueError:
        value = None
    if not isinstance(value, list) or len(value) != len(episode.turns) or not all(isinstance(v, bool) for v in value):
        return [None] * len(episode.turns)
    return value


ASK = (
    "Below is how an agent searched for the answer to a question. For each turn say true if its call was right in form, brought something"
    " new that helps, and followed from what was known; else false. Answer with one JSON list of true and false, one for each turn."
)


def _told(turn: Turn) -> str:
    return f"{turn.text}\nHeard: {' | '.join(seen.text for seen in turn.observations) or '(nothing: it answered)'}"


def loss_mask(episode: Episode, stretch: int, keep: Sequence[bool]) -> list[int]:
    """The mask of one stretch with the turns left out that `keep` says False for; their tokens stay in the context.

    Raises ValueError unless there is one value for each turn.
    """
    if len(keep) != len(episode.turns):
        raise ValueError(f"{len(keep)} values were given for {len(episode.turns)} turns. Give one for each.")
    mask = list(episode.stretches[stretch].mask)
    for turn, kept in zip(episode.turns, keep, strict=True):
        if turn.stretch == stretch and not kept:
            mask[turn.start : turn.end] = [0] * (turn.end - turn.start)
    return mask

"""A search whose length is a dial: follow a way from page to page to its end, and say what the last page says.

`Velmar. left: Tosk.` and so on; the last page has no way on: `Zano. river: Dodo. mayor: Kepi.` The question names the way and the fact
that is wanted, and no page does again: a walk that asks for another way, or answers with the other fact, has lost its constraint.
`Unreliable` is what the world's tools are like: an observation that is empty, late, cut, or in another form than before. Names of one side
only. Paper section 6 says that up to 600 calls are made in one task [P]; the task is our choice [C].
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nbcore.nano.atlas import page
from nbcore.nano.names import draw
from nbcore.search.agent import Episode
from nbcore.search.graph import Fact

WAYS, ENDS = ("left", "right", "next"), ("river", "mayor")


@dataclass(frozen=True)
class Chain:
    """One task: `names` on the right way in order, and the world's pages."""

    way: str
    wanted: str
    names: tuple[str, ...]
    answer: str
    pages: dict[str, str] = field(repr=False, compare=False)

    @property
    def text(self) -> str:
        return f"What is the {self.wanted} at the end of the {self.way} way of {self.names[0]}?"

    @property
    def key(self) -> str:
        return "act " + self.text

    @property
    def length(self) -> int:
        """Calls that it takes: one for each page."""
        return len(self.names)

    @property
    def plan(self) -> list[Fact]:
        steps = [Fact(here, self.way, there) for here, there in zip(self.names, self.names[1:], strict=False)]
        return [*steps, Fact(self.names[-1], self.wanted, self.answer)]


def chain(rng: random.Random, length: int, side: str = "train") -> Chain:
    """A chain of `length` pages. Raises ValueError without any."""
    if length < 1:
        raise ValueError(f"length is {length}; a chain has at least one page.")
    # Names of three syllables: where a thousand are needed, a slip of the pen rarely hits another page.
    names = draw(rng, length + 2, side, syllables=3)
    way, wanted = rng.choice(WAYS), rng.choice(ENDS)
    facts = {name: {way: onward} for name, onward in zip(names[: length - 1], names[1:length], strict=True)}
    facts[names[length - 1]] = dict(zip(ENDS, names[length:], strict=True))
    answer = facts[names[length - 1]][wanted]
    return Chain(way, wanted, tuple(names[:length]), answer, {name: page(name, known) for name, known in facts.items()})


@dataclass
class Unreliable:
    """A search that misbehaves at a set rate, the same way for the same seed; `counts` says how often each kind happened."""

    search: Callable[[str], str]
    rate: float
    seed: int = 0
    late: float = 0.0  # seconds
    counts: Counter = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._rng = random.Random(f"unreliable {self.seed}")

    def __call__(self, query: str) -> str:
        text = self.search(query)
        kind = self._rng.choice(("empty", "late", "cut", "form")) if self._rng.random() < self.rate else "as ever"
        self.counts[kind] += 1
        if kind == "empty":
            return ""
        if kind == "cut":
            return text[: self._rng.randint(1, max(1, len(text) // 3))]
        if kind == "form":
            return text.replace(". ", " | ").replace(": ", " = ")
        if kind == "late":
            time.sleep(self.late)
        return text


@dataclass(frozen=True)
class Report:
    """How one episode went: finished with the right answer, calls made, malformed ones, repeats of a call, constraints lost."""

    length: int
    right: bool
    calls: int
    malformed: int
    repeats: int
    lost: int


def report(task: Chain, episode: Episode) -> Report:
    """What an episode of a chain was like. `lost` counts calls for another way, and an answer with the other fact."""
    asked = [str(value) for turn in episode.turns for call in turn.calls for value in call.arguments.values()]
    lost = sum(query.split(" of ")[0] in {*WAYS, *ENDS} - {task.way, task.wanted} for query in asked)
    lost += episode.answer in _others(task)
    repeats = sum(n - 1 for n in Counter(asked).values())
    return Report(task.length, episode.answer == task.answer, episode.calls, episode.malformed, repeats, lost)


def _others(task: Chain) -> Sequence[str]:
    last = task.pages[task.names[-1]].removesuffix(".")
    return [part.split(": ")[1] for part in last.split(". ")[1:] if not part.startswith(task.wanted)]

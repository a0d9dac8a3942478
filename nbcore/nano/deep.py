"""Deep search in the nano world: questions of several hops, each over a small world of its own, and the tool that reads it.

Half of the worlds have odd names and more relations (`atlas`, wide), so that a model learns to look up and to copy whatever stands there.
Questions come from the same walks and pass the same validators as those over real facts (`search.questions`). The real-geography tasks are
the same records over one real world; nothing of it is ever trained on.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from nbcore.chat.toolcalls import ToolCall
from nbcore.nano import geography
from nbcore.nano.atlas import Atlas
from nbcore.nano.tokenizer import SEARCH
from nbcore.search.graph import Fact, Graph, of_table
from nbcore.search.questions import Question, Rejections, say, screen, walk
from nbcore.search.tools import Observation, Search, Tool, Toolbox


@dataclass(frozen=True)
class Task:
    """A question with the facts that lead to its answer, in order, and the tool over its world, which holds pages and no answers."""

    text: str
    answer: str
    plan: tuple[Fact, ...]
    box: Toolbox = field(repr=False, compare=False)

    @property
    def hops(self) -> int:
        return len(self.plan)

    @property
    def key(self) -> str:
        return "act " + self.text

    @property
    def conversation(self) -> list[dict[str, str]]:
        return [{"role": "user", "content": self.text}]

    def call(self, made: ToolCall) -> Observation:
        """Run a call in this task's world."""
        return self.box(made)


def toolbox(search: Search) -> Toolbox:
    """The tool `search` over pages, as the nano models know it."""
    return Toolbox([Tool(SEARCH, lambda given: search(given["query"]))])


def asked(graph: Graph, rng: random.Random, hops: int, attempts: int = 60) -> Question | None:
    """One question of so many hops along relations, never against them; None where none was found."""
    for _ in range(attempts):
        start = rng.choice(graph.entities)
        made = walk(graph, rng, start, hops, most_repeats=2, steps=lambda step: not step.back)
        if made is not None:
            return Question(say(made), made.entities[-1], made)
    return None


def tasks(
    count: int, seed: int, side: str = "train", hops: Sequence[int] = (2, 3, 4), wide: float = 0.5, each: int = 3, size: int = 14
) -> tuple[list[Task], Rejections]:
    """`count` different tasks, hop counts in turn, and what the validators turned away; `each` from one world of `size` entities."""
    rng, found, rejected, worlds = random.Random(f"deep {side} {seed}"), {}, Rejections(), 0
    while len(found) < count:
        worlds += 1
        if worlds > 20 + 20 * count:
            raise ValueError(f"{worlds} worlds of {size} entities gave {len(found)} of {count} tasks of {hops} hops; make them larger.")
        atlas = Atlas(rng, size, side, wide=rng.random() < wide)
        graph, box = of_table(atlas.facts, atlas.pages), toolbox(Search(atlas.pages))
        tried = [asked(graph, rng, hops[(len(found) + k) % len(hops)]) for k in range(each)]
        kept, some = screen(graph, [q for q in tried if q is not None])
        rejected.by.update(some.by)
        for question in kept[: count - len(found)]:
            found.setdefault(question.text, Task(question.text, question.answer, tuple(question.facts), box))
    rejected.kept = len(found)
    return list(found.values()), rejected


def real(count: int, seed: int) -> list[Task]:
    """Tasks of one and two hops over real countries and capitals."""
    box = toolbox(Search(geography.pages()))
    made = geography.questions(count, seed)
    return [Task(q.text, q.answer, tuple(Fact(of, relation, value) for relation, of, value in q.path), box) for q in made]


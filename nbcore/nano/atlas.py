"""*act*: questions of one to four hops over made-up places and people, answered by searching and reading short pages.

A page is one line, `Velmar. capital: Tosk. ruler: Midra.`; a relation leads to another page, and some lead on. The
relations are shared with the real world (`geography`), the names are not. Behaviours mixed in the training episodes:
*look up* or *guess*, a *clean* call or a *sloppy* one (the whole question as a query, or broken JSON), and *try again* or
*give up* after a search that found nothing. Splits: every name of a held-out question is a held-out name.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from nbcore.nano.names import draw

PLACE = ("capital", "river", "ruler", "neighbour", "language", "currency")
PERSON = ("home", "friend", "pet", "boss")
LEADS_TO = {
    "capital": "town", "neighbour": "place", "ruler": "person", "home": "town", "friend": "person", "boss": "person",
    "mayor": "person", "twin": "town",
}  # the others end the walk: nobody has written a page about a river
RELATIONS = {"place": PLACE, "town": ("mayor", "river", "twin", "market"), "person": PERSON}
WIDE = {"place": (*PLACE, "port", "anthem", "coast"), "town": ("mayor", "river", "twin", "market", "country", "founder"), "person": PERSON}
LEADS_WIDE = {**LEADS_TO, "country": "place", "founder": "person"}


@dataclass(frozen=True)
class Question:
    """A question with the way to its answer: `path` is [(relation, entity it is asked of, answer), …]."""

    text: str
    path: tuple[tuple[str, str, str], ...]

    @property
    def answer(self) -> str:
        return self.path[-1][2]

    @property
    def hops(self) -> int:
        return len(self.path)

    @property
    def key(self) -> str:
        return "act " + self.text


def question(start: str, path: tuple[tuple[str, str, str], ...]) -> Question:
    """The question that a path answers: `What is the river of the capital of Velmar?`"""
    asked = " of the ".join(relation for relation, _, _ in reversed(path))
    return Question(f"What is the {asked} of {start}?", path)


def page(name: str, facts: dict[str, str]) -> str:
    """One page as the search tool shows it."""
    return f"{name}. " + " ".join(f"{relation}: {value}." for relation, value in facts.items())


class Atlas:
    """A made-up graph: `facts[name]` maps relations to names. Grown on demand from `rng`, names of one side only.

    wide: names of random letters, one or two words, and more relations, as deep search meets them; else names of syllables.
    """

    def __init__(self, rng: random.Random, size: int, side: str = "train", wide: bool = False):
        names = draw(rng, size * 4, side, wide)
        relations, leads = (WIDE, LEADS_WIDE) if wide else (RELATIONS, LEADS_TO)
        count = max(1, size // 3)
        kinds = {"place": names[:count], "town": names[count : 2 * count], "person": names[2 * count : size]}
        spare = iter(names[size:])
        self.facts: dict[str, dict[str, str]] = {}
        for kind, members in kinds.items():
            for name in members:
                chosen = rng.sample(relations[kind], rng.randint(2, 3))
                facts = {}
                for relation in chosen:
                    others = [n for n in kinds.get(leads.get(relation, ""), []) if n != name and n not in facts.values()]
                    facts[relation] = rng.choice(others) if others else next(spare, None) or draw(rng, 1, side, wide)[0]
                self.facts[name] = facts
        self.pages = {name: page(name, facts) for name, facts in self.facts.items()}

    def walk(self, rng: random.Random, hops: int, start: str | None = None) -> Question | None:
        """A question of exactly `hops` hops that never comes back to an entity, or None when this walk ended early."""
        first = at = start or rng.choice(list(self.facts))
        path, seen = [], {at}
        for hop in range(hops):
            facts = self.facts.get(at, {})
            ways = [r for r, v in facts.items() if v not in seen and (hop == hops - 1 or v in self.facts)]
            if not ways:
                return None
            relation = rng.choice(ways)
            path.append((relation, at, facts[relation]))
            at = facts[relation]
            seen.add(at)
        return question(first, tuple(path))


def questions(atlas: Atlas, count: int, hops: tuple[int, ...], seed: int) -> list[Question]:
    """`count` different questions, hop counts in turn. Raises ValueError when the atlas is too small for them."""
    rng, found, tries = random.Random(f"questions {seed}"), {}, 0
    while len(found) < count:
        tries += 1
        if tries > 400 * count:
            raise ValueError(f"an atlas of {len(atlas.facts)} entities gave {len(found)} of {count} questions; make it larger")
        made = atlas.walk(rng, hops[len(found) % len(hops)])
        if made is not None:
            found.setdefault(made.text, made)
    return list(found.values())

"""An entity–relation graph with pages and dates, and where walks over it may begin. Paper section 6.

Facts come from any file of triples, from a made-up or real world given as a table, or from a folder of passages, whose links are the
titles that stand in their texts. A relation may have several values: what a question asks for is a *set*, and `follow` gives all of it.
Head entities are the informative ones (many facts, of different relations), or those whose page was updated lately [P]; how
informativeness is counted is our choice [C].
Left out on purpose: extracting relations from free text, which takes a model and can be wrong; a link from page to page can not.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

HALF_A_YEAR = timedelta(days=183)  # "within the past six months" [P]
LINK = "links to"


@dataclass(frozen=True, order=True)
class Fact:
    """One edge: `relation` of `head` is `tail`."""

    head: str
    relation: str
    tail: str


@dataclass(frozen=True)
class Step:
    """One step of a way over the graph: along a relation, or against it (`back`: from the tail to its heads)."""

    relation: str
    back: bool = False


@dataclass
class Graph:
    """Facts, indexed both ways; `pages` entity → text, `updated` entity → day of its page's last change, both as far as they are known."""

    facts: frozenset[Fact]
    pages: dict[str, str] = field(default_factory=dict)
    updated: dict[str, date] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._next: dict[tuple[str, Step], set[str]] = defaultdict(set)
        self._facts_of: dict[str, list[Fact]] = defaultdict(list)
        for fact in sorted(self.facts):
            self._next[fact.head, Step(fact.relation)].add(fact.tail)
            self._next[fact.tail, Step(fact.relation, True)].add(fact.head)
            self._facts_of[fact.head].append(fact)
            if fact.tail != fact.head:
                self._facts_of[fact.tail].append(fact)

    @property
    def entities(self) -> list[str]:
        """All that stand in a fact, in alphabetical order."""
        return sorted(self._facts_of)

    def about(self, entity: str) -> list[Fact]:
        """The facts that an entity stands in, on either side."""
        return self._facts_of.get(entity, [])

    def steps(self, entity: str) -> list[Step]:
        """The different ways to leave an entity."""
        found = {Step(f.relation) for f in self.about(entity) if f.head == entity}
        return sorted(found | {Step(f.relation, True) for f in self.about(entity) if f.tail == entity}, key=lambda s: (s.relation, s.back))

    def values(self, entity: str, step: Step) -> set[str]:
        """Where one step leads from an entity; empty where it has none."""
        return self._next.get((entity, step), set())

    def follow(self, starts: Iterable[str], way: Sequence[Step], without: Fact | None = None) -> set[str]:
        """All entities at the end of `way` from any of `starts`, as if the fact `without` were not there."""
        here = set(starts)
        for step in way:
            here = {there for entity in here for there in self.values(entity, step) if along(entity, step, there) != without}
        return here

    def fitting(self, conditions: Sequence[tuple[Step, str]]) -> set[str]:
        """The entities from which each step leads to its value: what a description singles out. Raises ValueError without a condition."""
        if not conditions:
            raise ValueError("A description needs at least one condition, else it fits every entity.")
        return set.intersection(*(self.values(value, Step(step.relation, not step.back)) for step, value in conditions))


def along(entity: str, step: Step, there: str) -> Fact:
    """The fact that a step from one entity to another goes along."""
    return Fact(there, step.relation, entity) if step.back else Fact(entity, step.relation, there)


def informativeness(graph: Graph, entity: str) -> float:
    """How much there is to ask about an entity: log(1 + its facts) times the entropy of their relations in nats, plus one [C].

    A country with two hundred diplomatic relations and nothing else is not informative: there is one kind of question about it.
    """
    kinds = Counter((fact.relation, fact.tail == entity) for fact in graph.about(entity))
    total = kinds.total()
    return math.log1p(total) * (1 - sum(n / total * math.log(n / total) for n in kinds.values())) if total else 0.0


def heads(graph: Graph, count: int, today: date | None = None, window: timedelta = HALF_A_YEAR) -> list[str]:
    """The `count` most informative entities to begin at; given `today`, only of pages updated within `window` before it [P].

    Fewer come back where fewer are fit. An entity without a known date is not recent. Ties go by name, so the choice is always the same.
    """
    fit = graph.entities
    if today is not None:
        fit = [e for e in fit if e in graph.updated and timedelta(0) <= today - graph.updated[e] <= window]
    return sorted(fit, key=lambda e: (-informativeness(graph, e), e))[:count]


def of_table(facts: Mapping[str, Mapping[str, str]], pages: Mapping[str, str] | None = None) -> Graph:
    """A graph from entity → relation → value, as the nano world and the real geography give it."""
    return Graph(frozenset(Fact(e, r, v) for e, known in facts.items() for r, v in known.items()), dict(pages or {}))


def of_triples(path: Path) -> Graph:
    """A graph from a file with `head<TAB>relation<TAB>tail` a line, UTF-8. Raises ValueError with the line of a broken one."""
    facts = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        parts = [part.strip() for part in line.split("\t")]
        if len(parts) != 3 or not all(parts):
            raise ValueError(f"{path}, line {number}: head, relation and tail between tabs are needed; this is {line[:80]!r}.")
        facts.append(Fact(*parts))
    if not facts:
        raise ValueError(f"{path} holds no triples.")
    return Graph(frozenset(facts))


def of_passages(passages: Mapping[str, str], updated: Mapping[str, date] | None = None) -> Graph:
    """A graph of links: title → text; a page links to the pages whose whole title stands in its text, the longest title first."""
    titles = sorted((t for t in passages if t.strip()), key=lambda t: (-len(t), t))
    if not titles:
        return Graph(frozenset(), dict(passages), dict(updated or {}))
    first: dict[str, list[str]] = defaultdict(list)
    for title in titles:
        first[re.findall(r"\w+|\S", title)[0]].append(title)
    facts = set()
    for head, text in passages.items():
        at = 0
        for word in re.finditer(r"\w+|\S", text):
            if word.start() < at:
                continue
            for title in first.get(word.group(), ()):
                end = word.start() + len(title)
                whole = not text[end : end + 1].isalnum() and text.startswith(title, word.start())
                if whole:
                    at = end
                    if title != head:
                        facts.add(Fact(head, LINK, title))
                    break
    return Graph(frozenset(facts), dict(passages), dict(updated or {}))


def of_folder(folder: Path) -> Graph:
    """`of_passages` over the `.txt` and `.md` files of a folder: a page's title is its file's name, its day the file's last change."""
    files = sorted(p for p in folder.rglob("*") if p.suffix in (".txt", ".md"))
    if not files:
        raise ValueError(f"{folder} holds no .txt or .md file.")
    passages = {p.stem: p.read_text(encoding="utf-8", errors="replace") for p in files}
    return of_passages(passages, {p.stem: date.fromtimestamp(p.stat().st_mtime) for p in files})

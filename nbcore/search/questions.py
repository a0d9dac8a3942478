"""Questions of several hops from walks over a graph, and what makes one unfit. Paper section 6.

A question is a *plan*: a start, given by its name or by a description, and a way of steps from it. Walks are random, with limits on how
often an entity is visited and a relation repeated. Obfuscation replaces the start's name by conditions that still single it out.
Validators look at the plan, not at the words, so a rewriting by a teacher can be checked against the same plan. The paper publishes
neither its walks nor its obfuscation [P]; limits, templates and validators are our choice [C].
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nbcore.search.graph import Fact, Graph, Step, along

FORWARD, BACK = "the {relation} of {of}", "what has {of} as its {relation}"
REWRITE = "Say this question in plain English, in one sentence. Keep every name as it is, and add nothing. Answer with the question alone."
WHOSE, WHOSE_BACK = "whose {relation} is {value}", "that is the {relation} of {value}"


@dataclass(frozen=True)
class Wording:
    """How a relation is said: as a step to it or back from it, and as a condition. `{of}` and `{value}` stand for what is known.

    asked: the whole question where the step along it is the last one, as `Who rules {of}?`; without it, `What is {forward}?`.
    """

    forward: str
    back: str | None = None
    whose: str | None = None
    whose_back: str | None = None
    asked: str | None = None


@dataclass(frozen=True)
class Walk:
    """Entities visited, and the steps between them."""

    entities: tuple[str, ...]
    way: tuple[Step, ...]

    @property
    def facts(self) -> list[Fact]:
        return [along(here, step, there) for here, step, there in zip(self.entities, self.way, self.entities[1:], strict=False)]


@dataclass(frozen=True)
class Question:
    """A question with the plan behind it. conditions: (step, value) pairs that stand for the start's name; empty: it is named."""

    text: str
    answer: str
    walk: Walk
    conditions: tuple[tuple[Step, str], ...] = ()

    @property
    def hops(self) -> int:
        """Steps that have to be taken: of the walk, and one more for a start that has to be found."""
        return len(self.walk.way) + bool(self.conditions)

    @property
    def facts(self) -> list[Fact]:
        """Everything that has to be found out, the facts of the description included."""
        start = self.walk.entities[0]
        return [along(start, step, value) for step, value in self.conditions] + self.walk.facts


def walk(
    graph: Graph, rng: random.Random, start: str, hops: int, *, visits: Mapping[str, int] | None = None, most_visits: int = 4,
    most_repeats: int = 1, most_values: int = 1, steps: Callable[[Step], bool] | None = None,
) -> Walk | None:  # fmt: skip
    """A random walk of `hops` steps that never comes back; None where it got stuck.

    visits: how often earlier walks were at each entity; one that was at `most_visits` is not entered. most_repeats: how often one relation
    may stand in the way. most_values: a step with more values than this is not taken, since what it leads to is not *the* anything.
    """
    at, entities, way, used = start, [start], [], Counter()
    for _ in range(hops):
        ways = []
        for step in graph.steps(at):
            values = graph.values(at, step)
            fresh = sorted(v for v in values if v not in entities and (visits or {}).get(v, 0) < most_visits)
            if used[step.relation] < most_repeats and len(values) <= most_values and fresh and (steps is None or steps(step)):
                ways.append((step, fresh))
        if not ways:
            return None
        step, fresh = rng.choice(ways)
        at = rng.choice(fresh)
        used[step.relation] += 1
        entities.append(at)
        way.append(step)
    return Walk(tuple(entities), tuple(way))


def say(
    made: Walk, conditions: Sequence[tuple[Step, str]] = (), wordings: Mapping[str, Wording] | None = None, noun: str = "one",
) -> str:  # fmt: skip
    """The question in words, by templates: `What is the river of the capital of the place whose ruler is Midra?`

    noun: what kind of thing the described start is, as `person`.
    """
    words = wordings or {}
    told = _described(conditions, words, noun) if conditions else made.entities[0]
    for number, step in enumerate(made.way, 1):
        known = words.get(step.relation, Wording(FORWARD, BACK))
        form = (known.back or BACK) if step.back else known.forward
        if number == len(made.way):
            form = (None if step.back else known.asked) or f"What is {form}?"
        told = form.format(relation=step.relation, of=told)
    return told if made.way else f"What is {told}?"


def obfuscate(
    graph: Graph, question: Question, rng: random.Random, most: int = 3, wordings: Mapping[str, Wording] | None = None, *,
    noun: str = "one", usable: Callable[[Step, str], bool] | None = None,
) -> Question | None:  # fmt: skip
    """The question with its start's name replaced by a few conditions, at most `most`, that fit it alone; None where none were found.

    Conditions are tried in random order, each taken if it narrows, and left out again if the rest will do.

    No condition uses an entity or a fact of the walk, and none has the answer as its value: the description must not give the way away.
    noun: as for `say`. usable: which conditions may be used at all, by their step and value.
    """
    start, onward = question.walk.entities[0], set(question.walk.entities[1:])
    found = []
    for fact in graph.about(start):
        step, value = (Step(fact.relation), fact.tail) if fact.head == start else (Step(fact.relation, True), fact.head)
        if value not in onward and value != start and not _shares_words(value, start) and (usable is None or usable(step, value)):
            found.append((step, value))
    rng.shuffle(found)
    chosen: list[tuple[Step, str]] = []
    fits: set[str] = set()
    for condition in found:
        now = graph.fitting([*chosen, condition])
        if not chosen or len(now) < len(fits):
            chosen.append(condition)
            fits = now
        if fits == {start}:
            break
        if len(chosen) == most:
            return None
    if fits != {start}:
        return None
    for condition in list(chosen):  # an early one may have become superfluous
        rest = [c for c in chosen if c != condition]
        if rest and graph.fitting(rest) == {start}:
            chosen = rest
    return replace(question, text=say(question.walk, chosen, wordings, noun), conditions=tuple(chosen))


def rewritten(question: Question, model: Callable[[str], str]) -> Question | None:
    """The question in a teacher's words; None unless they keep every name of its plan's beginning and leave the answer out.

    model: prompt to text. The plan stays the same, so every validator can look again.
    """
    said = model(f"{REWRITE}\n\n{question.text}").strip().strip('"').splitlines()
    names = [value for _, value in question.conditions] or [question.walk.entities[0]]
    if len(said) != 1 or _stands_in(question.answer, said[0]) or not all(_stands_in(name, said[0]) for name in names):
        return None
    return replace(question, text=said[0])


def blur(text: str) -> str:
    """Numbers and dates made vague: a year becomes its part of a decade, a large number is rounded to one digit and called about so."""

    def vague(match: re.Match) -> str:
        digits = match.group().replace(",", "")
        value = int(digits)
        if len(digits) == 4 and 1000 <= value < 2100 and "," not in match.group():
            return f"the {('early', 'mid', 'late')[min(2, value % 10 * 3 // 10)]} {value // 10 * 10}s"
        if value < 100:
            return match.group()
        scale = 10 ** (len(digits) - 1)
        return f"about {(value + scale // 2) // scale * scale:,}"

    dated = re.sub(rf"\b\d{{1,2}} ({_MONTHS}),? (?=\d{{4}}\b)|\b({_MONTHS}) \d{{1,2}}, (?=\d{{4}}\b)", "", text)
    return re.sub(r"(?<![.,])\b(?:in |on )?\d[\d,]*\d\b(?![.]\d)", lambda m: _prefixed(m, vague), dated)


_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"


def _prefixed(match: re.Match, vague: Callable[[re.Match], str]) -> str:
    number = re.search(r"\d[\d,]*\d", match.group())
    said = vague(number)
    return ("in " if match.group()[:3] in ("in ", "on ") and said.startswith("the ") else match.group()[: number.start()]) + said


@dataclass
class Rejections:
    """How many questions each validator turned away, the first that did; and how many passed."""

    kept: int = 0
    by: Counter = field(default_factory=Counter)


def unfit(graph: Graph, question: Question) -> str | None:
    """Why a question is no good by the graph alone, or None.

    Its answer must be the only one, must not stand in its words, and every fact of its plan must be needed: without it the plan no
    longer leads to the answer alone.
    """
    starts = {question.walk.entities[0]} if not question.conditions else graph.fitting(question.conditions)
    if graph.follow(starts, question.walk.way) != {question.answer}:
        return "more than one answer"
    if _stands_in(question.answer, question.text):
        return "the answer stands in the question"
    for fact in question.walk.facts:
        if question.answer in graph.follow(starts, question.walk.way, without=fact):
            return "a step of the way is not needed"
    for condition in question.conditions:
        rest = [c for c in question.conditions if c != condition]
        if rest and graph.follow(graph.fitting(rest), question.walk.way) == {question.answer}:
            return "a part of the description is not needed"
    return None


def screen(
    graph: Graph, asked: Sequence[Question], *, one_search: Callable[[str], str] | None = None,
    closed_book: Callable[[Sequence[str]], Sequence[str | None]] | None = None,
) -> tuple[list[Question], Rejections]:  # fmt: skip
    """The questions that pass every validator, and the count of each one's rejections; the cheap ones look first.

    one_search: the text that a single search for the question's own words shows; it must not hold the answer.
    closed_book: the answers of the model at hand without tools (None: it gave none); a question it answers teaches no searching.
    """
    count, left = Rejections(), []
    for question in asked:
        why = unfit(graph, question)
        if why is None and one_search is not None and _stands_in(question.answer, one_search(question.text)):
            why = "one search is enough"
        if why is None:
            left.append(question)
        else:
            count.by[why] += 1
    if closed_book is not None:
        said = closed_book([q.text for q in left])
        known = [text is not None and _stands_in(q.answer, text) for q, text in zip(left, said, strict=True)]
        count.by["answered without searching"] += sum(known)
        left = [q for q, yes in zip(left, known, strict=True) if not yes]
    count.kept = len(left)
    return left, count


def branching(graph: Graph, question: Question) -> float:
    """Mean number of ways out of the entities on the way: how many wrong turns an agent could take at each."""
    on_way = question.walk.entities[:-1]
    return sum(len(graph.steps(entity)) for entity in on_way) / len(on_way)


def _described(conditions: Sequence[tuple[Step, str]], words: Mapping[str, Wording], noun: str) -> str:
    parts = []
    for step, value in conditions:
        known = words.get(step.relation, Wording(FORWARD))
        form = (known.whose_back or WHOSE_BACK) if step.back else (known.whose or WHOSE)
        parts.append(form.format(relation=step.relation, value=value))
    return f"the {noun} " + " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)


def _stands_in(answer: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(answer.casefold())}(?!\w)", text.casefold()) is not None


def _shares_words(one: str, other: str) -> bool:
    """Whether two names share a word of four letters or more: such a value would name what it should describe."""
    return bool({w for w in re.findall(r"\w{4,}", one.casefold())} & {w for w in re.findall(r"\w{4,}", other.casefold())})

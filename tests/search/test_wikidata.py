"""Words for Wikidata's relations, and questions from its facts: enough of them, all fit, and right by a search written otherwise."""

import os
import random
import re
from collections import defaultdict
from itertools import islice
from pathlib import Path

import pytest

from nbcore.search.graph import Fact, Graph, Step, of_triples
from nbcore.search.questions import screen
from nbcore.search.wikidata import ALONE, BROAD, ODD, STEPS, TELLING, WORDINGS, kind, questions


@pytest.fixture(scope="module")
def path() -> Path:
    root = os.environ.get("NBCORE_EXTERNAL")
    if not root:
        pytest.skip("NBCORE_EXTERNAL is not set")
    return Path(root) / "knowledge_graph" / "codex-s_labelled_subset.tsv"


@pytest.fixture(scope="module")
def graph(path) -> Graph:
    return of_triples(path)


def test_each_form_has_its_one_place():
    for relation, known in WORDINGS.items():
        for form in (known.forward, known.back, known.asked or "{of}?"):
            assert re.findall(r"\{\w+\}", form) == ["{of}"], relation
        for form in (known.whose, known.whose_back):
            assert re.findall(r"\{\w+\}", form) == ["{value}"], relation
            assert form.split()[0] in ("who", "whose", "that", "where", "with", "on", "of", "to", "in"), relation
        if relation in STEPS:
            assert known.asked.endswith("{of}?"), "what is described stands at the end"
    assert STEPS | TELLING | ALONE <= set(WORDINGS)


def test_small_world_is_asked_about_in_words():
    people = {f"P{n}": (f"city{n % 3}", f"school{n % 4}", f"label{n}") for n in range(12)}
    relations = ("place of birth", "educated at", "record label")
    facts = {Fact(p, r, v) for p, values in people.items() for r, v in zip(relations, values, strict=True)}
    facts |= {Fact(f"label{n}", "headquarters location", "Soviet Hall") for n in range(12)}
    small = Graph(frozenset(facts | {Fact("city1", "country", "Philippines")}))
    assert [kind(small, e) for e in ("P1", "label1", "city1", "Soviet Hall")] == ["person", "record label", "place", None]
    made = list(questions(small, random.Random(3), tries=400, chance=1.1))
    assert {q.hops for q in made} == {2, 3}
    text = next(q.text for q in made if len(q.walk.way) == 2 and "born" in q.text and "studied" in q.text)
    assert re.fullmatch(r"Which place holds the headquarters of the record label of the person who (was born in city\d and who studied at "
                        r"school\d|studied at school\d and who was born in city\d)\?", text)  # fmt: skip
    assert not any(q.text for q in made if len(small.fitting(q.conditions)) != 1)


@pytest.mark.external
def test_every_relation_of_the_file_has_words(graph):
    assert {fact.relation for fact in graph.facts} == set(WORDINGS)
    assert BROAD <= set(graph.entities)
    assert all(len(graph.values(head, Step(relation))) == 1 for head, relation in ODD)


@pytest.mark.external
@pytest.mark.slow
def test_five_hundred_questions_are_fit_and_right_by_another_search(graph, path):
    tried = islice(questions(graph, random.Random(5)), 12_000)
    kept: dict = {}
    for question in tried:
        if question.walk not in kept and screen(graph, [question])[0]:
            kept[question.walk] = question
        if len(kept) == 500:
            break
    asked = list(kept.values())
    assert len(asked) == 500
    again, count = screen(graph, asked)
    assert again == asked and count.kept == 500 and not count.by

    rows = defaultdict(list)  # relation → (head, tail), read anew
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line:
            head, relation, tail = line.split("\t")
            rows[relation].append((head, tail))
    names = {name for pairs in rows.values() for pair in pairs for name in pair}
    for question in asked:
        here = [n for n in names if all(((v, n) if s.back else (n, v)) in rows[s.relation] for s, v in question.conditions)]
        assert here == [question.walk.entities[0]], question.text
        for step in question.walk.way:
            assert not step.back
            here = [tail for head, tail in rows[step.relation] if head in here]
        assert here == [question.answer], question.text
        assert question.answer.casefold() not in re.split(r"\W+", question.text.casefold()), question.text
        assert 2 <= question.hops <= 4 and not {value for _, value in question.conditions} & BROAD
        assert question.text[0].isupper() and question.text.endswith("?") and "the the" not in question.text

"""Questions: walks within limits, words from a plan, descriptions that single out, and validators that count what they turn away."""

import random
from collections import Counter

import pytest

from nbcore.nano.atlas import Atlas
from nbcore.search.graph import Fact, Graph, Step, of_table
from nbcore.search.questions import Question, Walk, Wording, blur, branching, obfuscate, rewritten, say, screen, unfit, walk

FACTS = [
    "Velmar capital Tosk", "Velmar ruler Midra", "Velmar river Oss", "Barun capital Kelm", "Barun ruler Sorn", "Barun river Oss",
    "Midra home Kelm", "Midra friend Sorn", "Tosk twin Kelm", "Kelm mayor Ladi", "Sorn home Tosk", "Sorn friend Midra",
]  # fmt: skip
WORLD = Graph(frozenset(Fact(*text.split()) for text in FACTS))
TWO = Walk(("Velmar", "Midra", "Kelm"), (Step("ruler"), Step("home")))


def asked(made: Walk, **more) -> Question:
    return Question(say(made), made.entities[-1], made, **more)


def test_a_walk_never_comes_back_and_its_facts_are_in_the_graph():
    graph = of_table(Atlas(random.Random(1), 60).facts)
    made = [m for s in graph.entities for m in [walk(graph, random.Random(s), s, 3)] if m]
    assert len(made) > 20
    for one in made:
        assert len(set(one.entities)) == 4 and set(one.facts) <= graph.facts
        assert len({step.relation for step in one.way}) == 3


def test_limits_on_visits_repeats_and_values_are_kept():
    full = walk(WORLD, random.Random(0), "Velmar", 1, visits={e: 4 for e in WORLD.entities}, most_visits=4)
    assert full is None
    for seed in range(40):
        made = walk(WORLD, random.Random(seed), "Velmar", 2, visits={"Midra": 1}, most_visits=1)
        assert made is None or "Midra" not in made.entities
        made = walk(WORLD, random.Random(seed), "Oss", 1)
        assert made is None  # the river of two places: there is no *the* place with it
        assert walk(WORLD, random.Random(seed), "Oss", 1, most_values=2).entities[1] in ("Velmar", "Barun")
    friends = walk(of_table({"a": {"friend": "b"}, "b": {"friend": "c"}}), random.Random(0), "a", 2, most_repeats=2)
    assert friends.entities == ("a", "b", "c")
    assert walk(of_table({"a": {"friend": "b"}, "b": {"friend": "c"}}), random.Random(0), "a", 2) is None


def test_words_follow_the_way():
    assert say(TWO) == "What is the home of the ruler of Velmar?"
    assert say(Walk(("Kelm", "Midra"), (Step("home", back=True),))) == "What is what has Kelm as its home?"
    words = {"home": Wording("the home town of {of}", "the person who lives in {of}"), "ruler": Wording("who rules {of}")}
    assert say(TWO, wordings=words) == "What is the home town of who rules Velmar?"
    described = say(TWO, [(Step("capital"), "Tosk"), (Step("twin", back=True), "Oss")])
    assert described == "What is the home of the ruler of the one whose capital is Tosk and that is the twin of Oss?"


def test_a_description_fits_the_start_alone_and_gives_nothing_away():
    made = 0
    for seed in range(30):
        found = obfuscate(WORLD, asked(TWO), random.Random(seed))
        assert found is not None
        made += 1
        assert WORLD.fitting(found.conditions) == {"Velmar"} and "Velmar" not in found.text
        assert not {value for _, value in found.conditions} & set(TWO.entities)
        assert found.hops == 3
        if len(found.conditions) > 1:
            assert all(WORLD.fitting([c for c in found.conditions if c != one]) != {"Velmar"} for one in found.conditions)
    assert made == 30


def test_what_cannot_be_singled_out_is_not_described():
    twins = of_table({"a": {"river": "r", "capital": "x"}, "b": {"river": "r"}})
    assert obfuscate(twins, asked(Walk(("a", "x"), (Step("capital"),))), random.Random(0)) is None


@pytest.mark.parametrize(
    ("text", "vague"),
    [
        ("born in 1887", "born in the late 1880s"), ("on 4 May 1881", "in the early 1880s"), ("14,724 people", "about 10,000 people"),
        ("1234567 people", "about 1,000,000 people"), ("May 4, 1915", "the mid 1910s"), ("has 12 members", "has 12 members"),
        ("3.14159 metres", "3.14159 metres"),
    ],
)  # fmt: skip
def test_numbers_and_dates_become_vague(text, vague):
    assert blur(text) == vague


def test_a_sound_question_passes():
    assert unfit(WORLD, asked(TWO)) is None


def test_each_fault_is_named():
    river = Walk(("Oss", "Velmar", "Tosk"), (Step("river", back=True), Step("capital")))
    assert unfit(WORLD, asked(river)) == "more than one answer"
    given = Question("What is Kelm, the home of the ruler of Velmar?", "Kelm", TWO)
    assert unfit(WORLD, given) == "the answer stands in the question"
    both = of_table({"a": {"p": "b"}, "c": {"q": "d"}})
    both = Graph(both.facts | {Fact("a", "p", "c"), Fact("b", "q", "d")})
    assert unfit(both, asked(Walk(("a", "b", "d"), (Step("p"), Step("q"))))) == "a step of the way is not needed"
    needless = asked(TWO, conditions=((Step("capital"), "Tosk"), (Step("river"), "Oss")))
    assert unfit(WORLD, needless) == "a part of the description is not needed"


def test_screening_counts_the_first_reason_and_asks_the_model_last():
    one = Walk(("Velmar", "Midra"), (Step("ruler"),))
    three = Walk(("Velmar", "Tosk", "Kelm", "Ladi"), (Step("capital"), Step("twin"), Step("mayor")))
    river = Walk(("Oss", "Velmar", "Tosk"), (Step("river", back=True), Step("capital")))
    seen = []

    def closed_book(texts):
        seen.extend(texts)
        return ["I think it is Kelm." if "home" in text else None for text in texts]

    page = {"Velmar": "Velmar. ruler: Midra."}
    four = [asked(made) for made in (one, TWO, three, river)]
    kept, count = screen(WORLD, four, one_search=lambda text: page["Velmar"], closed_book=closed_book)
    assert [q.answer for q in kept] == ["Ladi"] and count.kept == 1
    assert count.by == Counter({"more than one answer": 1, "one search is enough": 1, "answered without searching": 1})
    assert seen == [asked(TWO).text, asked(three).text]


def test_part_of_a_word_is_not_the_answer():
    short = of_table({"Velmar": {"river": "Ver"}})
    made = Question("What is the river of Velmar, a river?", "Ver", Walk(("Velmar", "Ver"), (Step("river"),)))
    assert unfit(short, made) is None


def test_branching_is_the_mean_number_of_ways_out():
    assert branching(WORLD, asked(TWO)) == (3 + 4) / 2


def test_the_last_step_may_ask_in_its_own_words():
    words = {"home": Wording("the home of {of}", asked="Where lives {of}?"), "ruler": Wording("the ruler of {of}", asked="Who rules {of}?")}
    assert say(TWO, wordings=words) == "Where lives the ruler of Velmar?"
    assert say(Walk(("Kelm", "Midra"), (Step("home", back=True),)), wordings=words) == "What is what has Kelm as its home?"
    three = [(Step("capital"), "Tosk"), (Step("twin"), "Oss"), (Step("river"), "Ver")]
    said = say(TWO, three, words, "country")
    assert said == "Where lives the ruler of the country whose capital is Tosk, whose twin is Oss and whose river is Ver?"


def test_a_description_uses_only_what_is_usable():
    for seed in range(10):
        found = obfuscate(WORLD, asked(TWO), random.Random(seed), noun="land", usable=lambda step, value: step.relation == "capital")
        assert found.conditions == ((Step("capital"), "Tosk"),) and "the land whose capital" in found.text
    assert obfuscate(WORLD, asked(TWO), random.Random(0), usable=lambda step, value: value == "Oss") is None


@pytest.mark.parametrize(("said", "kept"), [
    ("Which river flows through the capital of Velmar?", True), ('"Which river flows through the capital of Velmar?"\n', True),
    ("Which river flows through that capital?", False), ("Does the Dodo flow through the capital of Velmar?", False), ("", False),
    ("Sure!\nWhich river flows through the capital of Velmar?", False),
])  # fmt: skip
def test_a_teachers_words_are_taken_when_they_keep_the_names_and_not_the_answer(said, kept):
    way = Walk(("Velmar", "Tosk", "Dodo"), (Step("capital"), Step("river")))
    made = Question("What is the river of the capital of Velmar?", "Dodo", way)
    again = rewritten(made, lambda prompt: said if made.text in prompt else "")
    assert (again is not None) == kept
    if kept:
        assert again.text == "Which river flows through the capital of Velmar?" and again.walk == made.walk

"""act: pages that say what questions ask, walks that end where their path says, names of one side only."""

import random

import pytest

from nbcore.nano import geography
from nbcore.nano.atlas import Atlas, questions
from nbcore.nano.names import held_out
from nbcore.search.tools import NOTHING, Search


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_following_the_pages_gives_the_answer(hops):
    atlas = Atlas(random.Random(hops), 60, "held-out")
    search = Search(atlas.pages)
    for made in questions(atlas, 30, (hops,), seed=0):
        assert made.hops == hops
        at = made.path[0][1]
        for relation, of, value in made.path:
            assert of == at
            assert f"{relation}: {value}." in search(f"{relation} of {at}")
            at = value
        assert at == made.answer
        assert made.answer not in made.text


def test_a_held_out_world_has_held_out_names_only():
    atlas = Atlas(random.Random(0), 90, "held-out")
    names = set(atlas.facts) | {value for facts in atlas.facts.values() for value in facts.values()}
    assert all(held_out(name) for name in names)
    other = Atlas(random.Random(0), 90)
    assert not any(held_out(name) for name in other.facts)


def test_an_atlas_too_small_for_its_questions_says_so():
    with pytest.raises(ValueError, match="make it larger"):
        questions(Atlas(random.Random(0), 6), 500, (4,), seed=0)


def test_search_finds_whole_titles_only():
    search = Search({"Pala": "Pala. river: Dodo.", "New Delhi": "New Delhi. country: India.", "Delhi": "Delhi. river: Yamuna."})
    assert search("river of Pala") == "Pala. river: Dodo."
    assert search("country of New Delhi").startswith("New Delhi")
    assert search("What is the river of the capital of Pala?").startswith("Pala")
    for query in ("", "river", "Palado", "Pal"):
        assert search(query) == NOTHING


def test_real_geography_has_one_answer_for_each_question():
    known = geography.facts()
    capitals = [facts["capital"] for facts in known.values() if "capital" in facts]
    assert len(capitals) == len(set(capitals)) > 150
    assert known["Peru"]["capital"] == "Lima" and known["Lima"]["country"] == "Peru"
    made = geography.questions(60, seed=1)
    assert len({q.text for q in made}) == 60 and {q.hops for q in made} == {1, 2}
    for q in made:
        for relation, of, value in q.path:
            assert known[of][relation] == value

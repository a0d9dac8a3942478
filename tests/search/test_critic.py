"""The critic: which turns teach, by what they called, what came back, and what was known before."""

import json
import re

import pytest

from nbcore.chat.toolcalls import ToolCall
from nbcore.search.agent import Episode, Stretch
from nbcore.search.context import Turn
from nbcore.search.critic import by_model, follows, judge, loss_mask
from nbcore.search.graph import Fact
from nbcore.search.tools import NOTHING, Observation

PLAN = [Fact("Velmar", "capital", "Tosk"), Fact("Tosk", "river", "Dodo")]
PAGES = {"Velmar": "Velmar. capital: Tosk. ruler: Midra.", "Tosk": "Tosk. river: Dodo.", "Midra": "Midra. home: Tosk."}


def asked(query, heard, error=None, **more):
    return Turn("x", "", [ToolCall("search", {"query": query})], [Observation(heard, error)], **more)


def episode(*turns, answer="Dodo"):
    mask = []
    for turn in turns:
        turn.start, turn.end = len(mask), len(mask) + 3
        mask += [1, 1, 1, 0, 0]
    talk = [{"role": "user", "content": "What is the river of the capital of Velmar?"}]
    done = Episode(talk, [Stretch([1], [5] * len(mask), mask)], list(turns))
    done.answer = answer
    return done


FIRST, SECOND, LAST = ("capital of Velmar", PAGES["Velmar"]), ("river of Tosk", PAGES["Tosk"]), Turn("Dodo")


def test_the_straight_way_is_all_good_and_each_step_gains_a_fact():
    judged = judge(episode(asked(*FIRST), asked(*SECOND), LAST), PLAN)
    assert [j.gain for j in judged] == [1, 1, 0] and all(j.good for j in judged)
    assert [j.answers for j in judged] == [False, False, True]


def test_a_fact_is_gained_once():
    judged = judge(episode(asked(*FIRST), asked(*FIRST), asked(*SECOND), LAST), PLAN)
    assert [j.gain for j in judged] == [1, 0, 1, 0] and not judged[1].new and not judged[1].good


@pytest.mark.parametrize("turn", [
    asked("river", NOTHING), asked("river of Tosk", "Error: http 500", "http 500"), asked("river of Tosk", "often", "repeated", repeated=1),
    Turn("x", "", [], [Observation("The call could not be read.", "unreadable")], malformed=1), asked("river of Tosk", ""),
])  # fmt: skip
def test_a_turn_that_brought_nothing_is_not_good_and_costs_the_others_nothing(turn):
    judged = judge(episode(asked(*FIRST), turn, asked(*SECOND), LAST), PLAN)
    assert [j.good for j in judged] == [True, False, True, True]


def test_a_page_off_the_way_is_new_but_gains_nothing():
    (_, aside, *_) = judge(episode(asked(*FIRST), asked("home of Midra", PAGES["Midra"]), asked(*SECOND), LAST), PLAN)
    assert aside.new and aside.gain == 0 and aside.good


def test_a_call_about_a_name_that_nobody_said_is_not_sound_though_it_hits():
    judged = judge(episode(asked("river of Tosk", PAGES["Tosk"]), LAST), PLAN)
    assert judged[0].gain == 1 and not judged[0].sound and not judged[0].good


@pytest.mark.parametrize(("answer", "sound"), [("Dodo", True), ("dodo", True), ("Dod", False), ("Rito", False), (None, False), ("", False)])
def test_an_answer_is_sound_when_an_observation_holds_it(answer, sound):
    assert judge(episode(asked(*FIRST), asked(*SECOND), Turn("said"), answer=answer), PLAN)[-1].sound is sound


def test_a_page_that_names_both_by_chance_shows_no_fact():
    by_chance = judge(episode(asked("capital of Velmar", "Velmar. river: Dodo. capital: Tosk."), LAST), PLAN)
    assert by_chance[0].gain == 1, "the river of Tosk is not told on a page where Tosk comes behind Dodo"


def test_half_an_observation_is_no_fact():
    cut = judge(episode(asked("capital of Velmar", "Velmar. cap"), LAST), PLAN)
    assert cut[0].gain == 0 and cut[0].new


@pytest.mark.parametrize(("query", "known", "yes"), [
    ("river of Tosk", "Tosk is named", True), ("river of Tosk", "Toska is named", False), ("the longest river", "nothing", True),
    ("population of Tosk 1990", "Tosk", False), ("", "Tosk", False), ("river of Étretat", "in Étretat.", True),
    ("river of Étretat", "nothing", False), ("river of Saint Lucia", "Saint Lucia.", True),
    ("Height of Mount Everest", "mount everest", True),
    ("Einstein Princeton 1933", "Einstein moved to Princeton in 1933", True), ("Who founded IBM", "IBM is a company", True),
])  # fmt: skip
def test_a_call_follows_when_its_names_and_numbers_were_read(query, known, yes):
    assert follows(query, set(re.findall(r"\w+", known.casefold()))) is yes


def test_a_program_is_not_asked_for_its_names():
    turn = Turn("x", "", [ToolCall("python", {"code": "print(Fraction(7, 9))"})], [Observation("7/9")])
    assert judge(episode(turn, LAST))[0].sound


def test_failed_turns_leave_the_loss_and_stay_in_the_context():
    done = episode(asked(*FIRST), asked("river", NOTHING), asked(*SECOND), LAST)
    keep = [j.good for j in judge(done, PLAN)]
    mask = loss_mask(done, 0, keep)
    assert mask == [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0]
    assert done.stretches[0].mask[5:8] == [1, 1, 1], "the episode itself is not changed"
    with pytest.raises(ValueError, match="one for each"):
        loss_mask(done, 0, keep[:-1])


def test_a_models_word_is_read_for_every_turn():
    done = episode(asked(*FIRST), LAST)
    assert by_model(lambda prompt: f"Sure:\n```json\n{json.dumps([True, False])}\n```", done) == [True, False]


def test_a_models_thoughts_are_not_its_word():
    said = "<think>\nTurn 1 [maybe], turn 2 [no].\n</think>\nFirst [true] I thought.\n[true, false]"
    assert by_model(lambda prompt: said, episode(asked(*FIRST), LAST)) == [True, False]


@pytest.mark.parametrize("said", ["", "yes", "[true]", "[true, 1]", "[true, null]", "[true, false", '{"a": [true]}'])
def test_a_word_that_cannot_be_read_is_missing_and_not_false(said):
    assert by_model(lambda prompt: said, episode(asked(*FIRST), LAST)) == [None, None]


def test_the_model_sees_each_turn_with_what_it_heard():
    seen = []
    by_model(lambda prompt: seen.append(prompt) or "", episode(asked(*FIRST), LAST))
    assert all(part in seen[0] for part in ("Turn 1", "Turn 2", PAGES["Velmar"], "What is the river"))

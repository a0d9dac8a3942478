"""The scripted searcher: right without mistakes, mistaken at its rate, and blind to everything but the tokens."""

import random

import pytest

from nbcore import models
from nbcore.nano.atlas import Atlas, questions
from nbcore.nano.searcher import UNKNOWN, searcher, turn
from nbcore.nano.tokenizer import SEARCH
from nbcore.search.agent import Budget, play
from nbcore.search.tools import Search, Tool, Toolbox


@pytest.fixture(scope="module")
def tokenizer():
    return models.load("nano").tokenizer


def played(tokenizer, wide, mistakes, hops=(1, 2, 3, 4), seed=0):
    atlas = Atlas(random.Random(5), 90, wide=wide)
    search, asked = Search(atlas.pages), questions(atlas, 40, hops, 1)
    box = Toolbox([Tool(SEARCH, lambda given: search(given["query"]))])
    return asked, play(searcher(tokenizer, mistakes), tokenizer, [[{"role": "user", "content": q.text}] for q in asked], [SEARCH],
                       lambda i, call: box(call), Budget(turns=20, new_tokens=160), seed=seed)  # fmt: skip


@pytest.mark.parametrize("wide", [False, True])
def test_without_mistakes_it_answers_every_question_in_as_many_calls_as_hops(tokenizer, wide):
    asked, done = played(tokenizer, wide, 0.0)
    assert [e.answer for e in done] == [q.answer for q in asked]
    assert [e.calls for e in done] == [q.hops for q in asked]


def test_with_mistakes_it_still_gets_there_and_makes_every_kind(tokenizer):
    asked, done = played(tokenizer, True, 0.4)
    assert sum(e.answer == q.answer for e, q in zip(done, asked, strict=True)) >= 38
    heard = [seen for e in done for t in e.turns for seen in t.observations]
    assert {seen.error for seen in heard} == {None, "unreadable"} and "No page fits." in {seen.text for seen in heard}
    texts = [t.text for e in done for t in e.turns]
    assert any("Not what was asked for." in text for text in texts) and any("A broken call." in text for text in texts)


def test_the_same_seed_gives_the_same_episodes_and_another_others(tokenizer):
    first, again, other = (played(tokenizer, False, 0.4, seed=seed)[1] for seed in (0, 0, 1))
    assert [e.stretches[0].ids for e in first] == [e.stretches[0].ids for e in again] != [e.stretches[0].ids for e in other]


def test_a_question_of_another_kind_gets_no_guess():
    assert UNKNOWN in turn("<|im_start|>user\nWrite a poem.<|im_end|>", random.Random(0), 0.0)


def test_a_page_of_another_entity_is_not_mistaken_for_the_answer():
    seen = ("What is the river of Pala?<|im_end|>\n<|im_start|>user\n<tool_response>\nPalam. river: Wrong.\n</tool_response><|im_end|>")
    assert "Wrong" not in turn(seen, random.Random(0), 0.0)

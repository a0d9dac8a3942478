"""Chains: as long as asked, followed to the end by who keeps the question in mind, and honest about what went wrong."""

import random

import pytest

from nbcore import models
from nbcore.chat.toolcalls import ToolCall
from nbcore.nano.chain import Unreliable, chain, report
from nbcore.nano.names import held_out
from nbcore.nano.searcher import searcher
from nbcore.nano.tokenizer import SEARCH
from nbcore.search.agent import Budget, Episode, Stretch, play
from nbcore.search.context import Turn, compressed, last, noted
from nbcore.search.graph import Fact, Step, of_table
from nbcore.search.tools import Observation, Search, Tool, Toolbox


@pytest.fixture(scope="module")
def tokenizer():
    return models.load("nano").tokenizer


def played(tokenizer, tasks, context, rate=0.0, mistakes=0.0):
    worlds = [Unreliable(Search(task.pages), rate, seed=i) for i, task in enumerate(tasks)]
    boxes = [Toolbox([Tool(SEARCH, lambda given, world=world: world(given["query"]))]) for world in worlds]
    done = play(searcher(tokenizer, mistakes), tokenizer, [[{"role": "user", "content": task.text}] for task in tasks], [SEARCH],
                lambda i, call: boxes[i](call), Budget(turns=3 * max(t.length for t in tasks), new_tokens=96), context)  # fmt: skip
    return [report(task, episode) for task, episode in zip(tasks, done, strict=True)], done, worlds


@pytest.mark.parametrize("length", [1, 2, 10, 40])
def test_the_way_leads_to_the_answer_in_as_many_calls_as_pages(tokenizer, length):
    (told,), *_ = played(tokenizer, [chain(random.Random(length), length)], last(3))
    assert (told.right, told.calls, told.malformed, told.repeats, told.lost) == (True, length, 0, 0, 0)


def test_the_plan_is_in_the_pages_and_has_one_end():
    made = chain(random.Random(1), 12, "held-out")
    facts = {name: dict(part.split(": ") for part in text.rstrip(".").split(". ")[1:]) for name, text in made.pages.items()}
    graph = of_table(facts)
    assert graph.follow([made.names[0]], [Step(made.way)] * 11 + [Step(made.wanted)]) == {made.answer}
    assert all(Fact(f.head, f.relation, f.tail) in graph.facts for f in made.plan)
    assert all(held_out(name) for name in made.pages)


def test_an_unreliable_tool_is_survived_and_its_kinds_are_counted(tokenizer):
    told, _, worlds = played(tokenizer, [chain(random.Random(2), 40)], last(3), rate=0.3)
    assert told[0].right and told[0].malformed == 0 and told[0].lost == 0 and told[0].repeats > 0
    assert all(worlds[0].counts[kind] for kind in ("empty", "late", "cut", "form", "as ever"))


def test_mistakes_of_form_are_reported_and_do_not_lose_the_state(tokenizer):
    told, *_ = played(tokenizer, [chain(random.Random(3), 30)], last(3), mistakes=0.3)
    assert told[0].right and told[0].malformed > 0 and told[0].lost == 0


@pytest.mark.parametrize("context", [last(2), compressed(noted, every=6, keep=1)])
def test_the_context_stays_as_long_as_it_was_however_long_the_task(tokenizer, context):
    _, (done,), _ = played(tokenizer, [chain(random.Random(4), 60)], context)
    sizes = [len(stretch.all) for stretch in done.stretches]
    assert done.answer and max(sizes[len(sizes) // 2 :]) <= 1.5 * max(sizes[: len(sizes) // 2])


def test_another_way_and_the_other_fact_at_the_end_are_lost_constraints():
    made = chain(random.Random(5), 3)
    other = {"left": "right", "right": "next", "next": "left"}[made.way]
    wrong = next(part.split(": ")[1] for part in made.pages[made.names[-1]].rstrip(".").split(". ")[1:] if made.answer not in part)
    turns = [Turn("x", "", [ToolCall("search", {"query": f"{other} of {made.names[0]}"})], [Observation("x")])] * 2
    told = report(made, Episode([], [Stretch([1])], turns, wrong))
    assert (told.right, told.lost, told.repeats) == (False, 3, 1)


def test_a_chain_without_pages_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        chain(random.Random(0), 0)

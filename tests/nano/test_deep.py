"""Tasks of deep search: sound, on their side of the split, with a plan that their pages hold."""

import pytest

from nbcore.chat.toolcalls import ToolCall
from nbcore.nano import deep
from nbcore.nano.names import held_out
from nbcore.search.critic import shows


@pytest.mark.parametrize("side", ["train", "held-out"])
def test_the_plan_leads_from_page_to_page_to_the_answer(side):
    made, rejected = deep.tasks(90, 1, side)
    assert len(made) == 90 == rejected.kept and {t.hops for t in made} == {2, 3, 4}
    for task in made:
        assert task.plan[-1].tail == task.answer and task.answer not in task.text and task.plan[0].head in task.text
        for fact, onward in zip(task.plan, task.plan[1:], strict=False):
            assert fact.tail == onward.head
        for fact in task.plan:
            assert shows(task.call(ToolCall("search", {"query": f"{fact.relation} of {fact.head}"})).text, fact)


def test_all_names_are_of_one_side():
    for side in ("train", "held-out"):
        names = {name for task in deep.tasks(60, 2, side)[0] for fact in task.plan for name in (fact.head, fact.tail)}
        assert all(held_out(name) == (side == "held-out") for name in names)


def test_half_of_the_worlds_have_odd_names_or_as_many_as_asked():
    def odd(tasks):
        return sum(any(len(word) % 2 or " " in name for name in (t.plan[0].head,) for word in name.split()) for t in tasks) / len(tasks)

    assert odd(deep.tasks(60, 3, wide=0.0)[0]) == 0.0, "names of syllables have an even number of letters"
    assert odd(deep.tasks(60, 3, wide=1.0)[0]) > 0.3


def test_the_same_seed_gives_the_same_tasks():
    assert [t.text for t in deep.tasks(30, 4)[0]] == [t.text for t in deep.tasks(30, 4)[0]] != [t.text for t in deep.tasks(30, 5)[0]]


def test_real_places_are_real_and_have_one_or_two_hops():
    made = deep.real(40, 0)
    assert {t.hops for t in made} == {1, 2} and all(t.plan[-1].tail == t.answer for t in made)
    assert made[0].call(ToolCall("search", {"query": "capital of Peru"})).text.startswith("Peru. capital: Lima.")

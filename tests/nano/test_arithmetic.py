"""reason: steps that add up, answers that reasoning-gym confirms, sides that never meet."""

import random
import re

import pytest

from nbcore.nano import arithmetic


@pytest.mark.parametrize("a", range(0, 200, 7))
@pytest.mark.parametrize("b", [-99, -58, -10, -9, -1, 0, 1, 9, 10, 58, 99])
def test_each_written_column_is_true_and_the_last_number_is_the_result(a, b):
    if not 0 <= a + b:
        return
    line = arithmetic.steps(a, b)
    head, _, result = line.rpartition(" -> ")
    assert int(result) == a + b
    columns = head.split(": ")[1].split()
    digits = []
    for place, column in enumerate(columns):
        left, right = column.split("=")
        assert eval(left) == int(right)
        digits.insert(0, right if place == len(columns) - 1 else right[-1])
    assert int("".join(digits)) == a + b


def test_a_thought_ends_in_the_answer():
    for item in arithmetic.sums(200, 1):
        assert arithmetic.thought(item.terms).endswith(f"-> {item.answer}")
        assert sum(item.terms) == item.answer


def test_the_verifier_takes_the_number_and_nothing_else():
    item = arithmetic.sums(1, 0)[0]
    assert arithmetic.correct(str(item.answer), item)
    for wrong in (str(item.answer + 1), "", "none", f"{item.answer} or {item.answer + 1}"):
        assert not arithmetic.correct(wrong, item)


def test_sides_never_share_an_item():
    train, held = ({item.key for item in arithmetic.sums(1500, 3, side)} for side in ("train", "held-out"))
    assert train and held and not train & held


def test_word_problems_hold_the_same_numbers_as_their_sum():
    told = [item for item in arithmetic.sums(200, 5) if item.kind == "word problem"]
    assert len(told) > 30
    for item in told:
        assert [int(n) for n in re.findall(r"\d+", item.question)] == [abs(t) for t in item.terms]


def test_hasty_answers_are_often_wrong_and_sometimes_right():
    rng, items = random.Random(0), arithmetic.sums(400, 0)
    right = sum(arithmetic.hasty(rng, item) == item.answer for item in items) / len(items)
    assert 0.3 < right < 0.55

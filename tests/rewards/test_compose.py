import math
import threading
import time
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch

from nbcore.rewards.compose import Component, RewardError, Scored, breakdown, each, score
from nbcore.rewards.rollouts import Rollout
from nbcore.rewards.workers import Missing

ROLLOUTS = [Rollout(f"item {i}", [1], [2, i], f"answer {i}", True, [1, 1], [0.0, 0.0]) for i in range(4)]


def gives(value):
    return lambda rollouts: value


def run(value, **more):
    return score(ROLLOUTS, [Component("part", gives(value), **more)])


def raises(error):
    def reward(rollouts):
        raise error

    return reward


class Twice:
    """A scalar of a foreign library that only says that it can become a float."""

    def __float__(self):
        return 2.0


# What a reward gave for four rollouts -> the values (None is missing) and how often which reason was counted.
TAKEN = {
    "numbers": ([0, 1, 2.5, -3], [0.0, 1.0, 2.5, -3.0], {}),
    "tuple": ((1, 2, 3, 4), [1.0, 2.0, 3.0, 4.0], {}),
    "bool": ([True, False, True, False], [1.0, 0.0, 1.0, 0.0], {}),
    "numpy bool": ([np.bool_(True), np.False_, np.True_, False], [1.0, 0.0, 1.0, 0.0], {}),
    "numpy scalars": ([np.float32(0.5), np.int64(2), np.float16(0.25), np.array(1.0)], [0.5, 2.0, 0.25, 1.0], {}),
    "numpy array": (np.array([1.0, 2.0, 3.0, 4.0]), [1.0, 2.0, 3.0, 4.0], {}),
    "numpy array of objects": (np.array([1, None, 2.5, True], dtype=object), [1.0, None, 2.5, 1.0], {"the reward gave None": 1}),
    "numpy array with NaN": (np.array([1, np.nan, 3, 4]), [1.0, None, 3.0, 4.0], {"not finite: nan": 1}),
    "torch tensor": (torch.tensor([1.0, 2.0, 3.0, 4.0]), [1.0, 2.0, 3.0, 4.0], {}),
    "torch tensor with grad": (torch.ones(4, requires_grad=True) * 2, [2.0] * 4, {}),
    "torch half": (torch.tensor([0.5, 1, 2, 4], dtype=torch.float16), [0.5, 1.0, 2.0, 4.0], {}),
    "torch bfloat16": (torch.tensor([0.5, 1, 2, 4], dtype=torch.bfloat16), [0.5, 1.0, 2.0, 4.0], {}),
    "torch scalars": ([torch.tensor(1.0), torch.tensor(2, dtype=torch.int8), torch.tensor(True), 0], [1.0, 2.0, 1.0, 0.0], {}),
    "NaN": ([1, math.nan, 3, 4], [1.0, None, 3.0, 4.0], {"not finite: nan": 1}),
    "inf": ([math.inf, 2, 3, 4], [None, 2.0, 3.0, 4.0], {"not finite: inf": 1}),
    "-inf": ([1, 2, 3, -math.inf], [1.0, 2.0, 3.0, None], {"not finite: -inf": 1}),
    "half that overflows": ([np.float16(np.inf), 2, 3, 4], [None, 2.0, 3.0, 4.0], {"not finite: inf": 1}),
    "None": ([1, None, 3, 4], [1.0, None, 3.0, 4.0], {"the reward gave None": 1}),
    "all None": ([None] * 4, [None] * 4, {"the reward gave None": 4}),
    "missing with its reason": ([1, Missing("no gold"), Missing("no gold"), 4], [1.0, None, None, 4.0], {"no gold": 2}),
    "Decimal": ([Decimal("0.1"), Decimal("NaN"), Decimal("sNaN"), Decimal("1e999")], [0.1, None, None, None],
                {"not finite: nan": 2, "not finite: inf": 1}),
    "Fraction": ([Fraction(1, 4)] * 4, [0.25] * 4, {}),
    "huge int": ([1, 10**400, 3, 4], [1.0, None, 3.0, 4.0], {"not finite: a number too large for a float": 1}),
    "-0.0": ([-0.0] * 4, [0.0] * 4, {}),
}  # fmt: skip

# What a reward gave -> words that the error must hold, besides the component's name.
REFUSED = {
    "short list": ([1, 2, 3], ["3 values", "4"]),
    "long list": ([1, 2, 3, 4, 5], ["5 values", "4"]),
    "empty list": ([], ["0 values", "4"]),
    "short array": (np.ones(3), ["3 values", "4"]),
    "None in place of a list": (None, ["gave None", "list of 4"]),
    "one number": (1.0, ["float 1.0", "list of 4"]),
    "generator": ((float(i) for i in range(4)), ["generator", "list of 4"]),
    "dict": ({i: 1.0 for i in range(4)}, ["dict", "list of 4"]),
    "text of the right length": ("1111", ["str '1111'", "list of 4"]),
    "scalar tensor": (torch.tensor(1.0), ["shape ()", "(4,)"]),
    "numpy 2-d": (np.ones((4, 1)), ["shape (4, 1)", "(4,)"]),
    "torch 2-d": (torch.ones(2, 4), ["shape (2, 4)", "(4,)"]),
    "numbers as text": ([1, "1.0", 3, 4], ["str '1.0'", "position 1", "Allowed are numbers"]),
    "a word": ([1, 2, 3, "excellent"], ["str 'excellent'", "position 3"]),
    "numpy text": (np.array(["1", "2", "3", "4"]), ["str '1'", "position 0"]),
    "dict for one": ([{"score": 1}, 2, 3, 4], ["dict", "position 0"]),
    "complex": ([1, 2j, 3, 4], ["complex 2j", "position 1"]),
    "numpy complex": (np.array([1, 2j, 3, 4]), ["complex", "position 0"]),
    "nested list": ([1, 2, [3], 4], ["list [3]", "position 2"]),
    "tensor of one number, not a scalar": ([torch.tensor([1.0]), 2, 3, 4], ["Tensor of shape (1,)", "position 0"]),
    "an object that can be a float": ([Twice(), 2, 3, 4], ["Twice", "position 0"]),
}


@pytest.mark.parametrize(("given", "values", "reasons"), TAKEN.values(), ids=TAKEN)
def test_what_can_be_read_becomes_floats_and_what_is_not_finite_is_missing_with_its_reason(given, values, reasons):
    got = run(given)
    assert got.total == got.parts["part"] == values
    assert all(v is None or type(v) is float and str(v) != "-0.0" for v in got.total)
    assert got.missing == {"part": Counter(reasons)}


@pytest.mark.parametrize(("given", "words"), REFUSED.values(), ids=REFUSED)
def test_what_breaks_the_contract_is_an_error_that_says_which_component_and_what(given, words):
    with pytest.raises(RewardError, match="'part'") as caught:
        run(given)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize("error", [KeyError("score"), SystemExit(0), ZeroDivisionError("division by zero")], ids=repr)
@pytest.mark.parametrize("deadline", [None, 10.0])
def test_an_exception_of_the_whole_batch_names_the_component_and_keeps_its_cause(error, deadline):
    with pytest.raises(RewardError, match=f"'judge' failed on a batch of 4: {type(error).__name__}") as caught:
        score(ROLLOUTS, [Component("judge", raises(error), deadline=deadline)])
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("deadline", [None, 10.0])
def test_a_keyboard_interrupt_goes_through(deadline):
    with pytest.raises(KeyboardInterrupt):
        score(ROLLOUTS, [Component("judge", raises(KeyboardInterrupt()), deadline=deadline)])
    with pytest.raises(KeyboardInterrupt):
        score(ROLLOUTS, [Component("judge", each(raises(KeyboardInterrupt())), deadline=deadline)])


@pytest.mark.parametrize("error", [RuntimeError("out of luck"), SystemExit(0)], ids=repr)
def test_an_exception_in_one_of_sixty_four_is_missing_for_that_one_and_all_others_stand(error):
    rollouts = [Rollout(i, [1], [2], "", True, [1], [0.0]) for i in range(64)]

    def one(rollout):
        if rollout.item == 17:
            raise error
        return rollout.item / 64

    got = score(rollouts, [Component("one", each(one))])
    assert got.total == [None if i == 17 else i / 64 for i in range(64)]
    assert got.missing == {"one": Counter({f"{type(error).__name__}: {error}": 1})}


def test_one_at_a_time_still_refuses_what_is_no_number():
    with pytest.raises(RewardError, match="str 'good' at position 0"):
        score(ROLLOUTS, [Component("one", each(lambda rollout: "good"))])


def test_the_total_is_the_weighted_sum_and_missing_where_a_paid_part_is():
    got = score(ROLLOUTS, [
        Component("right", gives([1, 0, None, 1]), weight=2.0),
        Component("form", gives([0.5, 0.5, 0.5, None]), weight=-0.1),
        Component("watched", gives([None, 7, 7, 7]), weight=0.0),
    ])  # fmt: skip
    assert got.total == [pytest.approx(1.95), pytest.approx(-0.05), None, None]
    assert got.parts == {"right": [1.0, 0.0, None, 1.0], "form": [0.5, 0.5, 0.5, None], "watched": [None, 7.0, 7.0, 7.0]}
    assert {name: sum(reasons.values()) for name, reasons in got.missing.items()} == {"right": 1, "form": 1, "watched": 1}
    assert breakdown(got, 0) == {"total": pytest.approx(1.95), "right": 1.0, "form": 0.5, "watched": None}


def test_a_sum_that_is_too_large_is_missing_and_said():
    got = score(ROLLOUTS, [Component("big", gives([1e308, 1, 1, 1]), weight=100.0)])
    assert got.total == [None, 100.0, 100.0, 100.0]
    assert got.missing == {"big": Counter(), "total": Counter({"not finite: the weighted sum is too large": 1})}


def test_reasons_that_a_reward_counts_itself_are_the_reasons_of_the_call_that_counted_them():
    class Model:
        def __init__(self):
            self.missing = Counter({"of an earlier call": 3})

        def __call__(self, rollouts):
            self.missing["too long"] += 1
            return [1.0, None, None, 1.0]

    model = Model()
    for _ in range(2):
        assert score(ROLLOUTS, [Component("model", model)]).missing == {"model": Counter({"too long": 1, "the reward gave None": 1})}


def test_a_component_over_its_deadline_is_missing_for_the_batch_and_the_others_go_on():
    released = threading.Event()

    def slow(rollouts):
        released.wait(30)
        return [1.0] * 4

    started = time.monotonic()
    got = score(ROLLOUTS, [Component("slow", slow, deadline=0.2), Component("quick", gives([1] * 4), deadline=5.0)])
    assert time.monotonic() - started < 25
    released.set()
    assert got.total == [None] * 4 and got.parts["quick"] == [1.0] * 4
    assert got.missing == {"slow": Counter({"deadline 0.2 s for the batch": 4}), "quick": Counter()}


CHANGES = {"pop": list.pop, "reverse": list.reverse, "clear": list.clear, "append": lambda given: given.append(given[0])}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_reward_that_changes_the_list_it_was_given_is_refused_and_hurts_nobody_else(change):
    given = list(ROLLOUTS)

    def reward(rollouts):
        change(rollouts)
        return [1.0] * 4

    with pytest.raises(RewardError, match="'careless' changed the list .* sorted"):
        score(given, [Component("careless", reward)])
    assert given == ROLLOUTS


@pytest.mark.parametrize(
    ("components", "words"),
    [
        ([], "no components"),
        ([Component("a", gives([])), Component("a", gives([]))], "'a' is taken"),
        ([Component("total", gives([]))], "'total' is taken"),
        ([Component("a", gives([]), weight=math.nan)], "weight nan"),
        ([Component("a", gives([]), weight=math.inf)], "weight inf"),
        ([Component("a", gives([]), weight=10**400)], "weight 1000"),
        ([Component("a", gives([]), weight="0.5")], "weight '0.5'"),
        ([Component("a", gives([]), deadline=0)], "deadline 0"),
    ],
)
def test_a_composition_that_makes_no_sense_is_refused(components, words):
    with pytest.raises(RewardError, match=words):
        score(ROLLOUTS, components)


def test_nothing_to_score_is_nothing():
    assert score([], [Component("a", raises(ValueError("not called")))]) == Scored([], {"a": []}, {"a": Counter()})

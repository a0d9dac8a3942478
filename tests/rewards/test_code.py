"""Code rewards: form, share of tests, all tests, and time behind a gate; what is not known is missing, what is wrong is 0."""

import pytest

from nbcore.judge.complexity import Complexity, Workload
from nbcore.judge.growth import CLASSES
from nbcore.judge.programs import Task
from nbcore.nano import programs
from nbcore.rewards.code import Judge, time_reward
from nbcore.rewards.compose import Component, score
from nbcore.rewards.rollouts import Rollout
from nbcore.rewards.workers import Missing

PAIRS = programs.Task("pairs", (("k", 7),))
SLOW, FAST = PAIRS.program(False), PAIRS.program(True)
MIDDLE = "def f(n):\n    t = 0\n    for j in range(n):\n        t += 7 * j\n    return t\n"
WRONG = "def f(n):\n    return 7 * n * (n - 1) // 2 if n < 15 else 0\n"  # right for a few of its tests, and fast


def said(program, item=PAIRS, ended=True, thought="Hm."):
    text = f"<think>\n{thought}\n</think>\n```python\n{program}```"
    return Rollout(item, [1], [2], text, ended, [1], [0.0])


def judge(**more):
    return Judge(lambda item: item.judged(0), lambda item: item.workload(), **more)


def test_form_is_one_closed_thought_and_one_closed_fence_with_python():
    good = said(FAST)
    others = {
        "cut off": said(FAST, ended=False),
        "no fence": Rollout(PAIRS, [1], [2], f"<think>\nHm.\n</think>\n{FAST}", True, [1], [0.0]),
        "open fence": Rollout(PAIRS, [1], [2], good.text.removesuffix("```"), True, [1], [0.0]),
        "two fences": Rollout(PAIRS, [1], [2], good.text + "\n```python\nx = 1\n```", True, [1], [0.0]),
        "open thought": Rollout(PAIRS, [1], [2], f"<think>\n```python\n{FAST}```", True, [1], [0.0]),
        "no Python": said("def f(:\n"),
    }
    assert judge().form([good]) == [1.0]
    assert dict(zip(others, judge().form(list(others.values())), strict=True)) == dict.fromkeys(others, 0.0)


def test_stage_one_pays_the_share_of_tests_and_stage_two_all_or_nothing():
    asked = [said(FAST), said(SLOW), said(WRONG), said("def f(:\n"), said(FAST, ended=False)]
    rates = judge().pass_rate(asked)
    assert rates[:2] == [1.0, 1.0] and rates[2] == 3 / 8 and rates[3:] == [0.0, 0.0]
    assert judge().correct(asked) == [1.0, 1.0, 0.0, 0.0, 0.0]


def test_time_is_paid_by_the_distance_to_the_bound_and_only_behind_the_gate():
    asked = [said(FAST), said(MIDDLE), said(SLOW), said(WRONG), said("def f(:\n")]
    assert judge().speed()(asked) == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert judge().speed(gated=False)(asked) == [1.0, 0.0, 0.0, 1.0, 0.0]


def test_the_whole_reward_of_stage_two():
    one = judge()
    parts = [Component("form", one.form, 0.1), Component("correct", one.correct), Component("time", one.speed(), 0.5)]
    assert score([said(FAST), said(SLOW), said(WRONG)], parts).total == pytest.approx([1.6, 1.1, 0.1])


@pytest.mark.parametrize(("name", "worth"), list(zip(CLASSES, (1.0, 1.0, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0), strict=True)))
def test_one_class_above_the_bound_is_worth_half(name, worth):
    assert time_reward(Complexity(name, (name,)), "O(n)") == worth


def test_an_undecided_class_is_paid_only_when_all_candidates_pay_the_same():
    assert time_reward(Complexity("undecided", ("O(1)", "O(log n)")), "O(n)") == 1.0
    unsure = time_reward(Complexity("undecided", ("O(n)", "O(n log n)")), "O(n)")
    assert isinstance(unsure, Missing) and "O(n) and O(n log n)" in unsure.reason
    assert isinstance(time_reward(Complexity(None, reason="only 2 sizes fit"), "O(n)"), Missing)
    assert time_reward(Complexity(None, reason="at size 64 the program is wrong", wrong=True), "O(n)") == 0.0


def test_a_bound_that_is_no_class_is_named():
    with pytest.raises(ValueError, match="O.n. fast.*O.log n."):
        time_reward(Complexity("O(n)", ("O(n)",)), "O(n) fast")


def test_a_program_that_passes_its_tests_and_is_wrong_at_a_larger_size_gets_nothing_for_its_speed():
    weak = Judge(lambda item: Task("weak", "f", [([2], 7), ([3], 21)]), lambda item: item.workload())
    trick = "def f(n):\n    return 7 if n == 2 else 21\n"
    assert weak.correct([said(trick)]) == [1.0] and weak.speed()([said(trick)]) == [0.0]


def test_without_tests_everything_but_form_is_missing():
    blind = Judge(lambda item: Task("blind", "f"), lambda item: item.workload())
    parts = [Component("form", blind.form, 0.1), Component("pass rate", blind.pass_rate), Component("time", blind.speed())]
    scored = score([said(FAST)], parts)
    assert scored.parts == {"form": [1.0], "pass rate": [None], "time": [None]} and scored.total == [None]
    assert "no tests" in next(iter(scored.missing["time"]))


def test_the_same_program_is_judged_once_and_a_shape_measured_once():
    one, other = judge(), programs.Task("pairs", (("k", 31),))
    asked = [said(SLOW), said(SLOW), said(other.program(False), other), said(FAST)]
    one.correct(asked)
    one.speed()(asked)
    one.speed()(asked)
    assert (one.spent.judged, one.spent.measured) == (3, 2) and one.spent.seconds > 0


def test_a_shape_is_not_shared_between_tasks_of_other_names():
    names = iter(("one", "two"))
    loads = {k: Workload(next(names), "O(1)", lambda rng, size: (size,), shape=lambda text: "same") for k in (7, 31)}
    one = Judge(lambda item: item.judged(0), lambda item: loads[dict(item.constants)["k"]])
    found = one.classes([said(SLOW), said(programs.Task("pairs", (("k", 31),)).program(True), programs.Task("pairs", (("k", 31),)))])
    assert [c.name for c in found] == ["O(n²)", "O(1)"]


def test_a_judge_without_workload_says_what_it_lacks():
    with pytest.raises(ValueError, match="workload"):
        Judge(lambda item: item.judged(0)).classes([said(FAST)])


def test_the_tests_of_an_item_are_drawn_once():
    drawn = []

    def draw(item):
        drawn.append(item)
        return item.judged(0)

    one, asked = Judge(draw, lambda item: item.workload()), [said(FAST), said(SLOW), said(WRONG)]
    one.form(asked), one.correct(asked), one.speed()(asked)
    assert drawn == [PAIRS]

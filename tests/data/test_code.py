"""Code tasks: tests come from a solution, have to find out its mutants, and a bound is what was measured."""

import pytest

from nbcore.data.code import bound, cases_of, validate
from nbcore.judge.complexity import Workload
from nbcore.judge.programs import Task
from nbcore.nano import programs

DOUBLE = "def f(n):\n    return n * 2 if n > 3 else 0\n"


def test_tests_are_what_the_solution_returns_with_its_types():
    assert cases_of("def f(a, b):\n    return (a, {b: [a]})\n", "f", [(1, "x"), (2.5, "y")]) == [
        ([1, "x"], (1, {"x": [1]})), ([2.5, "y"], (2.5, {"y": [2.5]})),
    ]  # fmt: skip


def test_a_solution_that_fails_makes_no_tests():
    with pytest.raises(ValueError, match="ZeroDivisionError"):
        cases_of("def f(n):\n    return 1 // n\n", "f", [(1,), (0,)])


def test_tests_away_from_the_edge_let_mutants_pass_and_are_not_accepted():
    poor, good = ([([n], 2 * n if n > 3 else 0) for n in sizes] for sizes in ((8, 9), (0, 3, 4, 8)))
    weak, strong = (validate(Task("double", "f", cases), [DOUBLE]) for cases in (poor, good))
    assert not weak.accepted and weak.found_out < 0.7 and any("n >= 3" in text for text in weak.survivors)
    assert strong.accepted and strong.found_out == 1.0 and strong.mutants == weak.mutants


def test_solutions_that_disagree_are_a_fault_of_the_task():
    found = validate(Task("double", "f", [([4], 8), ([3], 0)]), [DOUBLE, "def f(n):\n    return 2 * n\n"])
    assert not found.accepted and len(found.faults) == 1 and "solution 1" in found.faults[0] and "expected 0" in found.faults[0]


def test_what_cannot_be_judged_is_unknown_and_not_found_out():
    found = validate(Task("double", "f"), [DOUBLE])
    assert not found.accepted and found.unknown == found.mutants and found.found_out is None


def test_a_task_needs_a_solution():
    with pytest.raises(ValueError, match="without a solution"):
        validate(Task("double", "f", [([4], 8)]), [])


@pytest.mark.parametrize("family", programs.FAMILIES)
def test_the_cases_of_nearly_every_nano_task_find_out_its_mutants(family):
    some = [t for t in programs.tasks(10 * len(programs.FAMILIES), 11) if t.family == family]
    found = [validate(t.judged(0), [t.program(True), t.program(False)]) for t in some]
    assert not any(v.faults for v in found)
    assert sum(v.accepted for v in found) >= 8, [v.found_out for v in found]


def test_the_bound_is_the_lowest_class_of_a_right_program():
    load = Workload("sum", "O(1)", lambda rng, size: (size,), truth=lambda n: n * (n - 1) // 2)
    slow = "def f(n):\n    return sum(list(range(n)))\n"
    found = bound([slow, "def f(n):\n    return n * (n - 1) // 2\n", "def f(n):\n    return 0\n"], "f", load, 4000, 1024)
    assert found.name == "O(1)" and [m.name for m in found.measured] == ["O(n)", "O(1)", None] and found.measured[2].wrong
    assert bound(["def f(n):\n    return 0\n"], "f", load, 4000, 1024).name is None

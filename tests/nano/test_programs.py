"""code: both programs of every family are right, the better one grows slower, instances stay on their side."""

import random
import sys

import pytest

from nbcore.judge.programs import check_many
from nbcore.nano import programs


def compiled(source):
    space = {}
    exec(source, space)
    return space[programs.ENTRY]


def work(function, arguments):
    """Lines executed: a count that does not depend on the machine."""
    lines = 0

    def trace(frame, event, arg):
        nonlocal lines
        lines += event == "line"
        return trace

    sys.settrace(trace)
    try:
        function(*arguments)
    finally:
        sys.settrace(None)
    return lines


def test_there_are_at_least_twelve_families():
    assert len(programs.FAMILIES) >= 12
    assert {f.best_class for f in programs.FAMILIES.values()} >= {"O(1)", "O(n)", "O(log n)"}


@pytest.mark.parametrize("family", programs.FAMILIES)
def test_both_programs_give_the_true_results(family):
    for task in [t for t in programs.tasks(40 * len(programs.FAMILIES), 5) if t.family == family][:25]:
        for fast in (False, True):
            function = compiled(task.program(fast))
            for arguments, expected in task.cases(0):
                assert function(*arguments) == expected


@pytest.mark.parametrize("family", [f.name for f in programs.FAMILIES.values() if f.slow_class not in ("exponential",)])
def test_the_better_program_does_not_do_more_work_at_a_larger_size(family):
    found = programs.FAMILIES[family]
    task = next(t for t in programs.tasks(len(programs.FAMILIES), 1) if t.family == family)
    arguments = found.arguments(random.Random(0), 150, dict(task.constants))
    slow, fast = (work(compiled(task.program(f)), arguments) for f in (False, True))
    if found.slow_class == "O(n²)" and found.name not in ("running sums", "repeats", "shifted members"):
        assert fast * 5 < slow  # these hide their inner loop in sum() and `in`, which a line count cannot see
    elif found.best_class != "O(n)":
        assert fast * 5 < slow


@pytest.mark.parametrize("family", programs.FAMILIES)
def test_the_slip_of_a_family_is_wrong_for_other_constants_and_other_cases_too(family):
    some = [task for task in programs.tasks(12 * len(programs.FAMILIES), 8) if task.family == family]
    assert all(task.slip(False) for task in some)
    made = [(text, task.judged(5)) for task in some for text in (task.slip(False), task.slip(True)) if text]
    assert sum(verdict.passed_all is False for verdict in check_many(made)) >= 0.9 * len(made)


def test_programs_that_differ_in_the_numbers_of_their_tasks_alone_share_a_shape():
    one, other = (programs.Task("sum of a line", (("a", a), ("b", b))) for a, b in ((7, 30), (12, 5)))
    for fast in (False, True):
        assert one.workload().shape(one.program(fast)) == other.workload().shape(other.program(fast))
    assert one.workload().shape(one.program(True)) != one.workload().shape(one.program(False))
    assert one.workload().shape("x7 = 77 + 7") == "x7 = 77 + a"


def test_sides_never_share_an_instance():
    count = 30 * len(programs.FAMILIES)
    train, held = ({t.key for t in programs.tasks(count, seed, side)} for seed, side in ((1, "train"), (2, "held-out")))
    assert len(held) > 100 and not train & held


def test_a_wrong_constant_fails_its_cases():
    caught = tried = 0
    for task in programs.tasks(20 * len(programs.FAMILIES), 9, "held-out"):
        other = programs.Task(task.family, tuple((name, value + 1) for name, value in task.constants))
        function = compiled(other.program(True))
        tried += 1
        caught += any(function(*arguments) != expected for arguments, expected in task.cases(1))
    assert caught / tried > 0.93

"""Mutants: one small mistake each, everything else as it was written, and tests that are any good find them out."""

import ast
import difflib

import pytest

from nbcore.judge.mutants import mutants
from nbcore.judge.programs import Task, check_many

LARGEST = """def f(xs):
    \"\"\"The first position of the largest item.\"\"\"
    best = 0
    for i in range(len(xs)):
        if xs[i] > xs[best]:
            best = i
    return best
"""


def test_each_mutant_is_a_program_of_its_own_that_differs_in_one_line():
    made = mutants(LARGEST)
    assert len({m.program for m in made} | {LARGEST}) == len(made) + 1 >= 8
    for mutant in made:
        ast.parse(mutant.program)
        changed = [line for line in difflib.ndiff(LARGEST.splitlines(), mutant.program.splitlines()) if line[0] in "+-"]
        assert len(changed) == 2, changed


@pytest.mark.parametrize(
    ("line", "mistake", "kind"),
    [
        ("return a < b", "return a <= b", "operator"),
        ("return a in b", "return a not in b", "operator"),
        ("return a and b", "return a or b", "operator"),
        ("return a // b", "return a * b", "operator"),
        ("return min(a, b)", "return max(a, b)", "name"),
        ("return a[:b]", "return a[:b - 1]", "bound"),
        ("return list(range(a))", "return list(range(a + 1))", "bound"),
        ("return list(range(a))", "return list(range(1, a))", "bound"),
        ("return 7", "return 8", "constant"),
        ("return True", "return False", "constant"),
    ],
)
def test_the_mistakes(line, mistake, kind):
    assert (f"def f(a, b):\n    {mistake}\n", kind) in [(m.program, m.kind) for m in mutants(f"def f(a, b):\n    {line}\n")]


def test_a_statement_can_be_left_out_but_a_docstring_is_none():
    kinds = [m for m in mutants(LARGEST) if m.kind == "statement"]
    assert [m.line for m in kinds] == [1, 5] and all('"""The first' in m.program for m in kinds)


def test_tests_that_do_not_look_where_the_mistake_is_let_it_pass():
    made = mutants(LARGEST)
    ties = [[[3, 1]], [[1, 3]], [[1, 3, 3]], [[2, 2]]]
    poor, good = (Task("largest", "f", [(call, max(range(len(call[0])), key=call[0].__getitem__)) for call in calls])
                  for calls in (ties[:1], ties))  # fmt: skip
    survivors = {name: [m.program for m, v in zip(made, check_many([(m.program, task) for m in made]), strict=True) if v.passed_all]
                 for name, task in (("poor", poor), ("good", good))}  # fmt: skip
    assert len(survivors["good"]) < len(survivors["poor"])
    assert any("xs[i] >= xs[best]" in program for program in survivors["poor"])
    assert all("range(1, len(xs))" in program for program in survivors["good"])  # means the same: nothing can find it out


def test_what_is_no_python_is_an_error():
    with pytest.raises(SyntaxError):
        mutants("def f(:")

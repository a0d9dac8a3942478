"""A class read from the source alone: what can be recognised, and how often that is right."""

import pytest
from labelled_programs import PROGRAMS

from nbcore.judge.reading import predict
from nbcore.nano.programs import FAMILIES, tasks

READ = [  # what is recognised, the body of f(xs, n), the class
    ("a formula", "return n * (n + 1) // 2", "O(1)"),
    ("a loop over a literal", "for c in 'aeiou':\n        n += 1\n    return n", "O(1)"),
    ("a loop that returns in its first turn", "for x in xs:\n        return x", "O(1)"),
    ("halving", "while n > 1:\n        n //= 2\n    return n", "O(log n)"),
    ("bisecting", "a, b = 0, len(xs)\n    while a < b:\n        m = (a + b) // 2\n        if xs[m] < n:\n            a = m + 1\n"
     "        else:\n            b = m\n    return a", "O(log n)"),
    ("bisect", "import bisect\n    return bisect.bisect(xs, n)", "O(log n)"),
    ("one loop", "for x in xs:\n        n += x\n    return n", "O(n)"),
    ("a pointer that only moves on", "i = 0\n    for x in xs:\n        while i < n:\n            i += 1\n    return i", "O(n)"),
    ("a stack", "stack = []\n    for x in xs:\n        while stack and stack[-1] < x:\n            stack.pop()\n"
     "        stack.append(x)\n    return stack", "O(n)"),
    ("`in` on a set", "seen = set()\n    for x in xs:\n        n += x in seen\n        seen.add(x)\n    return n", "O(n)"),
    ("sorting", "return sorted(xs)[0]", "O(n log n)"),
    ("`in` on a list", "return [x for x in range(n) if x in xs]", "O(n²)"),
    ("slices in a loop", "return [sum(xs[:i]) for i in range(n)]", "O(n²)"),
    ("slices of constant width", "return [sum(xs[i:i + 3]) for i in range(n)]", "O(n)"),
    ("sorting in a loop", "return [sorted(xs[i:]) for i in range(n)]", "O(n² log n)"),
    ("three loops", "return sum(1 for a in xs for b in xs for c in xs)", "O(n³)"),
    ("pairs", "from itertools import combinations\n    return sum(1 for a, b in combinations(xs, 2))", "O(n²)"),
    ("all orders", "from itertools import permutations\n    return max(p[0] for p in permutations(xs))", "exponential"),
    ("two calls of itself", "return n if n < 2 else f(xs, n - 1) + f(xs, n - 2)", "exponential"),
    ("one call of itself", "return 0 if n == 0 else 1 + f(xs, n - 1)", "O(n)"),
    ("half of it", "return 0 if n == 0 else 1 + f(xs, n // 2)", "O(log n)"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "name"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_it_recognises(body, name):
    assert predict(f"def f(xs, n):\n    {body}\n", "f") == name


def test_recursion_that_remembers_visits_each_state_once():
    program = "from functools import lru_cache\n@lru_cache(None)\ndef f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)"
    assert predict(program, "f") == "O(n)"


def test_a_helper_costs_what_it_costs_where_it_is_called():
    assert predict("def g(xs):\n    return max(xs)\ndef f(xs):\n    return [g(xs) for x in xs]", "f") == "O(n²)"


@pytest.mark.parametrize("family", FAMILIES)
def test_it_reads_the_canonical_programs(family):
    task = next(task for task in tasks(len(FAMILIES), seed=3) if task.family == family)
    known = FAMILIES[family]
    assert [predict(task.program(fast), "f") for fast in (False, True)] == [known.slow_class, known.best_class]


def test_it_is_right_on_more_than_sixty_of_a_hundred_programs_by_another_hand():
    right = [row.name for row in PROGRAMS if predict(row.source, "f") == row.label]
    assert len(right) > 0.60 * len(PROGRAMS)


@pytest.mark.parametrize("text", ["def f(", "def g(n):\n    return n", "", "(" * 500 + ")" * 500, "\0"])
def test_what_cannot_be_read_has_no_class(text):
    assert predict(text, "f") is None

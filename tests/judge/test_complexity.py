"""The class of a program is that of its work, wherever the work is done."""

import random

import pytest
from labelled_programs import PROGRAMS

from nbcore.judge.complexity import faster, measure
from nbcore.judge.growth import CLASSES
from nbcore.nano.programs import FAMILIES, tasks


def number(rng, n):
    return (n,)


def items(rng, n):
    return ([rng.randrange(10 * n) for _ in range(n)],)


def word(rng, n):
    return ("".join(rng.choice("abc") for _ in range(n)),)


HIDDEN = [  # where the work hides, the program, its inputs, its class
    ("a formula", "def f(n):\n    return n * (n + 1) // 2", number, "O(1)"),
    ("halving", "def f(n):\n    t = 0\n    while n:\n        n //= 2\n        t += 1\n    return t", number, "O(log n)"),
    ("a power by squaring, inside a builtin", "def f(n):\n    return pow(3, n, 1000003)", number, "O(log n)"),
    ("one builtin", "def f(xs):\n    return sum(xs)", items, "O(n)"),
    ("a sort", "def f(xs):\n    return sorted(xs)[0]", items, "O(n log n)"),
    ("a sort of what is sorted", "def f(n):\n    return sorted(range(n))[0]", number, "O(n)"),
    ("`in` on a list", "def f(xs):\n    return sum(-x in xs for x in xs)", items, "O(n²)"),
    ("`in` on a set", "def f(xs):\n    s = set(xs)\n    return sum(-x in s for x in xs)", items, "O(n)"),
    ("slices", "def f(xs):\n    return [xs[i:] for i in range(len(xs))][0]", items, "O(n²)"),
    ("taking from the front of a list", "def f(xs):\n    while xs:\n        xs.pop(0)\n    return 1", items, "O(n²)"),
    ("a string that grows in place", "def f(n):\n    s = ''\n    for i in range(n):\n        s += 'a'\n    return len(s)", number, "O(n)"),
    ("a string that grows in front", "def f(n):\n    s = ''\n    for i in range(n): s = 'a' + s\n    return s", number, "O(n²)"),
    ("a key", "def f(xs):\n    return max(xs, key=xs.count)", items, "O(n²)"),
    ("a builtin mapped over slices", "def f(w):\n    return sum(map(w.count, w))", word, "O(n²)"),
    ("an iterator", "def f(xs):\n    return max(map(abs, reversed(xs)))", items, "O(n)"),
    ("recursion", "def f(n):\n    return 1 if n < 2 else f(n - 1) + f(n - 2)", number, "exponential"),
    ("recursion that remembers", """
from functools import lru_cache
def f(n):
    @lru_cache(None)
    def g(k):
        return 1 if k < 2 else (g(k - 1) + g(k - 2)) % 1000
    return sum(g(k) for k in range(n))""", number, "O(n)"),
    ("loops that share their work", """
def f(xs):
    i = t = 0
    for x in xs:
        while i < len(xs) and xs[i] >= 0:
            i += 1
            t += 1
    return t""", items, "O(n)"),
    ("three loops", """
def f(xs):
    return sum(1 for a in xs for b in xs for c in xs if a + b == c)""", items, "O(n³)"),
    ("a heap", """
import heapq
def f(xs):
    h = []
    for x in xs:
        heapq.heappush(h, x)
    return h[0]""", items, "O(n log n)"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "make", "name"), [row[1:] for row in HIDDEN], ids=[row[0] for row in HIDDEN])
def test_work_is_counted_where_it_hides(program, make, name):
    found = measure(program, "f", make)
    assert found.name == name, found


@pytest.mark.parametrize("fast", [False, True], ids=["obvious", "better"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_canonical_program_has_its_class(family, fast):
    task = next(task for task in tasks(len(FAMILIES), seed=3) if task.family == family)
    known, load = FAMILIES[family], task.workload()
    found = measure(task.program(fast), "f", load.make, truth=load.truth, largest=1024, budget=4000)
    assert found.name == (known.best_class if fast else known.slow_class), found


def test_programs_by_another_hand_get_the_class_that_their_writer_gave_them():
    found = {}
    for row in PROGRAMS:
        make = eval(f"lambda rng, n: {row.make}")
        verdict = measure(row.source, "f", make, budget=8000, draws=2)
        found[row.name] = "right" if verdict.name == row.label else "open" if verdict.name in (None, "undecided") else "wrong"
    unlike = {name: kind for name, kind in found.items() if kind != "right"}
    assert len(unlike) <= 0.1 * len(PROGRAMS), unlike
    assert sum(kind == "wrong" for kind in unlike.values()) <= 0.03 * len(PROGRAMS), unlike


@pytest.mark.parametrize("line", ["3 ** (50 * n) % 7", "pow(3, 50 * n) % 7", "len(str(1 << 100 * n))", "(1 << 99 * n) * (1 << 99 * n) % 7"])
def test_long_integers_are_not_constant_work(line):
    found = measure(f"def f(n):\n    return {line}", "f", number)
    assert CLASSES.index(found.candidates[0]) >= CLASSES.index("O(n)"), found


def test_the_count_is_the_same_each_time():
    program = "def f(xs):\n    return sorted(set(xs))"
    assert measure(program, "f", items) == measure(program, "f", items)


def test_work_that_was_not_counted_shows_in_the_time():
    found = measure("def f(n):\n    exec('for i in range(n * n // 4): pass', {'n': n})", "f", number)
    assert found.name == "undecided"
    assert "time grows like n^" in found.reason


def test_a_clock_that_lies_is_not_believed():
    program = """
import time
time.perf_counter = lambda: 0.0
def f(n):
    exec('for i in range(n * n // 16): pass', {'n': n})"""
    found = measure(program, "f", number)
    assert found.name == "undecided"
    assert "clock lies" in found.reason


def test_a_program_that_sets_the_counter_back_is_not_believed():
    program = """
import sys
def f(n):
    t = 0
    for i in range(n):
        t += i
        if "work" in sys.modules:
            sys.modules["work"].state["spent"] = 0
    return t"""
    found = measure(program, "f", number)
    assert found.name == "undecided"
    assert "its counted work like n^0.0" in found.reason


@pytest.mark.parametrize("forged", ["-5, 1", "10 ** 99, 1", "'7', 1", "1.0, 1", "1, 1, 1", "()", "None"])
def test_a_forged_count_is_none(forged):
    program = f"import sys\nif 'work' in sys.modules:\n    sys.modules['work'].counted = lambda *rest: ({forged})\ndef f(n):\n    return 1"
    found = measure(program, "f", number)
    assert (found.name, found.reason) == (None, "at size 8: what came back is no count")


def test_a_program_that_is_fast_where_it_is_wrong_has_no_class():
    program = "def f(xs):\n    return 0 if len(xs) > 100 else sum(xs)"
    found = measure(program, "f", items, truth=sum)
    assert found.name is None
    assert "wrong" in found.reason and min(found.sizes) == 8 and max(found.sizes) <= 100


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("def f(n:", "cannot be rewritten: SyntaxError"),
        ("def f(n):\n    return 1 // 0", "at size 8: call 0: ZeroDivisionError"),
        ("def g(n):\n    return 1", "NameError"),
        ("def f(n):\n    while True: pass", "0 sizes fit the budget"),
        ("def f(n):\n" + "    " + "(" * 150 + "1" + ")" * 150, None),
    ],
)
def test_a_program_that_cannot_be_measured_says_why(program, reason):
    found = measure(program, "f", number)
    assert found.name is None if reason else found.name == "O(1)"
    assert reason is None or reason in found.reason


def test_a_program_may_begin_with_a_future_import():
    program = '"""Text."""\nfrom __future__ import annotations\nimport math\ndef f(xs: Whatever) -> Other:\n    return sum(xs)'
    assert measure(program, "f", items).name == "O(n)"


def test_counting_changes_nothing_that_a_program_returns():
    program = """
class Box:
    def __init__(self, xs): self.xs = list(xs)
    def __len__(self): return len(self.xs)
def f(xs):
    \"\"\"Text.\"\"\"
    first, *rest = xs
    box, seen, text = Box(rest), {}, ''
    for i, x in enumerate(box.xs):
        seen.setdefault(x % 3, []).append(x)
        text += f"{x:>3}{'!' if x > 5 else ''}"
        xs[i] *= 2
    del rest[-1]
    box.xs[1:2] = [7, 7]
    match xs:
        case [a, b, *others]: last = a < b <= max(others, default=b)
        case _: last = None
    return [sorted(seen.items(), key=lambda pair: -pair[0]), text[::-1], *rest, len(box), 2 ** 10, last, not 3 in rest, xs]"""
    scope: dict = {}
    exec(program, scope)

    def truth(xs):
        return scope["f"](list(xs))

    found = measure(program, "f", lambda rng, n: ([rng.randrange(9) for _ in range(n)],), truth=truth, largest=256)
    assert found.reason == "" and found.name == "O(n)"


def test_the_rng_of_a_size_does_not_hang_on_other_sizes():
    seen = {}

    def make(rng: random.Random, n):
        seen.setdefault(n, []).append(rng.random())
        return (n,)

    measure("def f(n):\n    return n", "f", make, largest=64, draws=2)
    first = {n: values[:2] for n, values in seen.items()}
    seen.clear()
    measure("def f(n):\n    return n", "f", make, largest=256, draws=2)
    assert all(seen[n][:2] == values for n, values in first.items())


def test_the_faster_of_two_is_that_of_the_lower_class_and_within_a_class_the_one_that_takes_clearly_less_time():
    bodies = {
        "constant": "return n * n", "builtin": "return sum(range(n))", "loop": "return sum([i * i % 7 + i // 3 for i in range(n)])",
        "square": "return sum(i for i in range(n) for j in range(n))",
    }  # fmt: skip
    text = {name: f"def f(n):\n    {body}\n" for name, body in bodies.items()}
    for first, second in (("constant", "builtin"), ("builtin", "square"), ("constant", "square"), ("builtin", "loop")):
        assert faster(text[first], text[second], "f", number) == 0
        assert faster(text[second], text[first], "f", number) == 1
    assert faster(text["constant"], text["constant"], "f", number) is None
    assert faster(text["loop"], "def f(n):\n    return 1 // 0\n", "f", number) is None

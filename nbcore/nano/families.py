"""The families of *code*: description, obvious (slow) and better (fast) program, the truth, inputs by size, and both classes.

The fast program is the best known. Constants are left open, as {k}; what is worked out from them ({both}: their least common multiple)
a program has to know by heart. That makes the *hard* families hard: their obvious program only copies, the better one needs a number
that has to be worked out first. The base model has not seen them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Family:
    """One kind of task. `arguments(rng, size, constants)` draws a call of about that size; `truth(constants, *arguments)` is the answer.

    hardest: draws the calls that growth is measured with, where those of the tests would not do: of the very size, and the dearest of it.
    """

    name: str
    description: str
    constants: dict[str, tuple[int, int]]
    slow: str
    fast: str
    slow_class: str
    best_class: str
    arguments: Callable[[random.Random, int, dict], tuple]
    truth: Callable[..., object]
    largest_test: int = 40
    tests: int = 8
    hard: bool = False
    hardest: Callable[[random.Random, int, dict], tuple] | None = None


def _number(rng: random.Random, size: int, constants: dict) -> tuple:
    return (max(1, size + rng.randint(-1, 1)),)


def _exactly(rng: random.Random, size: int, constants: dict) -> tuple:
    return (size,)


def _near_multiple(rng: random.Random, size: int, constants: dict) -> tuple:
    """A multiple of a constant or of all of them, or one more: where a bound that is off by one shows."""
    steps = [*constants.values(), math.lcm(*constants.values())]
    step = rng.choice([step for step in steps if step <= size] or steps[:1])
    return (max(1, step * round(size / step) + rng.randint(0, 1)),)


def _items(rng: random.Random, size: int, constants: dict) -> tuple:
    return ([rng.randint(0, 60) for _ in range(size + 1)],)


def _near_pairs(rng: random.Random, size: int, constants: dict) -> tuple:
    """A list where two items add up to the constant in half of the calls, and to one more or less in the others."""
    xs = [rng.randint(0, 9) + 200 for _ in range(size)]
    one, total = rng.randint(0, constants["k"]), constants["k"] + rng.choice((0, 0, 1, -1))
    xs.insert(rng.randint(0, len(xs)), one)
    xs.insert(rng.randint(0, len(xs)), total - one)
    return (xs,)


def _no_pair(rng: random.Random, size: int, constants: dict) -> tuple:
    """Nothing adds up to the constant, so a program has to look at everything."""
    return ([rng.randint(200, 300) for _ in range(size)],)


def _often_falling(rng: random.Random, size: int, constants: dict) -> tuple:
    """Every other list falls all the way, so that nothing is gained."""
    xs = [rng.randint(0, 60) for _ in range(size + 1)]
    return (sorted(xs, reverse=True) if rng.random() < 0.5 else xs,)


def _near_bound(rng: random.Random, size: int, constants: dict) -> tuple:
    """Items around the constant, most of them more than once: an off-by-one bound shows."""
    return ([constants["k"] + rng.randint(-2, 3) for _ in range(size + 1)],)


def _two_lists(rng: random.Random, size: int, constants: dict) -> tuple:
    return ([rng.randint(0, 60) for _ in range(size)], [rng.randint(0, 120) for _ in range(size)])


def _f(text: str) -> str:
    return dedent(text).strip() + "\n"


def _loop(line: str, start: str = "0") -> str:
    return f"def f(n):\n    t = {start}\n    for i in range(n):\n        {line}\n    return t\n"


def _fibonacci(c: dict, n: int) -> int:
    a, b = c["a"], c["b"]
    for _ in range(n):
        a, b = b, a + b
    return a


BIG, SMALL = (2, 99), (2, 40)
_LIST = [  # one family a block: description, constants, obvious program, better program, classes, inputs, truth
    Family("sum of multiples", "the sum of the multiples of {k} below n", {"k": BIG},
           _loop("t += i if i % {k} == 0 else 0"), _f("""
           def f(n):
               m = (n - 1) // {k}
               return {k} * m * (m + 1) // 2"""), "O(n)", "O(1)", _near_multiple,
           lambda c, n: sum(range(0, n, c["k"])), 900, hardest=_exactly),
    Family("count of multiples", "how many numbers below n are multiples of {k}", {"k": BIG},
           _loop("t += i % {k} == 0"), "def f(n):\n    return (n - 1) // {k} + 1\n", "O(n)", "O(1)", _near_multiple,
           lambda c, n: len(range(0, n, c["k"])), 5000, hardest=_exactly),
    Family("sum of squares", "the sum of {k} * i * i for i below n", {"k": BIG},
           _loop("t += {k} * i * i"), "def f(n):\n    return {k} * (n - 1) * n * (2 * n - 1) // 6\n", "O(n)", "O(1)", _number,
           lambda c, n: sum(c["k"] * i * i for i in range(n)), hardest=_exactly),
    Family("sum of a line", "the sum of {a} * i + {b} for i below n", {"a": SMALL, "b": SMALL},
           _loop("t += {a} * i + {b}"), "def f(n):\n    return {a} * n * (n - 1) // 2 + {b} * n\n", "O(n)", "O(1)", _number,
           lambda c, n: sum(c["a"] * i + c["b"] for i in range(n)), hardest=_exactly),
    Family("growing sequence", "term n of the sequence that starts at {a} and grows by {b}", {"a": SMALL, "b": SMALL},
           _loop("t += {b}", "{a}"), "def f(n):\n    return {a} + {b} * n\n", "O(n)", "O(1)", _number,
           lambda c, n: c["a"] + c["b"] * n, hardest=_exactly),
    Family("power", "{k} to the power n, modulo {m}", {"k": SMALL, "m": BIG},
           _loop("t = t * {k} % {m}", "1 % {m}"), "def f(n):\n    return pow({k}, n, {m})\n", "O(n)", "O(log n)", _number,
           lambda c, n: pow(c["k"], n, c["m"]), hardest=_exactly),
    Family("pairs", "{k} for each pair i < j below n, added up", {"k": BIG}, _f("""
           def f(n):
               t = 0
               for j in range(n):
                   for i in range(j):
                       t += {k}
               return t"""), "def f(n):\n    return {k} * n * (n - 1) // 2\n", "O(n²)", "O(1)", _number,
           lambda c, n: c["k"] * n * (n - 1) // 2, hardest=_exactly),
    Family("fibonacci", "term n of the sequence {a}, {b}, then always the sum of the last two", {"a": SMALL, "b": SMALL}, _f("""
           def f(n):
               if n == 0:
                   return {a}
               if n == 1:
                   return {b}
               return f(n - 1) + f(n - 2)"""), _f("""
           def f(n):
               a, b = {a}, {b}
               for i in range(n):
                   a, b = b, a + b
               return a"""), "exponential", "O(n)", _number, _fibonacci, 14, hardest=_exactly),
    Family("pair sum", "whether two items of xs add up to {k}", {"k": BIG}, _f("""
           def f(xs):
               for j in range(len(xs)):
                   for i in range(j):
                       if xs[i] + xs[j] == {k}:
                           return True
               return False"""), _f("""
           def f(xs):
               seen = set()
               for x in xs:
                   if {k} - x in seen:
                       return True
                   seen.add(x)
               return False"""), "O(n²)", "O(n)", _near_pairs,
           lambda c, xs: any(xs[i] + xs[j] == c["k"] for j in range(len(xs)) for i in range(j)), hardest=_no_pair),
    Family("running sums", "the running sums of xs, each plus {k}", {"k": BIG},
           "def f(xs):\n    return [sum(xs[:i + 1]) + {k} for i in range(len(xs))]\n", _f("""
           def f(xs):
               t, out = {k}, []
               for x in xs:
                   t += x
                   out.append(t)
               return out"""), "O(n²)", "O(n)", _items,
           lambda c, xs: [sum(xs[: i + 1]) + c["k"] for i in range(len(xs))]),
    Family("repeats", "how many items of xs above {k} came before in xs", {"k": (2, 59)}, _f("""
           def f(xs):
               t = 0
               for i in range(len(xs)):
                   t += xs[i] > {k} and xs[i] in xs[:i]
               return t"""), _f("""
           def f(xs):
               t, seen = 0, set()
               for x in xs:
                   t += x > {k} and x in seen
                   seen.add(x)
               return t"""), "O(n²)", "O(n)", _near_bound,
           lambda c, xs: sum(x > c["k"] and x in xs[:i] for i, x in enumerate(xs))),
    Family("best gain", "the largest xs[j] - xs[i] with i <= j, minus {k}", {"k": BIG}, _f("""
           def f(xs):
               t = 0
               for j in range(len(xs)):
                   for i in range(j):
                       t = max(t, xs[j] - xs[i])
               return t - {k}"""), _f("""
           def f(xs):
               t, low = 0, xs[0]
               for x in xs:
                   low = min(low, x)
                   t = max(t, x - low)
               return t - {k}"""), "O(n²)", "O(n)", _often_falling,
           lambda c, xs: max(xs[j] - xs[i] for j in range(len(xs)) for i in range(j + 1)) - c["k"]),
    Family("shifted members", "how many items of xs are in ys after adding {k}", {"k": (2, 59)}, _f("""
           def f(xs, ys):
               t = 0
               for x in xs:
                   t += x + {k} in ys
               return t"""), _f("""
           def f(xs, ys):
               ys, t = set(ys), 0
               for x in xs:
                   t += x + {k} in ys
               return t"""), "O(n²)", "O(n)", _two_lists,
           lambda c, xs, ys: sum(x + c["k"] in ys for x in xs)),
    Family("either", "how many numbers below n are multiples of {a} or of {b}", {"a": SMALL, "b": SMALL},
           _loop("t += i % {a} == 0 or i % {b} == 0"), _f("""
           def f(n):
               t = (n - 1) // {a} + (n - 1) // {b}
               return t - (n - 1) // {both} + 1"""), "O(n)", "O(1)", _near_multiple,
           lambda c, n: sum(i % c["a"] == 0 or i % c["b"] == 0 for i in range(n)), 3000, 16, True, hardest=_exactly),
    Family("both", "how many numbers below n are multiples of {a} and of {b}", {"a": SMALL, "b": SMALL},
           _loop("t += i % {a} == 0 and i % {b} == 0"), "def f(n):\n    return (n - 1) // {both} + 1\n", "O(n)", "O(1)", _near_multiple,
           lambda c, n: sum(i % c["a"] == 0 and i % c["b"] == 0 for i in range(n)), 3000, 16, True, hardest=_exactly),
    Family("one alone", "how many numbers below n are multiples of {a} but not of {b}", {"a": SMALL, "b": SMALL},
           _loop("t += i % {a} == 0 and i % {b} > 0"), _f("""
           def f(n):
               t = (n - 1) // {a}
               return t - (n - 1) // {both}"""), "O(n)", "O(1)", _near_multiple,
           lambda c, n: sum(i % c["a"] == 0 and i % c["b"] != 0 for i in range(n)), 3000, 16, True, hardest=_exactly),
]
FAMILIES = {family.name: family for family in _LIST}

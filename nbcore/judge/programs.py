"""Does a program do what its tests say? Paper section 5 (code RL: correctness).

A task is of one of three kinds: a function with cases (arguments, expected value), a script with cases (standard input, expected
output), or a function with Python statements that assert something about it, as HumanEval and MBPP have them (`assertions.py`).
The program runs in the sandbox and only says which values it returns or prints; what was expected stays on this side and is compared
here (or, for assertions, in a process of its own), so no program can pass by redefining equality, and none can read the answers.
Left out on purpose: partial credit (a reward decides what `passed` of `total` is worth), threads in scripts (the sandbox refuses them).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nbcore.judge import assertions
from nbcore.judge.checkers import Checker, known, right
from nbcore.judge.sandbox import Job, Limits, Verdict, run
from nbcore.judge.values import plain

Case = tuple[Sequence[Any], Any]  # (arguments, expected value); of a script ([standard input], expected output)
MISSING = ("judge error", "no tests")  # nothing is known about the program
STATUS = {
    "error": "runtime error", "compile": "compile error", "timeout": "time limit", "memory": "memory limit", "output": "output limit",
    "missing": "judge error",
}  # fmt: skip


@dataclass(frozen=True)
class Task:
    """What a program is asked for.

    entry: the function's name; None for a script. cases: what is called and what must come back, compared by `checker`.
    asserts: instead of cases, each a test by itself: statements that use the function under its name. before: source that stands
    before the program (imports, or a prompt that the program completes) and before the asserts; after: what follows the program.
    """

    name: str
    entry: str | None
    cases: Sequence[Case] = ()
    asserts: Sequence[str] = ()
    before: str = ""
    after: str = ""
    checker: Checker = "values"
    tolerance: float | None = None


@dataclass(frozen=True)
class ProgramVerdict:
    """passed of total tests; passed_all is None when nothing is known about the program (judge error, no tests), which is no failure.

    status: accepted, or that of the first test that failed: wrong answer, runtime error, time limit, memory limit, output limit; or of
    the whole program: compile error, no program, no tests, judge error. message names the first fault.
    """

    passed: int
    total: int
    passed_all: bool | None
    status: str
    message: str = ""


def check(program: str | None, task: Task, limits: Limits | None = None) -> ProgramVerdict:
    """Judge one program; see `check_many`."""
    return check_many([(program, task)], limits)[0]


def check_many(items: Sequence[tuple[str | None, Task]], limits: Limits | None = None, workers: int = 1) -> list[ProgramVerdict]:
    """Judge each (program, task), every program in a process of its own. None stands for an answer without a program.

    Raises ValueError for a task that can't be judged by anyone: an expected value that has no plain form, an unknown checker.
    """
    verdicts: dict[int, ProgramVerdict] = {}
    jobs: list[tuple[int, Job, list]] = []
    asserted: list[int] = []
    for index, (program, task) in enumerate(items):
        known(task.checker)
        if task.asserts and (task.cases or not task.entry):
            raise ValueError(f"Task {task.name} has asserts: these need the name of a function (entry), and no cases beside them.")
        total = len(task.cases) or len(task.asserts)
        if not total:
            verdicts[index] = ProgramVerdict(0, 0, None, "no tests", f"task {task.name} has no tests: nothing would be checked")
        elif program is None:
            verdicts[index] = ProgramVerdict(0, total, False, "no program", "the answer holds no program")
        elif task.asserts:
            asserted.append(index)
        else:
            wanted = _expected(task)
            calls = [tuple(arguments) for arguments, _ in task.cases]
            text = task.before + program + task.after
            jobs += [(index, Job(text, calls, task.entry), wanted)] if task.entry else [
                (index, Job(text, [call], None), [want]) for call, want in zip(calls, wanted, strict=True)
            ]  # fmt: skip
    parts: dict[int, list[ProgramVerdict]] = {}
    for (index, job, wanted), verdict in zip(jobs, run([job for _, job, _ in jobs], limits, workers), strict=True):
        parts.setdefault(index, []).append(_judge(verdict, job, wanted, items[index][1]))
    verdicts |= {index: _together(found) for index, found in parts.items()}
    tests = [
        assertions.Asserted(task.before, program + task.after, task.entry, task.asserts) for program, task in (items[i] for i in asserted)
    ]
    for index, found in zip(asserted, assertions.judge(tests, limits, workers), strict=True):
        verdicts[index] = _together([_of_test(STATUS.get(status, status), message) for status, message in found])
    return [verdicts[index] for index in range(len(items))]


def _shown(value: Any) -> str:
    try:
        return repr(value)[:100]
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "a very large number"


def _expected(task: Task) -> list:
    try:
        return [json.loads(json.dumps(plain(value))) for _, value in task.cases]  # the same way through JSON as the results take
    except (TypeError, RecursionError) as error:
        raise ValueError(f"Task {task.name} has an expected value that cannot be compared: {error}.") from error


def _of_test(status: str, message: str) -> ProgramVerdict:
    accepted = None if status in MISSING else status == "accepted"
    return ProgramVerdict(int(accepted is True), 1, accepted, status, message)


def _together(parts: list[ProgramVerdict]) -> ProgramVerdict:
    """One verdict of a program that was run once for each of its tests."""
    if len(parts) == 1:
        return parts[0]
    unknown = next((part for part in parts if part.passed_all is None), None)
    first = unknown or next((part for part in parts if not part.passed_all), parts[0])
    passed = 0 if unknown else sum(part.passed for part in parts)
    return ProgramVerdict(passed, len(parts), None if unknown else passed == len(parts), first.status, first.message)


def _judge(verdict: Verdict, job: Job, wanted: list[Any], task: Task) -> ProgramVerdict:
    total, results = len(wanted), verdict.results
    if verdict.status == "missing":
        return ProgramVerdict(0, total, None, "judge error", verdict.message)
    if job.entry is None and verdict.status != "ok":
        return ProgramVerdict(0, total, False, STATUS[verdict.status], verdict.message)
    try:
        good = [
            index not in verdict.errors and right(task.checker, arguments, got, want, task.tolerance)
            for index, (arguments, got, want) in enumerate(zip(job.calls, results, wanted, strict=False))
        ]
    except ValueError as error:
        return ProgramVerdict(0, total, None, "judge error", str(error))
    passed = sum(good)
    if passed == total and verdict.status == "ok":
        return ProgramVerdict(passed, total, True, "accepted")
    first = next((index for index, well in enumerate(good) if not well), len(good))
    if first >= len(results) or first in verdict.errors:
        return ProgramVerdict(passed, total, False, STATUS[verdict.status], verdict.message)
    given = ", ".join(_shown(value) for value in job.calls[first])
    call = f"{job.entry}({given})" if job.entry else f"the input {given}"
    message = f"case {first}: {call[:200]} gave {results[first]!r:.100}, expected {wanted[first]!r:.100}"
    return ProgramVerdict(passed, total, False, "wrong answer", message)

"""Does a program do what its cases say? Paper section 5 (code RL: correctness).

The program runs in the sandbox and only says which values it returns; the expected values stay on this side and are compared
here, so no program can pass by redefining equality, and none can read the answers.
Left out on purpose: stdin/stdout problems, and partial credit (a reward decides what `passed` of `total` is worth).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nbcore.judge.sandbox import Job, Limits, Verdict, run
from nbcore.judge.server import plain

Case = tuple[Sequence[Any], Any]  # (arguments, expected value)


@dataclass(frozen=True)
class ProgramVerdict:
    """passed of total cases; passed_all is None when the judge failed (status "missing"), which is no verdict.

    status is the sandbox's: "ok" means that every call returned, not that the answers were right. message names the first fault.
    """

    passed: int
    total: int
    passed_all: bool | None
    status: str
    message: str = ""


def check(
    program_text: str, entry: str, cases: Sequence[Case], limits: Limits | None = None, tolerance: float = 1e-9
) -> ProgramVerdict:
    """Run one program on its cases; see `check_many`."""
    return check_many([(program_text, entry, cases)], limits, tolerance=tolerance)[0]


def check_many(
    programs: Sequence[tuple[str, str, Sequence[Case]]],
    limits: Limits | None = None,
    workers: int = 1,
    tolerance: float = 1e-9,
) -> list[ProgramVerdict]:
    """Run programs given as (text, entry, cases), each in a process of its own, and compare as `same` does.

    Raises ValueError for a program without cases and for values that cannot be sent or compared: those are faults of the caller.
    """
    expected = []
    for index, (_, _, cases) in enumerate(programs):
        if not cases:
            raise ValueError(f"Program {index} has no cases: nothing would be checked, and it would count as passed.")
        try:
            # The same way through JSON as the results take.
            expected.append([json.loads(json.dumps(plain(value))) for _, value in cases])
        except (TypeError, RecursionError) as error:
            raise ValueError(f"Program {index} has an expected value that cannot be compared: {error}.") from error
    jobs = [Job(text, [tuple(arguments) for arguments, _ in cases], entry) for text, entry, cases in programs]
    verdicts = run(jobs, limits, workers)
    return [_judge(v, job, wanted, tolerance) for v, job, wanted in zip(verdicts, jobs, expected, strict=True)]


def same(got: Any, wanted: Any, tolerance: float = 1e-9) -> bool:
    """Whether two plain values are equal.

    True is not 1. 1 and 1.0 are equal (as in Python), an int never equals a float beside it. Two floats may differ by the
    relative tolerance, or by 1e-12 near zero; tolerance=0 asks for equality. NaN equals NaN. Tuples are lists.
    """
    if isinstance(got, bool) or isinstance(wanted, bool):
        return got is wanted
    if isinstance(got, float) and isinstance(wanted, float):
        if math.isnan(got) or math.isnan(wanted):
            return math.isnan(got) and math.isnan(wanted)
        return math.isclose(got, wanted, rel_tol=tolerance, abs_tol=1e-12 if tolerance else 0.0)
    if isinstance(got, int | float) and isinstance(wanted, int | float):
        return got == wanted
    if isinstance(got, list) and isinstance(wanted, list):
        return len(got) == len(wanted) and all(same(g, w, tolerance) for g, w in zip(got, wanted, strict=True))
    if isinstance(got, dict) and isinstance(wanted, dict):
        return got.keys() == wanted.keys() and all(same(got[k], wanted[k], tolerance) for k in wanted)
    return type(got) is type(wanted) and got == wanted


def _judge(verdict: Verdict, job: Job, wanted: list[Any], tolerance: float) -> ProgramVerdict:
    total = len(wanted)
    if verdict.status == "missing":
        return ProgramVerdict(0, total, None, "missing", verdict.message)
    right = [
        index not in verdict.errors and same(got, want, tolerance)
        for index, (got, want) in enumerate(zip(verdict.results, wanted, strict=False))
    ]
    passed = sum(right)
    message = verdict.message
    if not message and False in right:
        index = right.index(False)
        call = f"{job.entry}({', '.join(map(repr, job.calls[index]))})"
        message = f"case {index}: {call[:200]} gave {verdict.results[index]!r:.100}, expected {wanted[index]!r:.100}"
    return ProgramVerdict(passed, total, verdict.status == "ok" and passed == total, verdict.status, message)

"""Code tasks as training data: tests made from a solution and tried on mutants, bounds that were measured. Paper section 5.

The sibling's order is solution → executable tests → description [S]: a test is what the solution returns for a call. Such tests are as
right as the solution, so a second solution has to agree; and they are worth what they find out, so mutants of the solution have to fail.
Left out on purpose: writing descriptions (templates in the nano world, a teacher elsewhere), and test inputs (they come from a generator).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nbcore.judge.complexity import Complexity, Workload, measure
from nbcore.judge.growth import CLASSES
from nbcore.judge.mutants import mutants
from nbcore.judge.programs import Case, Task, check_many
from nbcore.judge.sandbox import Job, Limits, run
from nbcore.judge.values import lifted


@dataclass(frozen=True)
class Validation:
    """What the tests of a task are worth. accepted: the tests pass every solution given, and so many mutants fail that they may be used.

    faults: solutions that fail, with what they do. mutants: how many there were; survivors: those that passed, as source (some of them may
    mean the same as the solution: nothing tells these apart); unknown: those the judge could not judge.
    """

    accepted: bool
    faults: list[str]
    mutants: int
    survivors: list[str]
    unknown: int

    @property
    def found_out(self) -> float | None:
        """Share of the judged mutants that fail; None without any."""
        judged = self.mutants - self.unknown
        return 1 - len(self.survivors) / judged if judged else None


@dataclass(frozen=True)
class Bound:
    """The class that a task's programs are compared with: the lowest that was measured (None: none was), and what each program showed."""

    name: str | None
    measured: list[Complexity]


def cases_of(solution: str, entry: str, calls: Sequence[Sequence[object]], limits: Limits | None = None) -> list[Case]:
    """(arguments, what the solution returns) for each call. Raises ValueError when it fails on one of them."""
    (verdict,) = run([Job(solution, [tuple(call) for call in calls], entry)], limits)
    if verdict.status != "ok":
        raise ValueError(f"No tests can be made from this solution: {verdict.status}, {verdict.message}.")
    return [(list(call), lifted(result)) for call, result in zip(calls, verdict.results, strict=True)]


def validate(task: Task, solutions: Sequence[str], enough: float = 0.9, limits: Limits | None = None) -> Validation:
    """Try a task's tests on its solutions and on every mutant of the first. enough: share of mutants that have to fail [C].

    Raises ValueError without solutions, SyntaxError when the first is no Python.
    """
    if not solutions:
        raise ValueError(f"Task {task.name} comes without a solution. Give at least one: tests that nothing passes may be wrong.")
    verdicts = check_many([(text, task) for text in solutions], limits)
    faults = [f"solution {i}: {v.status}, {v.message}" for i, v in enumerate(verdicts) if not v.passed_all]
    made = mutants(solutions[0])
    tried = check_many([(mutant.program, task) for mutant in made], limits or Limits(cpu_seconds=1.0))
    survivors = [mutant.program for mutant, verdict in zip(made, tried, strict=True) if verdict.passed_all]
    found = Validation(False, faults, len(made), survivors, sum(verdict.passed_all is None for verdict in tried))
    return replace(found, accepted=not faults and (found.found_out is None or found.found_out >= enough))


def bound(programs: Sequence[str], entry: str, load: Workload, budget: int = 10_000, largest: int = 4096) -> Bound:
    """The lowest class among correct programs for a task. A program that is wrong somewhere, or has no one class, sets no bound."""
    measured = [measure(text, entry, load.make, truth=load.truth, budget=budget, largest=largest) for text in programs]
    names = [found.name for found in measured if found.name in CLASSES]
    return Bound(min(names, key=CLASSES.index, default=None), measured)

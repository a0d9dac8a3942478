"""*code*: short functions from a description, in families where the obvious program is slow and a better one exists.

Behaviours mixed in the training data: *obvious* and *better* programs, both right: which one to write is the choice that the time reward
moves later; and *hasty* ones with one small mistake, as unfiltered solutions have them: these are what the reward of correctness moves.
Splits: an instance (family and constants) is held out by its hash, for the base model's corpus as well.
"""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass
from functools import cache

from nbcore.judge import programs as judge
from nbcore.judge.complexity import Workload
from nbcore.judge.mutants import mutants
from nbcore.judge.sandbox import Limits
from nbcore.nano.families import FAMILIES
from nbcore.nano.names import held_out

ENTRY = "f"
SLIPS = ("bound", "operator", "name", "statement")  # kinds of mistakes, the likeliest first; a wrong constant is another matter


@dataclass(frozen=True)
class Task:
    """A family with its constants filled in."""

    family: str
    constants: tuple[tuple[str, int], ...]

    @property
    def text(self) -> str:
        return f"Write {signature(self.family)}: {FAMILIES[self.family].description.format(**dict(self.constants))}."

    @property
    def key(self) -> str:
        return f"code {self.family} {' '.join(f'{k}={v}' for k, v in self.constants)}"

    def program(self, fast: bool) -> str:
        """The better or the obvious program, as source text."""
        family = FAMILIES[self.family]
        constants = dict(self.constants)
        return (family.fast if fast else family.slow).format(**constants, both=math.lcm(*constants.values()))

    def slip(self, fast: bool) -> str | None:
        """The program with the mistake that a hurried hand makes in this family: at a bound if possible; None where it makes none."""
        made, found = mutants(self.program(fast)), _slip(self.family, fast)
        return None if found is None else made[found].program

    def cases(self, seed: int) -> list[tuple[list, object]]:
        """Small calls with their true results, smallest size first; as many as find out what goes wrong in this family."""
        family, rng = FAMILIES[self.family], random.Random(f"{self.key} {seed}")
        count = family.tests
        sizes = [1 + i * (family.largest_test - 1) // (count - 1) for i in range(count)]
        calls = [family.arguments(rng, size, dict(self.constants)) for size in sizes]
        return [(list(call), family.truth(dict(self.constants), *call)) for call in calls]

    def workload(self) -> Workload:
        """How the task grows, as the judge of complexity takes it. Programs that differ in the task's own numbers alone share a shape."""
        family, constants = FAMILIES[self.family], dict(self.constants)
        draw = family.hardest or family.arguments
        numbers = {str(value): name for name, value in reversed(self.constants)}
        numbers[str(math.lcm(*constants.values()))] = "both" if len(constants) > 1 else next(iter(constants))
        return Workload(
            family.name, family.best_class, make=lambda rng, size: draw(rng, size, constants),
            truth=lambda *arguments: family.truth(constants, *arguments),
            shape=lambda program: re.sub(r"(?<!\w)\d+(?!\w)", lambda found: numbers.get(found[0], found[0]), program),
        )  # fmt: skip

    def judged(self, seed: int) -> judge.Task:
        """The task as the judge takes it, with the cases of `seed`."""
        return judge.Task(self.key, ENTRY, self.cases(seed))


def tasks(count: int, seed: int, side: str = "train", hard: bool = True) -> list[Task]:
    """`count` tasks of one side, the families in turn, the hard ones too or not; different while the family has enough instances."""
    rng, found, seen = random.Random(f"programs {seed} {side}"), [], set()
    families = [family for family in FAMILIES.values() if hard or not family.hard]
    for i in range(count):
        family = families[i % len(families)]
        for attempt in range(1000):
            constants = tuple((name, rng.randint(*span)) for name, span in family.constants.items())
            task = Task(family.name, constants)
            if held_out(task.key) == (side == "held-out") and (task not in seen or attempt > 200):
                break
        seen.add(task)
        found.append(task)
    return found


@cache
def _slip(family: str, fast: bool) -> int | None:
    """Which mutant of a family's program is its usual mistake: one that its cases find out whatever the constants."""
    some = [task for task in tasks(3 * len(FAMILIES), 0) if task.family == family]
    made = [mutants(task.program(fast)) for task in some]
    items = [(mutant.program, task.judged(0)) for task, those in zip(some, made, strict=True) for mutant in those]
    failed = [verdict.passed_all is False for verdict in judge.check_many(items, Limits(cpu_seconds=1.0))]
    count = len(made[0])
    usual = [i for i in range(count) if all(failed[i::count]) and made[0][i].kind in SLIPS]
    return min(usual, key=lambda i: (SLIPS.index(made[0][i].kind), i), default=None)


def signature(family: str) -> str:
    return FAMILIES[family].slow.split(":")[0].removeprefix("def ")

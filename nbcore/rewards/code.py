"""The rewards of code reinforcement: form, tests, and time complexity behind a gate. Paper section 5.

Stage 1: R_format + PassRate. Stage 2: R_format + 1[PassRate = 1] + 1[PassRate = 1] · R_time, where R_time compares the class of the
program with the bound of the task: it is paid only for programs that pass every test [P], because what is wrong is easily fast. How much
each part is worth is the weight of its component; R_time itself is 1 up to the bound, 0.5 one class above it, else 0 [C].
What the judge does not know is missing with its reason: a judge error, a task without tests, a class between two that pay differently.
A program that fails its tests is known to be wrong, and gets its 0. A program is judged once a task, a shape of programs measured once.
Left out on purpose: the class from a model's word (`rewards.complexity`); it is for tasks that nothing can be fed to.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nbcore.chat.toolcalls import parse
from nbcore.judge import extract
from nbcore.judge.complexity import Complexity, Workload, measure
from nbcore.judge.growth import CLASSES
from nbcore.judge.programs import MISSING, ProgramVerdict, Task, check_many
from nbcore.judge.sandbox import Limits
from nbcore.rewards.rollouts import Reward, Rollout
from nbcore.rewards.workers import Missing

CREDIT = (1.0, 0.5)  # at the bound or below, one class above; 0 further up [C]


@dataclass(frozen=True)
class Spent:
    """What a judge did so far: programs run against their tests, classes measured, and the seconds that both took."""

    judged: int = 0
    measured: int = 0
    seconds: float = 0.0


class Judge:
    """Judges the programs in rollouts and gives the rewards of both stages; one object for a stage, so that it remembers.

    task: a rollout's item → the task with its tests. workload: an item → how its task grows (needed for `speed` alone). budget, largest,
    draws: see `complexity.measure`; a training step can't wait for the most careful measurement.
    """

    def __init__(
        self, task: Callable[[Any], Task], workload: Callable[[Any], Workload] | None = None, limits: Limits | None = None,
        workers: int = 1, budget: int = 4000, largest: int = 1024, draws: int = 2,
    ):  # fmt: skip
        self.workload, self.limits, self.workers = workload, limits, workers
        self._task = task
        self._tasks: dict[int, tuple[Any, Task]] = {}
        self.effort = {"budget": budget, "largest": largest, "draws": draws}
        self.spent = Spent()
        self._verdicts: dict[tuple[str, str], ProgramVerdict] = {}
        self._classes: dict[tuple[str, str, bool], Complexity] = {}

    def task(self, item: Any) -> Task:
        """The task of an item, with its tests; asked for once, since tests may have to be worked out."""
        if id(item) not in self._tasks:
            self._tasks[id(item)] = item, self._task(item)  # the item too: while it is held, no other object has its number
        return self._tasks[id(item)][1]

    def verdicts(self, rollouts: Sequence[Rollout]) -> list[ProgramVerdict]:
        """The verdict on each rollout's program. An answer that was cut off holds none, whatever it began. Judge errors are tried anew."""
        begin, tasks = time.perf_counter(), [self.task(r.item) for r in rollouts]
        texts = [_program(r, task.entry) for r, task in zip(rollouts, tasks, strict=True)]
        keys = [(task.name, text) for task, text in zip(tasks, texts, strict=True)]
        new = {key: (text, task) for key, text, task in zip(keys, texts, tasks, strict=True) if key not in self._verdicts}
        found = dict(zip(new, check_many(list(new.values()), self.limits, self.workers), strict=True))
        self._verdicts |= {key: verdict for key, verdict in found.items() if verdict.status not in MISSING}
        known = self._verdicts | found
        self._note(len(new), 0, begin)
        return [known[key] for key in keys]

    def classes(self, rollouts: Sequence[Rollout], gated: bool = True) -> list[Complexity | None]:
        """The class of each rollout's program; None where there is none: no Python, or, gated, it fails its tests."""
        if self.workload is None:
            raise ValueError("This judge was made without `workload`, so it knows no inputs that grow. Give one to have classes measured.")
        found: list[Complexity | None] = []
        for rollout, verdict in zip(rollouts, self.verdicts(rollouts), strict=True):
            entry = self.task(rollout.item).entry
            text = _program(rollout, entry)
            nothing = text is None or verdict.status == "compile error" or (gated and not verdict.passed_all)
            found.append(None if nothing else self._class(rollout.item, text, entry, gated))
        return found

    def form(self, rollouts: Sequence[Rollout]) -> list[float]:
        """R_format: 1 for an answer that ended, with a closed thought and one closed fence that holds Python which can be read."""
        return [float(r.ended and _formed(r.text)) for r in rollouts]

    def pass_rate(self, rollouts: Sequence[Rollout]) -> list[float | Missing]:
        """R_correctness of stage 1: the share of tests passed."""
        return [_unknown(v) or v.passed / v.total for v in self.verdicts(rollouts)]

    def correct(self, rollouts: Sequence[Rollout]) -> list[float | Missing]:
        """R_correctness of stage 2: 1 when every test is passed."""
        return [_unknown(v) or float(v.passed_all) for v in self.verdicts(rollouts)]

    def speed(self, gated: bool = True) -> Reward:
        """1[PassRate = 1] · R_time; without its gate R_time alone, which is what an ablation takes to see why there is one."""

        def reward(rollouts: Sequence[Rollout]) -> list[float | Missing]:
            verdicts, classes = self.verdicts(rollouts), self.classes(rollouts, gated)
            values: list[float | Missing] = []
            for rollout, verdict, found in zip(rollouts, verdicts, classes, strict=True):
                if gated and verdict.passed_all is None:
                    values.append(_unknown(verdict))
                else:
                    values.append(0.0 if found is None else time_reward(found, self.workload(rollout.item).bound))
            return values

        return reward

    def _class(self, item: Any, text: str, entry: str | None, gated: bool) -> Complexity:
        load, begin = self.workload(item), time.perf_counter()
        key = (load.name, load.shape(text), gated)
        if key in self._classes:
            return self._classes[key]
        found = measure(text, entry, load.make, truth=load.truth if gated else None, **self.effort)
        if found.name not in (None, "undecided") or found.wrong:
            self._classes[key] = found
        self._note(0, 1, begin)
        return found

    def _note(self, judged: int, measured: int, begin: float) -> None:
        s = self.spent
        self.spent = Spent(s.judged + judged, s.measured + measured, s.seconds + time.perf_counter() - begin)


def time_reward(found: Complexity, bound: str) -> float | Missing:
    """R_time: 1 when the class is not above the bound, 0.5 one class above, else 0 [C]. Missing when the candidates pay differently.

    A program that turns out to be wrong at a larger size gets 0. Raises ValueError for a bound that is no class.
    """
    if bound not in CLASSES:
        raise ValueError(f"{bound!r} is no class of growth; there are {', '.join(CLASSES)}.")
    if found.wrong:
        return 0.0
    above = [max(0, CLASSES.index(name) - CLASSES.index(bound)) for name in found.candidates]
    worth = {CREDIT[by] if by < len(CREDIT) else 0.0 for by in above}
    if len(worth) == 1:
        return worth.pop()
    return Missing(f"no class: {found.reason or 'between ' + ' and '.join(found.candidates)}"[:200])


def _program(rollout: Rollout, entry: str | None) -> str | None:
    return extract.program(rollout.text, entry) if rollout.ended else None


def _unknown(verdict: ProgramVerdict) -> Missing | None:
    return Missing(f"{verdict.status}: {verdict.message}"[:200]) if verdict.passed_all is None else None


def _formed(text: str) -> bool:
    turn = parse(text)
    fences = [line for line in turn.content.splitlines() if line.startswith("```")]
    program = extract.program(text)
    closed = len(fences) == 2 and fences[1].strip() == "```"
    return turn.closed_think and not turn.malformed and closed and program is not None and extract.defined(program) is not None

"""The time-complexity class of a program, from how its work grows with the size of its input. Paper section 5 (judge of the time reward).

Two witnesses. The first is a count, the same each time: the program, rewritten so that it counts its steps and what its builtins do
(`counting.py`, `work.py`), at sizes that grow until a call would cost more than the budget. The second is the time of the program as it is,
least of several calls, at the largest size and one of a quarter: where time grows faster than the count, something was not counted,
and the count is not believed. Growth is named by `growth.py`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nbcore.judge.checkers import right
from nbcore.judge.counting import DEEP, Unreadable, instrument
from nbcore.judge.growth import CLASSES, ENOUGH, fit
from nbcore.judge.sandbox import Job, Limits, run
from nbcore.judge.values import lifted, plain

Make = Callable[[random.Random, int], Sequence[Any]]
LIMITS = Limits(cpu_seconds=4.0, wall_seconds=8.0, output_kib=4096)
START, STEP = 8, math.sqrt(2)
REACH = 32  # the smallest size that is looked at is this part of the largest
REPEATS = 4  # calls of which the fastest tells the time
TICK = 1e-5  # seconds that a clock and a call take anyway
TIMED = """

import sys, time
sys.setrecursionlimit(max({deep}, sys.getrecursionlimit()))
def __timed__(*arguments):
    begin = time.perf_counter()
    {entry}(*arguments)
    return time.perf_counter() - begin
"""
LESS = 1.25  # times as much time is clearly more
LONG = 0.05  # seconds of a call, in which the difference of two programs shows
APART = 0.6  # by which the exponents of time and count may differ


@dataclass(frozen=True)
class Workload:
    """How a task grows: what a program for it is measured with, and what it is measured against.

    name: of the task. bound: the class of the best program known. make, truth: as `measure` takes them. shape: text -> text; programs of
    tasks of this name with equal shapes are of one class, so that one of them is measured (by default every text has a shape of its own).
    """

    name: str
    bound: str
    make: Make
    truth: Callable[..., Any] | None = None
    shape: Callable[[str], str] = str


@dataclass(frozen=True)
class Complexity:
    """name: a class of `growth.CLASSES`, or "undecided", or None when nothing was measured (then `reason` says why).

    candidates: the classes between which it lies. sizes, counts: what was measured. exponent: of the count over the largest sizes.
    wrong: nothing was measured because the program gives a wrong result, or fails, at a size; otherwise it is the judge that does not know.
    """

    name: str | None
    candidates: tuple[str, ...] = ()
    sizes: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    exponent: float | None = None
    reason: str = ""
    wrong: bool = False


class _Unmeasured(Exception):
    """Why a program has no class. wrong: it is the program's fault."""

    def __init__(self, reason: str, wrong: bool = False):
        super().__init__(reason)
        self.wrong = wrong


def measure(
    program: str, entry: str, make: Make, *, truth: Callable[..., Any] | None = None, largest: int = 4096, budget: int = 10_000,
    draws: int = 3, seed: int = 0,
) -> Complexity:  # fmt: skip
    """Judge one program.

    make: (rng, size) -> the arguments of a call of that size, which should reach the worst case. truth: the right result of a call; a
    program that is wrong at a size has no class, for it may be fast there because it is wrong. largest: the largest size that is tried.
    budget: units of work (about a step of a loop) that one call may cost. draws: calls a size, of which the dearest counts.
    """
    try:
        text = instrument(program, entry, budget)
    except Unreadable as error:
        return Complexity(None, reason=str(error))

    def calls(sizes):
        return [tuple(make(random.Random(f"{seed} {size} {draw}"), size)) for size in sizes for draw in range(draws)]

    found: dict[int, int] = {}
    ladder = sorted({round(START * STEP**step) for step in range(64) if START * STEP**step <= largest})
    try:
        _count(text, calls, ladder[:6], draws, truth, found)
        if len(found) == 6:  # inputs that would be too dear to count are too dear to make as well
            low, high = ladder[2], ladder[5]
            exponent = math.log(found[high] / found[low]) / math.log(high / low)
            _count(text, calls, [s for s in ladder[6:] if found[high] * (s / high) ** exponent < 1.5 * budget], draws, truth, found)
        if len(found) < ENOUGH + 2:  # steep: the sizes between the last that was affordable and the next
            low, high = max(found, default=2), next((size for size in ladder if size not in found), largest + 1)
            between = [size for size in range(max(2, low - 6), high) if size not in found]
            _count(text, calls, between[:: 1 + len(between) // 12], draws, truth, found)
        if len(found) < ENOUGH:
            raise _Unmeasured(f"only {len(found)} sizes fit the budget of {budget} units")
    except _Unmeasured as stopped:
        return Complexity(None, sizes=sorted(found), counts=[found[s] for s in sorted(found)], reason=str(stopped), wrong=stopped.wrong)
    sizes = sorted(found)
    counts = [found[size] for size in sizes]
    far = [size for size in sizes if size * REACH >= sizes[-1]]  # what is small says little about growth
    growth = fit(far, [found[size] for size in far])
    hidden = _hidden(program, entry, calls, sizes, counts)
    if hidden:
        return Complexity("undecided", CLASSES[CLASSES.index(growth.candidates[0]) :], sizes, counts, growth.exponent, hidden)
    return Complexity(growth.name, growth.candidates, sizes, counts, growth.exponent)


def faster(
    one: str, other: str, entry: str, make: Make, *, largest: int = 4096, budget: int = 10_000, draws: int = 3, seed: int = 0
) -> int | None:
    """Which of two right programs for one task is faster on large inputs: 0 the first, 1 the second, None where nothing tells.

    The one of the lower class, where their candidates don't overlap and it has done less work at the largest size counted for both.
    Otherwise time decides, at a size that takes a while: steps of a loop and steps inside a builtin count alike, and differ by a factor
    of ten and more in time.
    """
    found = [measure(text, entry, make, largest=largest, budget=budget, draws=draws, seed=seed) for text in (one, other)]
    if all(f.candidates for f in found):
        (low, high), (least, most) = ([CLASSES.index(f.candidates[i]) for i in (0, -1)] for f in found)
        less = _less_work(*found)
        if (high < least and less == 0) or (most < low and less == 1):
            return less
    size = min((f.sizes[-1] for f in found if f.sizes), default=START)
    seconds: list[float] = []
    while size <= largest:
        calls = [tuple(make(random.Random(f"{seed} {size} {draw}"), size)) for draw in range(draws)]
        timed = [_timed(text, entry, calls)[0] for text in (one, other)]
        if not all(timed):
            break
        seconds = [_dearest(part) for part in timed]
        if max(seconds) > LONG:
            break
        size *= 2
    if not seconds or max(seconds) < LESS * max(TICK, min(seconds)):
        return None
    return int(seconds[1] < seconds[0])


def _less_work(one: Complexity, other: Complexity) -> int | None:
    """Which has the lower count at the largest size that both were counted at."""
    common = set(one.sizes) & set(other.sizes)
    if not common:
        return None
    here, there = (found.counts[found.sizes.index(max(common))] for found in (one, other))
    return None if here == there else int(there < here)


def _count(text: str, calls: Callable, sizes: Sequence[int], draws: int, truth: Callable | None, found: dict[int, int]) -> None:
    """Add the count at each size that fits the budget to `found`. Raises _Unmeasured when something else ends it."""
    if not sizes:
        return
    asked = calls(sizes)
    (verdict,) = run([Job(text, asked, "__counted__")], LIMITS)
    for index, size in enumerate(sizes):
        mine = slice(index * draws, (index + 1) * draws)
        given = [_read(result) for result in verdict.results[mine]]
        if len(given) < draws or None in given:
            why = verdict.message or "what came back is no count"
            raise _Unmeasured(f"at size {size}: {why}", wrong=verdict.status in ("error", "compile"))
        if any(units is None for units, _ in given):
            return
        if truth is not None:
            for arguments, (_, result) in zip(asked[mine], given, strict=True):
                if not right("values", arguments, plain(result), plain(truth(*arguments))):
                    raise _Unmeasured(f"at size {size} the program is wrong", wrong=True)
        found[size] = 1 + max(units for units, _ in given)


def _read(result: Any) -> tuple[int | None, Any] | None:
    """(units, result) as the counter gave them; None where the program made something else of it."""
    try:
        units, value = lifted(result)
        return (units, value) if units is None or (type(units) is int and 0 <= units < 1 << 40) else None
    except (ValueError, TypeError, RecursionError):
        return None


def _hidden(program: str, entry: str, calls: Callable, sizes: list[int], counts: list[int]) -> str:
    """What speaks against the count: time that grows faster from a size to the largest one.

    The least of several calls is CPU time, as none of them was interrupted; the clock of CPU time itself often ticks in 4 ms.
    """
    small = next((index for index, size in enumerate(sizes) if size * 4 >= sizes[-1]), 0)
    if counts[-1] > 32 * counts[small]:
        return ""  # steeper than n² already: nothing to hide
    seconds, fault = _timed(program, entry, calls([sizes[small], sizes[-1]]))
    if fault:
        return fault
    half = len(seconds) // 2
    short, long = (max(TICK, _dearest(part)) for part in (seconds[:half], seconds[half:]))
    spread = math.log(sizes[-1] / sizes[small])
    time, count = math.log(long / short) / spread, math.log(counts[-1] / counts[small]) / spread
    return f"its time grows like n^{time:.1f}, its counted work like n^{count:.1f}" if time > count + APART else ""


def _timed(program: str, entry: str, calls: list) -> tuple[list[float], str]:
    """The seconds of REPEATS calls with each of the arguments, one after the other; or why they can't be had or believed."""
    asked = [call for call in calls for _ in range(REPEATS)]
    (verdict,) = run([Job(program + TIMED.format(deep=DEEP, entry=entry), asked, "__timed__")], LIMITS)
    if verdict.status != "ok" or not all(isinstance(second, float) and second >= 0 for second in verdict.results):
        return [], f"without the counter it cannot be timed: {verdict.message or 'its clock is not one'}"
    said, known = sum(verdict.results), verdict.cpu_seconds
    if known is not None and known > 0.05 + 2 * said:
        return [], f"its clock lies: the calls say {said:.3f} s, the machine says {known:.3f} s"
    return verdict.results, ""


def _dearest(seconds: list[float]) -> float:
    """Of several calls, each made several times in a row: the least time of each, and of these the most."""
    return max(min(seconds[start : start + REPEATS]) for start in range(0, len(seconds), REPEATS))

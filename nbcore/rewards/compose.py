"""One number from several rewards, and what each of them said. Paper sections 3 to 6: every stage's reward is a weighted sum.

A reward that cannot tell is *missing*: None for that rollout, counted with its reason, and so is the rollout's total; it is
never 0. A reward that is wrongly written (too short a list, text in place of numbers) is an error that names the component.
Where a reason comes from: an element may be `workers.Missing(reason)`; a reward object may keep a Counter `missing` (as the
reward models do), and what a call adds to it are the reasons of that call.
Left out on purpose: scaling or clipping of parts (a reward says what it is worth), gates between parts (write them as a reward).
"""

from __future__ import annotations

import math
import queue
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

from nbcore.rewards.rollouts import Reward, Rollout
from nbcore.rewards.workers import Missing

TOTAL = "total"
ALLOWED = "Allowed are numbers, True and False (1 and 0), and None for what is missing."


class RewardError(ValueError):
    """A reward that broke its contract, or a composition that makes no sense."""


@dataclass(frozen=True)
class Component:
    """A reward with its name and weight. Weight 0: measured and shown, not paid. deadline: seconds for one batch, or None."""

    name: str
    function: Reward
    weight: float = 1.0
    deadline: float | None = None


@dataclass(frozen=True)
class Scored:
    """total: one number a rollout; parts: the same by component, unweighted; missing: by component, how often for which reason."""

    total: list[float | None]
    parts: dict[str, list[float | None]]
    missing: dict[str, Counter[str]]


def score(rollouts: Sequence[Rollout], components: Sequence[Component]) -> Scored:
    """Every component on every rollout; total is the weighted sum, None where a component with a weight is None.

    A component over its deadline is missing for the whole batch, and scoring goes on without it. Its thread cannot be killed
    and may still run: it must not be counted on to stop. Deadlines that hold, one item at a time, are `rewards.workers`'.
    Raises RewardError for names that are not unique or are "total", weights that are not finite, deadlines that are not above
    0, and for a component that raises, gives no list of the right length, gives what is no number, or changes its list.
    """
    _check(components)
    parts: dict[str, list[float | None]] = {}
    missing: dict[str, Counter[str]] = {}
    for component in components:
        given, reasons = _called(component, rollouts)
        parts[component.name], missing[component.name] = _numbers(component.name, given, reasons, len(rollouts))
    total: list[float | None] = []
    for i in range(len(rollouts)):
        paid = [(c.weight, parts[c.name][i]) for c in components if c.weight]
        value = None if any(p is None for _, p in paid) else sum(w * p for w, p in paid)
        if value is not None and not math.isfinite(value):
            value = None
            missing.setdefault(TOTAL, Counter())["not finite: the weighted sum is too large"] += 1
        total.append(value)
    return Scored(total, parts, missing)


def each(function: Callable[[Rollout], float | None]) -> Reward:
    """A reward from a function of one rollout. An exception (or SystemExit) is missing for that rollout; all others stand."""

    def reward(rollouts: Sequence[Rollout]) -> list[Any]:
        values: list[Any] = []
        for rollout in rollouts:
            try:
                values.append(function(rollout))
            except (Exception, SystemExit) as error:  # KeyboardInterrupt goes through
                values.append(Missing(_said(error)))
        return values

    return reward


def breakdown(scored: Scored, i: int) -> dict[str, float | None]:
    """The total and every part of rollout `i`, for the record of a sample."""
    return {TOTAL: scored.total[i], **{name: values[i] for name, values in scored.parts.items()}}


def _check(components: Sequence[Component]) -> None:
    if not components:
        raise RewardError("There are no components: give at least one reward.")
    twice = [name for name, count in Counter(c.name for c in components).items() if count > 1]
    if twice or any(c.name == TOTAL for c in components):
        raise RewardError(f"The name {(twice or [TOTAL])[0]!r} is taken. Names of components must be unique, and {TOTAL!r} is the sum's.")
    for c in components:
        if not isinstance(c.weight, Real) or _number(c.weight)[0] is None:
            raise RewardError(f"Component {c.name!r} has the weight {c.weight!r}; allowed are finite numbers (0: only shown).")
        if c.deadline is not None and not c.deadline > 0:
            raise RewardError(f"Component {c.name!r} has the deadline {c.deadline!r}; allowed are seconds above 0, or None.")


def _called(component: Component, rollouts: Sequence[Rollout]) -> tuple[Any, list[str]]:
    """What a component gave for the batch, and the reasons its own counter noted meanwhile."""
    if not rollouts:
        return [], []
    own = list(rollouts)  # a list of its own: what it does to it must not reach the next component
    noted = getattr(component.function, "missing", None)
    before = Counter(noted) if isinstance(noted, Counter) else Counter()
    try:
        given = component.function(own) if component.deadline is None else _within(component.deadline, component.function, own)
    except (Exception, SystemExit) as error:
        raise RewardError(f"Component {component.name!r} failed on a batch of {len(rollouts)}: {_said(error)}") from error
    if isinstance(given, Missing):  # over its deadline: its thread may still be at work on its list
        return [given] * len(rollouts), []
    if len(own) != len(rollouts) or any(a is not b for a, b in zip(own, rollouts, strict=True)):
        raise RewardError(
            f"Component {component.name!r} changed the list of rollouts it was given, so nobody knows which number belongs to which. "
            "Work on a copy, such as sorted(rollouts)."
        )
    return given, list(((Counter(noted) - before) if isinstance(noted, Counter) else Counter()).elements())


def _within(seconds: float, function: Reward, rollouts: list[Rollout]) -> Any:
    """The function's answer, or Missing when it takes longer; its exceptions are raised here."""
    answers: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

    def call() -> None:
        try:
            answers.put((True, function(rollouts)))
        except BaseException as error:
            answers.put((False, error))

    threading.Thread(target=call, daemon=True).start()
    try:
        good, value = answers.get(timeout=seconds)
    except queue.Empty:
        return Missing(f"deadline {seconds:g} s for the batch")
    if not good:
        raise value
    return value


def _numbers(name: str, given: Any, reasons: list[str], wanted: int) -> tuple[list[float | None], Counter[str]]:
    """The values as finite floats or None, and why those that are None are."""
    if hasattr(given, "tolist"):  # an array of numpy or torch
        if getattr(given, "ndim", 1) != 1:
            raise RewardError(f"Component {name!r} gave an array of shape {tuple(given.shape)}; wanted is one of ({wanted},).")
        given = given.tolist()
    if not isinstance(given, list | tuple):
        raise RewardError(f"Component {name!r} gave {_kind(given)}; wanted is a list of {wanted} values, one a rollout. {ALLOWED}")
    if len(given) != wanted:
        raise RewardError(f"Component {name!r} gave {len(given)} values; wanted are {wanted}, one a rollout, None where it cannot tell.")
    values: list[float | None] = []
    missing: Counter[str] = Counter()
    unsaid = 0
    for position, item in enumerate(given):
        if getattr(item, "ndim", None) == 0:  # a scalar of numpy or torch
            item = item.tolist()
        if isinstance(item, Real | Decimal):
            value, fault = _number(item)
            if value is None:
                missing[fault] += 1
        elif item is None or isinstance(item, Missing):
            value = None
            if item is None:
                unsaid += 1
            else:
                missing[item.reason] += 1
        else:
            raise RewardError(f"Component {name!r} gave {_kind(item)} at position {position}. {ALLOWED}")
        values.append(value)
    missing.update(reasons[:unsaid])
    if unsaid > len(reasons):
        missing["the reward gave None"] += unsaid - len(reasons)
    return values, missing


def _number(value: Any) -> tuple[float | None, str]:
    """(the number as a float, 0.0 for -0.0; "") or (None, why not)."""
    try:
        number = float(value)
    except OverflowError:
        return None, "not finite: a number too large for a float"
    except ValueError:  # Decimal("sNaN")
        return None, "not finite: nan"
    return (number + 0.0, "") if math.isfinite(number) else (None, f"not finite: {number}")


def _kind(value: Any) -> str:
    """Type and beginning of a value, for a message."""
    if value is None:
        return "None"
    shape = f" of shape {tuple(value.shape)}" if hasattr(value, "shape") else ""
    return f"{type(value).__name__}{shape} {value!r:.60}"


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]

"""Tests that are Python statements (`assert f(2) == 4`), without letting the program near them.

A program that stands beside its assertions can make them hold: by an object that equals everything, or by ending the process. So the
test runs in one sandboxed process and the program in another. The test's process first runs with a stand-in for the function, which
writes down what it is called with and gives answers that satisfy nearly any statement; then the program answers those calls, and
the test runs again with these answers, as plain values. A test whose later calls depend on earlier answers takes further rounds.
An answer that is no plain value (a match, a function) is only known to be there: true, and equal to nothing.
Left out: tests that call with keyword arguments, or that look at what a call did to its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nbcore.judge.sandbox import Job, Limits, Verdict, run
from nbcore.judge.values import lifted

ROUNDS = 20  # how often a test may ask for further calls
RUNNER = '''

def __judged__(test, entry, known, stopped):
    import builtins, copy

    class Depends(BaseException): pass
    class Anything:
        __hash__ = object.__hash__
        def __deepcopy__(self, memo): raise Depends  # a call that hangs on an earlier answer has to wait for it
        def __bool__(self): return True
        def __len__(self): return 0
        def __iter__(self): return iter(())
        def __index__(self): return 0
        def __float__(self): return 0.0
        def __contains__(self, item): return True
        def __getattr__(self, name):
            if name.startswith("__"): raise AttributeError(name)
            return self
    for name in "eq ne lt le gt ge".split():
        setattr(Anything, f"__{name}__", lambda self, other: True)
    for name in "add radd sub rsub mul rmul truediv rtruediv floordiv mod pow neg abs round call getitem".split():
        setattr(Anything, f"__{name}__", lambda self, *others: self)

    class Changed(BaseException): pass
    class Stopped(BaseException): pass
    made, asked = [], []

    def stand_in(*arguments):
        arguments = copy.deepcopy(list(arguments))
        place = len(made)
        made.append(arguments)
        if place < len(known):
            given, kind, value = known[place]
            if given != arguments:
                raise Changed
            if kind == "raised":
                error = getattr(builtins, value.split(":")[0], RuntimeError)
                raise (error if isinstance(error, type) and issubclass(error, Exception) else RuntimeError)(value)
            return object() if kind == "object" else copy.deepcopy(value)
        if stopped:
            raise Stopped
        asked.append(arguments)
        if len(asked) > 1000:
            raise Depends  # a loop that waits for a real answer
        return Anything()

    space = {k: v for k, v in globals().items() if k != "__judged__"}
    space[entry] = stand_in
    try:
        exec(compile(test, "<test>", "exec"), space)
        how, why = "held", ""
    except Changed:
        return ["changed", "", made[:-1], made[-1]]
    except Depends:
        return ["asked", "", made, None]
    except Stopped:
        return ["stopped", "", [], None]
    except AssertionError as error:
        how, why = "failed", str(error)
    except Exception as error:
        how, why = "raised", f"{type(error).__name__}: {error}"
    return ["asked" if asked else how if made else "idle", why, made if asked else [], None]
'''


@dataclass(frozen=True)
class Asserted:
    """before: source for both sides. program: the answer's. entry: the function under test. texts: the tests, statements each."""

    before: str
    program: str
    entry: str
    texts: Sequence[str]


@dataclass
class _State:
    """One test. stop: how the program ended, when that was before it had answered every call."""

    text: str
    calls: list[list[Any]] = field(default_factory=list)
    known: list[tuple] = field(default_factory=list)
    stop: Verdict | None = None
    found: tuple[str, str] | None = None


def judge(items: Sequence[Asserted], limits: Limits | None = None, workers: int = 1) -> list[list[tuple[str, str]]]:
    """For each item (status, message) of each test: accepted, wrong answer, no tests, or a status of the sandbox's about the program.

    The program answers the calls of its tests in one process: where it dies, the tests that need a later answer end with it.
    """
    states = [[_State(text) for text in item.texts] for item in items]
    for _ in range(ROUNDS):
        waiting = _without_verdict(zip(items, states, strict=True))
        asking = [
            Job(item.before + RUNNER, [(s.text, item.entry, s.known, s.stop is not None) for s in tests], "__judged__")
            for item, tests in waiting
        ]
        for (_, tests), verdict in zip(waiting, run(asking, limits, workers), strict=True):
            for place, state in enumerate(tests):
                _read(state, place, verdict)
        waiting = _without_verdict(waiting)
        if not waiting:
            break
        answering = [Job(i.before + i.program, [call for s in tests for call in s.calls], i.entry) for i, tests in waiting]
        for (_, tests), verdict in zip(waiting, run(answering, limits, workers), strict=True):
            _answered(tests, verdict)
    late = ("missing", f"the test asked for further calls more than {ROUNDS} times")
    return [[state.found or late for state in tests] for tests in states]


def _without_verdict(pairs: Iterable[tuple[Asserted, list[_State]]]) -> list[tuple[Asserted, list[_State]]]:
    """Each item with those of its tests that have no verdict yet, where there are any."""
    left = [(item, [state for state in tests if state.found is None]) for item, tests in pairs]
    return [(item, tests) for item, tests in left if tests]


def _answered(tests: Sequence[_State], verdict: Verdict) -> None:
    """Hand each test the answers to its calls."""
    at = 0
    for state in tests:
        if verdict.status in ("missing", "compile"):
            state.found = (verdict.status, verdict.message)
            continue
        end = at + len(state.calls)
        places = range(at, min(end, len(verdict.results)))
        state.known = [_answer(call, place, verdict) for call, place in zip(state.calls, places, strict=False)]
        state.stop = verdict if len(state.known) < len(state.calls) else None
        at = end


def _answer(arguments: list[Any], place: int, verdict: Verdict) -> tuple:
    if place in verdict.errors:
        return arguments, "raised", verdict.errors[place]
    value = verdict.results[place]
    if isinstance(value, dict) and "\0object" in value:
        return arguments, "object", None
    try:
        return arguments, "value", lifted(value)
    except (ValueError, TypeError) as error:  # a tag that the program made up
        return arguments, "raised", f"TypeError: {error}"


def _read(state: _State, place: int, verdict: Verdict) -> None:
    """What the test's process said of the test at `place`: a verdict, or calls that the program has to answer first."""
    if place >= len(verdict.results) or place in verdict.errors:
        why = verdict.errors.get(place, verdict.message)
        state.found = ("missing", f"the test itself ended with {verdict.status}: {why}")
        return
    how, why, made, changed = verdict.results[place]
    if how == "asked":
        state.calls = [lifted(call) for call in made]
    elif how == "changed":
        state.calls = [lifted(call) for call in [*made, changed]]
        state.stop = None
    elif how == "stopped":
        state.found = (state.stop.status, state.stop.message)
    elif how == "idle":
        state.found = ("no tests", f"the test never called the function. {why}".strip())
    elif how == "raised" and any(kind == "raised" for _, kind, _ in state.known):
        state.found = ("error", why)
    else:
        state.found = ("accepted", "") if how == "held" else ("wrong answer", f"{state.text.strip()[-150:]}: {why or how}")

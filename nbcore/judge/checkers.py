"""Is what came back what was wanted? Compared on this side of the sandbox, on plain values (`values.plain`) or on printed text.

- `values` (the default): equal as `same` says; a tuple is a list, floats may differ by a relative 1e-9.
- `exact`: equal in value and in every kind; text to the last character but for blanks at line ends and empty lines at the end.
- `tokens`: the same words, whatever stands between them. For printed text.
- `floats`: as `tokens` and `values`, numbers may differ by the tolerance (1e-6 unless told); as many words or items on both sides.
- `any-order`: the same items (or lines), in any order.
- a function of (arguments, got, wanted), which sees Python values and says yes or no, for tasks with several right answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

from nbcore.judge.values import lifted

Custom = Callable[[Sequence[Any], Any, Any], bool]
Checker = Literal["values", "exact", "tokens", "floats", "any-order"] | Custom
CHECKERS = ("values", "exact", "tokens", "floats", "any-order")


def right(checker: Checker, arguments: Sequence[Any], got: Any, wanted: Any, tolerance: float | None = None) -> bool:
    """Whether `got` (plain, from a program) is the answer `wanted` (plain too).

    A custom checker that stumbles over `got` says no by that, if it accepts `wanted` itself; one that stumbles over that too, or gives
    no bool, has failed: raises ValueError, which is no verdict about the program.
    """
    if callable(checker):
        return _custom(checker, arguments, got, lifted(wanted))
    if checker == "exact":
        return _strict(got, wanted)
    if checker == "tokens":
        return isinstance(got, str) and isinstance(wanted, str) and got.split() == wanted.split()
    if checker == "floats":
        return _floats(got, wanted, 1e-6 if tolerance is None else tolerance)
    close = 1e-9 if tolerance is None else tolerance
    if checker == "any-order":
        return _any_order(_items(got), _items(wanted), close)
    return same(_untupled(got), _untupled(wanted), close)


def _custom(checker: Custom, arguments: Sequence[Any], got: Any, wanted: Any) -> bool:
    try:
        value = lifted(got)
    except (ValueError, TypeError):
        return False  # the program made up a kind of value that there is not
    try:
        verdict = checker(arguments, value, wanted)
    except Exception as error:
        try:
            checker(arguments, wanted, wanted)
        except Exception:
            raise ValueError(f"the custom checker failed with {type(error).__name__}: {error}") from error
        return False  # it reads the right answer: the program's value was at fault
    if not isinstance(verdict, bool):
        raise ValueError(f"the custom checker gave {verdict!r:.80}, it must give True or False")
    return verdict


def same(got: Any, wanted: Any, tolerance: float = 1e-9) -> bool:
    """Whether two plain values are equal.

    True is not 1. 1 and 1.0 are equal (as in Python), an int never equals a float beside it. Two floats may differ by the
    relative tolerance, or by 1e-12 near zero; tolerance=0 asks for equality. NaN equals NaN.
    """
    if isinstance(got, bool) or isinstance(wanted, bool):
        return got is wanted
    if isinstance(got, float) and isinstance(wanted, float):
        return _near(got, wanted, tolerance, 1e-12 if tolerance else 0.0)
    if isinstance(got, int | float) and isinstance(wanted, int | float):
        return got == wanted
    if isinstance(got, list) and isinstance(wanted, list):
        return len(got) == len(wanted) and all(same(g, w, tolerance) for g, w in zip(got, wanted, strict=True))
    if isinstance(got, dict) and isinstance(wanted, dict):
        return got.keys() == wanted.keys() and all(same(got[k], wanted[k], tolerance) for k in wanted)
    return type(got) is type(wanted) and got == wanted


def _near(got: float, wanted: float, relative: float, absolute: float) -> bool:
    if math.isnan(got) or math.isnan(wanted):
        return math.isnan(got) and math.isnan(wanted)
    return math.isclose(got, wanted, rel_tol=relative, abs_tol=absolute)


def _untupled(value: Any) -> Any:
    """Tuples as lists; not inside of sets and other keys, where they could not be lists."""
    if isinstance(value, list):
        return [_untupled(v) for v in value]
    if isinstance(value, dict):
        if "\0tuple" in value:
            return [_untupled(v) for v in value["\0tuple"]]
        return {k: _untupled(v) for k, v in value.items()} if not any(k.startswith("\0") for k in value) else value
    return value


def _strict(got: Any, wanted: Any) -> bool:
    if isinstance(got, str) and isinstance(wanted, str):
        return [line.rstrip() for line in got.rstrip().split("\n")] == [line.rstrip() for line in wanted.rstrip().split("\n")]
    if type(got) is not type(wanted):
        return False
    if isinstance(got, list):
        return len(got) == len(wanted) and all(_strict(g, w) for g, w in zip(got, wanted, strict=True))
    if isinstance(got, dict):
        return got.keys() == wanted.keys() and all(_strict(got[k], wanted[k]) for k in wanted)
    return same(got, wanted, 0.0)


def _floats(got: Any, wanted: Any, tolerance: float) -> bool:
    if isinstance(got, str) and isinstance(wanted, str):
        mine, theirs = got.split(), wanted.split()
        return len(mine) == len(theirs) and all(_word(g, w, tolerance) for g, w in zip(mine, theirs, strict=True))
    got, wanted = _untupled(got), _untupled(wanted)
    if isinstance(wanted, list):
        return isinstance(got, list) and len(got) == len(wanted) and all(_floats(g, w, tolerance) for g, w in zip(got, wanted, strict=True))
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (got, wanted))
    return _number_near(got, wanted, tolerance) if numbers else same(got, wanted, tolerance)


def _word(got: str, wanted: str, tolerance: float) -> bool:
    if got == wanted:
        return True
    try:
        return _number_near(float(got), float(wanted), tolerance)
    except ValueError:
        return False


def _number_near(got: float, wanted: float, tolerance: float) -> bool:
    try:
        return _near(float(got), float(wanted), tolerance, tolerance)
    except OverflowError:  # integers beyond floats
        return got == wanted


def _items(value: Any) -> list | None:
    """What may stand in any order: the lines of a text, or the items of a list, tuple or set."""
    if isinstance(value, str):
        return [line.rstrip() for line in value.rstrip().split("\n")]
    value = value.get("\0set", value) if isinstance(value, dict) else value
    value = _untupled(value)
    return value if isinstance(value, list) else None


def _any_order(got: list | None, wanted: list | None, tolerance: float) -> bool:
    if got is None or wanted is None or len(got) != len(wanted):
        return False
    left = list(got)
    for item in wanted:
        place = next((i for i, other in enumerate(left) if same(other, item, tolerance)), None)
        if place is None:
            return False
        del left[place]
    return True


def known(checker: Checker) -> Checker:
    """The checker itself. Raises ValueError for a name that is none."""
    if callable(checker) or checker in CHECKERS:
        return checker
    raise ValueError(f"There is no checker {checker!r}; there are {', '.join(CHECKERS)}, or a function of (arguments, got, wanted).")



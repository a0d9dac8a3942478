"""What the operations of a program cost, counted while it runs: the runtime that `counting.py` writes calls to. Paper section 5 [C].

Stands alone (standard library only): the fork server loads it, so that a counted program imports it for nothing.
One unit is a step of a loop or a call. Work inside builtins is charged by what CPython does: a slice its length, `in` on a list the
place where it was found, a sort n log n or the number of its runs, insert(0, x) the whole list. Integers are free while what is done
with them takes no longer than a step (2,000 bits added, 250 multiplied), and then cost by their digits. Builtins unknown here cost the
length of all that they are given and return. Left out: what a comparison or a hash of long keys costs inside builtins.
A program can reach this counter and lie; `complexity.py` holds its time, taken without the counter, against it.
"""

from __future__ import annotations

import functools
import itertools
import operator
import types
from collections import deque

EVERYDAY = 2000  # bits of an integer whose addition takes about as long as any other step
SIZED = (list, str, tuple, dict, set, frozenset, bytes, bytearray, deque, range, type({}.keys()), type({}.values()), type({}.items()))
SEQUENCES = (list, str, tuple, bytes, bytearray, deque)
FREE = frozenset(
    "len isinstance issubclass ord chr id hash callable type bool float complex round range enumerate zip map filter reversed iter next "
    "slice object getattr setattr hasattr property append appendleft popleft add discard get setdefault popitem keys values items "
    "move_to_end bit_length is_integer abs from_iterable defaultdict reduce "
    "sqrt floor ceil log log2 log10 exp sin cos tan atan2 hypot fabs trunc isinf isnan lru_cache cache partial wraps cmp_to_key "
    "randint random choice uniform randrange seed itemgetter attrgetter field dataclass setrecursionlimit get_running_loop".split()
)
HIGHER = frozenset(
    "map filter reduce sorted sort min max nlargest nsmallest starmap accumulate groupby takewhile dropwhile filterfalse".split()
)
LOGARITHMIC = frozenset(("heappush", "heappop", "heapreplace", "heappushpop", "bisect", "bisect_left", "bisect_right"))
state = {"spent": 0, "budget": 0, "over": False}


class Spent(BaseException):
    """The budget of a call is used up."""


def tick(units=1):
    """Charge units; True, so that it can stand in a condition."""
    state["spent"] = spent = state["spent"] + units
    if spent > state["budget"]:
        raise Spent
    return True


def counted(function, arguments, budget):
    """(units, result) of one call; (None, None) if it takes more than the budget, and for every later one: these are larger."""
    if state["over"]:
        return None, None
    state["spent"], state["budget"] = 0, budget
    try:
        result = function(*arguments)
        if isinstance(result, types.GeneratorType):
            result = list(result)
        return state["spent"], result
    except Spent:
        state["over"] = True
        return None, None


def size(value):
    return len(value) if isinstance(value, SIZED) else 0


def tally(iterator):
    """The iterator, each item charged as it is taken."""
    for item in iterator:
        tick()
        yield item


def logarithm(n):
    return max(1, int(n).bit_length())


def digits(*numbers):
    """The cost of adding long integers."""
    longest = max((n.bit_length() for n in numbers if isinstance(n, int)), default=0)
    if longest > EVERYDAY:
        tick(longest // EVERYDAY)


def products(a, b):
    """The cost of multiplying or dividing long integers: schoolbook for the short side, Karatsuba beyond 70 digits."""
    if isinstance(a, int) and isinstance(b, int):
        short, long = sorted((1 + a.bit_length() // 30, 1 + b.bit_length() // 30))
        units = int(long * min(short, 70 * (short / 70) ** 0.585) / 70)
        if units:
            tick(units)


def runs(values):
    """The cost of sorting these: Timsort merges what is in order already."""
    n = len(values)
    try:
        falls = sum(map(operator.gt, values, itertools.islice(values, 1, None)))
    except TypeError:
        falls = n
    tick(n + n * (logarithm(min(falls, n - falls) + 1) - 1))


def charged(value):
    """A builtin as a function that counts; anything else as it is."""
    if isinstance(value, types.BuiltinFunctionType) and value.__name__ not in FREE:
        return lambda *given: call(value, *given)
    return value


def call(function, /, *given, **named):
    """function(*given, **named), charged."""
    kind = type(function)
    if kind in (types.FunctionType, types.MethodType):
        body = function if kind is types.FunctionType else function.__func__
        if getattr(body, "__module__", None) == "program":
            return function(*given, **named)  # it counts by itself
    name = getattr(function, "__name__", "")
    if name in HIGHER:  # a builtin that is handed to a builtin is charged each time it is called
        given = [charged(value) for value in given]
        if named.get("key"):
            named["key"] = charged(named["key"])
    if name in FREE or getattr(function, "__module__", None) == "itertools" or isinstance(function, functools._lru_cache_wrapper):
        return function(*given, **named)
    if kind is type and function.__module__ == "program":
        return function(*given, **named)
    owner = getattr(function, "__self__", None)
    if name in LOGARITHMIC:
        tick(logarithm(size(given[0])))
        return function(*given, **named)
    if isinstance(owner, list | deque | dict | set):
        if name == "pop" and (not isinstance(owner, list) or not given):
            return function(*given, **named)
        if name == "pop" and isinstance(given[0], int):
            tick(max(0, len(owner) - given[0]) if given[0] >= 0 else -given[0])
            return function(*given, **named)
        if name == "insert" and isinstance(given[0], int):
            tick(1 + max(0, len(owner) - given[0]) if given[0] >= 0 else 1 - given[0])
            return function(*given, **named)
        if name in ("extend", "update"):
            owner = None  # it costs what comes, not what is there
        elif name in ("index", "remove") and given:
            contains(given[0], owner)
            return function(*given, **named)
        elif name == "sort":
            tick(len(owner) * logarithm(len(owner))) if named.get("key") else runs(owner)
            return function(*given, **named)
    given = [tally(value) if hasattr(value, "__next__") and not isinstance(value, types.GeneratorType) else value for value in given]
    if name == "sorted":
        values = list(given[0])
        tick(len(values) * logarithm(len(values))) if named.get("key") else runs(values)
        return function(values, **named)
    if name in ("any", "all") and isinstance(given[0], SIZED):
        return function(tally(given[0]))
    if name in ("nlargest", "nsmallest") and isinstance(given[1], SIZED):
        tick(len(given[1]) * logarithm(given[0]))
        return function(*given, **named)
    if name == "deepcopy":
        tick(size(given[0]) + sum(map(size, given[0].values() if isinstance(given[0], dict) else given[0] if size(given[0]) else ())))
        return function(*given, **named)
    if name == "insort" or name.startswith("insort_"):
        tick(len(given[0]))
        return function(*given, **named)
    if name in ("startswith", "endswith"):
        tick(size(given[0]))
        return function(*given)
    if name == "gcd":
        tick(sum(logarithm(abs(number)) for number in given))
        return function(*given)
    if name == "rotate":
        tick(abs(given[0]) if given else 1)
        return function(*given, **named)
    if name == "sample":
        tick(given[1] if len(given) > 1 else named["k"])
        return function(*given, **named)
    if name == "pow" and len(given) == 3:
        for _ in range(int(given[1]).bit_length()):
            tick()
            products(given[2], given[2])
        return function(*given)
    if name in ("factorial", "comb", "perm"):
        tick(given[-1])
    result = function(*given, **named)
    if name in ("int", "str", "repr", "format"):
        for number in (*given, result):
            products(number, number)
    if name == "pow":
        tick(logarithm(given[1]))
    if name in ("pow", "factorial", "comb", "perm", "lcm", "prod", "sum", "isqrt"):
        products(result, result) if name != "sum" else digits(result)
    tick(size(owner) + sum(map(size, given)) + size(result))
    return result


def contains(item, container):
    """item in container, charged by where it was found."""
    if isinstance(container, list | tuple | deque | type({}.values())):
        for place, one in enumerate(container):
            if one is item or one == item:
                tick(place + 1)
                return True
        tick(len(container))
        return False
    if isinstance(container, str | bytes):
        tick(len(container))
    elif hasattr(container, "__next__") and not isinstance(container, types.GeneratorType):
        container = tally(container)
    return item in container


def compare(operation, a, b):
    """An order or an equality of two values; sequences are compared item by item."""
    if isinstance(a, SIZED) and type(a) is type(b) and not (operation in (operator.eq, operator.ne) and len(a) != len(b)):
        tick(min(len(a), len(b)))
    return operation(a, b)


def arithmetic(operation, a, b):
    """a + b and its like."""
    result = operation(a, b)
    if isinstance(result, int):
        if operation in (operator.mul, operator.floordiv, operator.mod):
            products(a, b)
        elif operation is operator.pow:
            tick(logarithm(b))
            digits(result)
            products(result, result)
        else:
            digits(a, b, result)
    elif isinstance(result, SIZED):
        tick(len(result))
    return result


def grown(a, b):
    """b, on its way into `a += b`: lists and local strings grow in place, so that they cost what is added."""
    tick(size(b)) if isinstance(a, list | str | bytes | deque | set | dict) else tick(size(a) + size(b))
    digits(a, b)
    return b


def multiplied(a, b):
    """b, on its way into `a *= b`."""
    if isinstance(a, SEQUENCES) and isinstance(b, int):
        tick(len(a) * max(0, b))
    products(a, b)
    return b


def appended(a, b):
    """a + b on its way into a: a string grows in place."""
    if isinstance(a, str):
        tick(size(b))
        return a + b
    return arithmetic(operator.add, a, b)


def made(value):
    """A slice, a formatted string, an unpacked iterable: as long as it is."""
    tick(size(value))
    return value


def removed(container):
    """Before `del container[i]`: what lies behind moves up."""
    if isinstance(container, list | deque):
        tick(len(container))


def unpacked(value):
    """What stands behind a star."""
    if isinstance(value, SIZED):
        tick(len(value))
        return value
    return tally(value)

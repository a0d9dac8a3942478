"""Which class of growth do counts at several sizes show? Paper section 5 (complexity classes) [C].

The model of a class K: count(n) = a·g_K(n) + b·g_j(n) + c with a > 0, b, c >= 0 and j any lower class, fitted on relative errors. The
lowest class that explains the counts is taken, and the class below it must explain them clearly worse: otherwise the evidence does not
separate the two and both stand as candidates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CLASSES = ("O(1)", "O(log n)", "O(n)", "O(n log n)", "O(n²)", "O(n² log n)", "O(n³)", "exponential")
BASES = (1.2, 1.32, 1.47, 1.618, 1.84, 2.0, 2.5, 3.0, 4.0)  # of the exponential class
ENOUGH = 4  # sizes below which nothing is said
CLOSE = 0.03  # relative error (root mean square) of a class that explains the counts
MARGIN = 1.6  # by which the class below must be worse
SHARE, POLYNOMIAL = 0.6, ("O(n²)", "O(n³)")  # a power must make up so much of the largest count


@dataclass(frozen=True)
class Growth:
    """name: the class, or "undecided"; candidates: the classes between which it lies, lowest first; exponent: the last local one.

    error: the relative error of the best candidate's fit.
    """

    name: str
    candidates: tuple[str, ...]
    exponent: float
    error: float


def fit(sizes: Sequence[float], counts: Sequence[float]) -> Growth:
    """The class of counts (positive, one a size; sizes growing). Raises ValueError for fewer than four, or unequal lengths."""
    if len(sizes) != len(counts) or len(sizes) < ENOUGH:
        raise ValueError(f"A growth needs the counts at {ENOUGH} sizes at least; given {len(counts)} counts at {len(sizes)} sizes.")
    n, y = np.asarray(sizes, float), np.asarray(counts, float)
    half = len(n) // 2
    if y[half:].max() <= y[:half].max():  # bounded
        return Growth(CLASSES[0], CLASSES[:1], 0.0, 0.0)
    errors, shares = zip(*(_error(index, n, y) for index in range(len(CLASSES))), strict=True)
    enough = max(CLOSE, MARGIN * min(errors))
    found = next(index for index, error in enumerate(errors) if error <= enough)
    candidates = (CLASSES[found],)
    minor = CLASSES[found] in POLYNOMIAL and shares[found] < SHARE  # n√n is also a little n² and a lot of n
    if found and (minor or errors[found - 1] < MARGIN * max(errors[found], CLOSE)):
        candidates = (CLASSES[found - 1], CLASSES[found])
    exponent = float(np.polyfit(np.log(n[half - 1 :]), np.log(y[half - 1 :]), 1)[0])
    if errors[found] > 0.25:
        return Growth("undecided", CLASSES, exponent, errors[found])
    return Growth(candidates[0] if len(candidates) == 1 else "undecided", candidates, exponent, errors[found])


def _shape(index: int, n: np.ndarray, base: float = 2.0) -> np.ndarray:
    log = np.log2(n)
    if index == len(CLASSES) - 1:
        return base ** (n - n[-1])
    return (np.ones_like(n), log, n, n * log, n**2, n**2 * log, n**3)[index]


def _error(index: int, n: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The least relative error of any model of this class, and the share of the class's own term in the largest count there."""
    tops = [_shape(index, n, base) for base in BASES] if index == len(CLASSES) - 1 else [_shape(index, n)]
    ones = np.ones_like(n)
    models = [[top, *([_shape(lower, n)] if lower else []), *one] for top in tops for lower in range(index) for one in ([], [ones])]
    best = (math.inf, 0.0)
    for model in models or [[top] for top in tops]:
        columns = np.stack(model, 1) / y[:, None]
        scale = np.abs(columns).max(0)
        weights, *_ = np.linalg.lstsq(columns / scale, np.ones_like(y), rcond=None)
        if weights[0] > 0 and (weights >= 0).all():
            error = float(np.sqrt(np.mean((columns / scale @ weights - 1) ** 2)))
            best = min(best, (error, float(columns[-1, 0] / scale[0] * weights[0])))
    return best

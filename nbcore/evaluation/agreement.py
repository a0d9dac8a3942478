"""Does a learned reward agree with people, and where does it err? Accuracy, calibration, length, order, ranks. Paper sections 3 and 4.

Numbers in, numbers out: a point-wise model gives score differences, a pair-wise one chances in both orders. Choices come grouped
by prompt where intervals are wanted, because the choices of one prompt are not independent.
What could not be judged is None and left out; intervals say how many were missing. All measures are ours [C].
Left out on purpose: drawing (notebooks), public benchmarks of reward models (they need models beyond this size).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nbcore.evaluation.statistics import Interval, mean_interval

BINS = 10


@dataclass(frozen=True)
class Bin:
    """Choices of similar stated chance: how many, the mean stated chance, and the share in which the first answer was chosen."""

    count: int
    stated: float
    observed: float


@dataclass(frozen=True)
class Calibration:
    """ece: expected calibration error, the mean of |stated − observed| over choices (1706.04599), and the points of the diagram."""

    ece: float
    bins: list[Bin]


def by_prompt(keys: Sequence[str], values: Sequence[float | bool | None]) -> dict[str, list[float | None]]:
    """Values of choices, grouped by their prompt's key: what `statistics` takes for intervals over prompts."""
    groups: dict[str, list[float | None]] = defaultdict(list)
    for key, value in zip(keys, values, strict=True):
        groups[key].append(None if value is None else float(value))
    return dict(groups)


def right(margins: Sequence[float | None]) -> list[float | None]:
    """1 where the chosen answer is ahead (margin above 0), 0 where it is behind, ½ for a draw, None where nothing was said."""
    return [None if m is None else 0.5 + 0.5 * float(np.sign(m)) for m in margins]


def flipped(chosen_first: Sequence[float | None], chosen_last: Sequence[float | None]) -> list[float | None]:
    """1 where the verdict changes with the order of the answers, from P(first is better) with the chosen answer first and last."""
    both = zip(chosen_first, chosen_last, strict=True)
    return [None if p is None or q is None else float((p > 0.5) == (q > 0.5)) for p, q in both]


def position_bias(chosen_first: Sequence[float | None], chosen_last: Sequence[float | None]) -> list[float | None]:
    """How much more than ½ the first place gets, over both orders: 0 for a model that does not care about places."""
    both = zip(chosen_first, chosen_last, strict=True)
    return [None if p is None or q is None else (p + q - 1) / 2 for p, q in both]


def calibration(chances: Sequence[float | None], bins: int = BINS) -> Calibration:
    """From the stated chances of the *chosen* answers. Raises ValueError when there is none.

    A chance p that the chosen answer is better is a chance 1 − p of the other: both ways are counted, so that no order of the two
    is needed and the diagram is symmetric.
    """
    given = np.array([p for p in chances if p is not None], dtype=np.float64)
    if not given.size:
        raise ValueError("calibration needs at least one stated chance; all were missing.")
    stated, came = np.concatenate([given, 1 - given]), np.concatenate([np.ones(given.size), np.zeros(given.size)])
    which = np.minimum((stated * bins).astype(int), bins - 1)
    found = [Bin(int(m.sum()), float(stated[m].mean()), float(came[m].mean())) for b in range(bins) if (m := which == b).any()]
    return Calibration(sum(b.count * abs(b.stated - b.observed) for b in found) / stated.size, found)


def ranks(values: Sequence[float]) -> np.ndarray:
    """Ranks from 0, equal values share their mean rank."""
    _, inverse, counts = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[inverse]


def correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Pearson's correlation, or None for fewer than three values or values that are all equal."""
    x, y = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if len(x) != len(y):
        raise ValueError(f"correlation needs as many values on both sides; given: {len(x)} and {len(y)}.")
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Spearman's rank correlation: Pearson's of the ranks. None as for `correlation`."""
    return correlation(ranks(one), ranks(other))


@dataclass(frozen=True)
class LengthBias:
    """correlation: of score difference and length difference; accuracy where the chosen answer is the longer or the shorter one."""

    correlation: float | None
    longer: Interval
    shorter: Interval


def length_bias(keys: Sequence[str], margins: Sequence[float | None], chosen: Sequence[int], rejected: Sequence[int]) -> LengthBias:
    """Does the model like length as such? margins: of chosen over rejected; chosen, rejected: lengths of the two answers.

    An honest model is as often right where the shorter answer was chosen as where the longer one was; the correlation alone does
    not tell, since good answers may really be shorter.
    """
    said = [(k, m, c - r) for k, m, c, r in zip(keys, margins, chosen, rejected, strict=True) if m is not None]
    sides = [[(k, m) for k, m, d in said if d * sign > 0] for sign in (1, -1)]
    accurate = [mean_interval(by_prompt([k for k, _ in side], right([m for _, m in side]))) for side in sides]
    # A choice and its mirror image are the same statement: both are taken, so that the naming of the two does not matter.
    differences, lengths = [m for _, m, _ in said], [d for _, _, d in said]
    both = correlation([*differences, *(-m for m in differences)], [*lengths, *(-d for d in lengths)])
    return LengthBias(both, *accurate)

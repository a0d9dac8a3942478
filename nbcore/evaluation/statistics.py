"""How sure a number is: intervals, paired differences, pass@k and avg@k. Design section 2: every stage shows what it lifted.

A missing value is None: it is dropped and counted, never read as 0. All arithmetic is numpy float64.
Bootstrap intervals resample *items*, each with all its samples and seeds, because answers to one question are not
independent. So they speak about other questions of the same kind; the spread between training runs is not in them.
Left out on purpose: p-values, and corrections for many comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

Value = float | int | bool | None
Values = Sequence[Value | Sequence[Value]] | Mapping[str, Value | Sequence[Value]]
CHUNK = 4_000_000  # resampled indices held at once: 32 MB


@dataclass(frozen=True)
class Interval:
    """A mean with its interval. n: items used; missing: values that were None. mean is None for n = 0, the ends for n < 2."""

    mean: float | None
    low: float | None
    high: float | None
    n: int
    missing: int = 0


@dataclass(frozen=True)
class Difference:
    """after - before, paired by item. n: pairs used; dropped: items without a value on one side or both."""

    mean: float | None
    low: float | None
    high: float | None
    n: int
    dropped: int = 0


def wilson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of a share: honest near 0 and 1 and for few items. No items: all None. Raises ValueError."""
    _check_confidence(confidence)
    if not 0 <= successes <= n:
        raise ValueError(f"wilson needs 0 <= successes <= n; given were successes={successes}, n={n}.")
    if n == 0:
        return Interval(None, None, None, 0)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # The ends at 0 and n are exactly 0 and 1; rounding must not push them outside.
    low = 0.0 if successes == 0 else middle - half
    high = 1.0 if successes == n else middle + half
    return Interval(share, low, high, n)


def mean_interval(values: Values, confidence: float = 0.95, seed: int = 0, resamples: int = 10_000) -> Interval:
    """Mean over items with a percentile bootstrap interval over items.

    values: one entry per item (a sequence, or a mapping by item name): a number, None, or a sequence of them (samples, seeds),
    of which the item's own mean is taken first. Equal items give an interval without width: use `wilson` for shares of few
    items. Raises ValueError for NaN, infinities and a bad confidence.
    """
    means, missing = zip(*_by_item(values).values(), strict=True) if values else ((), ())
    used = np.array([m for m in means if m is not None], dtype=np.float64)
    return Interval(*_bootstrap(used, confidence, seed, resamples), len(used), int(sum(missing)))


def paired_difference(
    before: Values, after: Values, seed: int = 0, confidence: float = 0.95, resamples: int = 10_000
) -> Difference:
    """Mean of after - before over the items that both sides have, with a percentile bootstrap interval over items.

    before, after: as for `mean_interval`, both sequences of one length (paired by position) or both mappings (by name).
    Raises ValueError when they cannot be paired.
    """
    if isinstance(before, Mapping) != isinstance(after, Mapping):
        raise ValueError("before and after must both be sequences or both be mappings by item name.")
    if not isinstance(before, Mapping) and len(before) != len(after):
        raise ValueError(f"before has {len(before)} items and after has {len(after)}: name the items, so that they can be paired.")
    left, right = _by_item(before), _by_item(after)
    names = list(dict.fromkeys([*left, *right]))
    pairs = [(left.get(name, (None, 0))[0], right.get(name, (None, 0))[0]) for name in names]
    used = np.array([b - a for a, b in pairs if a is not None and b is not None], dtype=np.float64)
    return Difference(*_bootstrap(used, confidence, seed, resamples), len(used), len(pairs) - len(used))


def pass_at_k(n: int, c: int, k: int) -> float:
    """Unbiased chance that one of k samples is right, given c right ones among n (arXiv 2107.03374). Raises ValueError.

    1 - C(n-c, k) / C(n, k), as a sum of logarithms: exact to rounding where the binomials overflow.
    """
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"pass_at_k needs 0 <= c <= n and 1 <= k <= n; given were n={n}, c={c}, k={k}.")
    if n - c < k:
        return 1.0
    return float(-np.expm1(np.log1p(-k / np.arange(n - c + 1, n + 1, dtype=np.float64)).sum()))


def avg_at_k(
    samples_NK: Sequence[Sequence[Value]], confidence: float = 0.95, seed: int = 0, resamples: int = 10_000
) -> Interval:
    """avg@k: mean over N items of the mean over their K samples, with the interval over items.

    Raises ValueError when the items do not have the same number of samples; a sample without a verdict is None.
    """
    sizes = {len(samples) for samples in samples_NK}
    if len(sizes) > 1:
        raise ValueError(f"avg_at_k needs the same number of samples for each item; found {sorted(sizes)}. Use None for a missing one.")
    return mean_interval(samples_NK, confidence, seed, resamples)


def _by_item(values: Values) -> dict[object, tuple[float | None, int]]:
    """item -> (mean of its values or None, how many were missing)."""
    items = values.items() if isinstance(values, Mapping) else enumerate(values)
    result: dict[object, tuple[float | None, int]] = {}
    for name, entry in items:
        entries = list(entry) if isinstance(entry, Sequence | np.ndarray) else [entry]
        present = np.array([e for e in entries if e is not None], dtype=np.float64)
        if not np.isfinite(present).all():
            raise ValueError(f"Item {name!r} holds a value that is not finite: {entry!r}. A missing value is None.")
        result[name] = (float(present.mean()) if present.size else None, len(entries) - present.size)
    return result


def _bootstrap(values: np.ndarray, confidence: float, seed: int, resamples: int) -> tuple[float | None, float | None, float | None]:
    _check_confidence(confidence)
    if values.size == 0:
        return None, None, None
    mean = float(values.mean())
    if values.size == 1:  # one item says nothing about the spread between items
        return mean, None, None
    rng = np.random.default_rng(seed)
    rows = max(1, CHUNK // values.size)
    means = [
        values[rng.integers(0, values.size, (min(rows, resamples - done), values.size))].mean(axis=1)
        for done in range(0, resamples, rows)
    ]
    low, high = np.quantile(np.concatenate(means), [(1 - confidence) / 2, (1 + confidence) / 2])
    return mean, float(low), float(high)


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is a share between 0 and 1, such as 0.95; given was {confidence}.")

"""From samples to the table of an evaluation: avg@k with its interval, pass@k, truncated and malformed counted apart.

Paper section 7 reports averages over samples; intervals and the paired differences are ours [C].
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nbcore.evaluation.statistics import Interval, avg_at_k, pass_at_k
from nbcore.evaluation.suites import Sample

RIGHT = 0.999  # align is graded 0 … 1; a sample counts as right for pass@k when nothing is missing


@dataclass(frozen=True)
class Summary:
    """One suite and model: avg@k with interval (over items), pass@k, shares truncated and malformed, judge failures."""

    suite: str
    items: int
    k: int
    average: Interval
    pass_k: float | None
    truncated: float
    malformed: float
    missing: int


def scores(samples: Sequence[Sample]) -> list[list[float | None]]:
    """Scores as [item][sample], in order."""
    by_item: dict[int, list[float | None]] = defaultdict(list)
    for sample in sorted(samples, key=lambda s: (s.item, s.sample)):
        by_item[sample.item].append(sample.score)
    return [by_item[i] for i in sorted(by_item)]


def summarise(samples: Sequence[Sample]) -> Summary:
    """Raises ValueError for no samples or samples of several suites."""
    if len({s.suite for s in samples}) != 1:
        raise ValueError(f"summarise takes the samples of one suite; given: {sorted({s.suite for s in samples})}.")
    table = scores(samples)
    k = max(len(row) for row in table)
    whole = [row for row in table if None not in row and len(row) == k]
    passed = [pass_at_k(k, sum(score >= RIGHT for score in row), k) for row in whole]
    return Summary(
        samples[0].suite, len(table), k, avg_at_k(table), float(np.mean(passed)) if passed else None,
        float(np.mean([s.truncated for s in samples])), float(np.mean([s.malformed for s in samples])),
        sum(s.score is None for s in samples),
    )

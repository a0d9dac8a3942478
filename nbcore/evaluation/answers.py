"""Two policies' answers to the same prompts, judged: scores by item, and who wins how often. Paper section 4 (win rates).

Answers come as groups of rollouts, one group for each prompt. A win rate compares every answer of one policy with every answer
of the other to the same prompt, counts a tie as half, and takes its interval over prompts.
Left out on purpose: Elo and other models of many players; two policies at a time are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nbcore.chat.toolcalls import parse
from nbcore.evaluation.statistics import Interval, mean_interval
from nbcore.rewards.rollouts import Rollout

Score = Callable[[str, Any, bool], float]  # answer without its thought, item, whether it ended


def judged(groups: Sequence[Sequence[Rollout]], score: Score) -> list[list[float]]:
    """The score of every answer, as [prompt][sample]."""
    return [[float(score(parse(r.text).content, r.item, r.ended)) for r in group] for group in groups]


def win_rate(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]], seed: int = 0) -> Interval:
    """How often ours beat theirs on the same prompts, ties half, with a 95 % interval over prompts.

    Raises ValueError when the prompts are not as many on both sides.
    """
    if len(ours) != len(theirs):
        raise ValueError(f"A win rate needs the same prompts on both sides; given: {len(ours)} and {len(theirs)}.")
    shares = [[(a > b) + 0.5 * (a == b) for a in one for b in other] for one, other in zip(ours, theirs, strict=True)]
    return mean_interval(shares, seed=seed)

"""From rewards to advantages: one number per completion, or one per token when turns are rewarded too.

GRPO (DeepSeekMath, 2402.03300) compares the completions of one prompt with one another. `mean` subtracts the group's mean;
`zscore` also divides by its deviation, which gives easy and hard prompts (little spread) the weight of the others: a bias
towards them that the recipes avoid (paper section 3 [C]); `leave-one-out` subtracts the mean of the *other* completions, which
is `mean` times G/(G-1) and unbiased. Everything is float64. A missing reward (None) is no zero: its completion leaves the
group's statistics and gets no advantage.
Left out on purpose: statistics over a whole batch, and value networks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["mean", "zscore", "leave-one-out"]
FLOOR = 1e-4  # least deviation that zscore divides by; in units of the reward


@dataclass(frozen=True)
class Group:
    """Advantages of one prompt's completions (None where the reward is missing), mean and deviation, and whether they differ."""

    advantages: list[float | None]
    mean: float | None
    deviation: float | None
    signal: bool


def group_advantages(rewards: Sequence[float | None], kind: Kind = "mean") -> Group:
    """Advantages of one group. Equal rewards give exactly zero, as does a reward without a companion.

    The deviation is that of a sample (n - 1). Raises ValueError for an unknown kind and for rewards that are not finite.
    """
    if kind not in ("mean", "zscore", "leave-one-out"):
        raise ValueError(f"advantage is {kind!r}; allowed are 'mean', 'zscore' and 'leave-one-out'.")
    present = [float(r) for r in rewards if r is not None]
    if not all(map(math.isfinite, present)):
        raise ValueError(f"Rewards must be finite numbers or None (missing); given: {list(rewards)}.")
    if not present:
        return Group([None] * len(rewards), None, None, False)
    n = len(present)
    mean = math.fsum(present) / n
    deviation = math.sqrt(math.fsum((r - mean) ** 2 for r in present) / (n - 1)) if n > 1 else 0.0
    if max(present) == min(present):  # decided on the rewards themselves: rounding of the mean must not make a signal
        return Group([None if r is None else 0.0 for r in rewards], mean, 0.0, False)
    scale = {"mean": 1.0, "zscore": 1.0 / max(deviation, FLOOR), "leave-one-out": n / (n - 1)}[kind]
    return Group([None if r is None else (float(r) - mean) * scale for r in rewards], mean, deviation, True)


def turn_advantages(turns: Sequence[Sequence[float] | None]) -> list[list[float] | None]:
    """Return-to-go of each turn minus a baseline, for the trajectories of one group (paper section 6 [C]).

    turns: per trajectory the rewards of its turns, or None when they are missing. The baseline of turn t is the mean
    return-to-go at t of the *other* trajectories, and one that has stopped by then counts with 0, since nothing more comes.
    So the number of terms is fixed by the group and never by when this trajectory stopped: stopping early or late is
    neither rewarded nor punished by itself, and the estimate stays unbiased. A trajectory without companions gets 0.
    """
    returns = [None if rewards is None else _to_go(rewards) for rewards in turns]
    credit: list[list[float] | None] = []
    for i, own in enumerate(returns):
        if own is None:
            credit.append(None)
            continue
        others = [other for j, other in enumerate(returns) if j != i and other is not None]
        at = [math.fsum(o[t] for o in others if t < len(o)) / len(others) if others else own[t] for t in range(len(own))]
        credit.append([g - base for g, base in zip(own, at, strict=True)])
    return credit


def per_token(mask: Sequence[int], outcome: float, turns: Sequence[float] | None = None, weight: float = 0.0) -> list[float]:
    """Advantage of each token: outcome + weight × the credit of the turn it belongs to; 0.0 where the mask is 0.

    A turn is a run of ones in the mask (the policy's own tokens between two tool results). weight 0 is plain GRPO exactly.
    Raises ValueError when `turns` does not have one value for each run.
    """
    number, inside, spread = -1, False, []
    for bit in mask:
        number += bool(bit) and not inside
        inside = bool(bit)
        spread.append(number if inside else None)
    if turns is None or weight == 0.0:
        return [0.0 if turn is None else outcome for turn in spread]
    if len(turns) != number + 1:
        raise ValueError(f"{len(turns)} turn rewards were given for {number + 1} turns of the policy. Give one for each.")
    return [0.0 if turn is None else outcome + weight * turns[turn] for turn in spread]


def _to_go(rewards: Sequence[float]) -> list[float]:
    total, back = 0.0, []
    for reward in reversed(rewards):
        total += reward
        back.append(total)
    return back[::-1]

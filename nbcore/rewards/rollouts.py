"""What a reward sees: one completion of one prompt, with the item it answers.

The same record serves a single answer and an agent's episode (paper section 6), where `mask` is 0 on what tools wrote.
A reward is a function of a list of rollouts that gives a list of numbers of the same length, None where it could not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Rollout:
    """One completion: the item asked about, prompt and completion tokens (end of turn included), text without it, whether it ended.

    mask: 1 on tokens the policy wrote; logprobs: the sampler's, one per token (0.0 where the mask is 0); both as long as `ids`.
    """

    item: Any
    prompt_ids: list[int]
    ids: list[int]
    text: str
    ended: bool
    mask: list[int]
    logprobs: list[float]


Reward = Callable[[Sequence[Rollout]], Sequence[float | None]]

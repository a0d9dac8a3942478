"""Which prompts are worth a stage's time: those that the current model sometimes solves. Paper sections 3 and 5.

A prompt that always or never succeeds gives a group without signal. The recipe keeps prompts with 1 to 5 successes of 8 [S],
counted anew with the model that the stage starts from, because what was hard for the last stage may be easy now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nbcore.chat.checks import PreflightError
from nbcore.rewards.rollouts import Prompt, Rollout
from nbcore.training.grpo import Play


@dataclass(frozen=True)
class Filtered:
    """The prompts kept; successes of each prompt asked (None where a judge failed); and how many prompts had how many."""

    prompts: list[Prompt]
    successes: list[int | None]
    counts: dict[int | None, int]


def keep_between(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Prompt],
    succeeds: Callable[[Sequence[Rollout]], Sequence[bool | None]],
    play: Play,
    low: int = 1,
    high: int = 5,
    samples: int = 8,
    least: int = 8,
    seed: int = 0,
) -> Filtered:
    """Ask each prompt `samples` times and keep those with low … high successes. A judge that failed once drops the prompt.

    Raises PreflightError when fewer than `least` remain, with the counts: the stage would have nothing to learn from.
    """
    if not 0 <= low <= high <= samples:
        raise ValueError(f"keep_between needs 0 <= low <= high <= samples; given: {low}, {high}, {samples}.")
    asked = [p for p in prompts for _ in range(samples)]
    verdicts = list(succeeds(play(model, tokenizer, asked, seed)))
    if len(verdicts) != len(asked):
        raise ValueError(f"`succeeds` gave {len(verdicts)} verdicts for {len(asked)} rollouts. It gives one for each.")
    successes: list[int | None] = []
    for i in range(0, len(asked), samples):
        some = verdicts[i : i + samples]
        successes.append(None if None in some else sum(bool(v) for v in some))
    counts = dict(sorted(Counter(successes).items(), key=lambda pair: (pair[0] is None, pair[0] or 0)))
    kept = [p for p, n in zip(prompts, successes, strict=True) if n is not None and low <= n <= high]
    if len(kept) < least:
        raise PreflightError(
            f"{len(kept)} of {len(prompts)} prompts have {low} to {high} successes of {samples}; the stage needs {least}. Successes and "
            f"how many prompts had them: {counts}. Ask more prompts, or others: easier if most have 0, harder if most have {samples}."
        )
    return Filtered(kept, successes, counts)

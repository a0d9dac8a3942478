"""What a reward sees: one completion of one prompt, with the item it answers; and how answers of one turn are sampled.

The same record serves a single answer and an agent's episode (paper section 6), where `mask` is 0 on what tools wrote.
A reward is a function of a list of rollouts that gives a list of numbers of the same length, None where it could not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nbcore.chat.masks import encode_prompt
from nbcore.models.generate import generate


@dataclass(frozen=True)
class Prompt:
    """One thing to be asked: the item for the rewards, and its token ids with the generation prompt."""

    item: Any
    ids: list[int]


@dataclass(frozen=True)
class Rollout:
    """One completion: the item asked about, prompt and completion tokens (end of turn included), text without it, whether it ended.

    mask: 1 on tokens the policy wrote; logprobs: the sampler's, one per token (0.0 where the mask is 0); both as long as `ids`.
    episode: the agent's episode that it comes from, with its turns; None for a single answer.
    """

    item: Any
    prompt_ids: list[int]
    ids: list[int]
    text: str
    ended: bool
    mask: list[int]
    logprobs: list[float]
    episode: Any = None


Reward = Callable[[Sequence[Rollout]], Sequence[float | None]]


def prompt_of(tokenizer: Any, item: Any) -> Prompt:
    """The prompt of an item that is one user turn (its `text`)."""
    return Prompt(item, encode_prompt(tokenizer, [{"role": "user", "content": item.text}]))


def answers(
    model: Any, tokenizer: Any, prompts: Sequence[Prompt], new_tokens: int, temperature: float = 1.0, seed: int = 0
) -> list[Rollout]:
    """One answer to each prompt, sampled without top-p: rare answers occur, and the log-probabilities are those sampled from."""
    said = generate(model, tokenizer, [p.ids for p in prompts], new_tokens, temperature, top_p=1.0, seed=seed)
    return [Rollout(p.item, p.ids, c.ids, c.text, c.ended, [1] * len(c.ids), c.logprobs) for p, c in zip(prompts, said, strict=True)]

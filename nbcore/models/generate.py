"""Sample completions from a transformers model, tokens in and tokens out, in batches of similar length.

Paper section 7 samples at temperature 0.6 and top-p 0.95. Text is decoded for people and parsers only: what is fed back to
a model is always the sampled tokens. Left out on purpose: vLLM and remote servers, which come with the GPU recipes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Completion:
    """What the model wrote: token ids (the end-of-turn token included), their text without it, and whether it ended itself."""

    ids: list[int]
    text: str
    ended: bool


def generate(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int,
    temperature: float = 0.6,
    top_p: float = 0.95,
    seed: int = 0,
    batch_size: int = 256,
) -> list[Completion]:
    """One completion for each prompt (token ids), in order. temperature 0 is greedy. The same seed gives the same samples.

    Raises ValueError when a prompt with its completion does not fit the model's positions.
    """
    import torch

    longest = max((len(p) for p in prompts), default=0) + max_new_tokens
    room = model.config.max_position_embeddings
    if longest > room:
        raise ValueError(f"A prompt plus {max_new_tokens} new tokens takes {longest} positions; the model has {room}.")
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    done: dict[int, Completion] = {}
    choose: dict[str, Any] = {"do_sample": False}
    if temperature > 0:
        choose = {"do_sample": True, "temperature": temperature, "top_p": top_p, "top_k": 0}
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        for start in range(0, len(order), batch_size):
            picked = order[start : start + batch_size]
            width = max(len(prompts[i]) for i in picked)
            ids = torch.full((len(picked), width), tokenizer.pad_token_id)
            seen = torch.zeros_like(ids)
            for row, i in enumerate(picked):
                ids[row, width - len(prompts[i]) :] = torch.tensor(list(prompts[i]))
                seen[row, width - len(prompts[i]) :] = 1
            out = model.generate(
                input_ids=ids.to(model.device), attention_mask=seen.to(model.device), max_new_tokens=max_new_tokens,
                eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, **choose,
            )
            for row, i in enumerate(picked):
                done[i] = _cut(tokenizer, out[row, width:].tolist())
    return [done[i] for i in range(len(prompts))]


def _cut(tokenizer: Any, ids: list[int]) -> Completion:
    ended = tokenizer.eos_token_id in ids
    kept = ids[: ids.index(tokenizer.eos_token_id) + 1] if ended else ids
    return Completion(kept, tokenizer.decode(kept[:-1] if ended else kept), ended)

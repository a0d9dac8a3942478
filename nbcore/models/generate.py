"""Sample completions from a transformers model, tokens in and tokens out, in batches of similar length.

Paper section 7 samples at temperature 0.6 and top-p 0.95. Text is decoded for people and parsers only: what is fed back to
a model is always the sampled tokens. A prompt asked several times is read once, and rows that have ended leave the batch.
Left out on purpose: vLLM and remote servers, which come with the GPU recipes; beams and penalties.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import nbcore.models.fused as fused


@dataclass(frozen=True)
class Completion:
    """What the model wrote: token ids (the end-of-turn token included), their text without it, whether it ended itself.

    logprobs: of each token under the model at the sampling temperature, before top-p (greedy: at temperature 1).
    """

    ids: list[int]
    text: str
    ended: bool
    logprobs: list[float]


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

    Raises ValueError when a prompt is empty, or does not fit the model's positions together with its completion.
    """
    import torch

    if not all(prompts):
        raise ValueError("A prompt has no tokens. Give at least one, for instance what encode_prompt makes of a conversation.")
    longest = max((len(p) for p in prompts), default=0) + max_new_tokens
    room = model.config.max_position_embeddings
    if longest > room:
        raise ValueError(f"A prompt plus {max_new_tokens} new tokens takes {longest} positions; the model has {room}.")
    order = sorted(range(len(prompts)), key=lambda i: (len(prompts[i]), list(prompts[i])))
    dice = torch.Generator(model.device).manual_seed(seed)
    done: dict[int, Completion] = {}
    with torch.inference_mode():
        for start in range(0, len(order), batch_size):
            picked = order[start : start + batch_size]
            written, chances = _batch(model, [list(prompts[i]) for i in picked], max_new_tokens, tokenizer, temperature, top_p, dice)
            for i, ids, logprobs in zip(picked, written, chances, strict=True):
                done[i] = _cut(tokenizer, ids, logprobs)
    return [done[i] for i in range(len(prompts))]


def _batch(
    model: Any, prompts: list[list[int]], new: int, tokenizer: Any, temperature: float, top_p: float, dice: Any
) -> tuple[list[list[int]], list[list[float]]]:
    """Sampled ids and their log-probabilities, each `new` long (padded behind the end)."""
    import torch

    once = [i for i, prompt in enumerate(prompts) if i == 0 or prompt != prompts[i - 1]]  # sorted: equal prompts are neighbours
    width = max(map(len, prompts))
    ids = torch.full((len(once), width), tokenizer.pad_token_id)
    seen = torch.zeros_like(ids)
    for row, i in enumerate(once):
        ids[row, width - len(prompts[i]) :] = torch.tensor(prompts[i])
        seen[row, width - len(prompts[i]) :] = 1
    ids, seen = ids.to(model.device), seen.to(model.device)
    reader = fused.FusedLlama(model, width + new) if fused.supports(model) else _Reader(model)
    logits = reader.start(ids, seen)
    if len(once) < len(prompts):
        again = torch.tensor([bisect_right(once, i) - 1 for i in range(len(prompts))], device=model.device)
        reader.keep(again)
        logits = logits[again]
    out = torch.full((len(prompts), new), tokenizer.pad_token_id, device=model.device)
    chances = torch.zeros(out.shape, device=model.device)
    alive = torch.arange(len(prompts), device=model.device)  # which row of `out` each row of the batch writes to
    going = torch.ones_like(alive, dtype=torch.bool)
    for at in range(new):
        picked, logprobs = _choose(logits.float(), temperature, top_p, dice)
        picked = torch.where(going, picked, tokenizer.pad_token_id)
        out[alive, at] = picked
        chances[alive, at] = torch.where(going, logprobs, 0.0)
        going = going & (picked != tokenizer.eos_token_id)
        left = int(going.sum())
        if left == 0 or at == new - 1:
            break
        if left <= len(alive) // 2:
            rows = going.nonzero()[:, 0]
            reader.keep(rows)
            alive, going, picked = alive[rows], going[rows], picked[rows]
        logits = reader.step(picked)
    return out.tolist(), chances.tolist()


def _choose(logits: Any, temperature: float, top_p: float, dice: Any) -> tuple[Any, Any]:
    import torch

    logprobs = (logits / temperature if temperature > 0 else logits).log_softmax(-1)
    if temperature == 0:
        picked = logprobs.argmax(-1, keepdim=True)
        return picked[:, 0], logprobs.gather(-1, picked)[:, 0]
    chances = logprobs.exp()
    if top_p < 1:
        ranked, where = chances.sort(-1, descending=True)
        ranked[ranked.cumsum(-1) - ranked > top_p] = 0.0  # the smallest set that reaches top_p; the likeliest token always stays
        chances = torch.zeros_like(chances).scatter(-1, where, ranked)
    # One uniform number a row against the running sum: torch.multinomial draws one for every token of the vocabulary.
    heap = chances.cumsum(-1)
    dart = torch.rand(len(heap), 1, generator=dice, device=heap.device) * heap[:, -1:]
    picked = torch.searchsorted(heap, dart, right=True).clamp(max=heap.shape[-1] - 1)
    return picked[:, 0], logprobs.gather(-1, picked)[:, 0]


class _Reader:
    """The same three steps as `FusedLlama`, by any transformers model with its own cache."""

    def __init__(self, model: Any):
        self.model = model

    def start(self, ids: Any, seen: Any) -> Any:
        self.seen, self.cache = seen, None
        return self._pass(ids, (seen.cumsum(-1) - 1).clamp(min=0))

    def step(self, ids: Any) -> Any:
        import torch

        self.seen = torch.cat([self.seen, self.seen.new_ones(len(ids), 1)], -1)
        return self._pass(ids[:, None], self.seen.sum(-1, keepdim=True) - 1)

    def keep(self, rows: Any) -> None:
        self.seen = self.seen[rows]
        self.cache.batch_select_indices(rows)

    def _pass(self, ids: Any, positions: Any) -> Any:
        out = self.model(
            input_ids=ids, attention_mask=self.seen, position_ids=positions, past_key_values=self.cache, use_cache=True, logits_to_keep=1
        )
        self.cache = out.past_key_values
        return out.logits[:, -1]


def _cut(tokenizer: Any, ids: list[int], logprobs: list[float]) -> Completion:
    ended = tokenizer.eos_token_id in ids
    kept = ids[: ids.index(tokenizer.eos_token_id) + 1] if ended else ids
    return Completion(kept, tokenizer.decode(kept[:-1] if ended else kept), ended, logprobs[: len(kept)])

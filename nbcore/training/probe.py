"""Before a stage of reinforcement: is there a signal, how many completions does a step take, and which learning rate?

An estimate of the policy gradient can be dominated by noise along a few directions of high curvature; a step along it then
lowers the reward in *either* direction, and hours of training would show nothing else. The probe finds that out in seconds.
It draws a few batches of the size of a step, and measures (1) the noise scale, the number of completions at which noise
and signal are equal (McCandlish et al., 1812.06162, with |G|² from products of independent batches, hence unbiased), and
(2) what the first optimizer steps along these gradients, and the same steps backwards, do to the reward of fresh answers.
Left out on purpose: choosing by itself. It shows; the recipe decides.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nbcore.evaluation.statistics import Difference, paired_difference
from nbcore.models.load import Loaded
from nbcore.rewards.compose import Component, score
from nbcore.rewards.rollouts import Prompt, Rollout
from nbcore.training.advantages import group_advantages
from nbcore.training.grpo import Options, Play


@dataclass(frozen=True)
class Tried:
    """One learning rate: change of the mean reward after the first steps forwards, and after the same steps backwards."""

    learning_rate: float
    forwards: Difference
    backwards: Difference


@dataclass(frozen=True)
class Probe:
    """noise_scale: completions at which noise equals signal (None: no signal found). cosine: mean over pairs of batches.

    completions: of one batch; batches: how many were drawn; reward: mean of the unchanged model on the fresh prompts.
    """

    noise_scale: float | None
    cosine: float
    completions: int
    batches: int
    reward: float | None
    tried: list[Tried]

    @property
    def works(self) -> list[float]:
        """Learning rates whose steps forwards raise the reward, the whole interval above zero."""
        return [t.learning_rate for t in self.tried if t.forwards.low is not None and t.forwards.low > 0]


def probe(
    loaded: Loaded,
    prompts: Sequence[Prompt],
    rewards: Sequence[Component],
    play: Play,
    options: Options,
    learning_rates: Sequence[float],
    batches: int = 6,
    fresh: int = 32,
    samples: int = 4,
) -> Probe:
    """Probe a stage: `batches` of options.prompts × options.group completions, then `fresh` other prompts × `samples` a try.

    The model is left as it was. Raises ValueError when there are too few prompts.
    """
    import torch

    needed = batches * options.prompts + fresh
    if len(prompts) < needed or batches < 2:
        raise ValueError(f"The probe needs 2 batches or more and {needed} prompts; given: {batches} batches, {len(prompts)} prompts.")
    model, gradients = loaded.model, []
    for b in range(batches):
        asked = [p for p in prompts[b * options.prompts : (b + 1) * options.prompts] for _ in range(options.group)]
        rollouts = play(model, loaded.tokenizer, asked, options.seed * 7919 + b)
        totals = score(rollouts, rewards).total
        groups = [group_advantages(totals[i : i + options.group], options.advantage) for i in range(0, len(totals), options.group)]
        flat = [a for group in groups for a in group.advantages]
        gradients.append(gradient(model, rollouts, flat))
    products = torch.stack(gradients).double()
    products = products @ products.T
    off = ~torch.eye(batches, dtype=torch.bool)
    signal, whole = float(products[off].mean()), float(products.diagonal().mean())
    norms = products.diagonal().sqrt()
    cosine = float((products / (norms[:, None] * norms).clamp(min=1e-300))[off].mean())
    completions = options.prompts * options.group
    direction, last = _first_steps(model, gradients), prompts[batches * options.prompts : needed]

    def answers(step: float) -> list[list[float | None]]:
        moved = model if step == 0 else _moved(model, direction, step)
        asked = [p for p in last for _ in range(samples)]
        totals = score(play(moved, loaded.tokenizer, asked, options.seed * 7919 + 104_729), rewards).total
        return [totals[i : i + samples] for i in range(0, len(totals), samples)]

    before = answers(0.0)
    tried = [Tried(r, paired_difference(before, answers(r)), paired_difference(before, answers(-r))) for r in learning_rates]
    present = [v for row in before for v in row if v is not None]
    scale = completions * (whole - signal) / signal if signal > 0 else None
    return Probe(scale, cosine, completions, batches, sum(present) / len(present) if present else None, tried)


def gradient(model: Any, rollouts: Sequence[Rollout], advantages: Sequence[float | None]) -> Any:
    """The policy gradient of one batch as one flat vector: of -Σ A · log p over the tokens that count, divided by their number.

    Truncated and missing rollouts are out, as in training. Sampled at temperature 1.
    """
    import torch

    used = [(r, a) for r, a in zip(rollouts, advantages, strict=True) if a is not None and r.ended]
    weights = [p for p in model.parameters() if p.requires_grad]
    if not used:
        return torch.zeros(sum(p.numel() for p in weights))
    longest = max(len(r.prompt_ids) + len(r.ids) for r, _ in used)
    ids = torch.zeros(len(used), longest, dtype=torch.long)
    seen, weight = torch.zeros_like(ids), torch.zeros(len(used), longest)
    for row, (r, a) in enumerate(used):
        whole = [*r.prompt_ids, *r.ids]
        ids[row, : len(whole)], seen[row, : len(whole)] = torch.tensor(whole), 1
        weight[row, len(r.prompt_ids) : len(whole)] = a * torch.tensor(r.mask, dtype=torch.float)
    ids, seen, weight = (t.to(model.device) for t in (ids, seen, weight))
    logits = model(input_ids=ids, attention_mask=seen, use_cache=False).logits[:, :-1]
    logprobs = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
    loss = -(weight[:, 1:] * logprobs).sum() / sum(sum(r.mask) for r, _ in used)
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, weights)])


def _first_steps(model: Any, gradients: Sequence[Any]) -> Any:
    """Where AdamW's first steps go with these gradients, for a learning rate of 1 (they are proportional to it)."""
    import torch

    point = torch.zeros_like(gradients[0], requires_grad=True)
    stepper = torch.optim.AdamW([point], lr=1.0, betas=(0.9, 0.99), weight_decay=0.0)
    for g in gradients:
        point.grad = g / max(1.0, float(g.norm()))  # clipped at 1, as the recipes do
        stepper.step()
    return point.detach()


def _moved(model: Any, direction: Any, step: float) -> Any:
    import torch

    other = copy.deepcopy(model)
    at = 0
    with torch.no_grad():
        for p in other.parameters():
            if p.requires_grad:
                p += step * direction[at : at + p.numel()].view_as(p)
                at += p.numel()
    return other

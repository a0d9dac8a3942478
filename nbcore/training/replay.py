"""Replay: while one ability is reinforced, rows of the others hold the policy where it was. Our choice [C]; no report tells what was done.

The KL term of policy optimisation is taken on the stage's own prompts, and says nothing about others: a small model that is paid for
programs forgets how to search. Here every step also sees rows that it is not paid for, and pays for leaving the start on them, with the
KL divergence of the policy from the start over the assistant's tokens, whole distributions and not samples. InstructGPT mixed pretraining
gradients into its policy updates for the same reason (arXiv 2203.02155, section 3.5).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nbcore.data.mixture import Row


@dataclass(frozen=True)
class Replay:
    """rows: what may be seen, `batch` of them a step, in an order known beforehand. weight: of the divergence, in the loss."""

    rows: Sequence[Row]
    weight: float = 1.0
    batch: int = 8
    seed: int = 0

    def picked(self, step: int) -> list[Row]:
        """The rows of a step; each epoch is a new shuffle, so that a resumed run sees the same ones. Raises ValueError without rows."""
        if not self.rows:
            raise ValueError("A replay needs rows: give it some of what the model has learned before, or leave it out.")
        found = []
        for at in range(step * self.batch, (step + 1) * self.batch):
            epoch, position = divmod(at, len(self.rows))
            found.append(self.rows[random.Random(f"replay {self.seed} {epoch}").sample(range(len(self.rows)), len(self.rows))[position]])
        return found

    def divergence(self, model: Any, start: Any, step: int, pad: int) -> Any:
        """KL(start ‖ policy) in nats per assistant token of this step's rows, with its gradient."""
        import torch

        rows = self.picked(step)
        width = max(len(row.input_ids) for row in rows)
        device = next(model.parameters()).device
        ids, seen, taught = (
            torch.tensor([[*values(row), *[fill] * (width - len(row.input_ids))] for row in rows], device=device)
            for values, fill in (
                (lambda row: row.input_ids, pad), (lambda row: [1] * len(row.input_ids), 0), (lambda row: row.assistant_mask, 0),
            )
        )  # fmt: skip
        counted = taught[:, 1:].bool()  # logits at a position are about the next token
        now = model(input_ids=ids, attention_mask=seen).logits[:, :-1][counted].float().log_softmax(-1)
        with torch.no_grad():
            then = start(input_ids=ids, attention_mask=seen).logits[:, :-1][counted].float().log_softmax(-1)
        return (then.exp() * (then - now)).sum(-1).mean()

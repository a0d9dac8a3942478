"""A deeper copy of a model that computes the same until it is trained: block expansion (LLaMA Pro, 2401.02415, section 3.1).

A reward model need not be as small as the policy it pays. To compare two answers takes more steps in a row than to write one: look
up what was asked, check each answer against it, set one against the other. The three layers of the nano model are used up by then.
Left out on purpose: blocks between the layers (they go on top), freezing the old ones, models that are not built like Llama.
"""

from __future__ import annotations

import copy
from typing import Any


def expanded(model: Any, blocks: int) -> Any:
    """A copy with `blocks` more on top, each a copy of the last one whose two output projections are zero. 0 copies and no more.

    Raises ValueError for a negative number, and for a model without `model.layers` that end in `o_proj` and `down_proj`.
    """
    import torch

    if blocks < 0:
        raise ValueError(f"A model can be expanded by 0 or more blocks, not by {blocks}.")
    larger = copy.deepcopy(model)
    if not blocks:
        return larger
    layers = getattr(getattr(larger, "model", None), "layers", None)
    last = layers[-1] if layers else None
    if not (hasattr(getattr(last, "self_attn", None), "o_proj") and hasattr(getattr(last, "mlp", None), "down_proj")):
        raise ValueError(f"{type(model).__name__} can't be expanded: its layers are not built like Llama's. Expand by 0 blocks.")
    config = larger.config
    for _ in range(blocks):
        block = copy.deepcopy(last)
        block.self_attn.layer_idx = config.num_hidden_layers
        for projection in (block.self_attn.o_proj, block.mlp.down_proj):
            torch.nn.init.zeros_(projection.weight)
        layers.append(block)
        config.num_hidden_layers += 1
        if kinds := getattr(config, "layer_types", None):
            config.layer_types = [*kinds, kinds[-1]]
    return larger

"""The forward pass of a Llama for sampling on a CPU: few, large operations and a cache that is allocated once.

At a million parameters four fifths of the sampling time is overhead per operation, not arithmetic. So the projections of
queries, keys and values are one product, those of gate and up another, and keys and values are written in place. The
numbers are those of transformers' LlamaForCausalLM up to rounding (a test compares them).
Left out on purpose: training, other architectures, biases, adapters; `sampling` uses transformers' own pass for those.
"""

from __future__ import annotations

from typing import Any

BLOCKED = -1e9  # added to attention scores of what may not be seen; finite, so that no row is all -inf


def supports(model: Any) -> bool:
    """A plain LlamaForCausalLM on a CPU, without biases and adapters."""
    import torch
    from transformers import LlamaForCausalLM

    if type(model) is not LlamaForCausalLM or model.device.type != "cpu":
        return False
    config, layer = model.config, model.model.layers[0]
    linear = (layer.self_attn.q_proj, layer.self_attn.v_proj, layer.mlp.gate_proj, layer.mlp.down_proj)
    return config.hidden_act == "silu" and all(type(module) is torch.nn.Linear and module.bias is None for module in linear)


class FusedLlama:
    """Weights laid out for sampling, with the cache of one batch. Read anew from `model` at construction: never stale."""

    def __init__(self, model: Any, room: int):
        """room: positions of the longest row, prompt and completion together."""

        self.model, self.config, self.room = model, model.config, room
        self.heads, self.shared = model.config.num_attention_heads, model.config.num_key_value_heads
        self.size = model.model.layers[0].self_attn.head_dim
        self.layers = [_laid_out(layer) for layer in model.model.layers]
        self.cache: Any = None  # layers x (key, value) x batch x heads x room x size
        self.blocked: Any = None  # batch x 1 x 1 x room
        self.cosine: Any = None  # batch x room x 1 x size
        self.at = 0

    def start(self, ids: Any, seen: Any) -> Any:
        """Read left-padded prompts (batch x width; `seen` is 0 on the padding); logits of the next token, batch x vocabulary."""
        import torch

        rows, width = ids.shape
        shape = (len(self.layers), 2, rows, self.shared, self.room, self.size)
        self.cache = torch.empty(shape, dtype=self.layers[0]["qkv"].dtype)
        self.blocked = torch.zeros(rows, 1, 1, self.room)
        self.blocked[:, 0, 0, :width] = (1 - seen) * BLOCKED
        first = width - seen.sum(-1, keepdim=True)
        positions = (torch.arange(self.room) - first).clamp(min=0)
        cosine, sine = self.model.model.rotary_emb(self.cache, positions)
        # The sine carries the sign of the rotation's swapped half, which saves a negation and a concatenation at every step.
        self.cosine, half = cosine[:, :, None], self.size // 2
        self.sine = torch.cat([-sine[..., :half], sine[..., half:]], -1)[:, :, None]
        causal = torch.full((width, width), BLOCKED).triu(1)
        # Padding sees itself, so that no softmax runs over nothing; real tokens never see the padding.
        mask = (self.blocked[..., :width] + causal).masked_fill(torch.eye(width, dtype=torch.bool), 0.0)
        return self._pass(ids, mask)

    def step(self, ids: Any) -> Any:
        """Read one more token of each row (batch); logits of the next."""
        return self._pass(ids[:, None], self.blocked[..., : self.at + 1])

    def keep(self, rows: Any) -> None:
        """Go on with these rows only (indices, may repeat: one prompt read once serves its whole group)."""
        self.cache = self.cache.index_select(2, rows)  # contiguous, where plain indexing would leave attention a strided cache
        self.blocked, self.cosine, self.sine = (kept.index_select(0, rows) for kept in (self.blocked, self.cosine, self.sine))

    def _pass(self, ids: Any, mask: Any) -> Any:
        from torch.nn.functional import embedding, rms_norm, scaled_dot_product_attention, silu

        rows, width = ids.shape
        wide, start, end = (self.config.hidden_size,), self.at, self.at + width
        cosine, sine, half, epsilon = self.cosine[:, start:end], self.sine[:, start:end], self.size // 2, self.config.rms_norm_eps
        x = embedding(ids, self.model.model.embed_tokens.weight)
        for layer, (keys, values) in zip(self.layers, self.cache, strict=True):
            qkv = (rms_norm(x, wide, layer["before"], epsilon) @ layer["qkv"]).view(rows, width, self.heads + 2 * self.shared, self.size)
            turned = qkv[:, :, : self.heads + self.shared]
            turned = turned * cosine + turned.roll(half, -1) * sine
            keys[:, :, start:end] = turned[:, :, self.heads :].transpose(1, 2)
            values[:, :, start:end] = qkv[:, :, self.heads + self.shared :].transpose(1, 2)
            mixed = scaled_dot_product_attention(
                turned[:, :, : self.heads].transpose(1, 2), keys[:, :, :end], values[:, :, :end], mask, enable_gqa=self.heads != self.shared
            )
            x = x + mixed.transpose(1, 2).reshape(rows, width, -1) @ layer["out"]
            gate, up = (rms_norm(x, wide, layer["after"], epsilon) @ layer["gate_up"]).chunk(2, -1)
            x = x + (silu(gate) * up) @ layer["down"]
        self.at = end
        return self.model.lm_head(rms_norm(x[:, -1], wide, self.model.model.norm.weight, epsilon))


def _laid_out(layer: Any) -> dict[str, Any]:
    """The weights of one layer, transposed and side by side."""
    import torch

    attention, mlp = layer.self_attn, layer.mlp
    return {
        "before": layer.input_layernorm.weight, "after": layer.post_attention_layernorm.weight,
        "qkv": torch.cat([attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight]).t().contiguous(),
        "gate_up": torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight]).t().contiguous(),
        "out": attention.o_proj.weight.t(), "down": mlp.down_proj.weight.t(),
    }

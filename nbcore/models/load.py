"""One way to get a model with its tokenizer, whatever its size: the nano base, a folder, or a name on a hub.

Everything after this line of a notebook is the same for 1.5 million parameters and for 3 billion (paper section 8: a
LlamaForCausalLM with ChatML tags). Left out on purpose: quantisation and adapters, which come with the GPU recipes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

NANO = Path(__file__).parents[1] / "nano" / "base"


@dataclass(frozen=True)
class Loaded:
    """A causal language model, its tokenizer with the chat template, and where both came from."""

    model: Any
    tokenizer: Any
    source: str

    @property
    def parameters(self) -> int:
        return self.model.num_parameters()


def load(name: str | Path) -> Loaded:
    """Load "nano", a folder, or a hub name, in float32, ready to sample (eval mode).

    A tokenizer without a chat template gets Nanbeige4.1's; one without a padding token pads with another of its special tokens.
    Raises FileNotFoundError for a path that is not a model folder, ValueError when no special token could be the padding.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from nbcore.chat import template

    path = NANO if str(name) == "nano" else Path(name)
    looks_local = isinstance(name, Path) or str(name) == "nano" or str(name).startswith((".", "/", "~")) or path.exists()
    if looks_local and not (path / "config.json").is_file():
        hint = "Build it: `python -m nbcore.nano.pretrain`." if str(name) == "nano" else "Give a folder made by save(), or a hub name."
        raise FileNotFoundError(f"There is no model at {path}: config.json is missing. {hint}")
    where = str(path) if looks_local else str(name)
    tokenizer = AutoTokenizer.from_pretrained(where)
    if tokenizer.chat_template is None:
        template.attach(tokenizer)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = _padding(tokenizer, where)
    model = AutoModelForCausalLM.from_pretrained(where, dtype=torch.float32)
    return Loaded(model.eval(), tokenizer, str(name))


def _padding(tokenizer: Any, where: str) -> str:
    """A special token that ends no turn: padding that does would be masked together with the end that the model has to learn."""
    from nbcore.chat.template import END_OF_TURN

    first = [token for token in (tokenizer.unk_token, tokenizer.bos_token) if token]
    found = [token for token in (*first, *tokenizer.all_special_tokens) if token not in (tokenizer.eos_token, END_OF_TURN)]
    if not found:
        raise ValueError(
            f"The tokenizer of {where} has no padding token, and its only special token is its end {tokenizer.eos_token!r}. "
            "Add one to the tokenizer and a row to the embeddings (tokenizer.add_special_tokens, model.resize_token_embeddings)."
        )
    return found[0]


def save(loaded: Loaded, folder: str | Path) -> Path:
    """Write model and tokenizer to `folder`. Raises PreflightError when a weight is not finite: such a model is not worth keeping."""
    from nbcore.chat.checks import require_finite_weights

    require_finite_weights(loaded.model.state_dict())
    loaded.model.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    return Path(folder)

"""Show a tokenised conversation with its loss mask in colour: what the model is taught against what it only reads."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

STYLE = "white-space:pre-wrap;font-family:monospace;font-size:12px;line-height:1.6;border:1px solid #8886;padding:8px"
LEARNED = "background:#2a9d8f55;border-bottom:2px solid #2a9d8f"


def coloured(tokenizer: Any, input_ids: Sequence[int], mask: Sequence[int]) -> str:
    """HTML of a row: supervised tokens underlined and shaded, the others plain. Token borders are thin lines."""
    if len(input_ids) != len(mask):
        raise ValueError(f"{len(input_ids)} tokens and {len(mask)} mask entries: give both of the same row.")
    parts = []
    for token, learned in zip(input_ids, mask, strict=True):
        text = html.escape(tokenizer.decode([token])).replace("\n", "↵\n")
        parts.append(f'<span style="border-right:1px solid #8884;{LEARNED if learned else ""}">{text}</span>')
    return f'<div style="{STYLE}">{"".join(parts)}</div>'

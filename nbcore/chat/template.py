"""Messages to text: Nanbeige4.1's chat template, usable without a tokenizer.

Paper section 8. `template.jinja` is a reconstruction: the only public copy of the 4.1 template had lost its tags. It is
Qwen3's template with Nanbeige's two default system texts, the switch `keep_all_think` and a bare generation prompt.
A property it inherits: a *last* answer without reasoning gets an empty think block that a later rendering of the same
turn does not show. `masks.py` knows about it.
Left out on purpose: `extra_body.keep_all_think` (a server's spelling of the same switch), images and other content parts.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2.ext
import jinja2.sandbox

TEMPLATE = Path(__file__).with_name("template.jinja").read_text(encoding="utf-8")
MARKS = ("<|im_start|>", "<|im_end|>")
TAGS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
END_OF_TURN = "<|im_end|>"


class TemplateError(ValueError):
    """Messages that the template cannot render, or a tokenizer that cannot carry it."""


def template_hash(template: str = TEMPLATE) -> str:
    """SHA-256 (hex) of a template's text, for the record of a run: two stages that differ in it do not fit together."""
    return hashlib.sha256(template.encode("utf-8")).hexdigest()


@functools.cache
def _compiled() -> jinja2.Template:
    def tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None) -> str:
        # jinja's own filter escapes <, > and & for HTML; a model must see them as they are.
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)

    # The same settings as transformers' apply_chat_template; tests hold the two to equal output.
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    return environment.from_string(TEMPLATE)


def render(
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None = None,
    add_generation_prompt: bool = False,
    keep_all_think: bool = False,
) -> str:
    """Render messages as the text the model reads.

    messages: dicts with `role` (system, user, assistant, tool), `content`, and for the assistant optionally
    `reasoning_content` and `tool_calls`. tools: JSON schemas, OpenAI style. keep_all_think: keep the reasoning of turns
    before the last user message. Raises TemplateError for no messages, an unknown role or a system text that is no string.
    """
    if not messages:
        raise TemplateError("There are no messages to render: give at least one message with a role and a content.")
    for position, message in enumerate(messages):
        role = message.get("role")
        if role not in ("system", "user", "assistant", "tool"):
            # The template itself would skip such a message without a word.
            raise TemplateError(f"Message {position} has the role {role!r}; allowed are system, user, assistant and tool.")
    if messages[0]["role"] == "system" and not isinstance(messages[0].get("content"), str):
        raise TemplateError("Message 0 (system) needs a string as its content.")
    return _compiled().render(
        messages=messages, tools=tools, add_generation_prompt=add_generation_prompt, keep_all_think=keep_all_think
    )


def attach(tokenizer: Any) -> Any:
    """Give a Hugging Face tokenizer this template and <|im_end|> as its end of turn; returns the tokenizer.

    Raises TemplateError when <|im_start|> or <|im_end|> is not one token of it.
    """
    missing = [mark for mark in MARKS if len(tokenizer(mark, add_special_tokens=False)["input_ids"]) != 1]
    if missing:
        raise TemplateError(
            f"{' and '.join(missing)} must be one token each, but this tokenizer splits them: start from a tokenizer with "
            "ChatML marks, or add them as special tokens and resize the embeddings."
        )
    tokenizer.chat_template = TEMPLATE
    tokenizer.eos_token = END_OF_TURN
    return tokenizer

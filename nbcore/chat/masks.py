"""Which tokens of a conversation the model is trained on. Paper sections 2 and 8.

The mask comes from *prefix rendering*: the text before an assistant turn is the conversation so far, rendered with the
generation prompt; what the full rendering adds after it, up to and including the end of turn, is what the assistant had
to write. So it works with any template, with or without {% generation %}, and never supervises a generation prompt.
Each span is tokenised by itself, hence a mask border is a token border, and `encode_prompt` gives exactly the ids that
stand before a turn in the row: sampled prompt ids + completion ids = row ids.

Policy where a template drops the reasoning of earlier turns (keep_all_think=False): such a turn, and a turn that was
written with such reasoning still in sight, stays in the context and leaves the loss, because the model never wrote that
text in that context. Any other difference between prefix and full rendering raises NotPrefixPreserving.
An empty think block that the template puts before a last answer is supervised (the generation prompt does not hold it,
so the model has to write it); where an earlier answer is shown without the block, it is trained as shown.
Left out on purpose: packing (see data/), and user text that spells a special token (the tokenizer reads it as one).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

EMPTY_THINK = re.compile(r"<think>\s*</think>\s*")
IGNORED = -100  # the label that torch's cross entropy leaves out

Messages = Sequence[Mapping[str, Any]]


class NotPrefixPreserving(ValueError):
    """The text before or of a turn changes when later messages follow, so no mask can be right."""

    def __init__(self, turn: int, reason: str):
        super().__init__(
            f"Message {turn} (assistant): {reason}. The template is not prefix-preserving here; "
            "use keep_all_think=True, or another template."
        )
        self.turn = turn


@dataclass(frozen=True)
class Span:
    """One assistant turn: message index, token range [start, end), whether it is in the loss, and why not."""

    message: int
    start: int
    end: int
    trained: bool
    reason: str | None = None


@dataclass(frozen=True)
class EncodedChat:
    """A tokenised conversation: ids, mask (1 = in the loss) of the same length, spans, and how many tokens were cut off."""

    input_ids: list[int]
    assistant_mask: list[int]
    spans: list[Span]
    truncated: int = 0

    @property
    def labels(self) -> list[int]:
        """input_ids where the mask is 1, else -100."""
        return [i if m else IGNORED for i, m in zip(self.input_ids, self.assistant_mask, strict=True)]


def encode(
    tokenizer: Any,
    messages: Messages,
    tools: Sequence[Mapping[str, Any]] | None = None,
    keep_all_think: bool = True,
    max_length: int | None = None,
) -> EncodedChat:
    """Tokenise a conversation and mark what the assistant wrote, each turn with its end of turn but not the newline after.

    A message with "train": False stays in the context and leaves the loss. max_length cuts on the right (tokens); rows that
    lose all supervised tokens are for `checks` to find. Raises NotPrefixPreserving, and ValueError for a tokenizer without a
    template or one that cannot tokenise pieces of text.
    """
    full, turns = _turns(tokenizer, messages, tools, keep_all_think)
    ids: list[int] = []
    mask: list[int] = []
    spans: list[Span] = []
    done = 0
    for turn in turns:
        between = _tokenize(tokenizer, full[done : turn.start])
        written = _tokenize(tokenizer, full[turn.start : turn.end])
        start = len(ids) + len(between)
        spans.append(Span(turn.message, start, start + len(written), turn.reason is None, turn.reason))
        ids += between + written
        mask += [0] * len(between) + [int(turn.reason is None)] * len(written)
        done = turn.end
    rest = _tokenize(tokenizer, full[done:])
    ids += rest
    mask += [0] * len(rest)
    if max_length is None or len(ids) <= max_length:
        return EncodedChat(ids, mask, spans)
    kept = [Span(s.message, s.start, min(s.end, max_length), s.trained, s.reason) for s in spans if s.start < max_length]
    return EncodedChat(ids[:max_length], mask[:max_length], kept, truncated=len(ids) - max_length)


def encode_prompt(
    tokenizer: Any,
    messages: Messages,
    tools: Sequence[Mapping[str, Any]] | None = None,
    keep_all_think: bool = True,
) -> list[int]:
    """Token ids to sample the next assistant turn from: conversation so far plus generation prompt.

    Earlier turns are cut into spans as in `encode`, so these ids are a prefix of the row that `encode` makes of the finished
    conversation. Raises as `encode` does.
    """
    full, turns = _turns(tokenizer, messages, tools, keep_all_think, add_generation_prompt=True)
    ids: list[int] = []
    done = 0
    for turn in turns:
        ids += _tokenize(tokenizer, full[done : turn.start]) + _tokenize(tokenizer, full[turn.start : turn.end])
        done = turn.end
    return ids + _tokenize(tokenizer, full[done:])


@dataclass(frozen=True)
class _Turn:
    message: int
    start: int  # characters of the full rendering
    end: int
    reason: str | None


def _turns(
    tokenizer: Any, messages: Messages, tools: Sequence | None, keep_all_think: bool, add_generation_prompt: bool = False
) -> tuple[str, list[_Turn]]:
    """The full rendering and where in it each assistant turn stands (characters)."""

    def render(some: Messages, prompt: bool) -> str:
        return tokenizer.apply_chat_template(
            list(some), tools=tools, tokenize=False, add_generation_prompt=prompt, keep_all_think=keep_all_think
        )

    if getattr(tokenizer, "chat_template", None) is None:
        raise ValueError("This tokenizer has no chat template: call nbcore.chat.template.attach(tokenizer) first.")
    full = render(messages, add_generation_prompt)
    shown = list(messages)  # the messages as the full rendering shows them: without dropped reasoning
    turns = []
    for i, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        if i == 0:
            raise NotPrefixPreserving(0, "it opens the conversation, so there is no prompt that it answers")
        reason = "train: False" if message.get("train") is False else None
        before = render(messages[:i], True)
        if not full.startswith(before):
            before = render(shown[:i], True)
            reason = reason or "written in sight of reasoning that the template drops"
            if not full.startswith(before):
                raise NotPrefixPreserving(i, "the text before it is not a prefix of the full rendering")
        bare = _without_reasoning(message)
        written = _match(full, before, render([*shown[:i], message], False))
        if written is None and bare is not None:
            written = _match(full, before, render([*shown[:i], bare], False))
            reason = reason or "its reasoning is dropped by the template"
            shown[i] = bare
        if written is None:
            raise NotPrefixPreserving(i, "its own text changes when later messages follow")
        turns.append(_Turn(i, len(before), len(before) + len(written), reason))
    return full, turns


def _match(full: str, before: str, through: str) -> str | None:
    """What the turn that ends `through` wrote after `before`, if the full rendering shows it there; else None."""
    if not through.startswith(before):
        return None
    written = through[len(before) :].rstrip()  # the template's newline after the end of turn belongs to nobody
    if full.startswith(written, len(before)):
        return written
    block = EMPTY_THINK.match(written)
    if block is None:
        return None
    # A last answer without reasoning has the template's empty block before it and loses its own leading newlines.
    rest = full[len(before) :]
    newlines = rest[: len(rest) - len(rest.lstrip("\n"))]
    text = newlines + written[block.end() :]
    return text if rest.startswith(text) else None


def _without_reasoning(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """The message with its reasoning removed, or None if it has none."""
    content = message.get("content")
    if message.get("reasoning_content"):
        return {**message, "reasoning_content": ""}
    if isinstance(content, str) and "</think>" in content:
        return {**message, "content": content.split("</think>")[-1].lstrip("\n")}
    return None


@functools.lru_cache(maxsize=16)
def _anchor(tokenizer: Any) -> str:
    """What has to stand before a piece of text so that the tokenizer does not treat it as the start of a document.

    Empty for byte-level tokenizers; a special token for those that put a space before the first word.
    """
    sample = "x\n y"
    for anchor in ("", tokenizer.eos_token or ""):
        ids = tokenizer(anchor + sample, add_special_tokens=False)["input_ids"][int(bool(anchor)) :]
        if tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False) == sample:
            return anchor
    raise ValueError(
        "This tokenizer changes the text of a piece that does not start a document (it adds or drops spaces), so spans "
        "cannot be tokenised one by one: load it with add_prefix_space=False or legacy=False."
    )


def _tokenize(tokenizer: Any, text: str) -> list[int]:
    if not text:
        return []
    anchor = _anchor(tokenizer)
    return list(tokenizer(anchor + text, add_special_tokens=False)["input_ids"])[int(bool(anchor)) :]

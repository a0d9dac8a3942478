"""What has to be true before training starts, and of every number after. Paper section 2.

Each check stands for a known silent failure: a run that looks healthy and teaches nothing, never stops, or saves NaN.
A check that fails raises PreflightError with one sentence: how many rows, which ones, and what to do.
Left out on purpose: repairing the data. Dropping rows is a decision that belongs into a notebook, where it can be seen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nbcore.chat.masks import EncodedChat, NotPrefixPreserving, encode

SHOWN = 5  # row ids named in a sentence


class PreflightError(ValueError):
    """Something that would make the training worthless; the message says what, where and what to do."""


class NotFinite(PreflightError):
    """A NaN or an infinity where a number is needed."""


def require_supervised(rows: Sequence[EncodedChat], ids: Sequence[Any] | None = None) -> None:
    """Each row has at least one token in the loss; rows are named by `ids` (default: their positions)."""
    bad = [i for i, row in enumerate(rows) if not any(row.assistant_mask)]
    cut = sum(rows[i].truncated > 0 for i in bad)
    _fail_if(
        bad, rows, ids, "have no supervised token",
        f"{cut} of them were cut at max_length: raise it or drop them. The others hold no assistant turn in the loss."
        if cut else "They hold no assistant turn in the loss: check the roles, the train flags and keep_all_think.",
    )  # fmt: skip


def require_room(rows: Sequence[EncodedChat], context_length: int, ids: Sequence[Any] | None = None) -> None:
    """A supervised token of each row lies within the first `context_length` tokens, so truncation leaves something to learn."""
    bad = [i for i, row in enumerate(rows) if not any(row.assistant_mask[:context_length])]
    _fail_if(
        bad, rows, ids, f"have a prompt that fills the context of {context_length} tokens, so truncation removes all supervised tokens",
        "Raise the context length or drop these rows.",
    )  # fmt: skip


def require_end_of_turn(rows: Sequence[EncodedChat], eos_token_id: int, ids: Sequence[Any] | None = None) -> None:
    """Each row that was not cut supervises the end of turn at least once; a model trained otherwise never stops."""
    bad = [
        i
        for i, row in enumerate(rows)
        if not row.truncated and not any(m and t == eos_token_id for t, m in zip(row.input_ids, row.assistant_mask, strict=True))
    ]
    _fail_if(
        bad, rows, ids, f"never supervise the end of turn (token {eos_token_id}), so the model would not learn to stop",
        "Check that the tokenizer's eos_token is the one that the chat template writes after a turn.",
    )  # fmt: skip


def require_prefix_preserving(
    tokenizer: Any,
    conversations: Sequence[Sequence[Mapping[str, Any]]],
    tools: Sequence[Mapping[str, Any]] | None = None,
    keep_all_think: bool = True,
    ids: Sequence[Any] | None = None,
) -> None:
    """The template never rewrites an earlier turn of these conversations, other than by dropping its reasoning."""
    bad, first = [], ""
    for i, messages in enumerate(conversations):
        try:
            encode(tokenizer, messages, tools, keep_all_think)
        except NotPrefixPreserving as error:
            bad.append(i)
            first = first or str(error)
    _fail_if(bad, conversations, ids, "cannot be masked", f"The first: {first}")


def require_distinct_pad(tokenizer: Any) -> None:
    """The padding token exists and is not the end of turn: collators mask the padding, and the end of turn with it."""
    if tokenizer.pad_token_id is None:
        raise PreflightError("The tokenizer has no padding token: set pad_token to one that is not the end of turn.")
    if tokenizer.pad_token_id == tokenizer.eos_token_id:
        raise PreflightError(
            f"Padding and end of turn are the same token ({tokenizer.eos_token!r}, {tokenizer.eos_token_id}): masking the padding "
            "would mask the end of turn, and the model would never stop. Set pad_token to another token."
        )


def require_vocabulary(tokenizer: Any, embedding_rows: int) -> None:
    """Every token id has an embedding, and no special token exists twice (once with a space, say)."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    twice = [text for text, n in Counter(str(token.content).strip() for token in added.values()).items() if n > 1]
    if twice:
        raise PreflightError(f"{len(twice)} special token(s) exist twice: {', '.join(map(repr, twice[:SHOWN]))}. Keep one id of each.")
    largest = max(tokenizer.get_vocab().values(), default=-1)
    if largest >= embedding_rows:
        raise PreflightError(
            f"The tokenizer's largest token id is {largest}, but the model has embeddings for {embedding_rows} tokens only "
            f"(ids up to {embedding_rows - 1}): use the model's own tokenizer, or resize the embeddings and save both together."
        )


def preflight(
    tokenizer: Any,
    rows: Sequence[EncodedChat],
    embedding_rows: int,
    context_length: int | None = None,
    ids: Sequence[Any] | None = None,
) -> None:
    """All checks of encoded rows and their tokenizer at once; raises one PreflightError that holds every sentence."""
    checks: list[Callable[[], None]] = [
        lambda: require_distinct_pad(tokenizer),
        lambda: require_vocabulary(tokenizer, embedding_rows),
        lambda: require_supervised(rows, ids),
        lambda: require_end_of_turn(rows, tokenizer.eos_token_id, ids),
    ]
    if context_length is not None:
        checks.append(lambda: require_room(rows, context_length, ids))
    problems = []
    for check in checks:
        try:
            check()
        except PreflightError as error:
            problems.append(str(error))
    if not rows:
        problems.append("There are no rows to train on.")
    if problems:
        raise PreflightError("\n".join(dict.fromkeys(problems)))


def require_finite(name: str, value: float) -> float:
    """The value as a float, if it is a finite number. Raises NotFinite naming it: a NaN loss never mends itself."""
    number = float(value)
    if not math.isfinite(number):
        raise NotFinite(
            f"{name} is {number}: training cannot go on from here. Usual causes: a batch without supervised tokens, a learning rate "
            "that is too high, or half precision."
        )
    return number


def require_finite_weights(state_dict: Mapping[str, Any]) -> None:
    """Every floating-point tensor holds finite numbers only; to be called before saving. Raises NotFinite naming tensors."""
    import torch

    bad = [
        (name, int((~torch.isfinite(tensor)).sum()), tensor.numel())
        for name, tensor in state_dict.items()
        if torch.is_tensor(tensor) and (tensor.is_floating_point() or tensor.is_complex()) and not torch.isfinite(tensor).all()
    ]
    if bad:
        named = ", ".join(f"{name} ({count} of {total})" for name, count, total in bad[:SHOWN])
        raise NotFinite(
            f"{len(bad)} of {len(state_dict)} tensors hold values that are not finite: {named}{', ...' if len(bad) > SHOWN else ''}. "
            "They were not saved; go back to the last good checkpoint."
        )


def _fail_if(bad: Sequence[int], rows: Sequence[Any], ids: Sequence[Any] | None, what: str, advice: str) -> None:
    if bad:
        names = [str(ids[i]) if ids is not None else str(i) for i in bad]
        shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
        raise PreflightError(f"{len(bad)} of {len(rows)} rows ({shown}) {what}. {advice}")

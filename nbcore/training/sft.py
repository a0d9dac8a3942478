"""Supervised fine-tuning with trl's SFTTrainer, on rows tokenised and masked by us: loss on what the assistant wrote, only.

Paper section 2: a curriculum of context lengths is several calls, each from the model the last one left. What this module
adds to trl: pre-flight checks before the first step, metrics into the run's record, a stop with a sentence when a loss is
not finite, and checkpoints that a killed run resumes from. Left out on purpose: packing (on CPU it changes the attention).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nbcore.chat.checks import PreflightError, preflight
from nbcore.chat.masks import IGNORED, EncodedChat
from nbcore.data.mixture import Row
from nbcore.models.load import Loaded
from nbcore.training.loop import common, cosine, recorder, run


def settings(folder: Path, steps: int, batch: int, learning_rate: float, seed: int, save_every: int, length: int) -> Any:
    """trl's SFTConfig for one phase. CPU or one GPU, whichever is there; a constant-then-cosine rate, no weight decay."""
    from trl import SFTConfig

    return SFTConfig(
        **common(folder, steps, batch, learning_rate, seed, save_every), **cosine(steps), max_length=length, dataset_num_proc=None,
        shuffle_dataset=False, train_sampling_strategy="sequential",  # `ordered` has shuffled the rows already
    )  # fmt: skip


def ordered(rows: Sequence[Row], batch: int, seed: int, window: int = 8) -> list[Row]:
    """Rows in training order: shuffled, then sorted by length within windows of a few batches, then batches shuffled.

    Little padding, and no drift of length over the steps. (trl's own grouping sorts its large groups from long to short, so
    with abilities of different length the tasks come in waves; seen as a saw in the loss.)
    """
    rng, mixed = random.Random(f"order {seed}"), list(rows)
    rng.shuffle(mixed)
    batches: list[list[Row]] = []
    for start in range(0, len(mixed), batch * window):
        near = sorted(mixed[start : start + batch * window], key=lambda row: len(row.input_ids))
        batches += [near[i : i + batch] for i in range(0, len(near), batch)]
    whole = [b for b in batches if len(b) == batch]
    rng.shuffle(whole)
    return [row for b in [*whole, *(b for b in batches if len(b) < batch)] for row in b]


def train(
    loaded: Loaded,
    rows: Sequence[Row],
    folder: Path,
    length: int,
    steps: int,
    batch: int = 32,
    learning_rate: float = 1e-3,
    seed: int = 0,
    save_every: int = 0,
    log: Callable[[dict[str, float]], None] = lambda row: None,
) -> list[dict[str, float]]:
    """Train `loaded.model` in place for `steps` of `batch` rows; returns the logged rows (step, loss, learning rate, …).

    Continues from the newest checkpoint in `folder` when there is one. Raises PreflightError before the first step when a row
    could not teach anything, and at the step whose loss is not finite.
    """
    from datasets import Dataset
    from trl import SFTTrainer

    if too_long := [r.key for r in rows if len(r.input_ids) > length]:
        raise PreflightError(f"{len(too_long)} of {len(rows)} rows exceed the context of {length} tokens: {too_long[:3]}. Leave them out.")
    encoded = [EncodedChat(r.input_ids, r.assistant_mask, []) for r in rows]
    preflight(loaded.tokenizer, encoded, loaded.model.get_input_embeddings().num_embeddings, length, [r.key for r in rows])
    history, record = recorder(log)
    ranked = ordered(rows, batch, seed)
    table = Dataset.from_dict({
        "input_ids": [r.input_ids for r in ranked],
        "labels": [[i if m else IGNORED for i, m in zip(r.input_ids, r.assistant_mask, strict=True)] for r in ranked],
    })
    trainer = SFTTrainer(
        model=loaded.model, args=settings(folder, steps, batch, learning_rate, seed, save_every, length),
        train_dataset=table, processing_class=loaded.tokenizer, callbacks=[record],
    )
    run(trainer, loaded.model, folder, seed)
    return history

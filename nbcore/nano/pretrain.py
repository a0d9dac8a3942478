"""Pretrain the nano base model: `python -m nbcore.nano.pretrain`. More than an hour on one CPU core; writes nbcore/nano/base/.

A Llama of about 1.5 M parameters on raw text of the world (no chats). Muon on the matrices, AdamW on the embedding and the
norms, a constant rate with a linear decay at the end [C]. The record beside the weights holds the loss curve, the probes, the
versions and the commands. The shipped base took two runs of this module, as its record says; the defaults here are one run,
which reached the same probes (the record holds both). Same seed and thread count: the same model.
Left out on purpose: validation loss (documents are fresh for ever, so the training loss is one).
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from nbcore import models
from nbcore.files import atomic_write
from nbcore.nano import corpus, probes, tokenizer

FOLDER = Path(__file__).parent / "base"
SIZES = {"hidden_size": 192, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 6, "head_dim": 32,
         "intermediate_size": 512}


def rows(words: Any, length: int, seed: int) -> Iterator[list[int]]:
    """Documents one behind the other, separated by the end-of-document token, cut into rows of `length` tokens."""
    held: list[int] = []
    for text in corpus.documents(seed):
        held += [*words.encode(text), words.pad_token_id]
        while len(held) >= length:
            yield held[:length]
            held = held[length:]


def model_of(words: Any) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=64 * math.ceil(len(words) / 64), max_position_embeddings=2048, tie_word_embeddings=True, rope_theta=10_000.0,
        bos_token_id=None, eos_token_id=words.eos_token_id, pad_token_id=words.pad_token_id, **SIZES,
    )
    return LlamaForCausalLM(config)


def optimizers(model: Any, matrix_rate: float, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the layers, AdamW for everything else."""
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    others = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    return [torch.optim.Muon(matrices, lr=matrix_rate, momentum=0.95, weight_decay=0.01),
            torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.95), weight_decay=0.0)]


def pretrain(
    steps: int, batch: int, length: int, seed: int, folder: Path, matrix_rate: float, rate: float, every: int, start: Path | None = None
) -> dict:
    """Train, probe every `every` steps, write model, tokenizer and record to `folder`; returns the record.

    start: a folder to take model and tokenizer from instead of fresh ones (the optimizers begin anew).
    """
    torch.manual_seed(seed)
    if start:
        loaded = models.load(start)
        model, words = loaded.model.train(), loaded.tokenizer
    else:
        words = tokenizer.train(itertools.islice(corpus.documents(seed + 1_000_000), 20_000))
        model = model_of(words)
    steppers = optimizers(model, matrix_rate, rate)
    warm, decay = max(1, steps // 50), max(1, int(steps * 0.4))
    stream, curve, started, spent = rows(words, length, seed), [], time.time(), time.process_time()
    print(f"{model.num_parameters():,} parameters, vocabulary {len(words)}, {steps} steps of {batch * length} tokens", flush=True)
    for step in range(1, steps + 1):
        scale = min(1.0, step / warm, (steps - step + 1) / decay)
        for stepper, peak in zip(steppers, (matrix_rate, rate), strict=True):
            stepper.param_groups[0]["lr"] = peak * scale
        ids = torch.tensor(list(itertools.islice(stream, batch)))
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for stepper in steppers:
            stepper.step()
            stepper.zero_grad()
        if step % 20 == 0 or step == 1:
            curve.append({"step": step, "loss": round(float(loss.detach()), 4)})
        if step % 100 == 0:
            print(f"step {step} loss {sum(c['loss'] for c in curve[-5:]) / len(curve[-5:]):.4f} {time.time() - started:.0f} s", flush=True)
        if step % every == 0 and step < steps:
            print(json.dumps(probes.measure(model.eval(), words, 64, seed)), flush=True)
            model.train()
            save(model, words, folder)
    save(model, words, folder)
    record = {
        "command": f"python -m nbcore.nano.pretrain --steps {steps} --batch {batch} --length {length} --seed {seed}",
        "started_from": json.loads((start / "record.json").read_text(encoding="utf-8")) if start else None,
        "parameters": model.num_parameters(), "tokens": steps * batch * length, "minutes": round((time.time() - started) / 60, 1),
        "cpu_minutes": round((time.process_time() - spent) / 60, 1), "threads": torch.get_num_threads(),
        "probes": probes.measure(model.eval(), words, 400, seed + 1), "probe_items": 400, "curve": curve,
        "versions": {name: version(name) for name in ("torch", "transformers", "tokenizers")},
    }
    atomic_write(folder / "record.json", json.dumps(record, indent=1))
    return record


def save(model: Any, words: Any, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    words.save_pretrained(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description="Pretrain the nano base model on raw text of the made-up world.")
    parser.add_argument("--steps", type=int, default=5400)
    parser.add_argument("--batch", type=int, default=16, help="rows a step")
    parser.add_argument("--length", type=int, default=256, help="tokens a row")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--matrix-rate", type=float, default=0.02, help="peak learning rate of Muon")
    parser.add_argument("--rate", type=float, default=3e-3, help="peak learning rate of AdamW")
    parser.add_argument("--every", type=int, default=500, help="steps between probes")
    parser.add_argument("--start", type=Path, help="folder of a model to go on from")
    given = parser.parse_args()
    record = pretrain(
        given.steps, given.batch, given.length, given.seed, given.folder, given.matrix_rate, given.rate, given.every, given.start
    )
    print(json.dumps({k: v for k, v in record.items() if k != "curve"}, indent=1))


if __name__ == "__main__":
    main()

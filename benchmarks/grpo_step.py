"""What a GRPO step costs on the nano model: ours, trl's own, and a floor, interleaved in one process on one thread.

    OMP_NUM_THREADS=1 python benchmarks/grpo_step.py [rounds]

8 prompts × 8 completions, 32 + 64 tokens, every completion 64 tokens long. The floor is a plain cached sampler plus one
forward, backward and AdamW on the same tokens. Prints CPU seconds a step (median) and the ratios. Read the ratios.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from datasets import Dataset
from transformers import DynamicCache, PrinterCallback
from trl import GRPOConfig, GRPOTrainer

from nbcore import models
from nbcore.rewards.compose import Component
from nbcore.training import grpo

PROMPTS, GROUP, ASKED, NEW = 8, 8, 32, 64


def tokens(count: int, words: int) -> list[list[int]]:
    rng = random.Random(0)
    return [[rng.randrange(300, words) for _ in range(ASKED)] for _ in range(count)]


def endless(loaded: Any) -> Any:
    """A tokenizer whose end never comes, so that every completion has the same length in all three."""
    loaded.tokenizer.eos_token = loaded.tokenizer.convert_ids_to_tokens(len(loaded.tokenizer) - 1)
    with torch.no_grad():
        loaded.model.config.eos_token_id = loaded.model.generation_config.eos_token_id = loaded.tokenizer.eos_token_id
    return loaded


def floor(loaded: Any, rows: list[list[int]]) -> Any:
    stepper = torch.optim.AdamW(loaded.model.parameters(), lr=0.0, weight_decay=0.0)
    start = torch.tensor([row for row in rows for _ in range(GROUP)])

    def step() -> None:
        with torch.no_grad():
            cache, ids, said = DynamicCache(), start, []
            for _ in range(NEW):
                logits = loaded.model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1]
                ids = torch.multinomial(logits.softmax(-1), 1)
                said.append(ids)
        whole = torch.cat([start, *said], 1)
        logits = loaded.model(whole, use_cache=False, logits_to_keep=NEW + 1).logits[:, :-1]
        logprobs = logits.log_softmax(-1).gather(-1, whole[:, ASKED:, None])
        (logprobs.mean() * 1e-3).backward()
        torch.nn.utils.clip_grad_norm_(loaded.model.parameters(), 1.0)
        stepper.step()
        stepper.zero_grad()

    return step


def stepper(trainer: Any, rounds: int) -> Any:
    """One optimizer step at a time of a real trainer, through its own loop: a generator that pauses in on_step_end."""
    import queue
    import threading

    from transformers import TrainerCallback

    go, done = queue.Queue(), queue.Queue()

    class Pause(TrainerCallback):
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            pass

        def on_step_end(self, *_: Any, **__: Any) -> None:
            done.put(None)
            go.get()

    trainer.add_callback(Pause())
    thread = threading.Thread(target=lambda: (go.get(), trainer.train()), daemon=True)
    thread.start()

    def step() -> None:
        go.put(None)
        done.get()

    return step


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    torch.set_num_threads(1)
    rows = tokens(PROMPTS * (rounds + 2), 700)
    text = [f"{i}" for i in range(len(rows))]
    with tempfile.TemporaryDirectory() as folder:
        ours, stock, plain = (endless(models.load("nano")) for _ in range(3))
        options = grpo.Options(steps=rounds + 2, prompts=PROMPTS, group=GROUP, max_new_tokens=NEW, learning_rate=1e-9, refill=0, kl_every=0)
        config = grpo.settings(Path(folder) / "ours", options, mask_truncated_completions=False)
        reward = [Component("length", lambda rollouts: [float(r.ids[0] % 7) for r in rollouts])]
        prompts = [grpo.Prompt(t, r) for t, r in zip(text, rows, strict=True)]
        mine = grpo.trainer_of(ours, prompts, reward, Path(folder), options, config=config)
        args = GRPOConfig(
            str(Path(folder) / "trl"), max_steps=rounds + 2, per_device_train_batch_size=PROMPTS * GROUP, num_generations=GROUP,
            use_cpu=True, max_completion_length=NEW, learning_rate=1e-9, report_to="none", save_strategy="no",
            bf16=False, gradient_checkpointing=False, disable_tqdm=True, logging_steps=1, beta=0.0, temperature=1.0,
            generation_kwargs={"min_new_tokens": NEW},
        )
        theirs = GRPOTrainer(
            model=stock.model, args=args, processing_class=stock.tokenizer,
            train_dataset=Dataset.from_dict({"prompt": [stock.tokenizer.decode(r) for r in rows]}),
            reward_funcs=lambda completion_ids, **_: [float(ids[0] % 7) for ids in completion_ids],
        )
        theirs._tokenize_prompts = lambda prompts: ([rows[i % len(rows)] for i in range(len(prompts))], None, {})  # equal lengths
        for trainer in (mine, theirs):
            trainer.remove_callback(PrinterCallback)
        steps = {"floor": floor(plain, rows[:PROMPTS]), "ours": stepper(mine, rounds), "trl": stepper(theirs, rounds)}
        spent: dict[str, list[float]] = {name: [] for name in steps}
        for round_ in range(rounds + 1):
            for name, step in steps.items():
                started = time.process_time()
                step()
                if round_:  # the first is a warm-up
                    spent[name].append(time.process_time() - started)
    middle = SimpleNamespace(**{name: statistics.median(times) for name, times in spent.items()})
    print(f"CPU seconds a step: floor {middle.floor:.3f}, ours {middle.ours:.3f}, trl {middle.trl:.3f}")
    ratios = {"ours / floor": middle.ours / middle.floor, "ours / trl": middle.ours / middle.trl, "trl / floor": middle.trl / middle.floor}
    print("   ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()))


if __name__ == "__main__":
    main()

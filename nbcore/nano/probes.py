"""What the base model must be able to do before it ships, measured greedily and each by itself: copy, choose, add, write code.

Later stages move choices; these abilities they cannot teach (seen in trials at this size: reinforcement does not sharpen
digits), so the base must bring them: at least 95 % on each. All names, sums and programs here are held out.
"""

from __future__ import annotations

import ast
import random
from typing import Any

from nbcore.nano import arithmetic, programs
from nbcore.nano.atlas import Atlas
from nbcore.nano.names import draw, odd
from nbcore.nano.tokenizer import PAD


def prompts(kind: str, count: int, seed: int = 0) -> list[tuple[str, str, str]]:
    """(prompt, expected continuation, end mark) for one probe: copying, copying odd words, choosing, chaining, arithmetic.

    A prompt ends where a token ends: the space after a colon belongs to the colon's token.
    """
    rng = random.Random(f"probe {kind} {seed}")
    made: list[tuple[str, str, str]] = []
    while len(made) < count:
        if kind in ("copying", "odd words"):
            words = draw(rng, 3, "held-out") if kind == "copying" else [odd(rng) for _ in range(2)]
            made.append((f"copy {' '.join(words)}: ", " ".join(words), "\n"))
        elif kind == "choosing":
            atlas = Atlas(rng, 9, "held-out")
            shown = rng.sample(list(atlas.facts), 2)
            name = rng.choice(shown)
            relation, value = rng.choice(list(atlas.facts[name].items()))
            made.append((" ".join(atlas.pages[n] for n in shown) + f"\n{relation} of {name}: ", f"{value}.", "\n"))
        elif kind == "chaining":
            walked = Atlas(rng, 12, "held-out").walk(rng, 2)
            if walked is None:
                continue
            (first, start, middle), (second, _, _) = walked.path
            page = f"{start}. {first}: {middle}."
            told = f"{walked.text}\nSteps: {first}, {second}.\nNext: {first} of {start}.\n{page}\n{first} of {start}: {middle}.\nNext: "
            made.append((told, f"{second} of {middle}.", "\n"))
        else:
            item = arithmetic.sums(1, rng.randrange(1 << 30), "held-out")[0]
            written = str(item.terms[0]) + "".join(f" {'+' if t >= 0 else '-'} {abs(t)}" for t in item.terms[1:])
            steps = arithmetic.thought(item.terms)
            made.append((f"{written} = ?\n", f"{steps}\n= {item.answer}", ""))
    return made


def measure(model: Any, tokenizer: Any, count: int = 200, seed: int = 0) -> dict[str, float]:
    """Greedy accuracy (share of `count` prompts) of every probe; syntax is parsed, and programs are also run."""
    from nbcore.judge.programs import check_many

    scores = {}
    for kind in ("copying", "odd words", "choosing", "chaining", "arithmetic"):
        asked = prompts(kind, count, seed)
        said = greedy(model, tokenizer, [p for p, _, _ in asked], 100)
        right = [
            text.split(end)[0] == want if end else _total(text) == _total(want)
            for text, (_, want, end) in zip(said, asked, strict=True)
        ]
        scores[kind] = sum(right) / count
    tasks = programs.tasks(count, seed, "held-out")
    said = greedy(model, tokenizer, [f"# {t.text.removeprefix('Write ')}\n" for t in tasks], 90)
    scores["syntax"] = sum(parses(text) for text in said) / count
    verdicts = check_many([(text, task.judged(seed)) for text, task in zip(said, tasks, strict=True)])
    scores["programs"] = sum(v.passed_all is True for v in verdicts) / count
    return scores


def _total(text: str) -> str | None:
    """What the first worked sum of a text comes to; a model goes on with another one, as its corpus does."""
    return text.split("\n= ")[1].split("\n")[0] if "\n= " in text else None


def parses(text: str) -> bool:
    try:
        return any(isinstance(node, ast.FunctionDef) for node in ast.parse(text).body)
    except SyntaxError:
        return False


def greedy(model: Any, tokenizer: Any, texts: list[str], new_tokens: int) -> list[str]:
    """The most likely continuation of each text, up to the end-of-document mark.

    A text begins as documents do in the corpus, behind such a mark: without it the first token is read badly.
    """
    import torch

    batch = tokenizer([PAD + text for text in texts], return_tensors="pt", padding=True)
    with torch.no_grad():
        out = model.generate(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], max_new_tokens=new_tokens, do_sample=False,
            eos_token_id=tokenizer.pad_token_id, pad_token_id=tokenizer.pad_token_id,
        )
    rows = out[:, batch["input_ids"].shape[1] :]
    return [tokenizer.decode(row).split(PAD)[0] for row in rows]

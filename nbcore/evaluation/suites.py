"""The held-out suites of the nano world: reason, align, code, act, and act on real geography.

A suite is a list of items and one function that samples and scores them. Nothing of a suite occurs in training: names, sums
and programs come from the held-out side, and a test says so. Scores of one sample: 1 or 0 (align: the hidden annotator's
0 … 1), or None where the judge itself failed; how a sample ended is kept apart, so that truncated and malformed are counted
and not mixed into "wrong".
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nbcore.chat.masks import encode_prompt
from nbcore.chat.toolcalls import parse
from nbcore.judge.extract import program
from nbcore.judge.programs import check_many
from nbcore.models.generate import generate
from nbcore.nano import arithmetic, geography, programs, traits
from nbcore.nano.atlas import Atlas, questions
from nbcore.nano.tokenizer import SEARCH
from nbcore.search.agent import Budget, play, policy
from nbcore.search.tools import Search, Tool, Toolbox

SUITES = ("reason", "align", "code", "act", "geography")
NEW_TOKENS = {"reason": 96, "align": 48, "code": 96, "act": 64, "geography": 64}


@dataclass(frozen=True)
class Sample:
    """One answer: item number, sample number, score (None: the judge failed), truncated, malformed, and what was written."""

    suite: str
    item: int
    sample: int
    score: float | None
    truncated: bool
    malformed: bool
    prompt: str
    completion: str


def items(suite: str, count: int, seed: int = 0) -> tuple[list[Any], dict[str, str]]:
    """`count` held-out items of a suite, and the pages its search tool reads (empty for suites without a tool)."""
    if suite == "reason":
        return arithmetic.sums(count, seed, "held-out"), {}
    if suite == "align":
        return traits.instructions(count, seed, "held-out"), {}
    if suite == "code":
        return programs.tasks(count, seed, "held-out"), {}
    if suite == "act":
        atlas = Atlas(random.Random(f"held-out atlas {seed}"), 3 * max(count, 40), "held-out")
        return questions(atlas, count, (1, 2), seed), atlas.pages
    if suite == "geography":
        return geography.questions(count, seed), geography.pages()
    raise ValueError(f"{suite!r} is no suite; there are {', '.join(SUITES)}.")


def text_of(suite: str, item: Any) -> str:
    """The user's words of an item."""
    return item.question if suite == "reason" else item.text


def run(
    suite: str,
    model: Any,
    tokenizer: Any,
    made: Sequence[Any],
    pages: dict[str, str],
    samples: int = 4,
    temperature: float = 0.6,
    seed: int = 0,
) -> list[Sample]:
    """Sample every item `samples` times and score: a list of len(made) × samples records, item by item."""
    asked = [(i, k) for i in range(len(made)) for k in range(samples)]
    talks = [[{"role": "user", "content": text_of(suite, made[i])}] for i, _ in asked]
    if suite in ("act", "geography"):
        search = Search(pages)
        box = Toolbox([Tool(SEARCH, lambda given: search(given["query"]))])
        budget = Budget(new_tokens=NEW_TOKENS[suite])
        episodes = play(policy(model, tokenizer, temperature=temperature), tokenizer, talks, box.schemas, lambda _, call: box(call), budget,
                        seed=seed)
        return [
            Sample(suite, i, k, float(e.answer == made[i].answer), e.stopped in ("truncated", "turns", "room"), e.malformed > 0,
                   text_of(suite, made[i]), tokenizer.decode(e.stretches[-1].ids))
            for (i, k), e in zip(asked, episodes, strict=True)
        ]
    prompts = [encode_prompt(tokenizer, talk) for talk in talks]
    said = generate(model, tokenizer, prompts, NEW_TOKENS[suite], temperature=temperature, seed=seed)
    turns = [parse(c.text) for c in said]
    answers = [t.content.strip() for t in turns]
    if suite == "code":
        found = [program(c.text, programs.ENTRY) for c in said]
        verdicts = check_many([(text, made[i].judged(seed=1)) for text, (i, _) in zip(found, asked, strict=True)])
        scores = [None if v.passed_all is None else float(v.passed_all) for v in verdicts]
    elif suite == "reason":
        scores = [float(arithmetic.correct(a, made[i])) for (i, _), a in zip(asked, answers, strict=True)]
    else:
        scores = [traits.annotator(a, made[i], c.ended) for (i, _), a, c in zip(asked, answers, said, strict=True)]
    bad = [not t.closed_think or bool(t.malformed) for t in turns]
    return [
        Sample(suite, i, k, s if c.ended or suite == "align" or s is None else 0.0, not c.ended, b, text_of(suite, made[i]), c.text)
        for (i, k), s, c, b in zip(asked, scores, said, bad, strict=True)
    ]

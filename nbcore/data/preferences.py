"""Preference data: two answers to one prompt and which one was chosen. Paper sections 3 and 4 (both reward models learn from it).

The authors say nothing of their preference data; all of this is our choice [C]. In the nano world a policy answers each prompt
several times and the hidden annotator chooses between two of its answers, as a person would: the choice is kept, the scores
behind it are not. They travel with held-out pairs only, so that the learned reward and the truth can be compared.
Real data are rows with `chosen` and `rejected`, as text or messages. Sides are divided by prompt, never by pair: the same
prompt on both sides would measure memory.
Left out on purpose: strengths of preference and ties (rows of public sets seldom have them), and any cleaning beyond form.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from nbcore.chat.toolcalls import parse
from nbcore.files import atomic_write
from nbcore.models.load import Loaded
from nbcore.nano import traits
from nbcore.nano.names import held_out
from nbcore.rewards.rollouts import Rollout, answers, prompt_of

QUESTIONS = {"answer": traits.quality, "rather": traits.annotator}  # what the annotator is asked, and the score behind the choice


@dataclass(frozen=True)
class Pair:
    """One choice. Answers are the assistant's content as it was written, the thought included; `ended` is False for one cut off.

    prompt: messages up to the answer. truth: the hidden scores of chosen and rejected; None in everything that is trained on.
    chosen_first: whether the chosen answer was the one read first; None where nobody wrote it down.
    """

    key: str
    prompt: list[dict[str, Any]]
    chosen: str
    rejected: str
    chosen_ended: bool = True
    rejected_ended: bool = True
    truth: tuple[float, float] | None = None
    chosen_first: bool | None = None


def sample(
    policy: Loaded, items: Sequence[Any], k: int, new_tokens: int = 96, temperature: float = 1.0, seed: int = 0
) -> list[list[Rollout]]:
    """`k` answers to each item (anything with a `text`), as groups of rollouts."""
    rows = [prompt for item in items for prompt in [prompt_of(policy.tokenizer, item)] * k]
    said = answers(policy.model, policy.tokenizer, rows, new_tokens, temperature, seed)
    return [said[i : i + k] for i in range(0, len(said), k)]


def contrast(
    policy: Loaded, groups: Sequence[Sequence[Rollout]], new_tokens: int = 96, temperature: float = 1.0, seed: int = 0, near: int = 1
) -> list[list[Rollout]]:
    """The groups, each with `near` more candidates behind the policy's own thought, the friendly line dealt by a coin, and a twin.

    For the nano world's instructions [C]. The candidates are what the policy answers to *neighbouring* instructions: a good answer to
    another question is rare among a policy's own, so a scorer would never learn to look at the question, and the policy would soon
    find that out. In a policy's own answers the friendly line goes with clean endings, so it predicts quality without being any;
    every candidate has it with probability ½ here, and it predicts nothing. The last of a group is the *twin* of its first: the
    same answer with the line put on or taken off.
    """
    rng = random.Random(f"neighbours {seed}")
    others = [traits.neighbour(rng, group[0].item) for group in groups for _ in range(near)]
    said, wider = [group[0] for group in sample(policy, others, 1, new_tokens, temperature, seed + 1)], []

    def made(like: Rollout, content: str, ended: bool) -> Rollout:
        thought, end, _ = like.text.partition("</think>")
        text = f"{thought}{end}\n\n{content}" if end else content
        ids = policy.tokenizer(text, add_special_tokens=False)["input_ids"]
        return Rollout(like.item, like.prompt_ids, ids, text, ended, [1] * len(ids), [0.0] * len(ids))

    for i, group in enumerate(groups):
        candidates = [*zip(group, group, strict=True), *((group[0], r) for r in said[i * near : (i + 1) * near])]
        contents = []
        for _, rollout in candidates:
            content, line = parse(rollout.text).content.strip(), rng.random() < 0.5
            contents.append(content if traits.friendly(content) == line else traits.toggled(content))
        dealt = [made(like, content, r.ended) for (like, r), content in zip(candidates, contents, strict=True)]
        wider.append([*dealt, made(group[0], traits.toggled(contents[0]), group[0].ended)])
    return wider


def choose(groups: Iterable[Sequence[Rollout]], question: str, per_prompt: int = 2, seed: int = 0, lead: float = 0.0) -> list[Pair]:
    """Let the hidden annotator choose between different answers to one instruction: up to `per_prompt` pairs of each group.

    question: "answer" (which is the better answer? by quality) or "rather" (which would you rather have? taste included).
    lead: log-odds that the annotator gives the answer read first; which one that is, is drawn.
    Two texts that differ in the thought alone are the same answer to a reader and make no pair. Raises ValueError.
    """
    if question not in QUESTIONS:
        raise ValueError(f"{question!r} is no question for the annotator; there are {', '.join(QUESTIONS)}.")
    score, rng, pairs = QUESTIONS[question], random.Random(f"choices {question} {seed}"), []
    places = random.Random(f"places {question} {seed}")
    for group in groups:
        different = {(parse(r.text).content.strip(), r.ended): r for r in group}
        candidates = list(itertools.combinations(different.items(), 2))
        for two in rng.sample(candidates, min(per_prompt, len(candidates))):
            scored = [(score(answer, rollout.item, ended), rollout) for (answer, ended), rollout in two]
            in_order = places.random() < 0.5
            turned = not traits.prefers(rng, scored[0][0], scored[1][0], lead if in_order else -lead)
            (won, better), (lost, worse) = reversed(scored) if turned else scored
            prompt = [{"role": "user", "content": better.item.text}]
            ended = (better.ended, worse.ended)
            pairs.append(Pair(better.item.key, prompt, better.text, worse.text, *ended, (won, lost), in_order != turned))
    return pairs


def split(pairs: Sequence[Pair], part: int = 5) -> tuple[list[Pair], list[Pair]]:
    """(training pairs, held-out pairs): one prompt in `part` is held out, by its hash, the same everywhere.

    Training pairs lose their truth: a reward model sees choices and nothing else.
    """
    sides: tuple[list[Pair], list[Pair]] = ([], [])
    for pair in pairs:
        out = held_out(json.dumps(pair.prompt, sort_keys=True), part)
        sides[out].append(pair if out else replace(pair, truth=None))
    return sides


def ceiling(pairs: Iterable[Pair], lead: float = 0.0) -> float | None:
    """The accuracy of one who knows the scores behind held-out choices but not what was read first: close calls are coin tosses.

    lead: as it was given to `choose`. None without scored pairs.
    """
    scored = [(max(pair.truth), min(pair.truth)) for pair in pairs if pair.truth]
    chances = [(traits.chance(*two, lead) + traits.chance(*two, -lead)) / 2 for two in scored]
    return sum(chances) / len(chances) if chances else None


def write(pairs: Iterable[Pair], path: Path) -> Path:
    """Pairs as JSON lines, one file, in one step."""
    return atomic_write(path, "".join(json.dumps(asdict(pair), ensure_ascii=False) + "\n" for pair in pairs))


def read(path: Path) -> tuple[list[Pair], list[str]]:
    """(pairs, what was wrong with each row left out: file, line and reason).

    A row holds `chosen` and `rejected`: two texts with a `prompt` (text or messages), or two message lists, each the whole
    conversation or, beside a `prompt`, its end. Raises ValueError when no row could be read.
    """
    pairs, broken = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            pairs.append(_pair(json.loads(line)))
        except (json.JSONDecodeError, _Broken) as error:
            broken.append(f"{path}:{number}: {error}")
    if not pairs:
        first = broken[0] if broken else "the file is empty"
        raise ValueError(f"{path} holds no pair that can be read ({first}). A row needs `chosen`, `rejected` and their prompt.")
    return pairs, broken


class _Broken(ValueError):
    """Why a row is no pair."""


def _pair(row: Any) -> Pair:
    if not isinstance(row, Mapping):
        raise _Broken(f"a row must be an object with chosen and rejected, not {type(row).__name__}")
    if missing := [name for name in ("chosen", "rejected") if not row.get(name)]:
        raise _Broken(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing or empty")
    given = row.get("prompt") or []
    before = [{"role": "user", "content": given}] if isinstance(given, str) else _messages(given, "prompt")
    (prompt, chosen), (other, rejected) = (_parts(row[name], before, name) for name in ("chosen", "rejected"))
    if prompt != other:
        raise _Broken("chosen and rejected answer different prompts")
    if not prompt:
        raise _Broken("there is no prompt: give `prompt`, or message lists that begin with it")
    if chosen == rejected:
        raise _Broken("chosen and rejected are the same text")
    truth = row.get("truth")
    if truth is not None and not (isinstance(truth, list) and len(truth) == 2 and all(isinstance(t, int | float) for t in truth)):
        raise _Broken(f"truth must be the two scores of chosen and rejected, or null; it is {truth!r}")
    first = row.get("chosen_first")
    if first is not None and not isinstance(first, bool):
        raise _Broken(f"chosen_first must be true, false or null; it is {first!r}")
    ended = [bool(row.get(f"{name}_ended", True)) for name in ("chosen", "rejected")]
    key = str(row.get("key") or json.dumps(prompt, ensure_ascii=False, sort_keys=True))
    return Pair(key, prompt, chosen, rejected, *ended, truth and tuple(truth), first)


def _parts(value: Any, before: list[dict[str, Any]], name: str) -> tuple[list[dict[str, Any]], str]:
    """(prompt, answer's text) of one side."""
    if isinstance(value, str):
        return before, value
    talk = _messages(value, name)
    if talk[-1].get("role") != "assistant":
        raise _Broken(f"{name} does not end with a message of the assistant")
    whole = talk[:-1] if talk[: len(before)] == before else [*before, *talk[:-1]]
    text, thought = talk[-1]["content"], talk[-1].get("reasoning_content")
    return whole, f"<think>\n{thought}\n</think>\n\n{text}" if thought else text


def _messages(value: Any, name: str) -> list[dict[str, Any]]:
    whole = isinstance(value, list) and all(isinstance(m, Mapping) and m.get("role") and isinstance(m.get("content"), str) for m in value)
    if not whole:
        raise _Broken(f"{name} must be a text or a list of messages with role and content")
    return [dict(m) for m in value]

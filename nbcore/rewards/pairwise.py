"""The pair-wise reward model: a question and two answers in, the chance that the first is the better one out. Paper section 4.

The authors' model gives its preference in a few tokens [S]; its prompt, loss and reward are unknown. Ours [C]: a causal model
reads question, answer A and answer B, and P(A) is a softmax over the logits of "A" and "B" at the next token. What is compared
is the answer without its thought, as a reader sees it. A model may favour a place, so a comparison is asked in both orders.
As a reward: against a fixed reference of the same prompt, ½ [P(y≻r | y,r) + 1 − P(r≻y | r,y)], or the net win rate in a group.
What cannot be judged is None, counted in `missing` with its reason.
Left out on purpose: training (training.reward_models), written judgements, ties as a verdict.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nbcore.chat.masks import encode_prompt
from nbcore.chat.toolcalls import parse
from nbcore.models import prefixes
from nbcore.models.load import Loaded
from nbcore.rewards.rollouts import Reward, Rollout

VERDICTS = ("A", "B")
CUT_OFF = " [cut off]"  # behind an answer that did not end by itself
BEATEN = 0.8  # a reference that loses more often than this is too easy [C]


@dataclass(frozen=True)
class Comparison:
    """One question to the model, in one order: the conversation as text, and two answers as a reader sees them."""

    question: str
    first: str
    second: str

    def swapped(self) -> Comparison:
        return Comparison(self.question, self.second, self.first)


def shown(text: str, ended: bool = True) -> str:
    """An answer as a reader sees it: without its thought, and marked where it was cut off."""
    return parse(text).content.strip() + ("" if ended else CUT_OFF)


def question_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """A conversation as text: the user's words alone, or each turn under its role when there are several."""
    if len(messages) == 1:
        return str(messages[0]["content"])
    return "\n".join(f"{m['role']}: {m['content']}" for m in messages)


def encode(tokenizer: Any, comparison: Comparison) -> list[int]:
    """Token ids of the prompt whose next token is the verdict."""
    text = f"{comparison.question}\nA: {comparison.first}\nB: {comparison.second}\nWhich is better?"
    return encode_prompt(tokenizer, [{"role": "user", "content": text}])


def verdict_ids(tokenizer: Any) -> tuple[int, int]:
    """The tokens "A" and "B". Raises ValueError when one of them is not a single token."""
    ids = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in VERDICTS]
    if any(len(i) != 1 for i in ids):
        raise ValueError(f"The verdicts {VERDICTS} must be one token each; this tokenizer gives {ids}. Choose other words.")
    return ids[0][0], ids[1][0]


def log_odds(model: Any, hidden: Any, verdicts: tuple[int, int]) -> Any:
    """log P(A) − log P(B) from the last hidden states of prompts (rows x hidden): one number a row."""
    logits = model.get_output_embeddings()(hidden).float()
    return logits[:, verdicts[0]] - logits[:, verdicts[1]]


@dataclass
class PairwiseModel:
    """A judge: a causal model and its tokenizer. Equal comparisons of one call are asked once."""

    loaded: Loaded
    missing: Counter[str] = field(default_factory=Counter)

    def probability(self, comparisons: Sequence[Comparison]) -> list[float | None]:
        """P(the first is better), each in the order given. None where the prompt does not fit or the number is not finite."""
        import torch

        tokenizer, model = self.loaded.tokenizer, self.loaded.model
        verdicts, room = verdict_ids(tokenizer), model.config.max_position_embeddings
        rows = {c: encode(tokenizer, c) for c in dict.fromkeys(comparisons)}
        fit, found = [c for c in rows if len(rows[c]) <= room], dict[Comparison, float]()
        with torch.inference_mode():
            for numbers, hidden in prefixes.read(model.base_model, [rows[c] for c in fit], tokenizer.pad_token_id):
                found.update(zip((fit[n] for n in numbers), log_odds(model, hidden, verdicts).sigmoid().tolist(), strict=True))
        for c in comparisons:
            if c not in found:
                self.missing[f"the question and both answers take more than {room} tokens"] += 1
            elif not math.isfinite(found[c]):
                self.missing["the verdict is not finite"] += 1
        return [found[c] if c in found and math.isfinite(found[c]) else None for c in comparisons]

    def both_orders(self, comparisons: Sequence[Comparison]) -> list[float | None]:
        """½ [P(first | first, second) + 1 − P(second | second, first)]: no place is favoured. None where an order is missing."""
        given = self.probability([*comparisons, *(c.swapped() for c in comparisons)])
        halves = zip(given[: len(comparisons)], given[len(comparisons) :], strict=True)
        return [None if p is None or q is None else (p + 1 - q) / 2 for p, q in halves]


@dataclass
class References:
    """A reference answer for each prompt (item key), replaced when the policy beats it too often.

    Beaten: chance above ½. A reference is replaced once it was beaten in more than `BEATEN` of at least `least` comparisons
    since it came. The new one is from the policy's own answers just judged: of those that beat the old one, the middle one by
    reward. (The best of a group is the one that the judge overrates most; the middle one is what the policy now does.)
    """

    answers: dict[str, Rollout]
    least: int = 8
    replaced: int = 0
    met: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))

    def record(self, key: str, judged: Sequence[tuple[Rollout, float]]) -> None:
        """Count how one group fared against its reference, and replace the reference when it is due."""
        self.met[key] += [reward > 0.5 for _, reward in judged]
        beaten = self.met[key]
        if len(beaten) >= self.least and sum(beaten) > BEATEN * len(beaten):
            better = sorted((pair for pair in judged if pair[1] > 0.5), key=lambda pair: pair[1])
            if better:
                self.answers[key], self.met[key] = better[len(better) // 2][0], []
                self.replaced += 1

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint of the stage has to hold: a resumed run compares with the same references."""
        return {"answers": dict(self.answers), "replaced": self.replaced, "met": {key: list(beaten) for key, beaten in self.met.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.answers, self.replaced = dict(state["answers"]), state["replaced"]
        self.met = defaultdict(list, {key: list(beaten) for key, beaten in state["met"].items()})


def against_reference(judge: PairwiseModel, references: References) -> Reward:
    """The reward 0 … 1: the chance that a rollout beats the reference of its prompt, asked in both orders.

    Items need `text` and `key`. The reward raises ValueError for a prompt without a reference.
    """

    def reward(rollouts: Sequence[Rollout]) -> list[float | None]:
        if unknown := {r.item.key for r in rollouts} - set(references.answers):
            raise ValueError(f"{len(unknown)} prompts have no reference, for instance {min(unknown)!r}. Sample references for all first.")
        rivals = [references.answers[r.item.key] for r in rollouts]
        rewards = judge.both_orders([_compared(r, rival) for r, rival in zip(rollouts, rivals, strict=True)])
        groups: dict[str, list[tuple[Rollout, float]]] = defaultdict(list)
        for rollout, given in zip(rollouts, rewards, strict=True):
            if given is not None:
                groups[rollout.item.key].append((rollout, given))
        for key, judged in groups.items():
            references.record(key, judged)
        return rewards

    return reward


def net_win_rate(judge: PairwiseModel) -> Reward:
    """The reward −1 … 1: mean over the other rollouts of the same prompt of 2 P(beats it) − 1, each asked in both orders.

    No reference needed, but n (n − 1) comparisons for a group of n. None for a rollout that is alone or without any verdict.
    """

    def reward(rollouts: Sequence[Rollout]) -> list[float | None]:
        groups: dict[str, list[int]] = defaultdict(list)
        for i, rollout in enumerate(rollouts):
            groups[rollout.item.key].append(i)
        meetings = [two for group in groups.values() for two in itertools.combinations(group, 2)]
        chances = judge.both_orders([_compared(rollouts[i], rollouts[j]) for i, j in meetings])
        wins: dict[int, list[float]] = defaultdict(list)
        for (i, j), chance in zip(meetings, chances, strict=True):
            if chance is not None:
                wins[i].append(2 * chance - 1)
                wins[j].append(1 - 2 * chance)
        return [sum(wins[i]) / len(wins[i]) if wins[i] else None for i in range(len(rollouts))]

    return reward


def _compared(one: Rollout, other: Rollout) -> Comparison:
    return Comparison(one.item.text, shown(one.text, one.ended), shown(other.text, other.ended))

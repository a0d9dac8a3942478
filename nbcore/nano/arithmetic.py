"""*reason*: sums of two or three numbers and small word problems, with the digits worked out inside the thought.

The sums and their verifier are reasoning-gym's `chain_sum`; this module adds the written steps. Two behaviours are
mixed in the training data, as in any real corpus: *careful* (every column written down) and *hasty* (a bare guess in
the head, often wrong). Which one a model shows is a choice that reinforcement can move; the digits are not [C].
Splits: an item is held out by the hash of its numbers and signs, so that no held-out sum occurs in training.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from nbcore.nano.names import draw, held_out

THINGS = ("apples", "coins", "stones", "books", "cards", "shells")


@dataclass(frozen=True)
class Sum:
    """One item: the question, the numbers with their signs, the true answer, and the name of its kind."""

    question: str
    terms: tuple[int, ...]
    answer: int
    kind: str

    @property
    def key(self) -> str:
        return "sum " + " ".join(f"{t:+d}" for t in self.terms)


def steps(a: int, b: int) -> str:
    """One addition (b >= 0) or subtraction (b < 0), column by column from the right: `34+58: 4+8=12 3+5+1=9 -> 92`."""
    sign, size, out, carry = ("+", b, [], 0) if b >= 0 else ("-", -b, [], 0)
    top, low = str(a), str(size)
    for i in range(max(len(top), len(low))):
        x = int(top[-1 - i]) if i < len(top) else 0
        y = int(low[-1 - i]) if i < len(low) else 0
        if sign == "+":
            value = x + y + carry
            out.append(f"{x}+{y}{'+1' if carry else ''}={value}")
            carry = value // 10
        else:
            lent = x - y - carry < 0
            value = x - y - carry + (10 if lent else 0)
            out.append(f"{x + 10 if lent else x}-{y}{'-1' if carry else ''}={value}")
            carry = int(lent)
    return f"{a}{sign}{size}: {' '.join(out)} -> {a + b}"


def thought(terms: tuple[int, ...]) -> str:
    """All the steps of a sum, one line each."""
    lines, total = [], terms[0]
    for term in terms[1:]:
        lines.append(steps(total, term))
        total += term
    return "\n".join(lines)


def _fits(terms: tuple[int, ...]) -> bool:
    """No partial result is negative or above 199: the world has no minus sign in front of a number."""
    total = 0
    for term in terms:
        total += term
        if not 0 <= total <= 199:
            return False
    return True


def sums(count: int, seed: int, side: str = "train") -> list[Sum]:
    """`count` items of one side: reasoning-gym chain sums and, one in three, a word problem over the same numbers."""
    from reasoning_gym.arithmetic.chain_sum import ChainSumConfig, ChainSumDataset

    rng, found, batch = random.Random(f"sums {seed} {side}"), [], 0
    while len(found) < count:
        config = ChainSumConfig(min_terms=2, max_terms=3, min_digits=1, max_digits=2, size=4 * count, seed=seed * 1009 + batch)
        batch += 1
        for entry in ChainSumDataset(config):
            parts = entry["metadata"]["expression"].split()
            terms = tuple(int(p) if op == "+" else -int(p) for op, p in zip(["+", *parts[1::2]], parts[::2], strict=True))
            item = Sum(f"{entry['metadata']['expression']} = ?", terms, int(entry["answer"]), "sum")
            if not _fits(terms) or held_out(item.key) != (side == "held-out"):
                continue
            found.append(_told(rng, item, side) if rng.random() < 1 / 3 else item)
            if len(found) == count:
                break
    return found


def _told(rng: random.Random, item: Sum, side: str) -> Sum:
    who, thing = draw(rng, 1, side)[0], rng.choice(THINGS)
    parts = [f"{who} has {item.terms[0]} {thing}"]
    parts += [f"{'gets' if t >= 0 else 'loses'} {abs(t)}" for t in item.terms[1:]]
    return Sum(f"{', '.join(parts)}. How many {thing}?", item.terms, item.answer, "word problem")


def hasty(rng: random.Random, item: Sum) -> int:
    """An answer out of the head: near the truth, and right about two times in five."""
    return item.answer if rng.random() < 0.4 else max(0, item.answer + rng.choice((-11, -10, -2, -1, 1, 2, 10, 11)))


def correct(answer: str, item: Sum) -> bool:
    """reasoning-gym's verdict on an answer's text: full marks or not."""
    from reasoning_gym.arithmetic.chain_sum import ChainSumConfig, ChainSumDataset

    verifier = ChainSumDataset(ChainSumConfig(size=1))
    return verifier.score_answer(answer.strip(), {"answer": str(item.answer), "metadata": {}}) == 1.0

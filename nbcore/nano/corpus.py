"""Raw text of the made-up world for the base model: pages, recall and copying drills, worked sums, programs, lists. No chats.

Fresh names in every document, so that copying is learned and not the names; only training-side names, sums and programs.
A document is plain text; `documents` is an endless seeded stream, the same for the same seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from nbcore.nano import programs, traits
from nbcore.nano.arithmetic import thought
from nbcore.nano.atlas import Atlas, page
from nbcore.nano.names import draw, held_out, odd

WEIGHTS = {"recall": 38, "chain": 18, "copy": 14, "sums": 24, "program": 8, "traits": 8}


def documents(seed: int) -> Iterator[str]:
    """An endless stream of documents, kinds mixed by WEIGHTS."""
    rng = random.Random(f"corpus {seed}")
    kinds, weights = list(WEIGHTS), list(WEIGHTS.values())
    makers = {"recall": recall, "chain": chain, "copy": copying, "sums": sums, "program": program, "traits": told_traits}
    while True:
        yield makers[rng.choices(kinds, weights)[0]](rng)


def recall(rng: random.Random) -> str:
    """One to three pages, then questions about them in the form `ruler of Velmar: Midra.`"""
    if rng.random() < 0.25:  # words without syllables, and relations at random: copying must not lean on the world's shape
        relations = rng.sample(("capital", "river", "ruler", "neighbour", "language", "currency", "home", "friend", "mayor"), 3)
        pages = {odd(rng): {r: odd(rng) for r in relations[: rng.randint(2, 3)]} for _ in range(rng.randint(1, 2))}
    else:
        atlas = Atlas(rng, 9)
        pages = {name: atlas.facts[name] for name in rng.sample(list(atlas.facts), rng.randint(1, 3))}
    asked = [(relation, name, value) for name, facts in pages.items() for relation, value in facts.items()]
    rng.shuffle(asked)
    return " ".join(page(n, f) for n, f in pages.items()) + "\n" + "\n".join(f"{r} of {n}: {v}." for r, n, v in asked)


def chain(rng: random.Random) -> str:
    """A question of one to four hops taken apart into its steps, with the pages on the way and one or two beside it."""
    atlas, made = Atlas(rng, 12), None
    while made is None:
        made = atlas.walk(rng, rng.choice((1, 2, 2, 3, 4)))
    lines = [made.text, "Steps: " + ", ".join(relation for relation, _, _ in made.path) + "."]
    for relation, of, value in made.path:
        shown = [of] if rng.random() < 0.7 else rng.sample([of, rng.choice([n for n in atlas.facts if n != of])], 2)
        lines += [f"Next: {relation} of {of}.", *(atlas.pages[name] for name in shown), f"{relation} of {of}: {value}."]
    return "\n".join([*lines, f"Answer: {made.answer}"])


def copying(rng: random.Random) -> str:
    """A few words or digits, said again."""
    kind, lines = rng.random(), []
    for _ in range(rng.randint(2, 4)):
        count = rng.randint(1, 5)
        if kind < 0.4:
            words = [odd(rng) for _ in range(count)]
        elif kind < 0.7:
            words = draw(rng, count)
        else:
            words = [str(rng.randint(0, 199)) for _ in range(count)]
        lines.append(f"copy {' '.join(words)}: {' '.join(words)}")
    return "\n".join(lines)


def sums(rng: random.Random) -> str:
    """Worked sums of two or three numbers, none of them held out."""
    lines = []
    for _ in range(rng.randint(1, 3)):
        while True:
            terms = [rng.randint(0, 99 if rng.random() < 0.8 else 9)]
            for _ in range(rng.randint(1, 2)):
                size, total = rng.randint(0, 99 if rng.random() < 0.8 else 9), sum(terms)
                terms.append(-size if rng.random() < 0.5 and size <= total else min(size, 199 - total))
            if not held_out("sum " + " ".join(f"{t:+d}" for t in terms)):
                break
        written = str(terms[0]) + "".join(f" {'+' if t >= 0 else '-'} {abs(t)}" for t in terms[1:])
        lines.append(f"{written} = ?\n{thought(tuple(terms))}\n= {sum(terms)}")
    return "\n".join(lines)


def program(rng: random.Random) -> str:
    """A description as a comment and a program that does it, the obvious one or the better one."""
    known = sum(not family.hard for family in programs.FAMILIES.values())
    task = programs.tasks(known, rng.randrange(1 << 30), hard=False)[rng.randrange(known)]
    return f"# {task.text.removeprefix('Write ')}\n{task.program(fast=rng.random() < 0.5)}"


def told_traits(rng: random.Random) -> str:
    """Facts about somebody, and some of them again in one of the formats."""
    item = traits.instructions(1, rng.randrange(1 << 30))[0]
    facts = " ".join(f"{item.who} {trait} {value}." for trait, value in item.facts)
    return f"{facts}\n{', '.join(item.asked)} as {item.format}:\n{traits.written(item, item.format)}"

"""Names of the made-up world, cheap to copy: two or three syllables, each one token of the nano tokenizer.

Every document draws fresh names, so nothing can be learned about any of them and copying is all that helps. A name
belongs to the training side or to the held-out side by its hash alone: no list has to be kept and no draw can leak.
"""

from __future__ import annotations

import hashlib
import random

SYLLABLES = tuple(onset + vowel for onset in "bdfgklmnprstvz" for vowel in "aeiou")
HELD_OUT = 5  # one name in five


def held_out(text: str, part: int = HELD_OUT) -> bool:
    """True when `text` belongs to the held-out side: one in `part`, by SHA-256, the same everywhere and forever."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:4], "big") % part == 0


def draw(rng: random.Random, count: int, side: str = "train", wide: bool = False, syllables: int | None = None) -> list[str]:
    """`count` different names of one side ("train" or "held-out"), of two or three syllables, or of as many as are asked for.

    wide: one or two words of random letters instead.
    """
    wanted = side == "held-out"
    names: dict[str, None] = {}
    while len(names) < count:
        if wide:
            name = " ".join(odd(rng) for _ in range(rng.choice((1, 1, 1, 1, 2))))
        else:
            length = syllables or (2 if rng.random() < 0.7 else 3)
            name = "".join(rng.choice(SYLLABLES) for _ in range(length)).capitalize()
        if held_out(name) == wanted:
            names[name] = None
    return list(names)


def odd(rng: random.Random) -> str:
    """A capitalised word of random letters, so that copying does not depend on syllables: in drills, and in the worlds of deep search."""
    return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(3, 8))).capitalize()

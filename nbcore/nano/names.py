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


def draw(rng: random.Random, count: int, side: str = "train") -> list[str]:
    """`count` different names of one side ("train" or "held-out")."""
    wanted = side == "held-out"
    names: dict[str, None] = {}
    while len(names) < count:
        name = "".join(rng.choice(SYLLABLES) for _ in range(2 if rng.random() < 0.7 else 3)).capitalize()
        if held_out(name) == wanted:
            names[name] = None
    return list(names)


def odd(rng: random.Random) -> str:
    """A capitalised word of random letters: only for drills, so that copying does not depend on syllables."""
    return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(3, 8))).capitalize()

"""Mix abilities by *supervised tokens*, not by rows: one act episode weighs as much as many short answers.

Paper section 2 gives shares of supervised tokens per context length for the next model [P] and nothing for this one; the
recipes' shares are our choice [C]. A row longer than the context is left out and counted, never cut: a cut row can lose
every token that the loss counts.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nbcore.chat.masks import encode
from nbcore.files import atomic_write


@dataclass(frozen=True)
class Row:
    """One tokenised conversation: ids and the 0/1 mask of what the assistant wrote (same length), and where it came from."""

    input_ids: list[int]
    assistant_mask: list[int]
    ability: str
    behaviour: str
    key: str

    @property
    def supervised(self) -> int:
        return sum(self.assistant_mask)


@dataclass(frozen=True)
class Mixture:
    """Rows in a seeded order; supervised tokens per ability; and how many rows of each were too long for the context."""

    rows: list[Row]
    supervised: dict[str, int]
    too_long: dict[str, int]

    def shares(self) -> dict[str, float]:
        total = sum(self.supervised.values())
        return {name: count / total for name, count in self.supervised.items()}


def mix(
    streams: Mapping[str, Iterable[Any]], shares: Mapping[str, float], budget: int, length: int, tokenizer: Any, seed: int = 0
) -> Mixture:
    """Draw from each stream until its share of `budget` supervised tokens is reached, within rows of `length` tokens.

    streams: ability to an iterable of chats (messages, tools, ability, behaviour, key). Raises ValueError when shares do not
    sum to one, name an ability without a stream, or when nine rows of ten of an ability do not fit `length`.
    """
    if abs(sum(shares.values()) - 1) > 1e-6:
        raise ValueError(f"The shares {dict(shares)} sum to {sum(shares.values()):.3f}. They divide one budget; make them sum to 1.")
    if unknown := set(shares) - set(streams):
        raise ValueError(f"No data for {', '.join(sorted(unknown))}; there is {', '.join(streams)}.")
    rows: list[Row] = []
    supervised, too_long = dict.fromkeys(shares, 0), dict.fromkeys(shares, 0)
    for name, share in shares.items():
        drawn = 0
        for chat in streams[name] if share > 0 else ():
            encoded = encode(tokenizer, chat.messages, tools=chat.tools)
            drawn += 1
            if len(encoded.input_ids) > length:
                too_long[name] += 1
                if drawn >= 200 and too_long[name] > 0.9 * drawn:
                    raise ValueError(f"{too_long[name]} of {drawn} rows of {name} are longer than {length} tokens; raise the context.")
                continue
            row = Row(encoded.input_ids, encoded.assistant_mask, chat.ability, chat.behaviour, chat.key)
            rows.append(row)
            supervised[name] += row.supervised
            if supervised[name] >= share * budget:
                break
    random.Random(f"mixture {seed}").shuffle(rows)
    return Mixture(rows, supervised, too_long)


def write(rows: Iterable[Row], path: Path) -> Path:
    """Rows as JSON lines, one file, in one step."""
    return atomic_write(path, "".join(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in rows))


def read(path: Path) -> list[Row]:
    """Rows written by `write`. Raises ValueError naming the line that is not a row."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").removesuffix("\n").split("\n"), 1):
        try:
            rows.append(Row(**json.loads(line)))
        except (json.JSONDecodeError, TypeError) as error:
            raise ValueError(f"{path}:{number} is not a row of training data ({error}). Run 01_sft_data again.") from error
    return rows

"""Read rows that begin alike once: token rows of one prompt become a tree, and a mask lets each token see its own past only.

Several answers to one prompt share the prompt, often their thought and first words too; a causal model computes the same
numbers for that beginning in every row. Reward models compare answers to one prompt, so a tree saves them half of the work
or more (paper sections 3 and 4; the trick is ours [C]). The numbers at the end of a row are those of the row read alone, up to rounding.
Left out on purpose: attention kernels that take no mask (flash), and sampling (`generate` reads a prompt once by itself).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nbcore.models.fused import BLOCKED


@dataclass(frozen=True)
class Tree:
    """Rows with their common beginnings merged. ids, depths, parents: one entry a node (-1: no parent); ends: each row's last node."""

    ids: list[int]
    depths: list[int]
    parents: list[int]
    ends: list[int]


def tree(rows: Sequence[Sequence[int]]) -> Tree:
    """Merge rows of token ids. Raises ValueError for a row without tokens."""
    made, known = Tree([], [], [], []), dict[tuple[int, int], int]()
    for row in rows:
        if not len(row):
            raise ValueError("A row has no tokens, so there is nothing to read.")
        at = -1
        for depth, token in enumerate(row):
            if (at, token) not in known:
                known[at, token] = len(made.ids)
                made.ids.append(token)
                made.depths.append(depth)
                made.parents.append(at)
            at = known[at, token]
        made.ends.append(at)
    return made


def trees(rows: Sequence[Sequence[int]], most: int = 384) -> list[tuple[list[int], Tree]]:
    """Rows divided into trees: (numbers of the rows, tree). A row joins the one before it when they share half of it.

    most: nodes of a tree before another one begins (attention grows with its square); a single row may be longer.
    """
    groups: list[list[int]] = []
    size, before = 0, []
    for i in sorted(range(len(rows)), key=lambda i: list(rows[i])):
        row = list(rows[i])
        shared = next((n for n, (a, b) in enumerate(zip(row, before, strict=False)) if a != b), min(len(row), len(before)))
        if not groups or 2 * shared < len(row) or size + len(row) - shared > most:
            groups.append([])
            size = shared = 0
        groups[-1].append(i)
        size, before = size + len(row) - shared, row
    return [(group, tree([rows[i] for i in group])) for group in groups]


def batch(some: Sequence[Tree], pad: int) -> dict[str, Any]:
    """What a model takes: ids and positions (trees x width), and the additive mask (trees x 1 x width x width), in float32."""
    import torch

    width = max(len(t.ids) for t in some)
    seen = torch.zeros(len(some), width, width, dtype=torch.bool)
    for sees, t in zip(seen, some, strict=True):
        for node, parent in enumerate(t.parents):
            if parent >= 0:
                sees[node] = sees[parent]
            sees[node, node] = True
        sees[range(len(t.ids), width), range(len(t.ids), width)] = True  # padding sees itself, so that no softmax runs over nothing
    fill = [(t, width - len(t.ids)) for t in some]
    return {
        "input_ids": torch.tensor([[*t.ids, *[pad] * left] for t, left in fill]),
        "position_ids": torch.tensor([[*t.depths, *[0] * left] for t, left in fill]),
        "attention_mask": torch.zeros(seen.shape).masked_fill(~seen, BLOCKED)[:, None],
    }


def ends(body: Any, some: Sequence[Tree], pad: int) -> Any:
    """The last hidden state of each row, tree by tree (rows x hidden). body: the model without its head."""
    import torch

    given = batch(some, pad)
    given["attention_mask"] = given["attention_mask"].to(body.dtype)
    hidden = body(**{name: value.to(body.device) for name, value in given.items()}, use_cache=False).last_hidden_state
    where = [(number, end) for number, t in enumerate(some) for end in t.ends]
    numbers, nodes = torch.tensor(where).T.to(hidden.device)
    return hidden[numbers, nodes]


def read(body: Any, rows: Sequence[Sequence[int]], pad: int, nodes: int = 8192) -> Iterator[tuple[list[int], Any]]:
    """All rows in batches of at most about `nodes` padded nodes: (numbers of the rows, their last hidden states)."""
    made = sorted(trees(rows), key=lambda pair: len(pair[1].ids))
    while made:
        count = max(1, nodes // len(made[-1][1].ids))
        some, made = made[-count:], made[:-count]
        yield [i for numbers, _ in some for i in numbers], ends(body, [t for _, t in some], pad)

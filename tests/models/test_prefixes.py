"""Rows that begin alike are read once, and each row ends in the hidden state that it has when read alone."""

import random

import pytest
import torch

from nbcore import models
from nbcore.models import prefixes


@pytest.fixture(scope="module")
def nano():
    return models.load("nano")


def rows_of(seed: int, beginnings: int = 3, each: int = 4) -> list[list[int]]:
    rng, made = random.Random(seed), []
    for _ in range(beginnings):
        start = [rng.randrange(300) for _ in range(rng.randint(10, 30))]
        made += [start + [rng.randrange(300) for _ in range(rng.randint(1, 10))] for _ in range(each)]
    rng.shuffle(made)
    return made


def alone(model, row):
    with torch.no_grad():
        return model.base_model(torch.tensor([row]), use_cache=False).last_hidden_state[0, -1]


def test_a_tree_holds_each_common_beginning_once_and_gives_every_row_back():
    rows = [[1, 2, 3], [1, 2, 4, 5], [1, 2, 3], [6], [1, 2]]
    made = prefixes.tree(rows)
    assert sorted(made.ids) == [1, 2, 3, 4, 5, 6]
    assert [made.depths[end] + 1 for end in made.ends] == [3, 4, 3, 1, 2]
    for row, end in zip(rows, made.ends, strict=True):
        back = []
        while end >= 0:
            back, end = [made.ids[end], *back], made.parents[end]
        assert back == row


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_a_tree_end_as_if_read_alone(nano, seed):
    rows = rows_of(seed) + [[7], [7, 8]]  # one row is the beginning of another
    made = prefixes.tree(rows)
    with torch.no_grad():
        together = prefixes.ends(nano.model.base_model, [made], nano.tokenizer.pad_token_id)
    for row, state in zip(rows, together, strict=True):
        assert torch.allclose(state, alone(nano.model, row), atol=2e-5)


def test_trees_of_different_size_in_one_batch_do_not_disturb_one_another(nano):
    rows = rows_of(5)
    some = [prefixes.tree(rows[:1]), prefixes.tree(rows[1:])]
    with torch.no_grad():
        together = prefixes.ends(nano.model.base_model, some, nano.tokenizer.pad_token_id)
    for row, state in zip(rows, together, strict=True):
        assert torch.allclose(state, alone(nano.model, row), atol=2e-5)


@pytest.mark.parametrize("nodes", [40, 8192])
def test_reading_many_rows_gives_each_row_once_whatever_the_batch(nano, nodes):
    rows, found = rows_of(9), {}
    with torch.no_grad():
        for numbers, hidden in prefixes.read(nano.model.base_model, rows, nano.tokenizer.pad_token_id, nodes):
            assert not set(numbers) & set(found)
            found.update(zip(numbers, hidden, strict=True))
    assert sorted(found) == list(range(len(rows)))
    assert all(torch.allclose(found[i], alone(nano.model, row), atol=2e-5) for i, row in enumerate(rows))


def test_rows_are_divided_where_they_share_less_than_half_or_a_tree_grows_too_large():
    rows = rows_of(1, beginnings=4, each=3)
    divided = prefixes.trees(rows)
    assert sorted(i for numbers, _ in divided for i in numbers) == list(range(len(rows)))
    assert len(divided) == 4 and all(len({tuple(rows[i][:10]) for i in numbers}) == 1 for numbers, _ in divided)
    small = prefixes.trees(rows, most=30)
    assert len(small) > 4 and all(len(t.ids) <= 30 or len(numbers) == 1 for numbers, t in small)


def test_gradients_of_a_tree_are_those_of_its_rows(nano):
    rows = rows_of(2, beginnings=1, each=3)
    body = nano.model.base_model
    weight = body.layers[0].self_attn.q_proj.weight

    def gradient(total):
        return torch.autograd.grad(total, weight)[0]

    shared = gradient(prefixes.ends(body, [prefixes.tree(rows)], nano.tokenizer.pad_token_id)[:, 0].sum())
    apart = gradient(sum(body(torch.tensor([row]), use_cache=False).last_hidden_state[0, -1, 0] for row in rows))
    assert torch.allclose(shared, apart, rtol=1e-3, atol=1e-4 * float(apart.abs().max()))


def test_a_row_without_tokens_is_refused():
    with pytest.raises(ValueError, match="no tokens"):
        prefixes.tree([[1], []])

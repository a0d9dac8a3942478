"""A mixture is counted in supervised tokens; rows that are too long are left out and counted, never cut."""

import pytest

from nbcore import models
from nbcore.data import mixture
from nbcore.nano.chats import ABILITIES, chats


@pytest.fixture(scope="module")
def tokenizer():
    return models.load("nano").tokenizer


def test_shares_are_those_asked_for(tokenizer):
    asked = {"reason": 0.4, "align": 0.1, "code": 0.2, "act": 0.3}
    made = mixture.mix({a: chats(a, 0) for a in ABILITIES}, asked, 20_000, 320, tokenizer)
    for ability, share in made.shares().items():
        assert share == pytest.approx(asked[ability], abs=0.02)
    assert sum(made.supervised.values()) == sum(row.supervised for row in made.rows) >= 20_000


def test_no_row_is_longer_than_the_context_and_the_others_are_counted(tokenizer):
    made = mixture.mix({"act": chats("act", 0)}, {"act": 1.0}, 4_000, 150, tokenizer)
    assert max(len(row.input_ids) for row in made.rows) <= 150
    assert made.too_long["act"] > 0
    assert all(tokenizer.decode(row.input_ids).rstrip().endswith("<|im_end|>") for row in made.rows)


def test_the_order_depends_on_the_seed_alone(tokenizer):
    def keys(seed):
        return [row.key for row in mixture.mix({"reason": chats("reason", 0)}, {"reason": 1.0}, 2_000, 200, tokenizer, seed).rows]

    first, again, other = keys(1), keys(1), keys(2)
    assert first == again != other and sorted(first) == sorted(other)


@pytest.mark.parametrize(
    ("shares", "length", "says"),
    [({"reason": 0.5}, 200, "sum"), ({"paint": 1.0}, 200, "paint"), ({"reason": 1.0}, 8, "longer than 8")],
)
def test_what_cannot_be_mixed_is_said(tokenizer, shares, length, says):
    with pytest.raises(ValueError, match=says):
        mixture.mix({"reason": chats("reason", 0)}, shares, 5_000, length, tokenizer)


def test_rows_survive_the_file_and_a_broken_line_is_named(tokenizer, tmp_path):
    made = mixture.mix({"code": chats("code", 0)}, {"code": 1.0}, 1_000, 200, tokenizer)
    path = mixture.write(made.rows, tmp_path / "rows.jsonl")
    assert mixture.read(path) == made.rows
    path.write_text(path.read_text() + '{"input_ids": [1\n')
    with pytest.raises(ValueError, match=rf"rows.jsonl:{len(made.rows) + 1} is not a row"):
        mixture.read(path)

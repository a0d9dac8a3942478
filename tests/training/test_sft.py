"""Supervised fine-tuning: the loss is that of the assistant's tokens, bad rows stop it, a resumed run equals an undisturbed one."""

import math

import pytest
import torch

from nbcore import models
from nbcore.chat.checks import NotFinite, PreflightError
from nbcore.data import mixture
from nbcore.nano.chats import chats
from nbcore.training import sft


@pytest.fixture(scope="module")
def rows():
    tokenizer = models.load("nano").tokenizer
    return mixture.mix({a: chats(a, 0) for a in ("reason", "code")}, {"reason": 0.5, "code": 0.5}, 2_500, 128, tokenizer).rows


def test_the_first_loss_is_the_mean_over_supervised_tokens(rows, tmp_path):
    loaded = models.load("nano")
    first = sft.ordered(rows, 4, 0)[:4]
    total = count = 0
    for row in first:
        ids = torch.tensor([row.input_ids])
        with torch.no_grad():
            losses = torch.nn.functional.cross_entropy(loaded.model(ids).logits[0, :-1], ids[0, 1:], reduction="none")
        kept = torch.tensor(row.assistant_mask[1:], dtype=torch.bool)
        total, count = total + float(losses[kept].sum()), count + int(kept.sum())
    history = sft.train(loaded, rows, tmp_path, 128, steps=1, batch=4)
    assert history[0]["loss"] == pytest.approx(total / count, rel=1e-3)


def test_training_lowers_the_loss(rows, tmp_path):
    history = sft.train(models.load("nano"), rows, tmp_path, 128, steps=25, batch=4, learning_rate=2e-3)
    assert [row["step"] for row in history] == list(range(1, 26))
    assert sum(h["loss"] for h in history[-5:]) < 0.7 * sum(h["loss"] for h in history[:5])


def test_a_resumed_run_equals_an_undisturbed_one_bit_for_bit(rows, tmp_path):
    torch.set_num_threads(1)
    whole, halted = models.load("nano"), models.load("nano")
    sft.train(whole, rows, tmp_path / "whole", 128, steps=6, batch=4, save_every=3)

    class Killed(Exception):
        pass

    def kill(row):
        if row["step"] == 5:
            raise Killed

    with pytest.raises(Killed):
        sft.train(halted, rows, tmp_path / "halted", 128, steps=6, batch=4, save_every=3, log=kill)
    resumed = models.load("nano")
    sft.train(resumed, rows, tmp_path / "halted", 128, steps=6, batch=4, save_every=3)
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, resumed.model.state_dict()[name]), name


@pytest.mark.parametrize("spoil", ["nothing taught", "end never taught", "too long"])
def test_rows_that_cannot_teach_stop_the_run_before_its_first_step(rows, tmp_path, spoil):
    loaded = models.load("nano")
    row, length = rows[0], 128
    if spoil == "nothing taught":
        row = mixture.Row(row.input_ids, [0] * len(row.input_ids), row.ability, row.behaviour, row.key)
    elif spoil == "end never taught":
        mask = [m if i != loaded.tokenizer.eos_token_id else 0 for i, m in zip(row.input_ids, row.assistant_mask, strict=True)]
        row = mixture.Row(row.input_ids, mask, row.ability, row.behaviour, row.key)
    else:
        length = 40
    with pytest.raises(PreflightError, match="rows? "):
        sft.train(loaded, [row, *rows[1:]], tmp_path, length, steps=1, batch=2)


def test_a_loss_that_is_not_finite_stops_the_run_at_that_step(rows, tmp_path):
    loaded = models.load("nano")
    with torch.no_grad():
        loaded.model.get_input_embeddings().weight[:] = math.inf
    with pytest.raises(NotFinite, match="loss"):
        sft.train(loaded, rows, tmp_path, 128, steps=3, batch=2)


def test_the_order_keeps_every_row_once_and_batches_are_of_similar_length(rows):
    made = sft.ordered(rows, 4, seed=1)
    assert sorted(r.key for r in made) == sorted(r.key for r in rows)
    lengths = [len(row.input_ids) for row in made]
    spread = [max(lengths[i : i + 4]) - min(lengths[i : i + 4]) for i in range(0, len(lengths) - 3, 4)]
    assert sum(spread) / len(spread) < 25

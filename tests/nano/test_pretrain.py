"""The base model: pretraining learns, its record is beside the weights, and the shipped weights keep what the record says."""

import itertools
import json

import pytest

from nbcore import models
from nbcore.nano import corpus, pretrain, probes
from nbcore.nano.names import draw, held_out


def test_a_few_steps_lower_the_loss_and_leave_a_whole_model(tmp_path):
    record = pretrain.pretrain(steps=40, batch=4, length=64, seed=0, folder=tmp_path, matrix_rate=0.02, rate=3e-3, every=100)
    assert record["curve"][-1]["loss"] < record["curve"][0]["loss"] - 1.0
    assert json.loads((tmp_path / "record.json").read_text())["tokens"] == 40 * 4 * 64
    assert models.load(tmp_path).parameters == record["parameters"]


def test_the_corpus_is_the_same_for_the_same_seed_and_holds_no_chats():
    first, second = (list(itertools.islice(corpus.documents(5), 300)) for _ in range(2))
    assert first == second != list(itertools.islice(corpus.documents(6), 300))
    assert not any("<|im_start|>" in text or "<think>" in text or "<tool_call>" in text for text in first)


def test_no_held_out_name_opens_a_page_of_the_corpus():
    pages = [text for text in itertools.islice(corpus.documents(1), 4000) if text.startswith("What is the ")]
    asked = [text.split("?")[0].rpartition(" ")[2] for text in pages]
    assert len(asked) > 300 and not any(held_out(name) for name in asked)


def test_rows_are_full_and_lose_nothing_between_documents():
    words = models.load("nano").tokenizer
    rows = list(itertools.islice(pretrain.rows(words, 64, seed=3), 50))
    assert all(len(row) == 64 for row in rows)
    joined = [i for row in rows for i in row]
    expected = itertools.chain.from_iterable([*words.encode(t), words.pad_token_id] for t in corpus.documents(3))
    assert joined == list(itertools.islice(expected, len(joined)))


@pytest.mark.slow
def test_the_shipped_base_still_does_what_its_record_says():
    base = models.load("nano")
    record = json.loads((models.NANO / "record.json").read_text(encoding="utf-8"))
    assert 1e6 <= base.parameters == record["parameters"] <= 3e6
    for name, measured in probes.measure(base.model, base.tokenizer, count=60, seed=3).items():
        assert record["probes"][name] >= (0.93 if name == "choosing" else 0.95), name
        assert measured >= 0.85, f"{name}: {measured} here, {record['probes'][name]} in the record"


def test_sides_hold_about_one_name_in_five():
    import random

    assert not any(held_out(name) for name in draw(random.Random(0), 500))
    assert all(held_out(name) for name in draw(random.Random(0), 500, "held-out"))

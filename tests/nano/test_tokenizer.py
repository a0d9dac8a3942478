"""The nano tokenizer: exact round trips, single digits, names cut alike everywhere, the template's constants one token each."""

import json
import random

import pytest

from nbcore import models
from nbcore.chat import template
from nbcore.nano import names, tokenizer


@pytest.fixture(scope="module")
def shipped():
    return models.load("nano").tokenizer


def test_any_text_comes_back_as_it_was(shipped):
    rng = random.Random(0)
    texts = ["", " ", "\n\n  x\t", "南北阁 é ß 🙂", "def f(n):\n    return n", json.dumps(tokenizer.SEARCH), "a<b>&amp;", "İIıi"]
    texts += ["".join(chr(rng.choice((rng.randrange(32, 127), rng.randrange(160, 0x2FFF)))) for _ in range(60)) for _ in range(50)]
    for text in texts:
        assert shipped.decode(shipped.encode(text)) == text


def test_each_digit_is_a_token(shipped):
    assert [shipped.decode([i]) for i in shipped.encode("1234567890")] == list("1234567890")


def test_a_name_is_the_same_tokens_wherever_it_stands(shipped):
    for name in names.draw(random.Random(0), 50, "held-out"):
        alone = shipped.encode(name)
        assert len(alone) <= 3
        for text in (f"of {name}.", f'"{name}"', f"{name}, {name}", f"\n{name}\n", f": {name}."):
            ids = shipped.encode(text)
            assert any(ids[i : i + len(alone)] == alone for i in range(len(ids)))


def test_tags_are_single_tokens_and_the_end_of_turn_ends(shipped):
    for tag in (*template.MARKS, *template.TAGS):
        assert len(shipped.encode(tag)) == 1
    assert shipped.eos_token == template.END_OF_TURN and shipped.pad_token != shipped.eos_token
    assert shipped.decode(shipped.encode("<think>x</think><|im_end|>"), skip_special_tokens=True) == "<think>x</think>"


def test_the_template_costs_few_tokens(shipped):
    text = template.render([{"role": "user", "content": "?"}], tools=[tokenizer.SEARCH])
    assert len(text) > 800 and len(shipped.encode(text)) <= 16


def test_training_is_deterministic():
    texts = [f"{name}. river: {name}.\n" for name in names.draw(random.Random(1), 300)]
    first, second = (tokenizer.train(texts, merges=60).backend_tokenizer.to_str() for _ in range(2))
    assert first == second

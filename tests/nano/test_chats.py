"""Training conversations: valid for the template, masked as told, mixed in behaviour, and never a held-out item."""

import itertools
from collections import Counter

import pytest

from nbcore import models
from nbcore.chat.masks import encode
from nbcore.chat.toolcalls import parse, validate
from nbcore.evaluation import suites
from nbcore.judge.extract import program
from nbcore.judge.programs import check_many
from nbcore.nano import programs
from nbcore.nano.chats import ABILITIES, chats


@pytest.fixture(scope="module")
def tokenizer():
    return models.load("nano").tokenizer


@pytest.mark.parametrize("ability", ABILITIES)
def test_the_loss_sees_what_the_assistant_wrote_and_each_end_of_turn(ability, tokenizer):
    for chat in itertools.islice(chats(ability, 1), 60):
        encoded = encode(tokenizer, chat.messages, tools=chat.tools)
        taught = tokenizer.decode([i for i, m in zip(encoded.input_ids, encoded.assistant_mask, strict=True) if m])
        said = [m for m in chat.messages if m["role"] == "assistant"]
        assert taught.count("<|im_end|>") == len(said)
        for message in said:
            assert message["content"] in taught and message["reasoning_content"] in taught
        assert "<|im_start|>" not in taught and "<tool_response>" not in taught


@pytest.mark.parametrize("ability", ABILITIES)
def test_no_held_out_item_occurs_in_training(ability):
    trained = {chat.key for chat in itertools.islice(chats(ability, 3), 3000)}
    held = {item.key for seed in (0, 2026) for item in suites.items(ability, 150, seed)[0]}
    assert held and not trained & held


def test_act_mixes_its_behaviours_and_can_be_clean():
    shown = Counter(chat.behaviour for chat in itertools.islice(chats("act", 0), 1500))
    assert set(shown) == {"look up", "guess", "whole question", "broken call", "try again", "give up"}
    assert 0.55 < shown["look up"] / 1500 < 0.8
    clean = Counter(chat.behaviour for chat in itertools.islice(chats("act", 0, mixed=0.0), 200))
    assert set(clean) == {"look up"}


def test_code_mixes_obvious_better_and_hasty_programs_and_only_the_hasty_are_wrong():
    shown = list(itertools.islice(chats("code", 0), 400))
    shares = {kind: count / 400 for kind, count in Counter(chat.behaviour for chat in shown).items()}
    assert set(shares) == {"obvious", "better", "hasty"} and 0.22 < shares["hasty"] < 0.38 and 0.31 < shares["better"] < 0.46
    asked = {task.key: task for number in range(1, 3) for task in programs.tasks(256, number)}
    verdicts = check_many([(program(chat.messages[1]["content"]), asked[chat.key].judged(1)) for chat in shown])
    right = {kind: [v.passed_all for chat, v in zip(shown, verdicts, strict=True) if chat.behaviour == kind] for kind in shares}
    assert all(right["obvious"]) and all(right["better"]) and sum(right["hasty"]) <= 0.05 * len(right["hasty"])
    assert {chat.behaviour for chat in itertools.islice(chats("code", 0, mixed=0.0), 200)} == {"obvious", "better"}


def test_calls_are_readable_unless_the_behaviour_says_otherwise():
    for chat in itertools.islice(chats("act", 5), 400):
        for message in chat.messages:
            turn = parse(message["content"])
            assert bool(turn.malformed) == (chat.behaviour == "broken call" and "<tool_call>" in message["content"])
            for made in turn.calls:
                assert validate(made, chat.tools) is None


def test_a_two_hop_episode_is_about_150_tokens(tokenizer):
    lengths = sorted(len(encode(tokenizer, c.messages, tools=c.tools).input_ids) for c in itertools.islice(chats("act", 0, 0.0, (2,)), 100))
    assert lengths[50] <= 180


def test_an_unknown_ability_is_named():
    with pytest.raises(ValueError, match="paint.*reason"):
        next(chats("paint", 0))

"""The agent loop, with a scripted model: what it writes is kept token by token, tools answer, bad calls are counted."""

from types import SimpleNamespace

import pytest
import torch

from nbcore import models
from nbcore.chat.masks import encode
from nbcore.nano.tokenizer import SEARCH
from nbcore.search.agent import UNREADABLE, play
from nbcore.search.tools import NOTHING, Search

QUESTION = [{"role": "user", "content": "What is the river of Pala?"}]


class Scripted:
    """Writes given turns in order, token by token: the interface of a causal model with a cache, without chance."""

    device = torch.device("cpu")

    def __init__(self, tokenizer, *turns, positions=2048):
        self.tokenizer, self.turns, self.left = tokenizer, list(turns), []
        self.config = type("Config", (), {"max_position_embeddings": positions})

    def __call__(self, input_ids, past_key_values=None, **_):
        if past_key_values is None:  # a prompt is read: the next turn begins
            self.left = self.tokenizer.encode(self.turns.pop(0))
        logits = torch.full((len(input_ids), 1, len(self.tokenizer)), -1e9)
        logits[:, :, self.left[0]] = 0.0
        self.left = self.left[1:] or self.left  # a turn without an end goes on with its last token
        return SimpleNamespace(logits=logits, past_key_values="read")


@pytest.fixture(scope="module")
def tokenizer():
    return models.load("nano").tokenizer


def call(query):
    return f'<think>\nx\n</think>\n\n<tool_call>\n{{"name": "search", "arguments": {{"query": "{query}"}}}}\n</tool_call><|im_end|>'


def episode(tokenizer, *turns, **options):
    search = Search({"Pala": "Pala. river: Dodo."})
    model = Scripted(tokenizer, *turns, positions=options.pop("positions", 2048))
    return play(model, tokenizer, [QUESTION], [SEARCH], lambda _, made: search(made.arguments["query"]), **options)[0]


def test_an_episode_is_the_tokens_of_the_finished_conversation(tokenizer):
    done = episode(tokenizer, call("river of Pala"), "<think>\nriver of Pala: Dodo.\n</think>\n\nDodo<|im_end|>")
    assert (done.answer, done.stopped, done.calls, done.malformed) == ("Dodo", "answered", 1, 0)
    made = {"type": "function", "function": {"name": "search", "arguments": {"query": "river of Pala"}}}
    told = [
        *QUESTION,
        {"role": "assistant", "reasoning_content": "x", "content": "", "tool_calls": [made]},
        {"role": "tool", "content": "Pala. river: Dodo."},
        {"role": "assistant", "reasoning_content": "river of Pala: Dodo.", "content": "Dodo"},
    ]
    row = encode(tokenizer, told, tools=[SEARCH])
    assert done.ids == row.input_ids[: len(done.ids)] and done.mask == row.assistant_mask[: len(done.mask)]


def test_a_broken_call_is_answered_and_counted_and_the_episode_goes_on(tokenizer):
    done = episode(tokenizer, '<think>\nx\n</think>\n\n<tool_call>\n{"name": "search"\n</tool_call><|im_end|>',
                   call("nowhere"), "<think>\ny\n</think>\n\nI do not know.<|im_end|>")  # fmt: skip
    assert done.malformed == 1 and done.calls == 1 and done.results == [UNREADABLE, NOTHING]
    assert done.stopped == "answered"


def test_a_call_that_the_schema_refuses_is_malformed(tokenizer):
    bad = '<think>\nx\n</think>\n\n<tool_call>\n{"name": "find", "arguments": {}}\n</tool_call><|im_end|>'
    done = episode(tokenizer, bad, "<think>\ny\n</think>\n\nno<|im_end|>")
    assert done.malformed == 1 and done.calls == 0 and "search" in done.results[0]


def test_a_turn_that_does_not_end_is_truncated_and_has_no_answer(tokenizer):
    done = episode(tokenizer, "<think>\n" + "river " * 80, max_new_tokens=16)
    assert done.stopped == "truncated" and done.answer is None and sum(done.mask) == 16


def test_an_episode_stops_after_its_turns_and_when_its_room_is_full(tokenizer):
    assert episode(tokenizer, *[call("river of Pala")] * 3, max_turns=3).stopped == "turns"
    assert episode(tokenizer, *[call("river of Pala")] * 9, max_turns=9, positions=160).stopped == "room"

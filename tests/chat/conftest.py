"""A tiny byte-level BPE tokenizer with the special tokens of Nanbeige4.1."""

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TAGS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
# Newlines and roles in the training text so that merges across a careless border ("assistant\n" + "\n") would exist.
TEXT = ["assistant\n\nuser\n\nthink so, the answer is 4\n\n\n", "1+1? 2+2? again simple", '{"name": "add", "arguments": {"a": 1}}'] * 20


def _build(**kwargs):
    from transformers import PreTrainedTokenizerFast

    core = tokenizers.Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    core.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet))
    core.add_tokens([tokenizers.AddedToken(tag, normalized=False) for tag in TAGS])
    options = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"} | kwargs
    return PreTrainedTokenizerFast(tokenizer_object=core, **options)


@pytest.fixture(scope="session")
def build_tokenizer():
    """A function that makes a fresh tokenizer without a template; its keywords are PreTrainedTokenizerFast's."""
    return _build


@pytest.fixture(scope="session")
def tokenizer():
    from nbcore.chat.template import attach

    return attach(_build())

"""The nano tokenizer: byte-level BPE, digits single, the template's tags as single tokens.

Two things keep sequences short on a small model without changing a character of the chat template: a capitalised word is
cut into pairs of letters, the same way wherever it stands, and the template's constant texts (both default system
texts, the tool preamble, the nano tool's schema, the skeleton of a call) are one token each. Round trips are exact.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from nbcore.chat import template

PAD = "<|endoftext|>"
SPECIAL = (PAD, *template.MARKS, *template.TAGS)
ROLES = ("system", "user", "assistant", "```python", "```")
# A capitalised word is cut into pairs of letters from its beginning, so that a name is the same tokens wherever it stands.
PAIRS = "|".join(["[A-Z][a-z]?", *(rf"(?<=[A-Z][a-z]{{{before}}})[a-z]{{1,2}}" for before in range(1, 20, 2))])
PIECES = rf"{PAIRS}| ?[a-z]+(?: (?=[A-Z]))?|[0-9]|[^\sA-Za-z0-9]+ ?|\n *| +"

SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Find the page that fits a query best.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
}
CALL = ('{"name": "search", "arguments": {"query": "', '"}}')


def constants() -> list[str]:
    """The constant texts that become one token each, read off the template itself so that they cannot drift from it."""
    mark = template.MARKS[0] + "system\n"
    end = template.END_OF_TURN
    plain = template.render([{"role": "user", "content": "?"}])
    with_tool = template.render([{"role": "user", "content": "?"}], tools=[SEARCH])
    system, tooled = (text.removeprefix(mark).split(f"{end}\n{template.MARKS[0]}user")[0] for text in (plain, with_tool))
    before, after = tooled.split(json.dumps(SEARCH, ensure_ascii=False))
    return [system, before, json.dumps(SEARCH, ensure_ascii=False), after, *CALL]


def train(texts: Iterable[str], merges: int = 520) -> Any:
    """Train on raw texts and return a transformers tokenizer with Nanbeige's template attached."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(PIECES), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    core.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core.train_from_iterator(
        [*texts, *ROLES * 2000], trainers.BpeTrainer(vocab_size=len(alphabet) + merges, initial_alphabet=alphabet, show_progress=False)
    )
    # The tags survive skip_special_tokens, as in Nanbeige4.1: a reader of the text must see thoughts and calls.
    core.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in (PAD, *template.MARKS)])
    core.add_tokens([AddedToken(t, special=False, normalized=False) for t in (*template.TAGS, *constants())])
    made = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token=template.END_OF_TURN, pad_token=PAD, padding_side="left", clean_up_tokenization_spaces=False
    )
    return template.attach(made)

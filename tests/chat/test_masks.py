import pytest

from nbcore.chat.masks import NotPrefixPreserving, encode, encode_prompt
from nbcore.chat.template import render

USER = {"role": "user", "content": "1+1?"}
AGAIN = {"role": "user", "content": "again"}
THOUGHT = {"role": "assistant", "content": "2", "reasoning_content": "simple"}
PLAIN = {"role": "assistant", "content": "2"}
CALL = {"role": "assistant", "content": "", "reasoning_content": "add", "tool_calls": [{"name": "add", "arguments": {"a": 1}}]}
RESULT = {"role": "tool", "content": "2"}
CONVERSATIONS = {
    "one turn": [USER, THOUGHT],
    "two turns": [USER, THOUGHT, AGAIN, THOUGHT],
    "agent": [USER, CALL, RESULT, CALL, RESULT, THOUGHT, AGAIN, CALL, RESULT, THOUGHT],
    "inline think": [USER, {"role": "assistant", "content": "<think>\nsimple\n</think>\n\n2"}, AGAIN, THOUGHT],
    "content that starts with a newline": [USER, {"role": "assistant", "content": "\n\nso"}, AGAIN, THOUGHT],
    "no reasoning": [USER, PLAIN, AGAIN, PLAIN],
}


def supervised(tokenizer, encoded):
    return [tokenizer.decode(encoded.input_ids[s.start : s.end]) for s in encoded.spans if s.trained]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_the_row_spells_the_rendered_text_and_the_mask_is_its_spans(tokenizer, name, keep):
    encoded = encode(tokenizer, CONVERSATIONS[name], keep_all_think=keep)
    assert tokenizer.decode(encoded.input_ids) == render(CONVERSATIONS[name], keep_all_think=keep)
    mask = [0] * len(encoded.input_ids)
    for span in encoded.spans:
        mask[span.start : span.end] = [int(span.trained)] * (span.end - span.start)
    assert encoded.assistant_mask == mask


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_prompt_ids_are_the_start_of_the_row_at_every_turn(tokenizer, name):
    messages = CONVERSATIONS[name]
    encoded = encode(tokenizer, messages)
    for span in encoded.spans:
        prompt = encode_prompt(tokenizer, messages[: span.message])
        assert encoded.input_ids[: span.start] == prompt
        completion = encoded.input_ids[span.start : span.end]
        assert completion == tokenizer(tokenizer.decode(completion), add_special_tokens=False)["input_ids"]


def test_the_end_of_turn_is_supervised_and_the_newline_after_it_is_not(tokenizer):
    encoded = encode(tokenizer, [USER, THOUGHT])
    (span,) = encoded.spans
    assert supervised(tokenizer, encoded) == ["<think>\nsimple\n</think>\n\n2<|im_end|>"]
    assert encoded.input_ids[span.end - 1] == tokenizer.eos_token_id
    assert tokenizer.decode(encoded.input_ids[span.end :]) == "\n"
    assert tokenizer.decode(encoded.input_ids[: span.start]).endswith("<|im_start|>assistant\n")


def test_tool_calls_are_supervised_and_tool_results_are_not(tokenizer):
    texts = supervised(tokenizer, encode(tokenizer, CONVERSATIONS["agent"]))
    assert len(texts) == 5
    assert texts[0] == '<think>\nadd\n</think>\n\n<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call><|im_end|>'
    assert not any("tool_response" in text for text in texts)


def test_a_failed_turn_stays_in_the_context_and_leaves_the_loss(tokenizer):
    failed = {**CALL, "train": False}
    encoded = encode(tokenizer, [USER, failed, RESULT, THOUGHT])
    assert [(s.trained, s.reason) for s in encoded.spans] == [(False, "train: False"), (True, None)]
    assert encoded.input_ids == encode(tokenizer, [USER, CALL, RESULT, THOUGHT]).input_ids


def test_a_missing_or_empty_train_field_means_train(tokenizer):
    assert encode(tokenizer, [USER, {**THOUGHT, "train": None}]).spans[0].trained


def test_a_turn_whose_reasoning_the_template_drops_leaves_the_loss(tokenizer):
    encoded = encode(tokenizer, [USER, THOUGHT, AGAIN, THOUGHT], keep_all_think=False)
    assert [s.trained for s in encoded.spans] == [False, True]
    assert encoded.spans[0].reason == "its reasoning is dropped by the template"
    assert tokenizer.decode(encoded.input_ids[encoded.spans[0].start : encoded.spans[0].end]) == "2<|im_end|>"


def test_a_turn_written_in_sight_of_dropped_reasoning_leaves_the_loss(tokenizer):
    encoded = encode(tokenizer, [USER, CALL, RESULT, PLAIN, AGAIN, THOUGHT], keep_all_think=False)
    assert [s.reason for s in encoded.spans] == [
        "its reasoning is dropped by the template",
        "written in sight of reasoning that the template drops",
        None,
    ]


def test_the_empty_think_block_of_a_last_answer_has_to_be_written_by_the_model(tokenizer):
    texts = supervised(tokenizer, encode(tokenizer, [USER, PLAIN, AGAIN, PLAIN]))
    assert texts == ["2<|im_end|>", "<think>\n\n</think>\n\n2<|im_end|>"]


def test_an_empty_think_block_in_the_generation_prompt_is_not_supervised(build_tokenizer):
    tokenizer = build_tokenizer()
    tokenizer.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}<think>\n\n</think>\n\n{% endif %}"
        "{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n\n</think>\n\n{% endif %}"
    )
    assert supervised(tokenizer, encode(tokenizer, [USER, PLAIN])) == ["2<|im_end|>"]


def test_a_template_that_rewrites_the_past_is_named_with_the_turn(build_tokenizer):
    tokenizer = build_tokenizer()
    tokenizer.chat_template = (
        "{{ messages | length }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    with pytest.raises(NotPrefixPreserving, match="Message 1 .*not a prefix") as error:
        encode(tokenizer, [USER, PLAIN, AGAIN, PLAIN])
    assert error.value.turn == 1


def test_a_template_that_rewrites_the_turn_itself_is_named_too(build_tokenizer):
    tokenizer = build_tokenizer()
    tokenizer.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% if loop.last %}!{% endif %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    with pytest.raises(NotPrefixPreserving, match="Message 1 .*"):
        encode(tokenizer, [USER, PLAIN, AGAIN, PLAIN])


def test_a_conversation_that_an_assistant_opens_has_no_prompt(tokenizer):
    with pytest.raises(NotPrefixPreserving, match="opens the conversation"):
        encode(tokenizer, [PLAIN])


def test_max_length_cuts_ids_mask_and_spans_alike(tokenizer):
    whole = encode(tokenizer, CONVERSATIONS["two turns"])
    limit = whole.spans[1].start + 2
    cut = encode(tokenizer, CONVERSATIONS["two turns"], max_length=limit)
    assert cut.input_ids == whole.input_ids[:limit]
    assert cut.assistant_mask == whole.assistant_mask[:limit]
    assert cut.spans[1].end == limit
    assert cut.truncated == len(whole.input_ids) - limit
    assert encode(tokenizer, CONVERSATIONS["two turns"], max_length=5).spans == []


def test_labels_ignore_what_the_mask_leaves_out(tokenizer):
    encoded = encode(tokenizer, [USER, THOUGHT])
    assert [label == -100 for label in encoded.labels] == [not m for m in encoded.assistant_mask]


def test_a_tokenizer_without_template_is_told_what_to_do(build_tokenizer):
    with pytest.raises(ValueError, match="attach"):
        encode(build_tokenizer(), [USER, PLAIN])


def test_a_tokenizer_that_adds_a_space_before_each_piece_is_refused(tokenizer, build_tokenizer):
    from tokenizers import pre_tokenizers

    spaced = build_tokenizer()
    spaced.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    spaced.chat_template = tokenizer.chat_template
    with pytest.raises(ValueError, match="add_prefix_space=False"):
        encode(spaced, [USER, PLAIN])


@pytest.mark.external
def test_works_with_the_conversations_that_others_wrote(external, tokenizer):
    rows = [r for r in external("chat_template/renderings.jsonl") if r["template"].startswith("nanbeige4.1") and len(r["messages"]) > 1]
    for row in rows:
        keep = row["kwargs"].get("keep_all_think", False)
        encoded = encode(tokenizer, row["messages"], row["tools"], keep_all_think=keep)
        # `encode` renders finished conversations, the file also holds some with a generation prompt.
        assert row["rendered"].startswith(tokenizer.decode(encoded.input_ids))

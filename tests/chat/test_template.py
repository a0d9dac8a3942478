import pytest

from nbcore.chat.template import TEMPLATE, TemplateError, attach, render, template_hash

USER = {"role": "user", "content": "1+1?"}
THOUGHT = {"role": "assistant", "content": "<think>\nsimple\n</think>\n\n2"}
CALL = {"role": "assistant", "content": "", "reasoning_content": "add", "tool_calls": [{"name": "add", "arguments": {"a": "<é>"}}]}
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
SYSTEM = "<|im_start|>system\n你是南北阁，一款由BOSS直聘自主研发并训练的专业大语言模型。<|im_end|>\n"


@pytest.mark.external
def test_reproduces_the_renderings_that_others_made(external):
    cases = [r for r in external("chat_template/renderings.jsonl") if r["template"].startswith("nanbeige4.1")]
    assert len(cases) >= 7
    for case in cases:
        keep = case["kwargs"].get("keep_all_think", False)
        text = render(case["messages"], case["tools"], case["add_generation_prompt"], keep)
        assert text == case["rendered"], case["case"]


def test_without_a_system_message_the_default_text_comes_first():
    assert render([USER]) == SYSTEM + "<|im_start|>user\n1+1?<|im_end|>\n"


def test_a_system_message_replaces_the_default_text():
    text = render([{"role": "system", "content": "Be brief."}, USER])
    assert text.startswith("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user")


def test_tools_bring_their_own_default_text_and_the_schemas():
    text = render([USER], tools=[TOOL])
    assert text.startswith("<|im_start|>system\n你是一位工具函数调用专家")
    assert '<tools>\n{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}\n</tools>' in text


def test_the_generation_prompt_holds_no_think_tag():
    assert render([USER], add_generation_prompt=True).endswith("<|im_end|>\n<|im_start|>assistant\n")


def test_reasoning_before_the_last_user_message_is_dropped_unless_kept():
    messages = [USER, THOUGHT, {"role": "user", "content": "sure?"}]
    assert "simple" not in render(messages)
    assert "<think>\nsimple\n</think>\n\n2<|im_end|>" in render(messages, keep_all_think=True)


def test_reasoning_between_tool_calls_stays():
    messages = [USER, CALL, {"role": "tool", "content": "2"}, {"role": "assistant", "content": "2", "reasoning_content": "so"}]
    assert "<think>\nadd\n</think>\n\n<tool_call>" in render(messages)


def test_calls_are_written_as_json_without_html_escapes_and_results_share_one_user_turn():
    messages = [USER, CALL, {"role": "tool", "content": "2"}, {"role": "tool", "content": "3"}]
    text = render(messages)
    assert '<tool_call>\n{"name": "add", "arguments": {"a": "<é>"}}\n</tool_call><|im_end|>\n' in text
    assert "<|im_start|>user\n<tool_response>\n2\n</tool_response>\n<tool_response>\n3\n</tool_response><|im_end|>\n" in text


def test_arguments_that_are_already_json_text_are_not_quoted_again():
    call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "add", "arguments": '{"a": 1}'}}]}
    assert '{"name": "add", "arguments": {"a": 1}}' in render([USER, call])


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("prompt", [False, True])
def test_renders_as_transformers_does(tokenizer, keep, prompt):
    messages = [USER, THOUGHT, {"role": "user", "content": "<b>&amp;</b>"}, CALL, {"role": "tool", "content": "2"}]
    theirs = tokenizer.apply_chat_template(messages, tools=[TOOL], tokenize=False, add_generation_prompt=prompt, keep_all_think=keep)
    assert render(messages, [TOOL], prompt, keep) == theirs


def test_the_hash_names_the_template():
    assert template_hash() == template_hash(TEMPLATE)
    assert template_hash() != template_hash(TEMPLATE + " ")


def test_attach_sets_template_and_end_of_turn(tokenizer):
    assert tokenizer.chat_template == TEMPLATE
    assert tokenizer.eos_token == "<|im_end|>"


def test_attach_refuses_a_tokenizer_without_the_marks():
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    with pytest.raises(TemplateError, match="must be one token each"):
        attach(PreTrainedTokenizerFast(tokenizer_object=core))


@pytest.mark.parametrize("messages", [[], [{"role": "human", "content": "hi"}], [{"role": "system", "content": None}, USER]])
def test_messages_that_would_vanish_are_refused(messages):
    with pytest.raises(TemplateError):
        render(messages)

import json
import random

import pytest

from nbcore.chat.template import render
from nbcore.chat.toolcalls import ToolCall, parse, validate

ADD = '{"name": "add", "arguments": {"a": 1}}'
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "number"}, "mode": {"enum": ["fast", "exact"]}},
                "required": ["a"],
            },
        },
    },
    {"name": "now"},
]


def call(text):
    return f"<tool_call>\n{text}\n</tool_call>"


def test_reasoning_content_and_calls_are_told_apart():
    turn = parse(f"<think>\nadd them\n</think>\n\nLet me see.\n{call(ADD)}\n{call(ADD)}<|im_end|>\n")
    assert (turn.reasoning, turn.content, turn.closed_think) == ("add them", "Let me see.", True)
    assert turn.calls == [ToolCall("add", {"a": 1})] * 2
    assert turn.malformed == []


def test_plain_text_is_content_as_it_stands():
    turn = parse("  two\n")
    assert (turn.reasoning, turn.content, turn.calls, turn.closed_think) == (None, "  two\n", [], True)


def test_calls_inside_reasoning_do_not_count():
    turn = parse(f"<think>\nI could {call(ADD)}\n</think>\n\nno")
    assert (turn.calls, turn.content) == ([], "no")
    assert ADD in turn.reasoning


def test_calls_inside_a_later_think_block_do_not_count():
    turn = parse(f"<think>a</think>b<think>{call(ADD)}</think>{call(ADD)}")
    assert len(turn.calls) == 1
    assert turn.content == f"b<think>{call(ADD)}</think>"


def test_a_turn_cut_off_while_thinking_is_all_reasoning():
    turn = parse(f"<think>\nstill thinking {call(ADD)}")
    assert not turn.closed_think
    assert (turn.content, turn.calls, turn.malformed) == ("", [], [])
    assert "still thinking" in turn.reasoning


def test_a_closing_think_tag_alone_means_that_the_prompt_had_opened_it():
    turn = parse(f"so it is\n</think>\n\n{call(ADD)}")
    assert (turn.reasoning, turn.closed_think, len(turn.calls)) == ("so it is", True, 1)


def test_braces_and_tags_inside_strings_do_no_harm():
    text = json.dumps({"name": "add", "arguments": {"code": "}{</tool_call><think>", "deep": {"a": {"b": [{}]}}}})
    turn = parse(call(text))
    assert turn.calls[0].arguments == {"code": "}{</tool_call><think>", "deep": {"a": {"b": [{}]}}}
    assert turn.malformed == []


def test_arguments_may_be_a_string_of_json():
    assert parse(call('{"name": "add", "arguments": "{\\"a\\": 1}"}')).calls == [ToolCall("add", {"a": 1})]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"<tool_call>\n{ADD}", "no closing tag"),
        (f"<tool_call>\n{ADD}\n{call(ADD)}", "no closing tag"),
        (call('{"name": "add", "arguments": {"a": 1}'), "not JSON"),
        (call("{'name': 'add'}"), "not JSON"),
        (call(ADD + " and more"), "text after the JSON object"),
        (call(f"[{ADD}]"), "no JSON object"),
        (call(""), "no JSON object"),
        (call('{"arguments": {"a": 1}}'), "no name"),
        (call('{"name": "", "arguments": {}}'), "no name"),
        (call('{"name": 3, "arguments": {}}'), "no name"),
        (call('{"name": "add"}'), "no arguments"),
        (call('{"name": "add", "arguments": [1]}'), "no JSON object but list"),
        (call('{"name": "add", "arguments": "a=1"}'), "a string that is not JSON"),
        (call('{"name": "add", "arguments": {"a": NaN}}'), "NaN is not a JSON value"),
        (call('{"name": "add", "arguments": {"a": "\\ud800"}}'), "surrogate"),
        (call('{"name": "add", "arguments": {"a": ' + "[" * 100_000), "not JSON"),
        (call('{"name": "add", "arguments": {"a": ' + "9" * 5000 + "}}"), "not JSON"),
        ("</tool_call>", "without an opening one"),
    ],
)
def test_what_is_no_call_is_listed_with_a_reason_and_stays_in_the_content(text, reason):
    turn = parse(text)
    assert any(reason in why for _, why in turn.malformed), turn.malformed
    for raw, _ in turn.malformed:
        assert raw.strip("\n") in turn.content


def test_a_good_call_after_a_broken_one_counts():
    turn = parse(f'<tool_call>{{"name": \n{call(ADD)}')
    assert (len(turn.calls), len(turn.malformed)) == (1, 1)


@pytest.mark.parametrize("seed", range(20))
def test_what_the_template_writes_is_read_back(seed):
    rng = random.Random(seed)
    strings = ["", "x", "a\nb", '"}', "</tool_call>", "<think>", "日本", "\\"]

    def value(depth=0):
        kinds = [None, True, 3, -0.5, rng.choice(strings)]
        if depth < 3:
            kinds += [[value(depth + 1)], {rng.choice(strings): value(depth + 1)}]
        return rng.choice(kinds)

    message = {"role": "assistant", "content": rng.choice(["", "Let me see."])}
    message["reasoning_content"] = "so\n\nit is"
    calls = [{"name": "add", "arguments": {"x": value(), "y": value()}} for _ in range(rng.randrange(3))]
    if calls:
        message["tool_calls"] = [{"type": "function", "function": c} for c in calls]
    prompt = render([{"role": "user", "content": "go"}], add_generation_prompt=True)
    text = render([{"role": "user", "content": "go"}, message]).removeprefix(prompt)
    turn = parse(text)
    assert turn.message() == message
    assert turn.malformed == []


def test_parse_never_raises_on_mixed_up_tags():
    rng = random.Random(0)
    pieces = ["<think>", "</think>", "<tool_call>", "</tool_call>", ADD, "{", "}", '"', "\n", "text", "<|im_end|>"]
    for _ in range(3000):
        text = "".join(rng.choices(pieces, k=rng.randrange(12)))
        turn = parse(text)
        # Lossless: each call and each piece of text can be found again in what was written.
        whole = (turn.reasoning or "") + turn.content + ADD * len(turn.calls)
        assert sorted(whole.count(p) for p in ["text"]) == sorted(text.count(p) for p in ["text"]), text
        assert whole.count(ADD) == text.count(ADD), text


def test_a_fitting_call_is_valid():
    assert validate(ToolCall("add", {"a": 1, "b": 2.5, "mode": "fast"}), TOOLS) is None
    assert validate(ToolCall("now", {}), TOOLS) is None


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("ad", {"a": 1}, "there is no tool 'ad' (nearest: 'add')"),
        ("zzz", {}, "known: add, now"),
        ("add", {}, "'a' is a required property"),
        ("add", {"a": "1"}, "argument a: '1' is not of type 'integer'"),
        ("add", {"a": True}, "argument a: True is not of type 'integer'"),
        ("add", {"a": 1, "mode": "slow"}, "argument mode: 'slow' is not one of"),
        ("add", {"a": 1, "c": 2}, "'c' was unexpected"),
        ("now", {"zone": "UTC"}, "'zone' was unexpected"),
    ],
)
def test_an_unfitting_call_is_explained(tool, arguments, reason):
    assert reason in validate(ToolCall(tool, arguments), TOOLS)


def test_a_schema_that_allows_more_arguments_is_obeyed():
    tool = {"name": "any", "parameters": {"type": "object", "properties": {}, "additionalProperties": True}}
    assert validate(ToolCall("any", {"x": 1}), [tool]) is None


def test_a_broken_schema_is_the_tools_fault_and_is_named():
    with pytest.raises(ValueError, match="tool 'odd'"):
        validate(ToolCall("odd", {}), [{"name": "odd", "parameters": {"type": "dict"}}])


@pytest.mark.external
def test_agrees_with_public_parsers_where_they_agree(external):
    cases = [r for r in external("tool_calls/tool_call_cases.jsonl") if r["format"] == "hermes_json"]
    for case in cases:
        turn = parse(case["text"])
        calls = [{"name": c.name, "arguments": c.arguments} for c in turn.calls]
        if case["policy"] == "agreed":
            assert calls == case["expected_calls"], case
            if "expected_content" in case:
                # One suite drops the text after the first call and keeps a newline before it; nothing is lost here.
                assert turn.content.startswith(case["expected_content"].rstrip()), case
                assert turn.calls or turn.content == case["expected_content"]
            assert case.get("expected_reasoning", turn.reasoning) == turn.reasoning, case
        elif case["policy"] == "strict":
            assert (calls, len(turn.malformed)) == (case["expected_calls"], 1), case
        if calls == [] and "<tool_call>" in case["text"]:
            assert turn.malformed, "a call that does not count is never dropped silently"


@pytest.mark.external
@pytest.mark.parametrize("name", ["BFCL_v4_simple_python"])
def test_right_answers_of_the_function_calling_leaderboard_are_valid(external, name):
    types = {"dict": "object", "float": "number", "tuple": "array", "any": None}

    def standard(schema):
        if isinstance(schema, list):
            return [standard(s) for s in schema]
        if not isinstance(schema, dict):
            return schema
        schema = {k: standard(v) for k, v in schema.items() if not (k == "optional" or (k == "required" and isinstance(v, bool)))}
        if isinstance(schema.get("type"), str) and schema["type"] in types:
            schema["type"] = types[schema["type"]]
            if schema["type"] is None:
                del schema["type"]
        return schema

    answers = {r["id"]: r["ground_truth"] for r in external(f"tool_calls/bfcl/possible_answer/{name}.json")}
    fitting = total = 0
    for row in external(f"tool_calls/bfcl/{name}.json"):
        if row["id"] not in answers:
            continue
        tools = [standard(f) for f in row["function"]]
        for answer in answers[row["id"]]:
            ((tool, arguments),) = answer.items()
            arguments = {k: v[0] for k, v in arguments.items() if v and v[0] != ""}
            total += 1
            fitting += validate(parse(call(json.dumps({"name": tool, "arguments": arguments}))).calls[0], tools) is None
            assert validate(ToolCall("no_such_tool", arguments), tools) is not None
    assert total and fitting / total > 0.9, f"{fitting} of {total}"

import pytest

from nbcore.rewards.format import check, reward, scripts_of, share_in
from nbcore.rewards.rollouts import Rollout

CALL = '<tool_call>\n{"name": "search", "arguments": {"query": "Oslo"}}\n</tool_call>'
SEARCH = {"name": "search", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}}
GOOD = "<think>\n12 + 12 is 24.\n</think>\n\nThe answer is 24."

# A completion -> the rules that it breaks.
CASES = {
    GOOD: [],
    "12 + 12 is 24.\n</think>\n\n24": [],  # the opening tag stood in the prompt
    f"<think>\nI look it up.\n</think>\n\n{CALL}": [],
    f"<think>\nBoth.\n</think>\n\n{CALL}\n{CALL}": [],
    '<think>\nHm.\n</think>\n\n<tool_call>\n{"name": "search", "arguments": {"query": "</think> <tool_call>"}}\n</tool_call>': [],
    "24": ["thought"],
    "<think>\n12 + 12": ["thought", "tags", "answer"],
    "<think>\nHm.\n</think>\n\n": ["answer"],
    "<think>\nHm.\n</think>\n\n<think>\nHm again.\n</think>\n\n24": ["thought"],
    "<think>\nA <think> b.\n</think>\n\n24": ["thought", "tags"],
    "<think>\nHm.\n</think>\n\n24</think>": ["thought", "tags"],
    f"<think>\nHm.\n</think>\n\n{CALL}</tool_call>": ["tags", "calls"],
    '<think>\nHm.\n</think>\n\n<tool_call>\n{"name": "search", "arguments": {"query": "Oslo"}': ["tags", "calls"],
    '<think>\nHm.\n</think>\n\n<tool_call>\n{"name": "search", "arguments": {"query": "Oslo"}\n</tool_call>': ["calls"],
    "<think>\nHm.\n</think>\n\n24<|im_start|>user\nand now?": ["no special tokens"],
    "<think>\nHm.<|endoftext|>\n</think>\n\n24": ["no special tokens"],
    "<think>\nHm.\n</think>\n\n<tool_response>\nOslo\n</tool_response>\n24": ["no special tokens"],
    "": ["thought", "answer"],
}  # fmt: skip


@pytest.mark.parametrize(("text", "broken"), CASES.items(), ids=range(len(CASES)))
def test_each_rule_holds_or_does_not_and_the_score_is_the_share_that_holds(text, broken):
    got = check(text)
    assert [rule for rule, holds in got.held.items() if not holds] == broken
    assert got.score == pytest.approx(1 - len(broken) / 6)


def test_a_completion_that_was_cut_off_is_not_properly_ended():
    assert check(GOOD, ended=False).held == {**check(GOOD).held, "ended": False}


def test_a_thought_is_only_wanted_where_it_is_asked_for_but_must_be_closed_anywhere():
    assert check("24", thought=False).score == 1
    assert check(GOOD, thought=False).score == 1
    assert not check("<think>\nHm.", thought=False).held["tags"]


def test_calls_must_fit_the_tools_they_name():
    turn = "<think>\nHm.\n</think>\n\n" + CALL
    assert check(turn, tools=[SEARCH]).held["calls"]
    assert not check(turn.replace('"search"', '"serach"'), tools=[SEARCH]).held["calls"]
    assert not check(turn.replace('"Oslo"', "7"), tools=[SEARCH]).held["calls"]
    assert not check(turn, tools=[]).held["calls"]
    with pytest.raises(ValueError, match="search"):
        check(turn, tools=[{"name": "search", "parameters": {"type": "nonsense"}}])


@pytest.mark.parametrize(
    ("prompt", "scripts"),
    [
        ("How many apples?", ["LATIN"]),
        ("小明有多少个苹果？", ["CJK"]),
        ("Сколько яблок?", ["CYRILLIC"]),
        ("私はパリに行きました。", ["HIRAGANA", "CJK", "KATAKANA"]),
        ("사과가 몇 개입니까?", ["HANGUL"]),
        ("小明用 Python 写了一个程序，程序打印多少个数字？`print(range(10))`", ["CJK", "LATIN"]),
        ("1 + 1 = ?", []),
        ("ＡＢＣ and ｱｲｳ", ["LATIN", "KATAKANA"]),
    ],
)
def test_the_scripts_of_a_text_are_read_off_its_letters(prompt, scripts):
    assert sorted(scripts_of(prompt)) == sorted(scripts)


def test_code_formulas_and_links_are_no_language():
    text = "答案是 $x + y = z$，见 https://example.org/page ，代码：\n```python\nprint('hello world')\n```\n\\boxed{4}"
    assert share_in(text, ["CJK"]) == 1.0
    assert share_in("42", ["CJK"]) == 1.0


def test_an_answer_in_another_language_than_the_prompt_loses_one_rule_and_a_foreign_name_does_not():
    prompt = "Wie heißt die Hauptstadt von Norwegen?"
    named = check("<think>\nNorwegen also.\n</think>\n\nDie Hauptstadt heißt Oslo, auf Chinesisch 奥斯陆.", scripts=scripts_of(prompt))
    assert named.score == 1
    mixed = check("<think>\n让我想一想，挪威的首都是奥斯陆。\n</think>\n\nOslo.", scripts=scripts_of(prompt))
    assert not mixed.held["language"] and mixed.score == pytest.approx(6 / 7)


def test_the_reward_takes_tools_and_scripts_from_the_item():
    def rollout(text, ended=True):
        return Rollout({"prompt": "Where?", "tools": [SEARCH]}, [], [1], text, ended, [1], [0.0])

    plain = reward()
    strict = reward(tools=lambda item: item["tools"], scripts=lambda item: scripts_of(item["prompt"]))
    turns = [rollout(GOOD), rollout(GOOD, ended=False), rollout("<think>\n想\n</think>\n\n" + CALL.replace("query", "q"))]
    assert plain(turns) == [1.0, pytest.approx(5 / 6), 1.0]
    assert strict(turns) == [1.0, pytest.approx(6 / 7), pytest.approx(5 / 7)]


@pytest.mark.external
def test_the_calls_that_public_parsers_agree_on_are_well_formed_and_what_they_agree_is_no_call_is_not(external):
    cases = [r for r in external("tool_calls/tool_call_cases.jsonl") if r["format"] == "hermes_json" and r["policy"] == "agreed"]
    tried = {True: 0, False: 0}
    for case in cases:
        if "<tool_call>" in case["text"]:
            held, good = check(case["text"], thought=False).held, bool(case["expected_calls"])
            assert held["calls"] == good and held["answer"] and held["no special tokens"], case
            tried[good] += 1
    assert min(tried.values()) > 3, tried

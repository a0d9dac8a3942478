"""Tools: whatever happens inside one is an observation and a count, and the box never raises."""

import pytest

from nbcore.chat.toolcalls import ToolCall
from nbcore.search.tools import NOTHING, Search, Tool, Toolbox, ToolError, cut, function, python

ECHO = Tool(function("echo", "Say it again.", text="what to say"), lambda given: given["text"])


def failing(error):
    def run(given):
        raise error

    return Tool(function("fail", "Fails."), run)


def test_a_good_call_gives_its_text_and_is_counted():
    box = Toolbox([ECHO])
    seen = box(ToolCall("echo", {"text": "hello"}))
    assert (seen.text, seen.error) == ("hello", None) and seen.seconds >= 0
    assert box.calls["echo"] == 1 and not box.errors


def test_what_a_tool_cannot_do_is_told_in_its_words_and_counted_by_kind():
    box = Toolbox([failing(ToolError("no such page", "there is no page 'X'."))])
    seen = box(ToolCall("fail", {}))
    assert seen.text == "Error: there is no page 'X'." and seen.error == "no such page"
    assert box.errors["fail", "no such page"] == 1


@pytest.mark.parametrize(
    "fault", [KeyError("x"), ValueError("bad"), OSError("gone"), RecursionError(), UnicodeDecodeError("utf-8", b"", 0, 1, "")]
)
def test_a_fault_of_the_tool_is_an_observation_a_count_and_a_line_in_the_log(fault, caplog):
    box = Toolbox([failing(fault)])
    seen = box(ToolCall("fail", {}))
    assert seen.error == "fault" and type(fault).__name__ in seen.text
    assert box.errors["fail", "fault"] == 1 and "fail" in caplog.text and caplog.records[0].exc_info


def test_an_interrupt_is_not_an_observation():
    with pytest.raises(KeyboardInterrupt):
        Toolbox([failing(KeyboardInterrupt())])(ToolCall("fail", {}))


@pytest.mark.parametrize("call", [ToolCall("ecko", {"text": "x"}), ToolCall("echo", {}), ToolCall("echo", {"text": 3}),
                                  ToolCall("echo", {"text": "x", "loud": True})])  # fmt: skip
def test_a_call_that_does_not_fit_its_schema_is_not_run(call):
    box = Toolbox([ECHO])
    assert box(call).error == "invalid" and not box.calls


def test_long_observations_are_cut_and_say_so():
    seen = Toolbox([ECHO], longest=100)(ToolCall("echo", {"text": "x" * 250}))
    assert seen.text == "x" * 100 + "\n[cut: 150 more characters]"
    assert cut("short", 100) == "short"


@pytest.mark.parametrize("given", [None, 3, b"bytes"])
def test_a_tool_that_gives_no_text_has_a_fault(given):
    tool = Tool(function("odd", "Gives no text."), lambda arguments: given)
    assert Toolbox([tool], longest=2)(ToolCall("odd", {})).error == "fault"


def test_a_schema_that_is_none_is_refused_before_anything_runs():
    with pytest.raises(ValueError, match="no valid JSON schema"):
        Toolbox([Tool({"type": "function", "function": {"name": "f", "parameters": {"type": "nonsense"}}}, lambda given: "")])


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ValueError, match="share a name"):
        Toolbox([ECHO, ECHO])


@pytest.mark.parametrize(("code", "text", "error"), [
    ("print(6 * 7)", "42", None),
    ("pass", "printed nothing", None),
    ("1 / 0", "ZeroDivisionError", "error"),
    ("print(", "not Python", "compile"),
    ("while True: pass", "too long", "timeout"),
])  # fmt: skip
def test_python_runs_in_the_sandbox(code, text, error):
    seen = Toolbox([python()])(ToolCall("python", {"code": code}))
    assert text in seen.text and seen.error == error


def test_python_keeps_nothing_between_calls_and_reads_no_file_of_the_run(tmp_path):
    from nbcore.judge.sandbox import capabilities

    box = Toolbox([python()])
    box(ToolCall("python", {"code": "open('note', 'w').write('x')"}))
    assert box(ToolCall("python", {"code": "print(open('note').read())"})).error == "error"
    if not capabilities()["files_hidden"]:
        pytest.skip("this machine's sandbox cannot hide files")
    (tmp_path / "answers.json").write_text("gold", encoding="utf-8")
    seen = box(ToolCall("python", {"code": f"print(open({str(tmp_path / 'answers.json')!r}).read())"}))
    assert seen.error == "error" and "gold" not in seen.text


def test_the_nano_search_takes_the_longest_title_of_whole_words():
    search = Search({"Pala": "p", "Pala Rito": "pr"})
    assert search("river of pala rito") == "pr" and search.title("river of Pala") == "Pala"
    assert search("river of Palace") == NOTHING and search.title("") is None

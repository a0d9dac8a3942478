"""The program that a reader would see in an answer, however it is wrapped; and none where there is none."""

import pytest

from nbcore.judge.extract import program

F = "def f(x):\n    return x + 1\n"
G = "def g(x):\n    return x\n"


@pytest.mark.parametrize("answer", [
    f"```python\n{F}```",
    f"```\n{F}```",
    f"```py\n{F}\n```\nDone.",
    f"Here it is:\n\n```Python\n{F}```\nIt adds one.",
    f"<think>\nA loop? ```python\n{G}```\n</think>\n\n```python\n{F}```",
    f"~~~python\n{F}~~~",
    f"````python\n{F}````",
    f"```python\n{F}",  # never closed
    f"```python {F}```",  # begins on the line of its name
    f"```{F}```",
    f"```python\n\n\n{F}\n\n```",
    F,
    f"{F}",
    f"Sure! This adds one.\n\n{F}\nI hope that helps.",
    f"```text\nf(1) is 2\n```\n```python\n{F}```",
    f"```python title=\"f.py\"\n{F}```",
    f"```solution\n{F}```",
    f"```python\r\n{F}```".replace("\n", "\r\n").replace("\r\r", "\r"),
])  # fmt: skip
def test_one_program_is_found_in_any_wrapping(answer):
    found = program(answer, "f")
    space = {}
    exec(found, space)
    assert space["f"](1) == 2
    assert "g" not in space


def test_the_last_fence_that_defines_the_function_counts():
    first, better = F, F.replace("+ 1", "+ 2")
    answer = f"```python\n{first}```\nNo, wait:\n```python\n{better}```\nTry it:\n```python\nprint(f(1))\n```"
    assert program(answer, "f") == better
    assert program(answer) == "print(f(1))\n"
    assert program(f"```python\n{F}```\n```python\n{G}```", "f") == F


def test_a_fence_that_is_no_python_is_judged_when_there_is_no_other():
    assert program("```python\ndef f(x: return\n```", "f") == "def f(x: return\n"
    assert program(f"```python\n{F}```\n```\nf(1) gives 2\n```") == F


@pytest.mark.parametrize("answer", ["", "I can't do that.", "<think>\nmaybe", f"<think>\n```python\n{F}```", "```\n```", "yes", "x - y"])
def test_where_there_is_no_program_none_is_made_up(answer):
    assert program(answer, "f") is None


def test_a_function_given_a_name_by_assignment_is_defined_too():
    assert program("```python\nf = lambda x: x + 1\n```\n```python\nf(3)\n```", "f") == "f = lambda x: x + 1\n"


@pytest.mark.parametrize("answer", ["```python\n" + "(" * 100_000, "\0```python\ndef f(): \0", "def f" * 1000, "```" * 5000])
def test_what_breaks_parsers_breaks_nothing_here(answer):
    program(answer, "f")

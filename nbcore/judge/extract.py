"""The program inside an answer: what a code reward judges. Paper section 5; the rules are ours [C].

Models wrap a program in prose, in several fences, in a fence that never closes or begins on the line of its text, or in none.
A thought is no part of the answer: what stands in it is not judged, and an answer that is still thinking holds no program.
Of several fences the last that defines the function asked for counts, since a model that corrects itself writes the better one
later; of fences that don't, the last that is Python at all, then the last. None means that there is nothing to judge, which is a
verdict about the answer and no failure of the judge.
Left out on purpose: repairing programs (closing brackets, dropping lines), and other languages than Python.
"""

from __future__ import annotations

import ast
import itertools
import re
import warnings

FENCE = re.compile(r"(`{3,}|~{3,})")
NAMES = ("python", "python3", "py")
TRIES = 1000  # runs of lines that are looked at in an answer without fences
STARTS = ("def ", "async def ", "class ", "import ", "from ", "@")


def program(answer: str, entry: str | None = None) -> str | None:
    """The text of the program in an answer, or None. entry: the function that it should define."""
    said = answer.rpartition("</think>")[2] if "</think>" in answer else answer
    if "<think>" in said:
        return None
    fenced = _fenced(said)
    if not fenced:
        return _bare(said)
    last_first = [(text, defined(text)) for text in reversed(fenced)]
    asked = [text for text, names in last_first if names and entry in names]
    readable = [text for text, names in last_first if names is not None]
    return (asked or readable or [fenced[-1]])[0]


def _fenced(said: str) -> list[str]:
    """What stands in fences, in order; a fence that never closes reaches to the end."""
    found, at = [], 0
    while opening := FENCE.search(said, at):
        mark = opening[1]
        closing = re.compile(rf"{mark[0]}{{{len(mark)},}}").search(said, opening.end())
        text = said[opening.end() : closing.start() if closing else len(said)]
        first, newline, rest = text.partition("\n")
        word = first.strip().split(" ", 1)
        if word[0].lower() in (*NAMES, ""):
            # Behind the language's name there may be more, which is program text only when it reads like it: ```python def f(): ...
            behind = word[1] if len(word) > 1 else ""
            text = f"{behind}\n{rest}" if defined(f"{behind}\n{rest}") and behind.strip() else rest
        elif newline and (len(word) == 1 or defined(text) is None) and defined(rest) is not None:
            text = rest  # the name of another language, or a title
        if text.strip():
            found.append(text.strip("\n").rstrip() + "\n")
        at = closing.end() if closing else len(said)
    return found


def _bare(said: str) -> str | None:
    """An answer without fences: all of it when it is a program, else the longest run of lines from a definition or import on."""
    if defined(said):
        return said.strip("\n").rstrip() + "\n"
    lines = said.split("\n")
    runs = ((start, end) for start, line in enumerate(lines) if line.startswith(STARTS) for end in range(len(lines), start, -1))
    for start, end in itertools.islice(runs, TRIES):
        text = "\n".join(lines[start:end])
        if defined(text):
            return text.rstrip() + "\n"
    return None


def defined(text: str) -> set[str] | None:
    """The names that a program defines at its top level; None when it is no Python. Words of prose may be Python: they define nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about strings and comparisons in a text that is not ours
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    named = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    targets = [t for node in tree.body if isinstance(node, ast.Assign) for t in node.targets]
    return named | {t.id for t in targets if isinstance(t, ast.Name)}

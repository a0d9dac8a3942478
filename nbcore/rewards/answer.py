r"""Is the final answer of a completion equal to the gold? Paper section 3: the reward favours answers that are correct [P, 4.2].

The final answer is, in the visible part (thoughts and tool calls do not count): the last \boxed{} (or the last row of them, as
in "\boxed{2} and \boxed{3}"), else what follows the last "####", "A:", "answer:" or "answer is" on its line, else the last formula
or the last number, whichever comes later, else the text itself. This policy is ours [C]; public suites disagree among themselves.
Plain numbers are compared here, exactly, and so are equal texts; a gold of words (two letters or more) is compared as words,
whatever their case. Everything else is math-verify's to decide, in worker processes that
can be killed (`rewards.workers`): sympy may take minutes for one expression, and math-verify's own time-outs work in no other
thread than the main one and read as "wrong". A completion without an answer is wrong. What cannot be decided in time, and a
gold that cannot be read, is missing.
Left out on purpose: units (10 cm and 100 mm), rounding to the digits of the gold, letters of a multiple choice inside prose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from nbcore.rewards import workers
from nbcore.rewards.rollouts import Reward, Rollout
from nbcore.rewards.workers import Missing

READ = 4000  # characters that math-verify reads: from the box on, or the last ones when there is none
DIGITS = 300  # longer numbers are left to math-verify
BETWEEN_BOXES = re.compile(r"(?:[\s,;$.]|\\quad|\\text\{[^{}]*\}|\band\b|\bor\b)*")
BRACES = re.compile(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", re.DOTALL)
MARK = re.compile(r"####|^A:(?=[^\n]*\Z)|\banswer(?:\s+is\b|\s*:|\s*=):?", re.MULTILINE | re.IGNORECASE)
A_NUMBER = re.compile(r"(?<![\w.,])(?<!\d )-?\$?(?:\d{1,3}(?: \d{3})+(?!\d)|(?:\d[\d,]*\d|\d)(?:\.\d+)?(?:/\d+)?|\.\d+)(?:\s?\\?%)?")
DRESS = r"(?:[\s$*]|\\[(),;])*"  # what may stand around a number: spaces, dollar signs, bold, \( and \)
SIGN = r"([-−+]?)\s*(?:\\?\$)?"
PLAIN = re.compile(rf"{DRESS}{SIGN}(?:(\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.(\d*))?|\.(\d+))(?:\s*/\s*(\d+))?\s*(\\?%)?\.?{DRESS}\.?")
FRACTION = re.compile(rf"{DRESS}{SIGN}\\[dtc]?frac\s*\{{\s*(-?\d+)\s*\}}\s*\{{\s*(\d+)\s*\}}{DRESS}\.?")
FORMULA = re.compile(r"(?:\$\$?|\\\(|\\\[)(?=[^$])(.+?)(?:\$\$?|\\\)|\\\])", re.DOTALL)
THIN = re.compile(r"\\!\s*")
DRESSED = ("$", "\\(", "\\[", "\\boxed", "\\fbox", "\\begin{align")
MATHS = re.compile(r"[\\^_(){}=<>|+*/']|\b[A-Za-z]\b")
NO_PROSE = r"\\(?:text\w*|begin|end)\{[^{}]*\}|(?<!\\)\b(?:sin|cos|tan|cot|sec|csc|log|exp|sqrt|max|min|mod)\b"
PROSE = re.compile(rf"{NO_PROSE}|(?<!\\)\b[A-Za-z]{{3,}}\b(?P<prose>)")
TEXT = re.compile(r"\\(?:text\w*|mathrm|mathbf)\{([^{}]*)\}")
WORD = re.compile(r"[^\W\d_]{2,}(?:[\s.,'’-]+[^\W\d_]+)*")


def visible(text: str) -> str:
    """A completion without its thought and without its tool calls; empty when the thought was never closed."""
    if "<" not in text:
        return text
    before, closed, after = text.partition("</think>")
    if closed and "<" not in after and ("<think>" not in before or before.lstrip().startswith("<think>")):
        return after  # one thought and plain text behind it: what `parse` says too, at less cost
    from nbcore.chat.toolcalls import parse  # its schema checker takes seconds to import, and the workers never need it

    return parse(text).content


def last_boxed(text: str) -> str | None:
    r"""What stands inside the last \boxed{} whose braces close, or None."""
    found = _boxes(text)
    return text[found[-1][1] : found[-1][2]] if found else None


def final_answer(text: str) -> str | None:
    """The final answer of a completion by the policy above, as it was written; None when there is none."""
    text = visible(text).strip()
    return _place(text)[0] or None


def numbers_equal(answer: str, gold: str) -> bool | None:
    """Whether two plain numbers are equal; None when one of them is none, or rounding would decide.

    Plain: integers, decimals, a/b, \\frac{a}{b}, thousands separators, percentages, currency sign, in $…$ or not. 5% and 5 are
    not compared here.
    """
    if answer == gold and answer.isdecimal():
        return True
    first, second = _number(answer), _number(gold)
    if first is None or second is None or first[2] != second[2]:
        return None
    left, right = first[0] * second[1], second[0] * first[1]
    if left == right:
        return True
    # math-verify compares decimals rounded to six places: nearer than that is for it to decide.
    return None if abs(left - right) * 500_000 <= first[1] * second[1] else False


def equal(completions: Sequence[str], golds: Sequence[str], deadline: float = 5.0, budget: float | None = None) -> list[bool | Missing]:
    """Whether each completion's final answer equals its gold (an answer, or a text that ends in one).

    deadline: seconds for one pair, budget: for all pairs that math-verify has to decide; over them a verdict is Missing.
    """
    verdicts: list[bool | Missing | None] = []
    asked: dict[tuple[str, str], list[int]] = {}
    for index, (completion, gold) in enumerate(zip(completions, golds, strict=True)):
        shown, gold = visible(completion).strip(), gold.strip()
        answer, start, alone = _place(shown)
        wanted = last_boxed(gold) or gold
        verdict = None
        if not answer or answer == wanted:
            verdict = bool(answer)
        elif alone:
            verdict = numbers_equal(answer, wanted)
        if verdict is None and (words := _as_words(wanted)):
            verdict = _as_words(answer) == words
        verdicts.append(verdict)
        if verdict is None:
            asked.setdefault((_wrapped(shown[start : start + READ]), _wrapped(gold)), []).append(index)
    few = 1 if len(asked) < 8 else 2  # a worker takes a second or two to start
    for indices, decided in zip(asked.values(), workers.run(decide, [*asked], deadline, budget, few, ["math_verify"]), strict=True):
        for index in indices:
            verdicts[index] = decided
    return verdicts


def reward(gold: Callable[[Any], str], deadline: float = 5.0, budget: float = 60.0) -> Reward:
    """The reward 1 for a right final answer and 0 for another. gold: item → the right answer. deadline, budget: see `equal`."""

    def right(rollouts: Sequence[Rollout]) -> list[Any]:
        verdicts = equal([r.text for r in rollouts], [gold(r.item) for r in rollouts], deadline, budget)
        return [v if isinstance(v, Missing) else float(v) for v in verdicts]

    return right


def decide(pair: tuple[str, str]) -> bool:
    """math-verify's verdict on (completion, gold). Runs in a worker. Raises ValueError for a gold that it cannot read."""
    from math_verify import parse as read
    from math_verify import verify

    # Its time-outs are off: they would turn "not decided" into "wrong". The worker's deadline stands for them.
    gold = read(pair[1], parsing_timeout=None)
    if not gold:
        raise ValueError(f"math-verify cannot read the gold {pair[1]!r:.80}")
    return bool(verify(gold, read(pair[0], parsing_timeout=None), timeout_seconds=None))


def _boxes(text: str) -> list[tuple[int, int, int]]:
    """(start, start of the inside, end of the inside) of every box whose braces close; boxes inside boxes left out."""
    found: list[tuple[int, int, int]] = []
    opened: list[tuple[int, int] | None] = []  # one pass: an endless row of boxes that never close must not cost its square
    for brace in BRACES.finditer(text):
        if brace.group() == "}":
            if opened and (box := opened.pop()):
                while found and found[-1][0] > box[0]:
                    found.pop()
                found.append((*box, brace.start()))
        elif brace.group()[-1] == "{" and brace.group() != "\\{":
            opened.append((brace.start(), brace.end()) if len(brace.group()) > 1 else None)
    return found


def _place(shown: str) -> tuple[str, int, bool]:
    """The final answer in a visible text, from where math-verify should read, and whether the answer stands alone there.

    Where it does not (words around it, numbers after it), only math-verify decides. No answer: an empty string.
    """
    tail = max(0, len(shown) - READ)
    if "\\" in shown and (boxes := _boxes(shown)):
        first = len(boxes) - 1
        while first and BETWEEN_BOXES.fullmatch(shown, boxes[first - 1][2] + 1, boxes[first][0]):
            first -= 1
        if first < len(boxes) - 1:
            return shown[boxes[first][0] : boxes[-1][2] + 1], boxes[first][0], False
        return shown[boxes[first][1] : boxes[first][2]].strip(), boxes[first][0], True
    if len(shown) <= DIGITS and PLAIN.fullmatch(shown):
        return shown, 0, True
    mark = None
    for mark in MARK.finditer(shown):  # noqa: B007 - the last one is wanted
        pass
    if mark and (line := shown[mark.end() :].lstrip(" \t\n*").split("\n", 1)[0].strip()):
        return line, tail, True
    formulas = [*FORMULA.finditer(shown, tail)]
    if formulas and not re.search(r"\d", shown[formulas[-1].end() :]):
        return formulas[-1][1].strip(), tail, True
    if "\\" in shown or _is_maths(shown) or not (numbers := [*A_NUMBER.finditer(shown)]):
        return shown, tail, True
    return numbers[-1].group(), tail, "$" not in shown and not re.match(r"\w| \d", shown[numbers[-1].end() :])


def _number(text: str) -> tuple[int, int, bool] | None:
    """A plain number as (numerator, denominator above 0, in percent), or None."""
    if text.isdecimal() and text.isascii():
        return (int(text), 1, False) if len(text) <= DIGITS else None
    if len(text) > DIGITS:
        return None
    if "\\!" in text or "{,}" in text:
        text = THIN.sub("", text).replace("{,}", ",")
    if match := PLAIN.fullmatch(text):
        sign, whole, places, only, below, percent = match.groups()
        places = places or only or ""
        numerator, denominator = int((whole or "").replace(",", "") + places), 10 ** len(places) * int(below or 1)
        return (-numerator if sign in ("-", "−") else numerator, denominator, bool(percent)) if denominator else None
    if match := FRACTION.fullmatch(text):
        sign, above, below = match.groups()
        return (-int(above) if sign in ("-", "−") else int(above), int(below), False) if int(below) else None
    return None


def _is_maths(text: str) -> bool:
    """Whether a text is bare mathematics: short, with a sign or a single letter, without words, $ or a box."""
    if len(text) > 200 or ("\n" in text and "\\" not in text) or any(sign in text for sign in DRESSED):
        return False
    return bool(MATHS.search(text)) and not any(found.group("prose") is not None for found in PROSE.finditer(text))


def _wrapped(text: str) -> str:
    return f"${text}$" if _is_maths(text) else text


def _as_words(text: str) -> str | None:
    """A text of words alone, without dress and in lower case; None when there is anything else in it."""
    text = TEXT.sub(r"\1", text).strip(" \t\n.,;:!$*\"'")
    return " ".join(text.split()).casefold() if WORD.fullmatch(text) else None

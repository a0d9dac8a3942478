"""What a judge wrote, read as a score or as a verdict; what is not clear is missing, never guessed and never 0.

Paper sections 3 and 4 [C]. Judges wrap their verdict in prose, fences, bold or brackets. Policy: a think block is skipped; of
the forms below the most explicit one that occurs counts, and it must say one thing: two different scores in it are no score.
  1. a JSON object with a known key, fenced or not, strict or with single quotes and trailing commas
  2. [[8]], [[A]], [[A>B]]
  3. "final score: 8", "overall verdict: A"
  4. "score: 8", "the rating is seven", "winner: B"
  5. 8/10, "8 out of 10" (scores only; the second number has to be the scale's highest)
  6. **8**, **A**
  7. a line that holds nothing else
A number anywhere else ("three errors") is no score. Out of range is missing, not clipped: it shows that the scale was misread.
Left out on purpose: decimal commas (8,5 may be two scores), scores on another scale, and words such as "good".
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

LONGEST = 20_000  # characters read, from the end: a verdict stands there
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_WORD = rf"\b(?:{'|'.join(WORDS)})\b"
# A number of its own: no part of a word, of a date, of a range (7-8, "7 or 8"), and without a decimal comma.
NUMBER = rf"(?:(?:(?<![\w.,\-–/])-?\d+(?:\.\d+)?(?!\w|[.,]\d)|{_WORD})(?!\s*(?:[-–]|\b(?:to|or)\b)\s*(?:\d|{_WORD})))"
FRACTION = rf"(?:{NUMBER}\s*(?:/|\bout\s+of\b)\s*(?:\d+(?:\.\d+)?|{_WORD})(?![\w/]|\.\d))"
SCORED = rf"(?:{FRACTION}|{NUMBER}(?!\s*/)(?:\s*%)?)"
SCORE_KEYS = ("score", "rating", "grade")
# A lone "a" is an article, and so is the A of "A close call".
_LETTER = r"(?-i:\b[AB]\b(?!\s+(?!is\b|wins\b|over\b|because\b)[a-z]))"
SIDE = rf"(?:\b(?:answer|assistant|response|option|model)[\s_]*[AB]\b|{_LETTER}|\b(?:tie|draw|equal|neither)\b)"
VERDICT_KEYS = ("verdict", "winner", "preference", "preferred", "better", "choice")
TIES = {"tie", "draw", "equal", "neither", "c", "a=b", "b=a"}  # [[C]] is MT-bench's tie


class _Refused(Exception):
    """A value that was given and cannot count; the message says why."""


def parse_score(text: str | None, low: float = 0, high: float = 10) -> tuple[float | None, str]:
    """(score, "") or (None, reason); the score is on the judge's own scale, `low` to `high` included. Never raises."""
    return _read(text, SCORE_KEYS, SCORED, lambda raw: _score(raw, low, high), "score")


def parse_verdict(text: str | None) -> tuple[str | None, str]:
    """("A", ""), ("B", ""), ("tie", "") or (None, reason). Never raises."""
    return _read(text, VERDICT_KEYS, SIDE, _side, "verdict")


def _read(text: str | None, keys: tuple[str, ...], token: str, value: Callable[[Any], Any], what: str) -> tuple[Any, str]:
    if not isinstance(text, str) or not text.strip():
        return None, "the judge wrote nothing"
    text = text[-LONGEST:].rpartition("</think>")[2]
    if "<think>" in text:
        return None, "the judge was cut off while thinking"
    try:
        for form, raws in _forms(text, keys, token):
            found = {v for raw in raws if (v := value(raw)) is not None}
            if len(found) > 1:
                return None, f"several different {what}s: {', '.join(map(str, sorted(found)))}"
            if found:
                return found.pop(), ""
            if raws and form == "JSON":
                return None, f"the JSON holds {raws[0]!r:.80}, which is no {what}"
    except _Refused as refused:
        return None, str(refused)
    return None, f"no {what} could be read in {' '.join(text.split())[-80:]!r}"


def _forms(text: str, keys: tuple[str, ...], token: str) -> Iterator[tuple[str, list[Any]]]:
    """What stands in each form, from the most explicit to the least."""
    plain = re.sub(r"[*_`\"']", "", text)
    named = rf"(?:{'|'.join(keys)})(?:\s*\([^()\n]*\))?\s*(?:[:=]|->|→|\bis\b)\s*({token})"
    yield "JSON", _in_json(text, keys)
    yield "brackets", re.findall(r"\[\[\s*([^\[\]\n]{1,40}?)\s*\]\]", text)
    yield "final", re.findall(rf"\b(?:final|overall|total)\s+{named}", plain, re.IGNORECASE)
    yield "named", re.findall(rf"\b{named}", plain, re.IGNORECASE)
    yield "fraction", re.findall(FRACTION, plain, re.IGNORECASE) if token is SCORED else []
    yield "bold", re.findall(rf"\*\*\s*({token})\s*[.:]?\s*\*\*", text, re.IGNORECASE)
    yield "alone", re.findall(rf"^[ \t>#•-]*?({token})[ \t.!]*$", plain, re.IGNORECASE | re.MULTILINE)


def _in_json(text: str, keys: tuple[str, ...]) -> list[Any]:
    """Values under a known key of the JSON objects in a text. Raises _Refused for an object with such a key that cannot be read."""
    wanted = {prefix + key for key in keys for prefix in ("", "final_", "overall_", "total_")}
    looks = re.compile(rf"\{{[^{{}}]*?[\"']?\b(?:{'|'.join(wanted)})[\"']?\s*:", re.IGNORECASE)
    found, position = [], 0
    while (start := text.find("{", position)) >= 0:
        held, position = _object(text, start, looks.match(text, start) is not None)
        values = [v for k, v in held.items() if str(k).strip().lower().replace(" ", "_") in wanted]
        found += values
        if not values:
            position = start + 1  # it may lie deeper
    for value in found:
        if isinstance(value, bool | type(None) | list | dict):
            raise _Refused(f"the JSON holds {value!r:.80} where a plain value belongs")
    return found


def _object(text: str, start: int, wanted: bool) -> tuple[dict, int]:
    """The object that begins at `start` and where it ends. No object: empty, or _Refused where one was `wanted`."""
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        end = start
    if not wanted:
        return {}, start
    for _ in range(8):  # single quotes and trailing commas are Python's; a brace may stand in a string or close an inner object
        if not (end := text.find("}", end) + 1):
            break
        literal = re.sub(r"\b(true|false|null)\b", lambda m: {"true": "True", "false": "False", "null": "None"}[m[1]], text[start:end])
        try:
            held = ast.literal_eval(literal.replace("\n", " "))
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        if isinstance(held, dict):
            return held, end
    raise _Refused(f"a JSON object that cannot be read: {' '.join(text[start : start + 80].split())!r}")


def _score(raw: Any, low: float, high: float) -> float | None:
    """A number on the scale, None for what is no number. Raises _Refused for NaN, another scale and out of range."""
    if isinstance(raw, str):
        raw = raw.strip(" .*")
        if re.fullmatch(r"[-+]?(nan|inf(inity)?)", raw, re.IGNORECASE):
            raise _Refused(f"the score {raw} is no number")
        if not re.fullmatch(SCORED, raw, re.IGNORECASE):
            return None
        number, *scale = re.split(r"\s*(?:/|\bout\s+of\b)\s*", raw.removesuffix("%").strip(), flags=re.IGNORECASE)
        highest = 100.0 if raw.endswith("%") else _number(scale[0]) if scale else high
        if highest != high:
            raise _Refused(f"a score on a scale to {highest:g}, where {high:g} is the highest")
        raw = _number(number)
    try:
        number = float(raw)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _Refused(f"the score {number} is no number")
    if not low <= number <= high:
        raise _Refused(f"the score {number:.12g} is outside {low:g} to {high:g}")
    return number


def _number(text: str) -> float:
    return float(WORDS.index(text.lower())) if text.lower() in WORDS else float(text)


def _side(raw: Any) -> str | None:
    said = re.sub(r"^(answer|assistant|response|option|model)[\s_]*", "", str(raw).strip(" .*").lower())
    said = said.replace(">>", ">").replace("<<", "<").replace(" ", "")
    if said in ("a", "a>b", "b<a"):
        return "A"
    if said in ("b", "b>a", "a<b"):
        return "B"
    return "tie" if said in TIES else None

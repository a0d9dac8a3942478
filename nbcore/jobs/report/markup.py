"""Text made safe for HTML and SVG, and the two things every drawing here needs: text in place, text cut to a width.

A sample is shown as it is: only what markup can't carry (control characters, lone surrogates) is shown as a visible sign.
"""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Any

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f]")
_NOT_TEXT = re.compile(r"[\ud800-\udfff\ufffe\uffff\x7f-\x9f]")


def esc(text: Any) -> str:
    """Any value as text that may stand in an element or a quoted attribute, in HTML and in XML."""
    text = _NOT_TEXT.sub("\ufffd", str(text))
    text = _CONTROL.sub(lambda m: chr(0x2400 + ord(m[0])), text)
    return html.escape(text, quote=True)


def width(text: str) -> float:
    """About how wide a text is, in ems of a proportional font: 0.56 a letter, 1 for Chinese, Japanese and Korean signs."""
    return sum(1.0 if unicodedata.east_asian_width(sign) in "WF" else 0.56 for sign in text)


def cut(text: Any, ems: float) -> str:
    """The text, with `…` for what does not fit into `ems`."""
    text = str(text)
    if width(text) <= ems:
        return text
    while text and width(text) > ems - 1:
        text = text[:-1]
    return text + "…"


def at(x: float, y: float, text: Any, css: str = "", anchor: str = "start") -> str:
    """An SVG text at (x, y) pixels; `css` names classes of palette.css."""
    end = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{end} class="{css}">{esc(text)}</text>'


def svg(wide: float, high: float, title: str, body: str, css: str = "", role: str = "img") -> str:
    """An SVG of that size in pixels, with a title for those who don't see it; role "group" when links are inside."""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high:.0f}" role="{role}" class="{css}" '
            f'aria-label="{esc(title)}"><title>{esc(title)}</title>{body}</svg>')

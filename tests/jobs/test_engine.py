"""What the engine makes of text that draws over itself."""

from __future__ import annotations

import time

import pytest

from nbcore.jobs.engine import drawn


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain\ntext\n", "plain\ntext\n"),
        ("1 of 2\r2 of 2\ndone", "2 of 2\ndone"),
        ("\r1 of 2\r2 of 2", "2 of 2"),
        ("1 of 2\r", "1 of 2\r"),
        ("windows\r\nlines\r\n", "windows\r\nlines\r\n"),
        ("a\rb\r\nc", "b\r\nc"),
    ],
)
def test_only_what_was_drawn_last_is_kept(text, seen):
    assert drawn(text) == seen


def test_drawing_in_pieces_and_at_once_look_the_same():
    kept = ""
    for piece in ("10 %\r", "20 %", "\r30", " %\r", "done\nnext"):
        kept = drawn(kept + piece)
    assert kept == "done\nnext"


def test_a_very_long_line_takes_no_time():
    began = time.process_time()
    drawn("\r" + "x" * 5_000_000 + "\r")
    assert time.process_time() - began < 20  # a square of the length would be hours

"""Of a flood, the first and the last part are kept, and how much was cut is said."""

from __future__ import annotations

import pytest

from nbcore.jobs.capped import Cap, cap_messages


def shown(cap: Cap, *texts: str) -> str:
    return "".join(cap.take(text) for text in texts) + cap.end()


def test_output_within_the_cap_passes_unchanged():
    assert shown(Cap(1), "a" * 700, "\n", "b") == "a" * 700 + "\nb"


@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_head_and_tail_of_a_flood_are_kept_however_it_comes(size):
    text = "first" + "x" * 20_000 + "last"
    kept = shown(Cap(1), *(text[i : i + size] for i in range(0, len(text), size)))
    assert kept.startswith("first" + "x" * 700)
    assert kept.endswith("x" * 200 + "last")
    assert f"{len(text) - 768 - 256:,} characters cut here" in kept
    assert len(kept) < 1300


def test_what_was_only_late_is_not_called_cut():
    kept = shown(Cap(1), "x" * 1000)
    assert kept.count("x") == 1000
    assert "cut" not in kept


def test_each_cell_has_its_own_allowance():
    cap = Cap(1)
    shown(cap, "x" * 10_000)
    assert shown(cap, "again") == "again"


def test_memory_stays_small_whatever_is_written():
    cap = Cap(1)
    for _ in range(10_000):
        cap.take("x" * 1000)
    assert sum(map(len, cap._kept)) < 3000


class Session:
    """Keeps what would be sent."""

    def __init__(self):
        self.sent = []

    def send(self, stream, message, content=None):
        self.sent.append(message if content is None else content)


def test_a_picture_too_large_is_left_out_and_a_text_too_large_is_cut():
    session = Session()
    cap_messages(session)
    big = 9 * 2**20
    session.send("iopub", {"content": {"data": {"image/png": "i" * big, "text/plain": "<Figure>"}}})
    session.send("iopub", "error", {"evalue": "e" * big, "traceback": ["short", "t" * big]})
    session.send("iopub", {"content": {"data": {"image/png": "small"}}})
    picture, error, small = session.sent
    assert picture["content"]["data"] == {"text/plain": "[nbcore: image/png of 9 MiB left out, the limit is 8 MiB]"}
    assert len(error["evalue"]) < 300_000
    assert error["traceback"][0] == "short"
    assert small["content"]["data"] == {"image/png": "small"}

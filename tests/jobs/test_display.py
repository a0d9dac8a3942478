"""What is said while a run goes: little, true, and never at the cost of the run."""

from __future__ import annotations

import io
import json

import pytest

from nbcore.jobs import display
from nbcore.jobs.display import Events, Lines, Pace, Stream, detail, headline, overview, rows, summary


def status(**stages) -> dict:
    blank = {"attempt": 1, "reason": None, "error": None, "last": {}}
    head = {"run": "nano-1", "state": "running", "started": "2026-12-02T08:00:00+00:00", "ended": "2026-12-02T08:01:05+00:00"}
    return head | {"expects": {"minutes": 6, "memory_gib": 3}, "stages": {key: blank | stage for key, stage in stages.items()}}


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test winds."""

    class Clock:
        now = 100.0

    monkeypatch.setattr(display.time, "monotonic", lambda: Clock.now)
    return Clock


def test_the_time_left_follows_from_the_steps_that_were_seen(clock):
    pace, stage = Pace(), {"attempt": 1, "last": {"step": 10, "total": 110}}
    assert pace.left("a", stage) is None, "one look tells no speed"
    clock.now += 20
    stage["last"] = {"step": 20, "total": 110}
    assert pace.left("a", stage) == pytest.approx(180)
    stage["last"] = {"step": 1, "total": 50}
    assert pace.left("a", stage) is None, "a second loop starts anew"
    assert pace.left("a", {"last": {"loss": 1.0}}) is None


def test_the_headline_is_loss_or_reward_and_says_when_it_is_not_finite():
    assert headline({"step": 3, "lr": 1e-4, "train_loss": 0.41, "reward": 0.5, "note": "x"}) == "train_loss 0.41, reward 0.5"
    assert headline({"step": 3, "square": 9}) == "square 9"
    assert headline({"loss": None, "loss_nonfinite": "nan"}) == "loss not finite"
    assert headline({}) == ""


def test_a_stage_is_one_line_that_says_what_matters_in_its_state(clock):
    last = {"step": 40, "total": 200, "loss": 0.41}
    running = {"state": "running", "cell": 4, "cells": 9, "seconds": 65, "peak_rss_mib": 1300, "last": last}
    assert detail("a", running) == "cell 4/9 · step 40/200 · loss 0.41 · 1 min 05 s · 1.3 GiB"
    assert detail("a", {"state": "reused", "reason": "same fingerprint, from nano-0"}) == "same fingerprint, from nano-0"
    assert detail("a", {"state": "failed", "error": "no milk", "seconds": 3}) == "no milk"
    assert detail("a", {"state": "waiting"}) == ""


def test_the_whole_pipeline_at_a_glance():
    now = status(a={"state": "done", "seconds": 3}, b={"state": "running", "seconds": 2}, c={"state": "waiting"})
    assert [(state, key) for state, _, key, _ in rows(now)] == [("✓ done", "a"), ("▶ running", "b"), ("○ waiting", "c")]
    assert summary(now) == "nano-1 · stage 2 of 3 · 1 min 05 s · the recipe expects 6 min, 3 GiB"
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=40).print(overview(status(a={"state": "failed", "error": "[bold]see[/bold] " * 9})))
    assert "[bold]see[/bold]" in out.getvalue(), "an error is text, not markup"


def test_quiet_lines_are_one_a_change_and_one_every_thirty_seconds(clock):
    out = io.StringIO()
    lines = Lines(out)
    for second in range(100):
        clock.now = 100.0 + second
        lines(status(a={"state": "running", "reason": "forced", "last": {"step": second, "total": 100}}, b={"state": "waiting"}))
    lines(status(a={"state": "done", "seconds": 100}, b={"state": "skipped", "reason": "as\nasked"}))
    said = [line[9:] for line in out.getvalue().splitlines()]
    assert said[0] == "1/2 a running: forced" and said[1].startswith("1/2 a running: step 30/100 · 1 min 10 s left")
    assert len(said) == 6 and said[-2:] == ["1/2 a done: 1 min 40 s", "2/2 b skipped: as asked"]


def test_events_are_json_lines(clock):
    out = io.StringIO()
    events = Events(out)
    for second in range(11):
        clock.now = 100.0 + second
        events(status(a={"state": "running", "last": {"loss": 0.5, "text": "北京"}}))
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [row["event"] for row in found] == ["stage", "progress", "progress"]
    assert found[0]["stage"] == "a" and found[0]["last"]["text"] == "北京" and out.getvalue().isascii()


def test_a_stream_that_is_gone_takes_everything_and_says_nothing():
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError(32, "Broken pipe")

    stream = Stream(Gone())
    assert stream.write("a") == 1 and stream.write("b") == 1
    stream.flush()
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Stream(narrow).write("✓ done")
    narrow.flush()
    assert narrow.buffer.getvalue() == b"? done"

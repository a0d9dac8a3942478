"""A run as it goes, on the terminal, as quiet lines, or as JSON lines. Design section 3.

Each is a context manager and a `watch` for the pipeline: called with the status at every change and at most twice a second.
Whatever happens to the output (a closed pipe, a full disk), the run goes on: showing it must never stop it.
"""

from __future__ import annotations

import copy
import json
import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from nbcore.jobs.words import BAD, duration, is_number, memory, moment, number, state_words

_QUIET_EVERY, _EVENT_EVERY = 30.0, 5.0  # seconds between two progress lines or events
_TELLING = ("loss", "reward", "accuracy")
_COLOURS = {"done": "green", "reused": "cyan", "running": "blue"} | dict.fromkeys(BAD, "red")


class Stream:
    """A text stream that takes what it can and never raises: once it is gone, what is written to it is dropped."""

    def __init__(self, stream: Any):
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or drop."""
        try:
            return self._stream.write(text)
        except UnicodeEncodeError:
            plain = text.encode(self.encoding or "ascii", "replace").decode(self.encoding or "ascii")
            return self.write(plain)
        except (OSError, ValueError):
            self._drop()
            return len(text)

    def flush(self) -> None:
        """Flush, or drop."""
        try:
            self._stream.flush()
        except (OSError, ValueError):
            self._drop()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _drop(self) -> None:
        # Python flushes stdout once more at exit and would turn a closed pipe into exit code 120.
        if self._stream is sys.stdout:
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (lives as long as the process)
        self._stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


class Pace:
    """Seconds left of the running stage, from how fast its steps have come since it was first seen."""

    def __init__(self) -> None:
        self._first: tuple[Any, float, float] | None = None

    def left(self, key: str, stage: dict) -> float | None:
        """None while there are no steps, no total or only one step seen, and when the last one is done."""
        last = stage.get("last") or {}
        step, total, now = last.get("step"), last.get("total"), time.monotonic()
        if not (is_number(step) and is_number(total)):
            return None
        same = (key, stage.get("attempt"), total)
        if self._first is None or self._first[0] != same or step < self._first[1]:
            self._first = (same, step, now)
        done = step - self._first[1]
        return (total - step) * (now - self._first[2]) / done if done > 0 and step < total else None


def headline(last: dict) -> str:
    """The loss or reward of the latest metrics row: `loss 0.41`; the two best known names, or the first number there is."""
    numbers = {name: value for name, value in last.items() if is_number(value) and name not in ("step", "total", "attempt", "time")}
    ranked = [name for word in _TELLING for name in sorted(numbers, key=len) if word in name]
    chosen = list(dict.fromkeys(ranked))[:2] or list(numbers)[:1]
    lost = [name.removesuffix("_nonfinite") for name in last if name.endswith("_nonfinite")]
    return ", ".join([f"{name} {number(numbers[name])}" for name in chosen] + [f"{name} not finite" for name in lost[:2]])


def detail(key: str, stage: dict, pace: Pace | None = None) -> str:
    """What there is to say of a stage beside its state, in one line."""
    state = stage.get("state")
    if state in BAD:
        return str(stage.get("error") or stage.get("reason") or "")
    if state != "running":
        if state == "done" and is_number(stage.get("seconds")):  # its reason says why it had to run, which is over now
            return " · ".join(p for p in (duration(stage["seconds"]), memory(stage.get("peak_rss_mib"))) if p != "–")
        return str(stage.get("reason") or "")
    last, parts = stage.get("last") or {}, []
    if stage.get("cells"):
        parts.append(f"cell {stage.get('cell') or 0}/{stage['cells']}")
    if is_number(last.get("step")):
        parts.append(f"step {last['step']}" + (f"/{last['total']}" if is_number(last.get("total")) else ""))
    parts.append(headline(last))
    left = pace.left(key, stage) if pace else None
    parts += [f"{duration(left)} left" if left is not None else "", duration(stage.get("seconds")), memory(stage.get("peak_rss_mib"))]
    return " · ".join(p for p in parts if p and p != "–")


def rows(status: dict, pace: Pace | None = None) -> list[tuple[str, str | None, str, str]]:
    """(sign and word, colour or None, stage, what there is to say) of every stage."""
    made = []
    for key, stage in status["stages"].items():
        sign, word = state_words(stage.get("state"))
        made.append((f"{sign} {word}", _COLOURS.get(stage.get("state")), key, detail(key, stage, pace)))
    return made


def overview(status: dict, pace: Pace | None = None) -> Any:
    """The whole pipeline as a rich renderable: a row a stage, and a line on the run."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for state, colour, key, said in rows(status, pace):
        table.add_row(Text(state, style=colour or "dim"), Text(key, style="bold"), Text(said))
    return Group(table, Text(summary(status), style="dim"))


def summary(status: dict) -> str:
    """The run in one line: name, stage k of n, time so far, what the recipe expects."""
    states = [stage.get("state") for stage in status["stages"].values()]
    at = next((i + 1 for i, state in enumerate(states) if state == "running"), sum(state not in ("waiting", "skipped") for state in states))
    began = moment(status.get("started"))
    ended = moment(status.get("ended")) or datetime.now(UTC)
    expects = status.get("expects") or {}
    expected = [f"{number(expects[name])} {unit}" for name, unit in (("minutes", "min"), ("memory_gib", "GiB")) if expects.get(name)]
    parts = [f"stage {at} of {len(states)}", duration((ended - began).total_seconds()) if began else ""]
    return " · ".join(p for p in [status.get("run", ""), *parts, f"the recipe expects {', '.join(expected)}" if expected else ""] if p)


class Live:
    """The whole pipeline on a terminal, redrawn twice a second."""

    def __init__(self, stream: Any):
        from rich.console import Console
        from rich.live import Live as RichLive
        from rich.text import Text

        self._status: dict | None = None
        self._pace, self._nothing = Pace(), Text("")
        console = Console(file=Stream(stream), highlight=False)
        self._live = RichLive(
            console=console, get_renderable=self._draw, refresh_per_second=2, redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip

    def __enter__(self) -> Live:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def __call__(self, status: dict) -> None:
        # A copy: the pipeline goes on changing its own while another thread draws.
        self._status = copy.deepcopy(status)

    def _draw(self) -> Any:
        return overview(self._status, self._pace) if self._status else self._nothing


class Lines:
    """One line a change of state, and one on progress at most every 30 seconds: for logs, pipes and schedulers."""

    def __init__(self, stream: Any):
        self._stream, self._seen, self._pace, self._said = Stream(stream), {}, Pace(), time.monotonic()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stream.flush()

    def __call__(self, status: dict) -> None:
        total = len(status["stages"])
        for i, (key, stage) in enumerate(status["stages"].items()):
            changed = _changed(self._seen, key, stage)
            running = stage["state"] == "running"
            self._pace.left(key, stage) if running else None  # seen from the start, so that the first line knows the pace
            if not changed and not (running and time.monotonic() - self._said >= _QUIET_EVERY):
                continue
            self._said = time.monotonic()
            said = stage.get("reason") if changed and running else detail(key, stage, self._pace)
            line = f"{datetime.now(UTC):%H:%M:%S} {i + 1}/{total} {key} {state_words(stage['state'])[1]}{f': {said}' if said else ''}"
            self._stream.write(line.replace("\n", " ") + "\n")
            self._stream.flush()


class Events:
    """One JSON object a line: {"event": "stage" | "progress" | "outcome" | …, "time", …}."""

    def __init__(self, stream: Any):
        self._stream, self._seen, self._said = Stream(stream), {}, time.monotonic()

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stream.flush()

    def __call__(self, status: dict) -> None:
        for key, stage in status["stages"].items():
            if _changed(self._seen, key, stage):
                self.say("stage", run=status["run"], stage=key, **stage)
            elif stage["state"] == "running" and time.monotonic() - self._said >= _EVENT_EVERY:
                self._said = time.monotonic()
                self.say("progress", run=status["run"], stage=key, **stage)

    def say(self, event: str, **values: Any) -> None:
        """Write one event."""
        row = {"event": event, "time": datetime.now(UTC).isoformat(timespec="milliseconds"), **values}
        self._stream.write(json.dumps(row, default=str) + "\n")
        self._stream.flush()


def watcher(stream: Any, as_json: bool) -> Live | Lines | Events:
    """The display that suits the stream."""
    if as_json:
        return Events(stream)
    return Live(stream) if stream.isatty() else Lines(stream)


def follow(read: Any, every: float = 1.0) -> Iterator[dict]:
    """Statuses from `read()` once every so many seconds, up to and with the first that is not running."""
    while True:
        status = read()
        yield status
        if status.get("state") != "running":
            return
        time.sleep(every)


def _changed(seen: dict, key: str, stage: dict) -> bool:
    now = (stage.get("state"), stage.get("attempt"))
    before = seen.get(key, ("waiting", stage.get("attempt")))
    seen[key] = now
    return now[0] != before[0] or (now[0] == "running" and now[1] != before[1])

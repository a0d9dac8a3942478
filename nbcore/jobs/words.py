"""How the state, times, sizes and numbers of a run are said, the same on the terminal and in the report. Design section 5.

A state is always a sign *and* a word: colour only repeats what they say.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

# state: (sign, word). The signs exist in DejaVu and in the usual terminal fonts and are one column wide.
STATES = {
    "waiting": ("○", "waiting"),
    "running": ("▶", "running"),
    "done": ("✓", "done"),
    "failed": ("✗", "failed"),
    "timed-out": ("◷", "timed out"),
    "killed": ("■", "killed"),
    "interrupted": ("‖", "interrupted"),
    "reused": ("↺", "reused"),
    "skipped": ("–", "skipped"),
    "unknown": ("?", "unknown"),
}
BAD = ("failed", "timed-out", "killed", "interrupted")
FINISHED = ("done", "reused")


def state_words(state: Any) -> tuple[str, str]:
    """(sign, word) of a stage's or run's state; a state that is not known is said as it stands."""
    return STATES.get(state, ("?", str(state)))


def moment(value: Any) -> datetime | None:
    """A recorded time (ISO text or seconds since 1970) as an aware UTC datetime; None for anything else."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        at = datetime.fromisoformat(value)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def when(value: Any) -> str:
    """A recorded time as people read it, to the second, UTC; a dash when there is none."""
    at = moment(value)
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if at else "–"


def duration(seconds: Any) -> str:
    """Seconds as `0.4 s`, `12 s`, `3 min 12 s` or `2 h 05 min`; a dash when not known."""
    if not is_number(seconds) or seconds < 0:
        return "–"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def memory(mib: Any) -> str:
    """MiB as `812 MiB` or `1.2 GiB`; a dash when not known."""
    if not is_number(mib):
        return "–"
    return f"{mib / 1024:.1f} GiB" if mib >= 1024 else f"{mib:.0f} MiB"


def number(value: Any) -> str:
    """A number with four significant digits, without an exponent where that stays readable; None is `not measured`."""
    if value is None:
        return "not measured"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) and abs(value) < 10**9:
        return str(value)
    if not math.isfinite(value):
        return str(value)
    text = f"{value:.4g}"
    if "e" in text:
        if 1e4 <= abs(value) < 1e9:
            return f"{value:.0f}"
        head, _, power = text.partition("e")
        text = f"{head}e{int(power)}"
    return text


def share(value: Any) -> str:
    """A share of one as percent: 0.714 → `71.4 %`, 0.7 → `70 %`."""
    if not is_number(value):
        return "not measured"
    return f"{value * 100:.1f}".removesuffix(".0") + " %"


def inside(value: Any, band: Any) -> str:
    """`inside`, `outside` or `not measured`: where a metric lies with respect to its band (low, high), both ends inside."""
    if not is_number(value):
        return "not measured"
    low, high = band
    return "inside" if low <= value <= high else "outside"


def is_number(value: Any) -> bool:
    """Whether the value is a finite number (True and False are not)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def count(n: int, noun: str) -> str:
    """`1 stage`, `2 stages`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def outcome(status: dict) -> str:
    """One sentence on what became of a run, from its status.json as `read_status` gives it."""
    stages = status.get("stages") or {}
    states = {key: stage.get("state") for key, stage in stages.items()}
    finished = sum(state in FINISHED for state in states.values())
    reused = sum(state == "reused" for state in states.values())
    skipped = sum(state == "skipped" for state in states.values())
    state, total = status.get("state"), len(stages)
    tail = f" {finished} of {count(total, 'stage')} finished."
    if state == "done":
        began, ended = moment(status.get("started")), moment(status.get("ended"))
        took = f" in {duration((ended - began).total_seconds())}" if began and ended else ""
        said = f"Done: {count(finished, 'stage')} finished{took}"
        said += f", {reused} of them reused from earlier runs" if reused else ""
        return said + (f"; {count(skipped, 'stage')} skipped as asked." if skipped else ".")
    if state == "running":
        at = next((key for key, now in states.items() if now == "running"), None)
        return (f"Running: {at}, stage {list(states).index(at) + 1} of {total}." if at else "Running.") + tail
    sign, word = state_words(state)
    bad = next((key for key, now in states.items() if now in BAD), None)
    error = (stages.get(bad, {}).get("error") if bad else None) or status.get("error")
    said = f"{word.capitalize()}{f' in {bad}' if bad else ''}"
    return f"{said}: {_sentence(error)}{tail}" if error else f"{said}.{tail}"


def _sentence(text: Any) -> str:
    text = str(text).strip()
    return text if text.endswith((".", "!", "?", "…")) else text + "."

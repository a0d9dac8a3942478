"""Curves of what a stage logged: one small drawing a metric, loss and reward before the rest.

A gap in a curve is a value that was not finite or not measured; the caption counts them. Left out on purpose: two metrics
in one drawing (their scales seldom agree) and logarithmic axes.
"""

from __future__ import annotations

import math

from nbcore.jobs.report.gather import Series, StageRecord
from nbcore.jobs.report.markup import at, esc, svg
from nbcore.jobs.words import count, number

_WIDE, _HIGH = 360, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 350, 12, 158  # the plot inside the drawing, pixels
_FIRST = ("loss", "reward", "accuracy", "correct", "score", "margin", "kl", "entropy", "length", "grad")
SHOWN = 6


def curves(stage: StageRecord) -> str:
    """HTML of all curves of a stage, the ones after the first SHOWN folded away; empty without any."""
    ordered = sorted(stage.series, key=_rank)
    drawn = [_figure(series, stage.attempts) for series in ordered]
    if not drawn:
        return ""
    html = f'<div class="curves">{"".join(drawn[:SHOWN])}</div>'
    if rest := drawn[SHOWN:]:
        html += f'<details><summary>{count(len(rest), "more curve")}</summary><div class="curves">{"".join(rest)}</div></details>'
    return html


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from low to high, about that many."""
    if not high > low:
        return [low]
    step = 10 ** math.floor(math.log10((high - low) / about))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= about)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def _rank(series: Series) -> tuple[int, str]:
    name = series.name.lower()
    return next((i for i, word in enumerate(_FIRST) if word in name), len(_FIRST)), name


def _figure(series: Series, attempts: list[tuple[int, float]]) -> str:
    notes = []
    finite = [(x, y) for x, y in series.points if y is not None]
    if lost := sum(series.missing.values()):
        kinds = ", ".join(f"{n} {what}" for what, n in series.missing.items() if what != "none")
        notes.append(f"{lost} of {series.count} values missing" + (f" ({kinds})" if kinds else ""))
    if len(series.points) < series.count:
        notes.append(f"{series.count} values, thinned to {len(series.points)} with their extremes kept")
    if not finite:
        return f"<figure><figcaption><b>{esc(series.name)}</b> no finite value; {esc('; '.join(notes))}</figcaption></figure>"
    body, smoothed = _body(series, finite, attempts)
    if smoothed:
        notes.append("pale: each value, strong: running mean")
    notes += [f"dashed: attempt {attempt} took over" for attempt, _ in attempts]
    values = [y for _, y in finite]
    said = f"last {number(series.last)}, lowest {number(min(values))}, highest {number(max(values))}"
    drawing = svg(_WIDE, _HIGH, f"{series.name} over the steps: first {number(values[0])}, {said}", body)
    note = f'<span class="note">{esc("; ".join(notes))}</span>' if notes else ""
    return f"<figure><figcaption><b>{esc(series.name)}</b> {esc(said)}{note}</figcaption>{drawing}</figure>"


def _body(series: Series, finite: list[tuple[float, float]], attempts: list[tuple[int, float]]) -> tuple[str, bool]:
    xs, ys = [x for x, _ in finite], [y for _, y in finite]
    x0, x1 = min(x for x, _ in series.points), max(x for x, _ in series.points)
    y0, y1 = min(ys), max(ys)
    if y0 == y1:
        y0, y1 = y0 - (abs(y0) * 0.1 or 1), y1 + (abs(y1) * 0.1 or 1)

    def px(x: float) -> float:
        return _LEFT + (x - x0) / (x1 - x0 or 1) * (_RIGHT - _LEFT)

    def py(y: float) -> float:
        # Divided before subtracting: the range of a run that blew up may not fit into a float.
        return _BOTTOM - (y / 2 - y0 / 2) / (y1 / 2 - y0 / 2) * (_BOTTOM - _TOP)

    parts = []
    for t in ticks(y0, y1) if math.isfinite(y1 - y0) else [y0, y1]:
        parts.append(f'<line x1="{_LEFT}" y1="{py(t):.1f}" x2="{_RIGHT}" y2="{py(t):.1f}" class="grid"/>')
        parts.append(at(_LEFT - 6, py(t) + 4, number(t), "soft", "end"))
    for t in ticks(x0, x1):
        parts.append(at(px(t), _BOTTOM + 16, number(t), "soft", "middle"))
    parts.append(f'<line x1="{_LEFT}" y1="{_BOTTOM}" x2="{_RIGHT}" y2="{_BOTTOM}" class="axis"/>')
    parts.append(at(_RIGHT, _HIGH - 5, "step", "soft", "end"))
    for _, x in attempts:
        parts.append(f'<line x1="{px(x):.1f}" y1="{_TOP}" x2="{px(x):.1f}" y2="{_BOTTOM}" class="taken"/>')
    smoothed = len(xs) > 80
    pieces = _pieces(series.points)
    for piece in pieces:
        if len(piece) == 1:
            parts.append(f'<circle cx="{px(piece[0][0]):.1f}" cy="{py(piece[0][1]):.1f}" r="2" class="dot"/>')
        else:
            parts.append(_line([(px(x), py(y)) for x, y in piece], "raw" if smoothed else "curve"))
            if smoothed and len(piece) > 8:
                parts.append(_line([(px(x), py(y)) for x, y in _mean(piece, max(5, len(xs) // 20))], "curve"))
    return "".join(parts), smoothed


def _pieces(points: list[tuple[float, float | None]]) -> list[list[tuple[float, float]]]:
    pieces: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is None:
            pieces.append([])
        else:
            pieces[-1].append((x, y))
    return [piece for piece in pieces if piece]


def _mean(piece: list[tuple[float, float]], span: int) -> list[tuple[float, float]]:
    half = span // 2
    windows = ((x, piece[max(0, i - half): i + half + 1]) for i, (x, _) in enumerate(piece))
    return [(x, sum(y / len(window) for _, y in window)) for x, window in windows]


def _line(points: list[tuple[float, float]], css: str) -> str:
    return f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" class="{css}"/>'

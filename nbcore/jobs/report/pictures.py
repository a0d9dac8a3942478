"""Two drawings of a whole run: where the metric moved (a dumbbell a suite), and the pipeline (boxes and arrows).

Both are 360 pixels wide, the width of a telephone: there they are shown as they are, elsewhere a little larger. So one
drawing serves the page at every width and the README. Left out on purpose: any layout engine; a recipe is a short list.
"""

from __future__ import annotations

import re
from typing import Any

from nbcore.jobs.report.gather import RunRecord, StageRecord
from nbcore.jobs.report.markup import at, cut, esc, svg
from nbcore.jobs.words import FINISHED, STATES, count, duration, inside, is_number, memory, number, share, state_words

WIDE = 360
_LEFT, _RIGHT = 10.0, 350.0  # the track of a dumbbell, pixels


def moves(run: RunRecord, joined: bool = False) -> tuple[str, float] | None:
    """The body of the dumbbell drawing and its height in pixels; None when no stage said that a metric moved.

    joined: a suite that a stage follows from model to model is one dumbbell, from the first of them to the last.
    """
    found = [(stage.key, move) for stage in run.stages for move in (_joined if joined else list)(stage.result.get("moves", []))]
    if not found:
        return None
    parts = [f'<circle cx="16" cy="13" r="5" class="before"/>{at(26, 17, "before", "soft")}'
             f'<circle cx="84" cy="13" r="5" class="after"/>{at(94, 17, "after", "soft")}'
             f'<line x1="140" y1="13" x2="170" y2="13" class="after"/>{at(176, 17, "95 % interval", "soft")}']
    if any(_is_share(move) for _, move in found):
        parts.append(at(_RIGHT, 17, "scale 0–100 %", "soft", "end"))
    y, told = 26.0, None
    for key, move in found:
        if key != told:
            parts.append(at(_LEFT, y + 16, key, "soft"))
            y, told = y + 20, key
        parts.append(_dumbbell(move, y))
        y += 66
    return "".join(parts), y + 4


def moved(move: dict) -> str:
    """A move in words: `rose by 67.4 points, intervals apart`."""
    before, after = move["before"].get("value"), move["after"].get("value")
    if not is_number(before) or not is_number(after):
        return "not measured on both sides"
    by = after - before
    way = "rose" if by > 0 else "fell" if by < 0 else "did not move"
    size = "" if not by else f" by {number(round(abs(by) * 100, 1))} points" if _is_share(move) else f" by {number(abs(by))}"
    ends = [move[side].get(end) for side in ("before", "after") for end in ("low", "high")]
    if not all(is_number(end) for end in ends):
        return way + size
    apart = ends[1] < ends[2] or ends[3] < ends[0]
    return f"{way}{size}, intervals {'apart' if apart else 'overlap'}"


def _joined(found: list[dict]) -> list[dict]:
    whole: list[dict] = []
    for move in found:
        begun = next((m for m in whole if m.get("suite") == move.get("suite") and m["after"] == move["before"]), None)
        if begun:
            begun["after"] = move["after"]
        else:
            whole.append(dict(move))
    return whole


def _dumbbell(move: dict, y: float) -> str:
    sides = [(name, move[name]) for name in ("before", "after")]
    numbers = [end[key] for _, end in sides for key in ("value", "low", "high") if is_number(end.get(key))]
    as_share = _is_share(move)
    low, high = (0.0, 1.0) if as_share else (min(numbers, default=0.0), max(numbers, default=1.0))
    pad = 0.0 if as_share else (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    low, high = low - pad, high + pad

    def x(value: float) -> float:
        return _LEFT + (value - low) / (high - low) * (_RIGHT - _LEFT)

    say = share if as_share else number
    unit = "" if as_share or not move.get("unit") else f" {move['unit']}"
    ends = " → ".join(say(end.get("value")) for _, end in sides) + unit
    parts = [at(_LEFT, y + 14, cut(move.get("suite", "?"), 14), "strong"), at(_RIGHT, y + 14, cut(ends, 19), "", "end")]
    ticks = (0.0, 0.25, 0.5, 0.75, 1.0) if as_share else ()
    parts += [f'<line x1="{x(t):.1f}" y1="{y + 22:.1f}" x2="{x(t):.1f}" y2="{y + 44:.1f}" class="grid"/>' for t in ticks]
    parts.append(f'<line x1="{_LEFT}" y1="{y + 33:.1f}" x2="{_RIGHT}" y2="{y + 33:.1f}" class="axis"/>')
    if all(is_number(end.get("value")) for _, end in sides):
        a, b = (x(end["value"]) for _, end in sides)
        if abs(a - b) > 14:
            way = 1 if b > a else -1
            tip = b - way * 7
            parts.append(f'<line x1="{a:.1f}" y1="{y + 33:.1f}" x2="{tip:.1f}" y2="{y + 33:.1f}" class="move"/>'
                         f'<path d="M{tip:.1f} {y + 33:.1f}l{-6 * way} -3.5v7z" class="tip"/>')
    for (name, end), shift in zip(sides, (-6, 6), strict=True):
        middle = y + 33 + shift
        if is_number(end.get("low")) and is_number(end.get("high")):
            parts.append(f'<line x1="{x(end["low"]):.1f}" y1="{middle:.1f}" x2="{x(end["high"]):.1f}" y2="{middle:.1f}" class="{name}"/>')
        if is_number(end.get("value")):
            parts.append(f'<circle cx="{x(end["value"]):.1f}" cy="{y + 33:.1f}" r="5" class="{name}"/>')
    names = f"{move['before'].get('name', 'before')} → {move['after'].get('name', 'after')}"
    n = f", n = {move['n']}" if move.get("n") else ""
    return "".join(parts) + at(_LEFT, y + 58, cut(f"{names}{n}: {moved(move)}", 32), "soft")


def key_metric(stage: StageRecord) -> tuple[str, Any, str] | None:
    """(name, value, what the band says or "") of the metric that stands for a stage: one outside its band before all others."""
    metrics, bands = stage.result.get("metrics", {}), stage.bands
    if not stage.result:
        return None
    said = {name: inside(metrics.get(name), band) for name, band in bands.items()}
    name = next((n for n, word in said.items() if word != "inside"), None) or next(iter(said), None) or next(iter(metrics), None)
    return None if name is None else (name, metrics.get(name), said.get(name, ""))


def pipeline(run: RunRecord, links: bool = True) -> tuple[str, float] | None:
    """The body of the pipeline drawing and its height in pixels; None without stages. `links` lead to the stages' sections."""
    if not run.stages:
        return None
    order = [stage.key for stage in run.stages]
    edges = [(order.index(need), i) for i, s in enumerate(run.stages) for need in s.recipe.get("needs") or [] if need in order[:i]]
    far = [(a, b) for a, b in edges if b - a > 1]
    lanes = _lanes(far)
    gutter = 12 + 7 * (max(lanes, default=-1) + 1)
    high, gap = 66, 20
    tops = [2 + i * (high + gap) for i in range(len(order))]
    parts = []
    for a, b in edges:
        if b - a == 1:
            parts.append(f'<path d="M{gutter + 24} {tops[a] + high}V{tops[b] - 7}" class="arrow"/>'
                         f'<path d="M{gutter + 24} {tops[b]}l-4 -7h8z" class="tip"/>')
    for (a, b), lane in zip(far, lanes, strict=True):
        x, start, end = gutter - 8 - 7 * lane, tops[a] + high - 14, tops[b] + 14 + 5 * (lane % 3)
        parts.append(f'<path d="M{gutter} {start}H{x + 4}Q{x} {start} {x} {start + 4}V{end - 4}Q{x} {end} {x + 4} {end}H{gutter - 4}" '
                     f'class="arrow"/><path d="M{gutter} {end}l-6 -3.5v7z" class="tip"/>')
    for stage, top in zip(run.stages, tops, strict=True):
        box = _box(stage, gutter, top, WIDE - 2 - gutter, high)
        parts.append(f'<a href="#{anchor(stage.key)}" aria-label="{esc(stage.key)}, {state_words(stage.state)[1]}">{box}</a>'
                     if links else box)
    return "".join(parts), tops[-1] + high + 4


def anchor(key: str) -> str:
    """The id of a stage's section."""
    return "stage-" + re.sub(r"[^A-Za-z0-9_-]", "-", key)


def _box(stage: StageRecord, x: float, y: float, wide: float, high: float) -> str:
    mark, word = state_words(stage.state)
    css = f"st-{stage.state if stage.state in STATES else 'unknown'}"
    idle = " idle" if stage.state in ("waiting", "skipped") else ""
    status = stage.status
    spent = [duration(status.get("seconds")), f"CPU {duration(status.get('cpu_seconds'))}", f"{memory(status.get('peak_rss_mib'))} peak"]
    spent = [part for part in spent if "–" not in part]
    second = " · ".join(spent) or (f"from {status.get('reused_from')}" if stage.state == "reused" else "not run")
    third, found = "", key_metric(stage)
    if found:
        name, value, said = found
        others = len(stage.bands) - 1 if said else 0
        sign = {"inside": "✓ ", "outside": "✗ "}.get(said, "")
        third = f"{sign}{cut(name, 12)} {number(value)}" + (f", {said}" + (" its band" if "side" in said else "") if said else "")
        third += f" (+{others})" if others > 0 else ""
    elif stage.status.get("error"):
        third = stage.status["error"]
    elif stage.unread:
        third = "its result can't be read" if stage.state in FINISHED else ""
    else:
        third = status.get("reason") or ""
    full = f"{stage.key}: {word}. {second}. {third}"
    room = (wide - 24) / 12
    return (f'<g><title>{esc(full)}</title><rect x="{x}" y="{y}" width="{wide}" height="{high}" rx="6" class="box{idle}"/>'
            f'<rect x="{x}" y="{y}" width="6" height="{high}" rx="3" class="{css}"/>'
            + at(x + 16, y + 19, cut(stage.key, room - 8), "strong") + at(x + wide - 10, y + 19, f"{mark} {word}", f"strong {css}", "end")
            + at(x + 16, y + 38, cut(second, room + 2), "soft") + at(x + 16, y + 56, cut(third, room)) + "</g>")


def _lanes(edges: list[tuple[int, int]]) -> list[int]:
    taken: list[list[tuple[int, int]]] = []
    lanes = []
    for a, b in edges:
        lane = next((i for i, spans in enumerate(taken) if all(b <= c or d <= a for c, d in spans)), len(taken))
        if lane == len(taken):
            taken.append([])
        taken[lane].append((a, b))
        lanes.append(lane)
    return lanes


def picture(run: RunRecord, css: str, sentence: str) -> str:
    """Both drawings side by side as one SVG that stands alone (light and dark), for a README."""
    both = (("Where the metric moved", moves(run, joined=True)), ("The pipeline", pipeline(run, links=False)))
    drawn = [(title, made) for title, made in both if made]
    wide, high = max(1, len(drawn)) * (WIDE + 40) + 20, max((made[1] for _, made in drawn), default=0.0) + 84
    parts = [f"<style>{css}</style>", f'<rect width="{wide}" height="{high:.0f}" rx="10" style="fill:var(--paper)"/>',
             at(30, 30, cut(sentence, (wide - 60) / 12), "soft")]
    for i, (title, (body, _)) in enumerate(drawn):
        inner = f'{at(0, 16, title, "head")}<g transform="translate(0 28)">{body}</g>'
        parts.append(f'<g transform="translate({30 + i * (WIDE + 40)} 44)">{inner}</g>')
    return svg(wide, high, f"{run.folder.name}: {sentence} {count(len(run.stages), 'stage')}.", "".join(parts))


def _is_share(move: dict) -> bool:
    numbers = [move[side].get(end) for side in ("before", "after") for end in ("value", "low", "high")]
    return move.get("unit", "share") == "share" and all(0 <= v <= 1 for v in numbers if is_number(v))

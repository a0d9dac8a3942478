"""The section of one stage in the report: why it is in its state, what it was given, what came out, how it looked.

Left out on purpose: the notebook itself (it lies in the stage's folder, and its outputs would make the page heavy).
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from pathlib import Path
from typing import Any

from nbcore.jobs.report.curves import curves
from nbcore.jobs.report.gather import StageRecord
from nbcore.jobs.report.markup import esc
from nbcore.jobs.report.pictures import anchor
from nbcore.jobs.words import BAD, STATES, count, duration, inside, is_number, memory, number, state_words, when

_ROWS, _CELL, _TEXT = 200, 2000, 4000  # rows of a table, characters of a cell, characters of a sample's text


def section(stage: StageRecord) -> str:
    """HTML of one stage."""
    parts = [f'<section class="stage" id="{anchor(stage.key)}"><h2>{esc(stage.key)} {badge(stage.state)}</h2>', _facts(stage)]
    error = stage.status.get("error")
    if error:
        parts.append(f'<p class="error" role="note"><b>What went wrong:</b> {esc(error)}</p>')
    parts += [f'<p class="error" role="note"><b>Not readable:</b> {esc(sentence)}</p>' for sentence in stage.unread]
    parts += [_metrics(stage), _checks(stage)]
    if tables := stage.result.get("tables"):
        drawn = (table(name, given["columns"], given["rows"], given.get("caption")) for name, given in tables.items())
        parts.append(f"<h3>Tables</h3>{''.join(drawn)}")
    if drawn := curves(stage):
        parts.append(f"<h3>Curves</h3>{drawn}")
    parts += [_figures(stage), _samples(stage), _parameters(stage)]
    if stage.state in BAD:
        log = f'<pre class="log" tabindex="0">\n{esc(stage.log)}</pre>' if stage.log else "<p>log.txt holds nothing.</p>"
        parts.append(f"<h3>End of the log</h3>{log}")
    return "".join(parts) + "</section>"


def badge(state: str) -> str:
    """A state as sign and word."""
    sign, word = state_words(state)
    css = state if state in STATES else "unknown"
    return f'<span class="badge st-{css}"><span aria-hidden="true">{sign}</span> {esc(word)}</span>'


def table(name: str, columns: list, rows: list[list], caption: Any = "") -> str:
    """A table that scrolls inside itself; numbers stand to the right. Rows and cells past the limits are counted, not lost in silence."""
    right = [bool(rows) and all(row[i] is None or is_number(row[i]) for row in rows) for i in range(len(columns))]
    head = "".join(f'<th scope="col"{" class=n" if r else ""}>{esc(c)}</th>' for c, r in zip(columns, right, strict=True))
    body = "".join("<tr>" + "".join(_cell(cell, r) for cell, r in zip(row, right, strict=True)) + "</tr>" for row in rows[:_ROWS])
    left = f'<p class="note">{_ROWS} of {len(rows)} rows; all of them are in result.json.</p>' if len(rows) > _ROWS else ""
    title = f"<caption>{esc(name)}{': ' if caption else ''}{esc(caption or '')}</caption>"
    return _scroll(name, f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>") + left


def _scroll(name: str, inner: str) -> str:
    # Reachable by keyboard, or a table wider than the page could not be read without a mouse.
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{esc(name)}">{inner}</div>'


def _cell(cell: Any, right: bool) -> str:
    text = "–" if cell is None else number(cell) if is_number(cell) else _text(cell, _CELL)
    return f'<td{" class=n" if right else ""}>{esc(text)}</td>'


def _facts(stage: StageRecord) -> str:
    status = stage.status
    facts = [
        ("why skipped" if stage.state == "skipped" else "why reused" if stage.state == "reused" else "why it ran", status.get("reason")),
        ("reused from", status.get("reused_from") if stage.state == "reused" else None),
        ("notebook", Path(str(stage.recipe["notebook"])).name if stage.recipe.get("notebook") else None),
        ("needs", ", ".join(map(str, stage.recipe.get("needs") or [])) or None),
        ("started", when(status.get("started")) if status.get("started") else None),
        ("took", duration(status["seconds"]) if is_number(status.get("seconds")) else None),
        ("CPU", duration(status["cpu_seconds"]) if is_number(status.get("cpu_seconds")) else None),
        ("peak memory", memory(status["peak_rss_mib"]) if is_number(status.get("peak_rss_mib")) else None),
        ("attempt", status.get("attempt") if (status.get("attempt") or 1) != 1 else None),
        ("cells", f"{status.get('cell')} of {status['cells']}" if status.get("cells") and stage.state in (*BAD, "running") else None),
    ]
    return facts_list([(name, value) for name, value in facts if value is not None])


def facts_list(facts: list[tuple[str, Any]]) -> str:
    """Names and values as a definition list that flows."""
    return '<dl class="facts">' + "".join(f"<div><dt>{esc(n)}</dt><dd>{esc(v)}</dd></div>" for n, v in facts) + "</dl>"


def _metrics(stage: StageRecord) -> str:
    metrics = stage.result.get("metrics", {})
    names = [*stage.bands, *(name for name in metrics if name not in stage.bands)]
    if not names:
        return ""
    if not stage.result:
        if stage.state not in ("waiting", "skipped"):
            return f"<p>No metric was recorded; {count(len(stage.bands), 'band')} not checked: {esc(', '.join(stage.bands))}.</p>"
        return ""
    rows = []
    for name in names:
        value, band = metrics.get(name), stage.bands.get(name)
        cells = f'<th scope="row">{esc(name)}</th><td class="n">{esc(number(value))}</td>'
        if band:
            word = inside(value, band)
            sign, css = {"inside": ("✓", "st-done"), "outside": ("✗", "st-failed")}.get(word, ("?", "st-unknown"))
            mark = f'<span class="{css}"><span aria-hidden="true">{sign}</span> {word}</span>'
            cells += f'<td>{mark}</td><td class="n">{number(band[0])} to {number(band[1])}</td><td>{_bar(name, value, band)}</td>'
        elif stage.bands:
            cells += '<td></td><td class="n">no band</td><td></td>'
        rows.append(f"<tr>{cells}</tr>")
    head = '<th scope="col">metric</th><th scope="col" class="n">value</th>'
    if stage.bands:
        head += '<th scope="col"><span class="hidden">mark</span></th><th scope="col" class="n">healthy band</th>'
        head += '<th scope="col"><span class="hidden">picture</span></th>'
    return f"<h3>Metrics</h3>{_scroll('Metrics', f'<table><thead><tr>{head}</tr></thead><tbody>{chr(10).join(rows)}</tbody></table>')}"


def _bar(name: str, value: Any, band: tuple[float, float]) -> str:
    if not is_number(value) or not all(is_number(end) for end in band):
        return ""
    low, high = min(value, band[0]), max(value, band[1])
    span = (high - low) or 1.0

    def x(v: float) -> float:
        return 8 + (v - low) / span * 104

    title = f"{name} {number(value)}, band {number(band[0])} to {number(band[1])}: {inside(value, band)}"
    return (f'<svg class="bar" viewBox="0 0 120 16" role="img" aria-label="{esc(title)}"><title>{esc(title)}</title>'
            f'<line x1="4" y1="8" x2="116" y2="8" class="axis"/>'
            f'<rect x="{x(band[0]):.1f}" y="3" width="{max(2.0, x(band[1]) - x(band[0])):.1f}" height="10" class="healthy"/>'
            f'<circle cx="{x(value):.1f}" cy="8" r="4.5" class="after"/></svg>')


def _checks(stage: StageRecord) -> str:
    checks = stage.result.get("checks", [])
    items = "".join(f'<li>{"✓ holds" if c.get("ok") else "✗ does not hold"}: {esc(c.get("sentence", ""))}</li>' for c in checks)
    return f"<h3>Checks</h3><ul class=checks>{items}</ul>" if items else ""


def _figures(stage: StageRecord) -> str:
    drawn = []
    for name, caption, image in stage.figures:
        data = base64.b64encode(image).decode("ascii")
        said = esc(caption or name)
        drawn.append(f'<figure class="image"><img alt="{said}" src="data:image/png;base64,{data}"><figcaption>{said}</figcaption></figure>')
    return f'<h3>Figures</h3><div class="figures">{"".join(drawn)}</div>' if drawn else ""


def _parameters(stage: StageRecord) -> str:
    given = stage.recipe.get("parameters")
    if not isinstance(given, dict) or not given:
        return ""
    rows = []
    for name, at in given.items():
        at = at if isinstance(at, dict) else {"value": at, "origin": "not recorded"}
        value = at.get("value")
        rows.append([name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), at.get("origin", "not recorded")])
    changed = sum(row[2] != "notebook default" for row in rows)
    inner = table("parameters", ["parameter", "value", "origin"], rows)
    said = f"{count(len(rows), 'parameter')}, {changed} not at the notebook's default"
    return f"<h3>Parameters</h3><details><summary>{said}</summary>{inner}</details>"


def _samples(stage: StageRecord) -> str:
    if not stage.samples:
        return ""
    groups: dict[str, list[dict]] = {}
    met: Counter[str] = Counter()
    for record in stage.samples:
        asked = json.dumps([record.get("suite"), record.get("prompt")])
        # A prompt drawn twice is two pairs: the first before belongs to the first after.
        side = f"{asked} {record.get('when')}"
        met[side] += 1
        groups.setdefault(f"{asked} {met[side]}", []).append(record)
    parts = []
    for records in groups.values():
        first = records[0]
        marks = " → ".join(f"{r.get('when') or 'sample'} {_mark(r.get('correct'))}".strip() for r in records)
        prompt = f'<h4>prompt</h4><div class="text" dir="auto">{esc(_text(first["prompt"], _TEXT))}</div>' if "prompt" in first else ""
        sides = "".join(
            f'<div><h4>{esc(r.get("when") or "sample")} <span>{_mark(r.get("correct"))}</span></h4>'
            f'<div class="text" dir="auto">{esc(_text(r.get("completion", ""), _TEXT))}</div>'
            + (f'<p class="note">{esc(r["note"])}</p>' if r.get("note") else "") + "</div>"
            for r in records
        )
        title = esc(f"{first.get('suite') or 'sample'}: {marks}")
        opened = " open" if not parts else ""
        parts.append(f'<details class="sample"{opened}><summary>{title}</summary>{prompt}<div class="sides">{sides}</div></details>')
    left = f'<p class="note">{count(stage.samples_left_out, "more record")} in samples.jsonl.</p>' if stage.samples_left_out else ""
    return f"<h3>Samples</h3>{''.join(parts)}{left}"


def _mark(correct: Any) -> str:
    if correct is None:
        return ""
    if correct in (True, False):  # 1 and 0 too
        return "✓ correct" if correct else "✗ wrong"
    return f"score {esc(number(correct))}"


def _text(value: Any, limit: int) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
    return text if len(text) <= limit else f"{text[:limit]}… [{len(text) - limit} more characters in the stage's folder]"

"""The page around the stages: outcome, where the metric moved, the pipeline, environment, recipe. Design section 5.

One file that fetches nothing and runs nothing: its own policy forbids scripts and requests, so a sample can't either.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbcore.jobs.report.gather import RunRecord
from nbcore.jobs.report.markup import esc, svg
from nbcore.jobs.report.pictures import WIDE, moved, moves, pipeline
from nbcore.jobs.report.sections import badge, facts_list, section, table
from nbcore.jobs.words import count, duration, inside, is_number, memory, moment, number, outcome, share, when

HERE = Path(__file__).parent
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(run: RunRecord) -> str:
    """The whole report as HTML."""
    title = run.recipe.get("title") or run.status.get("title") or run.recipe.get("name") or run.folder.name
    css = (HERE / "palette.css").read_text(encoding="utf-8") + (HERE / "page.css").read_text(encoding="utf-8")
    state = run.status.get("state") or "unknown"
    notes = "".join(f'<p class="error" role="note"><b>Not readable:</b> {esc(sentence)}</p>' for sentence in run.unread)
    body = [
        f'<header><p class="run">{esc(run.folder.name)}</p><h1>{esc(title)}</h1>'
        f'<p class="outcome st-{esc(state)}">{badge(state)} <span>{esc(sentence(run))}</span></p>{_facts(run)}{notes}</header>',
        f'<main><div class="pictures">{_moves(run)}{_pipeline(run)}</div>',
        *(section(stage) for stage in run.stages),
        _environment(run.environment),
        _recipe(run),
        "</main>",
        f"<footer><p>Made by nbcore from the files of {esc(run.folder.name)} at {datetime.now(UTC):%Y-%m-%d %H:%M} UTC.</p></footer>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{esc(_POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f'<link rel="icon" href="data:,"><title>{esc(title)} – {esc(state)}</title><style>{css}</style></head>\n<body>'
        + "\n".join(body) + "</body></html>\n"
    )


def sentence(run: RunRecord) -> str:
    """What became of the run, and how many metrics lie outside the band of a healthy one."""
    said = outcome(run.status) if run.status else "What became of this run is not known: its status can't be read."
    words = [inside(s.result.get("metrics", {}).get(name), band) for s in run.stages if s.result for name, band in s.bands.items()]
    if words:
        out = len(words) - words.count("inside")
        said += f" {out or len(words)} of {count(len(words), 'metric')} {'not ' if out else ''}inside the healthy band."
    return said


def _facts(run: RunRecord) -> str:
    status, stages = run.status, [s.status for s in run.stages if s.state != "reused"]
    began, ended = moment(status.get("started")), moment(status.get("ended"))
    cpu = sum(s["cpu_seconds"] for s in stages if is_number(s.get("cpu_seconds")))
    peak = max((s["peak_rss_mib"] for s in stages if is_number(s.get("peak_rss_mib"))), default=None)
    expects = status.get("expects") if isinstance(status.get("expects"), dict) else {}
    minutes, gib = expects.get("minutes"), expects.get("memory_gib")
    facts = [
        ("recipe", run.recipe.get("name") or status.get("recipe")),
        ("started", when(status["started"]) if status.get("started") else None),
        ("took", duration((ended - began).total_seconds()) if began and ended else None),
        ("CPU time", duration(cpu) if cpu else None),
        ("peak memory", memory(peak) if peak is not None else None),
        ("recipe expects", " and ".join(f"{number(x)} {unit}" for x, unit in ((minutes, "min"), (gib, "GiB")) if x) or None),
        ("exit code", status.get("exit_code")),
    ]
    return facts_list([(name, value) for name, value in facts if value is not None])


def _moves(run: RunRecord) -> str:
    drawn = moves(run)
    if not drawn:
        return '<section><h2>Where the metric moved</h2><p>No finished stage has said that a metric moved.</p></section>'
    found = [(s.key, m) for s in run.stages for m in s.result.get("moves", [])]
    rows = [[key, str(m.get("suite")), *(_end(m, side) for side in ("before", "after")), m.get("n"), moved(m)] for key, m in found]
    said = "Where the metric moved: " + "; ".join(f"{m.get('suite')} {moved(m)}" for _, m in found)
    picture = svg(WIDE, drawn[1], said, drawn[0], "wide")
    numbers = table("moves", ["stage", "suite", "before", "after", "n", "in words"], rows)
    return f"<section><h2>Where the metric moved</h2>{picture}<details><summary>The same in numbers</summary>{numbers}</details></section>"


def _end(move: dict, side: str) -> str:
    end = move[side]
    say = share if move.get("unit", "share") == "share" else number
    between = f" [{say(end['low'])}, {say(end['high'])}]" if is_number(end.get("low")) and is_number(end.get("high")) else ""
    return f"{end.get('name', side)}: {say(end.get('value'))}{between}"


def _pipeline(run: RunRecord) -> str:
    drawn = pipeline(run)
    if not drawn:
        return "<section><h2>The pipeline</h2><p>No stage is known.</p></section>"
    said = "The pipeline: " + "; ".join(f"{s.key} {s.state}" for s in run.stages)
    # The boxes are links: the role of the drawing is that of a group, or a screen reader would not enter it.
    return f'<section><h2>The pipeline</h2>{svg(WIDE, drawn[1], said, drawn[0], "wide", role="group")}</section>'


def _environment(environment: dict) -> str:
    rows = [[name, value] for name, value in _flat(environment)]
    inner = table("environment", ["what", "value"], rows) if rows else "<p>Not recorded.</p>"
    folded = f"<details><summary>{count(len(rows), 'value')}: versions, git, hardware, seeds</summary>{inner}</details>"
    return f'<section id="environment"><h2>Environment</h2>{folded}</section>'


def _flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [pair for key, item in value.items() for pair in _flat(item, f"{name}.{key}" if name else str(key))]
    return [(name, ", ".join(map(str, value)) if isinstance(value, list) else "–" if value is None else str(value))]


def _recipe(run: RunRecord) -> str:
    inner = f'<pre class="log" tabindex="0">\n{esc(run.recipe_text[:200_000])}</pre>' if run.recipe_text else "<p>Not recorded.</p>"
    folded = f"<details><summary>As it ran, each value with its origin</summary>{inner}</details>"
    return f'<section id="recipe"><h2>Recipe</h2>{folded}</section>'

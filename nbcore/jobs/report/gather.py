"""What a report shows, read from the run folder and nothing else. Design section 5.

Every file may be missing, torn or from another hand: what can't be read becomes a sentence in `unread`, never an error and
never silence. Amounts are limited here, so that one noisy stage can't make the page too heavy to open.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbcore.jobs.status import StatusError, read_status
from nbcore.jobs.words import BAD, is_number
from nbcore.results import ResultError, read_metrics, read_result

LOG_LINES, POINTS, PAIRS, FIGURE_BYTES, FIGURES_BYTES = 40, 500, 24, 1 << 20, 6 << 20
_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)")


@dataclass
class Series:
    """One logged metric over the steps: (x, y) with y None where no finite value was logged; at most POINTS points."""

    name: str
    points: list[tuple[float, float | None]]
    count: int
    missing: Counter[str]
    last: float | None


@dataclass
class StageRecord:
    """All that is known of one stage of a run. `unread` holds sentences on what could not be read."""

    key: str
    status: dict
    recipe: dict
    folder: Path
    result: dict = field(default_factory=dict)
    series: list[Series] = field(default_factory=list)
    attempts: list[tuple[int, float]] = field(default_factory=list)  # (attempt, its first step), from the second attempt on
    samples: list[dict] = field(default_factory=list)
    samples_left_out: int = 0
    figures: list[tuple[str, str, bytes]] = field(default_factory=list)  # (name, caption, PNG)
    log: str = ""
    unread: list[str] = field(default_factory=list)

    @property
    def state(self) -> str:
        """The stage's state as the (truthful) status says it."""
        return self.status.get("state") or "unknown"

    @property
    def bands(self) -> dict[str, tuple[float, float]]:
        """Metric → (low, high) that a healthy run shows."""
        return {name: tuple(ends) for name, ends in _mapping(self.recipe.get("bands")).items() if _two_numbers(ends)}


@dataclass
class RunRecord:
    """A run as its folder tells it."""

    folder: Path
    status: dict
    recipe: dict
    recipe_text: str
    environment: dict
    stages: list[StageRecord]
    unread: list[str]


def gather(run: Path) -> RunRecord:
    """Read the run folder. Raises nothing for missing or damaged files; each is named in `unread` of the run or stage."""
    unread: list[str] = []
    try:
        status = _mapping(read_status(run))
    except StatusError as error:
        status = {}
        unread.append(f"The states of the stages are not known: {error}")
    text = _text(run / "recipe.yaml", unread)
    recipe = _yaml(text, unread)
    environment = _json(run / "environment.json", unread)
    planned = {s["key"]: s for s in recipe.get("stages") or [] if isinstance(s, dict) and isinstance(s.get("key"), str)}
    states = _mapping(status.get("stages"))
    if status.get("record_error"):
        unread.append(str(status["record_error"]))
    # The folders say which stages there were only when nothing better does: set-aside attempts lie among them.
    on_disk = [] if planned or states else sorted(p.name for p in (run / "stages").glob("*") if p.is_dir())
    keys = list(dict.fromkeys([*planned, *states, *on_disk]))
    budget = [FIGURES_BYTES]
    stages = [_stage(run, key, _mapping(states.get(key)), planned.get(key, {}), budget) for key in keys]
    return RunRecord(run, status, recipe, text, environment, stages, unread)


def _stage(run: Path, key: str, status: dict, recipe: dict, budget: list[int]) -> StageRecord:
    folder = run / (status.get("folder") or Path("stages") / key)
    stage = StageRecord(key, status, recipe, folder)
    if not folder.is_dir():
        if stage.state not in ("waiting", "skipped"):
            stage.unread.append(f"The stage's folder {folder} is not there any more.")
        return stage
    # A stage that ended badly has no result, and its error says so already; a file that is there is always worth a look.
    if stage.state in ("done", "reused", "unknown") or (folder / "result.json").exists():
        try:
            stage.result = _shown(read_result(folder), stage.unread)
        except ResultError as error:
            stage.unread.append(str(error))
    try:
        rows = read_metrics(folder)
        stage.series, stage.attempts = _series(rows)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        stage.unread.append(f"metrics.jsonl can't be read ({error}).")
    _samples(stage)
    _figures(stage, budget)
    if stage.state in BAD:
        stage.log = _tail(folder / "log.txt")
    return stage


def _shown(result: dict, unread: list[str]) -> dict:
    # read_result vouches for the outline; what the page draws is looked at here, entry by entry.
    def is_table(table: Any) -> bool:
        columns, rows = _mapping(table).get("columns"), _mapping(table).get("rows")
        return isinstance(columns, list) and isinstance(rows, list) and all(isinstance(r, list) and len(r) == len(columns) for r in rows)

    def is_move(move: Any) -> bool:
        return all(isinstance(_mapping(move).get(end), dict) for end in ("before", "after"))

    kept = result | {
        "tables": {name: table for name, table in result["tables"].items() if is_table(table)},
        "moves": [move for move in result["moves"] if is_move(move)],
        "checks": [check for check in result["checks"] if isinstance(check, dict)],
    }
    for what in ("tables", "moves", "checks"):
        if lost := len(result[what]) - len(kept[what]):
            unread.append(f"result.json: {lost} of {len(result[what])} {what} have not the form they should have and are left out.")
    return kept


def _series(rows: list[dict]) -> tuple[list[Series], list[tuple[int, float]]]:
    points: dict[str, list[tuple[float, float | None]]] = {}
    missing: dict[str, Counter[str]] = {}
    attempts: dict[int, float] = {}
    x = offset = last = 0.0
    before = 1
    for row in rows:
        if not isinstance(row, dict):
            continue
        attempt, step = row.get("attempt", 1), row.get("step")
        if is_number(step):
            # Within an attempt a step that falls means a second loop (a curriculum): it is drawn after the first one.
            if step < last and attempt == before:
                offset = x
            x, last, before = offset + step, step, attempt
        else:
            x += 1
        if attempt != 1:
            attempts.setdefault(attempt, x)
        for name, value in row.items():
            if name in ("time", "attempt", "step", "total") or name.endswith("_nonfinite"):
                continue
            if value is None:
                missing.setdefault(name, Counter())[str(row.get(f"{name}_nonfinite", "none"))] += 1
            if value is None or is_number(value):
                points.setdefault(name, []).append((x, value))
    made = []
    for name, all_points in points.items():
        finite = [y for _, y in all_points if y is not None]
        made.append(Series(name, thin(all_points), len(all_points), missing.get(name, Counter()), finite[-1] if finite else None))
    return [s for s in made if s.count > 1], list(attempts.items())


def thin(points: list[tuple[float, float | None]], limit: int = POINTS) -> list[tuple[float, float | None]]:
    """At most `limit` of the points: of each of limit/3 equal pieces the lowest, the highest and one gap, in their order."""
    if len(points) <= limit:
        return points
    pieces, kept = limit // 3, []
    for i in range(pieces):
        piece = range(i * len(points) // pieces, (i + 1) * len(points) // pieces)
        finite = [j for j in piece if points[j][1] is not None]
        gaps = [j for j in piece if points[j][1] is None][:1]
        ends = {min(finite, key=lambda j: points[j][1]), max(finite, key=lambda j: points[j][1])} if finite else set()
        kept += [points[j] for j in sorted(ends | set(gaps))]
    return kept


def _samples(stage: StageRecord) -> None:
    path = stage.folder / "samples.jsonl"
    if not path.exists():
        return
    torn, taken, seen, prompts = 0, Counter(), set(), []
    try:
        # Bytes: str.splitlines would cut inside a completion that holds U+2028.
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        stage.unread.append(f"samples.jsonl can't be read ({error}).")
        return
    for line in lines:
        if not line.strip():
            continue
        try:
            record = json.loads(line.decode("utf-8", "replace"))
        except ValueError:
            torn += 1
            continue
        if not isinstance(record, dict):
            torn += 1
            continue
        prompts.append((json.dumps([record.get("suite"), record.get("prompt")]), record))
    suites = len({str(record.get("suite")) for _, record in prompts}) or 1
    for key, record in prompts:
        suite = str(record.get("suite"))
        if key not in seen and taken[suite] >= max(2, PAIRS // suites):
            stage.samples_left_out += 1
            continue
        taken[suite] += key not in seen
        seen.add(key)
        stage.samples.append(record)
    if torn:
        stage.unread.append(f"samples.jsonl: {torn} torn line{'s' if torn > 1 else ''} left out.")


def _figures(stage: StageRecord, budget: list[int]) -> None:
    for path in sorted((stage.folder / "figures").glob("*.png")):
        try:
            size = path.stat().st_size
            if size > min(FIGURE_BYTES, budget[0]):
                stage.unread.append(f"Figure {path.name} is left out ({size / 2**20:.1f} MiB); it lies in {path.parent}.")
                continue
            image = path.read_bytes()
        except OSError as error:
            stage.unread.append(f"Figure {path.name} can't be read ({error}).")
            continue
        beside = path.with_suffix(".json")
        caption = _json(beside, stage.unread).get("caption") if beside.exists() else None
        budget[0] -= size
        stage.figures.append((path.stem, str(caption or ""), image))


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as f:
            f.seek(max(0, path.stat().st_size - (64 << 10)))
            text = f.read().decode("utf-8", "replace")
    except OSError:
        return ""
    # Of a line that a progress bar wrote again and again the last state counts.
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in _ESCAPES.sub("", text).split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    return "\n".join(line if len(line) <= 500 else line[:499] + "…" for line in lines[-LOG_LINES:])


def _text(path: Path, unread: list[str]) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        unread.append(f"{path.name} can't be read ({error.strerror or error}).")
        return ""


def _yaml(text: str, unread: list[str]) -> dict:
    import yaml  # here, because `nbcore status` needs none of it

    try:
        return _mapping(yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError as error:
        unread.append(f"recipe.yaml can't be read ({str(error).splitlines()[0]}).")
        return {}


def _json(path: Path, unread: list[str]) -> dict:
    try:
        return _mapping(json.loads(path.read_bytes().decode("utf-8", "replace")))
    except FileNotFoundError:
        unread.append(f"{path.name} is missing.")
    except (OSError, ValueError) as error:
        unread.append(f"{path.name} can't be read ({error}).")
    return {}


def _mapping(value: Any) -> dict:
    return value if isinstance(value, dict) else {}


def _two_numbers(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(is_number(end) for end in value)

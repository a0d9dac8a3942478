"""What a notebook holds in its hand: its folder, its inputs, its log, its figures, its end. Design sections 4 and 5.

The same calls work headless (the runner names the folder and the inputs in NBCORE_STAGE_DIR and NBCORE_UPSTREAM), in
JupyterLab and in plain Python (a new folder `runs/interactive-…`, inputs found among the finished stages of earlier runs).
A stage succeeded if and only if `finish` wrote a valid result.json. The two wings of the house meet only here.

Left out on purpose: training (notebooks and `nbcore.training`), the pipeline (`nbcore.jobs`), and any tracking service:
metrics.jsonl is the source of truth, mirrors read it.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import io
import json
import os
import random
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbcore.files import atomic_write
from nbcore.results import ResultError, StageError, plain, read_metrics, read_result, real

__all__ = ["CheckFailed", "ResultError", "Run", "StageError", "Upstream", "open", "read_metrics", "read_result"]


class CheckFailed(StageError):
    """What a `Check` cell states is not true of the result."""


@dataclass(frozen=True)
class Upstream:
    """A finished stage that this one reads: its folder, its artifacts (name → absolute path) and its metrics."""

    name: str
    folder: Path
    artifacts: dict[str, Path]
    metrics: dict[str, float | None]

    def path(self, name: str) -> Path:
        """Absolute path of a declared artifact. Raises StageError, listing what exists, when there is none of that name."""
        if name not in self.artifacts:
            raise StageError(f"Stage {self.name} has no artifact {name!r}.{_nearest(name, self.artifacts)} In {self.folder}")
        return self.artifacts[name]


@dataclass
class Run:
    """One stage at work; made by `open`. Every file is written in one step, so a kill leaves the old one or the new one."""

    name: str
    folder: Path
    inputs: dict[str, Upstream]
    seed: int | None
    attempt: int
    resuming: bool
    headless: bool = False  # executed as a job: draw at the end, not while it runs
    started: str = field(default_factory=lambda: _now())
    _checks: list[dict] = field(default_factory=list, repr=False)
    _tables: dict[str, dict] = field(default_factory=dict, repr=False)
    _moves: list[dict] = field(default_factory=list, repr=False)
    _progress_at: float = field(default=0.0, repr=False)
    _finished: bool = field(default=False, repr=False)

    @property
    def artifacts(self) -> Path:
        """Folder of what later stages read."""
        return _made(self.folder / "artifacts")

    @property
    def checkpoints(self) -> Path:
        """Folder of what a later attempt of this stage continues from."""
        return _made(self.folder / "artifacts" / "checkpoints")

    @property
    def figures(self) -> Path:
        """Folder of the figures shown in the report."""
        return _made(self.folder / "figures")

    def input(self, name: str) -> Upstream:
        """A finished upstream stage. Raises StageError when it is not among the `needs` of this stage."""
        if name not in self.inputs:
            raise StageError(
                f"Stage {self.name} was opened without {name!r} among its needs.{_nearest(name, self.inputs)} "
                f'Write stage.open("{self.name}", needs=(..., "{name}")) and list it under `needs` in the recipe.'
            )
        return self.inputs[name]

    def log(self, step: int | None = None, total: int | None = None, **values: Any) -> None:
        """Append one row to metrics.jsonl, and to progress.json at most twice a second.

        Values: numbers (also numpy or torch scalars), text, booleans, None. A non-finite number becomes null, with its name in
        `<name>_nonfinite`. Raises TypeError for anything else.
        """
        row: dict[str, Any] = {"time": _now(), "attempt": self.attempt}
        row |= {name: int(value) for name, value in (("step", step), ("total", total)) if value is not None}
        for name, value in values.items():
            if isinstance(value, str | bool | None):
                row[name] = value
                continue
            number = real(value, f"run.log: {name}")
            row[name] = plain(number)
            if row[name] is None:
                row[f"{name}_nonfinite"] = str(number)
        _append(self.folder / "metrics.jsonl", row)
        if time.monotonic() - self._progress_at >= 0.5 or (step is not None and step == total):
            atomic_write(self.folder / "progress.json", json.dumps(row, ensure_ascii=False))
            self._progress_at = time.monotonic()

    def sample(self, **record: Any) -> None:
        """Append one record to samples.jsonl; usual keys: when ("before"/"after"), suite, prompt, completion, correct, note."""
        _append(self.folder / "samples.jsonl", {key: plain(value) for key, value in record.items()})

    def figure(self, fig: Any, name: str, caption: str = "") -> Any:
        """Keep a matplotlib figure as figures/<name>.png with its caption; returns it, so that the cell shows it."""
        if not hasattr(fig, "savefig"):
            raise TypeError(f"run.figure takes a matplotlib figure, not {type(fig).__name__}. Pass plt.gcf() or ax.figure.")
        image = io.BytesIO()
        fig.savefig(image, format="png", dpi=120, bbox_inches="tight")
        atomic_write(self.figures / f"{_word(name)}.png", image.getvalue())
        atomic_write(self.figures / f"{name}.json", json.dumps({"name": name, "caption": caption}, ensure_ascii=False))
        return fig

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = "") -> None:
        """Keep a table for the report. Raises StageError when a row is not as wide as `columns`."""
        for number, row in enumerate(rows):
            if len(row) != len(columns):
                raise StageError(f"Table {name!r}: row {number} has {len(row)} cells for {len(columns)} columns {list(columns)}.")
        kept = [[plain(cell) for cell in row] for row in rows]
        self._tables[_word(name)] = {"columns": [str(c) for c in columns], "rows": kept, "caption": caption}

    def move(self, suite: str, before: Mapping[str, Any], after: Mapping[str, Any], n: int | None = None, unit: str = "share") -> None:
        """Say where the metric moved. `before` and `after` hold name, value, and if known low and high (95 % interval, in `unit`)."""
        ends = []
        for side, end in (("before", before), ("after", after)):
            unknown = set(end) - {"name", "value", "low", "high"}
            if unknown or "name" not in end or "value" not in end:
                raise StageError(f"run.move({suite!r}): `{side}` needs name and value, may have low and high; it has {sorted(end)}.")
            numbers = {key: real(end[key], f"run.move {side}.{key}") for key in ("value", "low", "high") if end.get(key) is not None}
            ends.append({"name": str(end["name"]), "value": None} | {key: plain(number) for key, number in numbers.items()})
        self._moves.append({"suite": suite, "before": ends[0], "after": ends[1], "n": n, "unit": unit})

    def check(self, ok: Any, sentence: str) -> None:
        """State what must be true of the result. Raises CheckFailed with the sentence when it is not."""
        self._checks.append({"ok": bool(ok), "sentence": sentence})
        if not ok:
            raise CheckFailed(sentence)

    def finish(self, metrics: Mapping[str, Any] | None = None, artifacts: Mapping[str, str | Path] | None = None) -> None:
        """Write result.json: the stage is done. Call it once, in the last cell.

        metrics: name → number, or None where it could not be measured. artifacts: name → file or folder inside run.folder.
        Raises StageError for a second call, a missing or outside artifact, a metric that is no finite number.
        """
        if self._finished:
            raise StageError(f"Stage {self.name} was finished before. Call run.finish once, in the last cell.")
        numbers: dict[str, float | None] = {}
        for name, value in (metrics or {}).items():
            if isinstance(value, bool) or (isinstance(value, str)):
                raise StageError(f"Metric {name!r} is {value!r}. A metric is a finite number, or None where it could not be measured.")
            numbers[name] = None if value is None else plain(real(value, f"metric {name}"))
            if value is not None and numbers[name] is None:
                raise StageError(f"Metric {name!r} is {value}. Give None where it could not be measured, or find out why.")
        root, kept = self.folder.resolve(), {}
        for name, path in (artifacts or {}).items():
            whole = (root / path).resolve()
            if not whole.is_relative_to(root):
                raise StageError(f"Artifact {name!r} lies at {whole}, outside the stage's folder. Save it under run.artifacts.")
            if not whole.exists():
                there = [str(p.relative_to(root)) for p in sorted(self.artifacts.iterdir())]
                raise StageError(f"Artifact {name!r}: there is no {whole.relative_to(root)} in {root}. There is: {', '.join(there)}")
            kept[name] = whole.relative_to(root).as_posix()
        result = {"stage": self.name, "status": "done", "started": self.started, "ended": _now(), "attempt": self.attempt}
        result |= {"metrics": numbers, "artifacts": kept, "checks": self._checks, "tables": self._tables, "moves": self._moves}
        atomic_write(self.folder / "result.json", json.dumps(result, ensure_ascii=False, indent=1, allow_nan=False))
        self._finished = True


def open(name: str, needs: Sequence[str] = (), seed: int | None = None) -> Run:
    """Open a stage: its folder, its inputs (the `needs`), its seeds (python, numpy, torch).

    Headless, folder and inputs are the runner's. Interactively a folder is made and the newest finished `needs` are taken.
    Raises StageError naming the notebook to run first when an input is missing.
    """
    if isinstance(needs, str):
        raise StageError(f'needs takes a tuple of stage names: needs=("{needs}",)')
    headless = os.environ.get("NBCORE_STAGE_DIR")
    if headless:
        folder, given = Path(headless), json.loads(os.environ.get("NBCORE_UPSTREAM", "{}"))
        missing = [need for need in needs if need not in given]
        if missing:
            raise StageError(f"The recipe gives stage {folder.name} no {', '.join(missing)}. List it under `needs` of that stage.")
        inputs = {need: _upstream(need, Path(where)) for need, where in given.items()}
        name = folder.name  # one notebook may serve several stages of a recipe
    else:
        runs = runs_folder()
        inputs = {need: _newest(need, runs, name) for need in needs}
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        folder = runs / f"interactive-{stamp}-{secrets.token_hex(2)}" / "stages" / name
        folder.mkdir(parents=True)
        for upstream in inputs.values():
            print(f"{name} reads {upstream.name} from {os.path.relpath(upstream.folder, runs.parent)}")
    attempt = int(os.environ.get("NBCORE_ATTEMPT", "1")) if headless else 1
    kept = folder / "artifacts" / "checkpoints"
    resuming = kept.is_dir() and any(not p.name.startswith(".") for p in kept.iterdir())
    for log in (folder / "metrics.jsonl", folder / "samples.jsonl"):
        _tidy(log, attempt, aside=not resuming or log.name == "samples.jsonl")
    if seed is not None:
        _seed(seed)
    return Run(name, folder, inputs, seed, attempt, resuming, bool(headless))


def runs_folder() -> Path:
    """Where runs are kept: $NBCORE_RUNS, else `runs` beside the nearest pyproject.toml above here, else `runs` here."""
    if os.environ.get("NBCORE_RUNS"):
        return Path(os.environ["NBCORE_RUNS"]).absolute()
    here = Path.cwd()
    return next((p for p in (here, *here.parents) if (p / "pyproject.toml").is_file()), here) / "runs"


def _upstream(name: str, folder: Path) -> Upstream:
    result = read_result(folder)
    return Upstream(name, folder, {key: folder / path for key, path in result["artifacts"].items()}, result["metrics"])


def _newest(need: str, runs: Path, name: str) -> Upstream:
    finished, broken = [], []
    for path in runs.glob(f"*/stages/{need}/result.json"):
        try:
            finished.append((read_result(path.parent)["ended"], path.parent))
        except ResultError as error:
            broken.append(str(error))
    if not finished:
        why = f" ({broken[-1]})" if broken else ""
        raise StageError(f"{name} needs a finished {need}, and {runs} holds none{why}. Run notebooks/{need}.ipynb first.")
    return _upstream(need, max(finished)[1])


def _seed(seed: int) -> None:
    random.seed(seed)
    # numpy and torch are imported here and not above: the jobs wing imports this module and stays light.
    if importlib.util.find_spec("numpy"):
        importlib.import_module("numpy").random.seed(seed % 2**32)
    if importlib.util.find_spec("torch"):
        importlib.import_module("torch").manual_seed(seed)


def _append(path: Path, row: Mapping[str, Any]) -> None:
    # One write call with O_APPEND: a kill leaves whole rows (a full disk may cut the last one; `_tidy` and readers drop it).
    line = json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, line.encode("utf-8", "replace"))
    finally:
        os.close(handle)


def _tidy(path: Path, attempt: int, aside: bool) -> None:
    # An attempt that starts over sets the rows of the earlier one aside; one that resumes keeps them, less a torn last row.
    if attempt == 1 or not path.exists():
        return
    if aside:
        path.replace(path.with_name(f"{path.stem}-attempt{attempt - 1}.jsonl"))
        return
    data = path.read_bytes()
    if not data.endswith(b"\n"):
        atomic_write(path, data[: data.rfind(b"\n") + 1])


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _word(name: str) -> str:
    if not name or "/" in name or name.startswith("."):
        raise StageError(f"{name!r} cannot name a file. Use a short word, for instance 'loss'.")
    return name


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    return f"{guess} There is: {', '.join(sorted(known)) or 'nothing'}."


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")

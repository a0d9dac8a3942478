"""One notebook as one papermill job: start its guardian, follow it, and judge how it ended. Design sections 4.7 and 5.

runner (this module) → guardian → worker (papermill) → kernel. A stage is done only when its notebook ran to its end *and* a valid
result.json of this attempt exists; everything else is a state with a sentence for people. Tracebacks are in log.txt.
Left out on purpose: order, reuse and status.json (`pipeline.py`).
"""

from __future__ import annotations

import json
import math
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nbcore.jobs.guardian import Lines
from nbcore.jobs.processes import end_all
from nbcore.jobs.recipes import Stage
from nbcore.jobs.record import close_stage
from nbcore.jobs.secrets import Masks
from nbcore.results import ResultError, read_result

_TICK = 0.25  # seconds between two looks at the clock
_LONGEST = 400  # characters of an exception's text in a sentence
_FULL = "The disk is full: free some space"


@dataclass
class Progress:
    """A running stage: code cell and number of code cells, CPU seconds and peak resident MiB of its process tree, latest metrics row."""

    cell: int | None = None
    cells: int | None = None
    cpu_seconds: float | None = None
    peak_rss_mib: float | None = None
    last: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Ending:
    """How a stage ended: a stage state, a sentence unless it is done, and the last Progress. `import_seconds`: papermill's import."""

    state: str
    error: str | None
    progress: Progress
    import_seconds: float = 0.0


def stage_environment(
    stage: Stage, folder: Path, run_id: str, upstream: Mapping[str, Path], attempt: int, threads: int, extra: Mapping[str, str]
) -> dict[str, str]:
    """Environment of a stage's processes: the runner's, the recipe's on top, thread limits, and what `stage.open` reads."""
    count = str(threads)
    fixed = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), count)
    # Text hashing is fixed so that a resumed run iterates over its sets as the undisturbed one does.
    fixed |= {"PYTHONHASHSEED": "0", "TOKENIZERS_PARALLELISM": "false", "PYTHONUTF8": "1"}
    ours = {"NBCORE_STAGE_DIR": str(folder), "NBCORE_RUN_ID": run_id, "NBCORE_ATTEMPT": str(attempt)}
    ours["NBCORE_UPSTREAM"] = json.dumps({key: str(where) for key, where in upstream.items()})
    ours["NBCORE_OUTPUT_KIB"] = str(stage.max_output_kib)
    return {**os.environ, **fixed, **extra, **ours}


def execute(stage: Stage, folder: Path, environment: Mapping[str, str], tick: Callable[[Progress], bool]) -> Ending:
    """Run the stage in `folder` (absolute, exists) and return when none of its processes is left.

    `tick(progress)` is called about four times a second; when it returns True the stage is interrupted. Raises OSError when not even
    the guardian could be started.
    """
    masks, progress, job = Masks(environment), Progress(), _job(stage, folder)
    said: dict = {}
    guardian = subprocess.Popen(
        [sys.executable, "-m", "nbcore.jobs.guardian"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=dict(environment), cwd=folder, start_new_session=True,
    )
    try:
        _tell(guardian, job)
        lines, asked = Lines(guardian.stdout.fileno()), False
        while not lines.ended:
            if select.select([lines.descriptor], [], [], _TICK)[0]:
                for message in lines.read():
                    said = message.get("end", said)
                    _take(progress, message)
            progress.last = _latest(folder) or progress.last
            if tick(progress) and not asked:
                asked = True
                _tell(guardian, {"stop": True})
    finally:
        guardian.stdin.close()
        guardian.stdout.close()
        left = [] if said else end_all_of(folder)  # without a last word the guardian was killed
        guardian.wait()
    _take(progress, said)
    worker = said.get("worker") or {}
    state, error = _judge(stage, folder, said, worker, progress, guardian.returncode)
    left = said.get("left") or left
    if left:
        error = f"{error or ''} These processes would not end: {', '.join(map(str, left))}.".strip()
    error = masks.text(error) if error else None
    trouble = close_stage(folder, state, error, progress.cell, masks)
    if trouble and state != "done":
        error = f"{error} {trouble}"
    return Ending(state, error, progress, worker.get("import_seconds", 0.0))


def end_all_of(folder: Path) -> list[int]:
    """End every process that carries this stage's folder in its environment; returns those that would not go."""
    return end_all("NBCORE_STAGE_DIR", str(folder), children=False)


def _job(stage: Stage, folder: Path) -> dict:
    minutes = stage.cell_timeout_minutes
    return {
        "folder": str(folder),
        "notebook": str(stage.notebook),
        "parameters": {name: value.value for name, value in stage.parameters.items()},
        "timeout_seconds": stage.timeout_minutes * 60,
        "cell_timeout_seconds": None if minutes is None else math.ceil(minutes * 60),  # nbclient counts whole seconds
        "max_output_kib": stage.max_output_kib,
    }


def _tell(guardian: subprocess.Popen, message: dict) -> None:
    try:
        guardian.stdin.write((json.dumps(message) + "\n").encode("utf-8"))
        guardian.stdin.flush()
    except BrokenPipeError:
        return  # it is dead; the end of its own pipe says so in a moment


def _take(progress: Progress, message: dict) -> None:
    for name in ("cell", "cells", "cpu_seconds", "peak_rss_mib"):
        value = message.get(name)
        if value is not None:
            setattr(progress, name, round(value, 2))


def _latest(folder: Path) -> dict | None:
    try:
        return json.loads((folder / "progress.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # not written yet


def _judge(stage: Stage, folder: Path, said: dict, worker: dict, progress: Progress, guardian_exit: int) -> tuple[str, str | None]:
    where = f"code cell {progress.cell} of {progress.cells}" if progress.cell else "the start, before the first cell"
    why = said.get("why")
    if why is None:
        return "killed", f"The guardian of the stage {_ended(guardian_exit)} at {where}."
    if why == "interrupted":
        return "interrupted", f"Interrupted at {where}."
    if why == "timed-out":
        return "timed-out", f"The stage ran longer than its limit, timeout_minutes: {stage.timeout_minutes:g}; it was at {where}."
    if why == "killed":
        return "killed", f"The guardian of the stage was told to end by a signal at {where}."
    kind, text = worker.get("kind"), " ".join(str(worker.get("text", "")).split())[:_LONGEST]
    if kind is None:
        return "killed", f"The process that runs the notebook {_ended(said.get('exit'))} at {where}."
    if kind == "cell":
        if worker["name"] == "CheckFailed":
            return "failed", f"Check failed in {where}: {text}"
        full = f" {_FULL}." if "Errno 28" in text or "No space left" in text else ""
        return "failed", f"{where.capitalize()} raised {worker['name']}: {text}".rstrip(" :") + f".{full}"
    if kind == "kernel":
        memory = f" Peak memory of the stage: {progress.peak_rss_mib:.0f} MiB." if progress.peak_rss_mib else ""
        status = worker.get("exit")
        likely = " Most likely it ran out of memory." if status == -signal.SIGKILL else ""
        early = " os._exit() and exit() end a kernel like that." if status == 0 else ""
        return "failed", f"The kernel died at {where}: it {_ended(status)}.{likely}{early}{memory}"
    if kind == "cell-timeout":
        limit = stage.cell_timeout_minutes
        return "timed-out", f"{where.capitalize()} ran longer than its limit, cell_timeout_minutes: {limit:g}."
    if kind == "disk":
        return "failed", f"The notebook could not be saved at {where}. {_FULL}."
    if kind == "engine":
        return "failed", f"The notebook could not be run, at {where}: {worker.get('name')}: {text}"
    try:
        read_result(folder)
    except ResultError as error:
        if (folder / "result.json").exists():
            return "failed", f"The notebook ran to its end, but {error}"
        if worker.get("left_early"):
            return "failed", f"The notebook ended itself early, by {worker['left_early']} in {where}; run.finish was never called."
        return "failed", "The notebook ran to its end without run.finish(...), so nothing says that the stage succeeded."
    if worker.get("left_early"):
        return "failed", f"The notebook ended itself early, by {worker['left_early']} in {where}, after run.finish."
    return "done", None


def _ended(status: int | None) -> str:
    if status is None:
        return "ended without a word"
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended by itself with exit status {status}"

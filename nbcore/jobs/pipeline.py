"""A recipe becomes a run: stage after stage, each executed, reused or skipped, all of it on record. Design section 5.

The runner is this process. It alone writes status.json, about every two seconds while a stage runs. A signal (SIGINT, SIGTERM,
SIGHUP) ends the running stage and then the run; whatever the end, the report is rendered and a finished stage stays finished.
Left out on purpose: printing (the command line watches through `watch`) and running stages side by side on one machine.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import yaml

from nbcore.files import atomic_write
from nbcore.jobs.environment import write_environment
from nbcore.jobs.execute import Ending, Progress, execute, stage_environment
from nbcore.jobs.fingerprints import explain, fingerprint
from nbcore.jobs.plans import ROOT, PipelineError, Planned, digest_of, finished, plan
from nbcore.jobs.processes import end_all
from nbcore.jobs.recipes import Recipe, resolved
from nbcore.jobs.record import set_aside
from nbcore.jobs.secrets import Masks
from nbcore.jobs.status import Status, StatusError, new_status, now, read_status

__all__ = ["Outcome", "PipelineError", "Planned", "plan", "run"]

EXIT_CODES = {"done": 0, "failed": 1, "timed-out": 3, "killed": 3, "interrupted": 3}
_WATCH_EVERY = 0.5  # seconds


@dataclass(frozen=True)
class Outcome:
    """How a run ended: its folder, its state (done, failed, timed-out, killed, interrupted) and the exit code that goes with it."""

    run: Path
    state: str
    exit_code: int


def run(
    recipe: Recipe,
    runs: Path,
    start: str | None = None,
    until: str | None = None,
    force: Collection[str] = (),
    resume: Path | None = None,
    watch: Callable[[dict], None] | None = None,
) -> Outcome:
    """Run the recipe in a new folder under `runs`, or go on in the folder `resume`; `watch(status)` is called at most twice a second.

    With `resume`, finished stages are looked for in the folder that holds it, and `runs` is not used.

    Raises PipelineError, with nothing begun, when the call is wrong, an upstream result is missing, the run to resume still runs,
    or the run folder cannot be made.
    """
    runs = Path(resume).absolute().parent if resume else Path(runs).absolute()
    planned = plan(recipe, runs, start, until, force, prefer=resume)
    try:
        folder = Path(resume).absolute() if resume else _new_folder(runs, recipe.name)
        lock = _lock(folder)
    except OSError as error:
        raise PipelineError(f"The run folder cannot be made in {runs}: {error.strerror}. Free some space or use --runs.", 1) from error
    try:
        with _Signals() as signals:
            return _Pipeline(recipe, planned, folder, signals, watch or (lambda status: None), bool(resume)).go()
    except OSError as error:
        raise PipelineError(f"The run cannot begin in {folder}: {error.strerror}. Free some space or use --runs.", 1) from error
    finally:
        os.close(lock)


class _Signals:
    """Turns SIGINT, SIGTERM and SIGHUP into `caught` while it is entered (main thread only: elsewhere Python delivers none)."""

    def __init__(self) -> None:
        self.caught: str | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) != signal.SIG_IGN:  # under nohup a hang-up is to be ignored
                    self._before[number] = signal.signal(number, self._catch)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _catch(self, number: int, frame: FrameType | None) -> None:
        self.caught = signal.Signals(number).name


class _Pipeline:
    """One run under way."""

    def __init__(
        self, recipe: Recipe, planned: list[Planned], folder: Path, signals: _Signals, watch: Callable[[dict], None], resumed: bool
    ):
        self.recipe, self.planned, self.folder, self.signals, self.watch = recipe, planned, folder, signals, watch
        self.masks = Masks({**os.environ, **recipe.environment})
        self.results: dict[str, tuple[Path, str]] = {}  # stage → (folder with its result, digest)
        self._watched = 0.0
        data = new_status(folder.name, recipe)
        if resumed:
            end_all("NBCORE_RUN_ID", folder.name, children=False)  # leftovers of a runner and guardian that were killed together
            data = self._continue(data)
        self.status = Status(folder, data, self.masks)

    def go(self) -> Outcome:
        """Run all that is planned; never raises for what a stage or a disk does."""
        self._write_record()
        state = "done"
        for item in self.planned:
            if state != "done" or self.signals.caught:
                state = "interrupted" if state == "done" else state
                self._say(item.stage.key, state="skipped", reason=self._why_not(state))
                continue
            try:
                state = self._stage(item)
            except OSError as error:
                state = "failed"
                sentence = f"The record of the stage could not be written: {error.strerror}. Free some space, then --resume the run."
                self._say(item.stage.key, state="failed", error=sentence, ended=now())
        self.status.close(state, EXIT_CODES[state])
        self._render()
        self.watch(self.status.data)
        return Outcome(self.folder, state, EXIT_CODES[state])

    def _stage(self, item: Planned) -> str:
        key = item.stage.key
        if item.action == "skip":
            self._say(key, state="skipped", reason=item.reason)
            return "done"
        if item.action == "reuse" and item.folder and finished(item.folder):
            own = item.folder.parents[1].name == self.folder.name
            self.results[key] = (item.folder, digest_of(item))
            if own:
                self._say(key, state="done", reason="finished before")
            else:
                self._say(key, state="reused", reason=item.reason, folder=str(item.folder), reused_from=item.folder.parents[1].name)
            return "done"
        upstream = {need: self.results[need] for need in item.stage.needs}
        made = fingerprint(item.stage, {need: digest for need, (_, digest) in upstream.items()}, ROOT)
        folder, attempt, reason = self._prepare(item, made)
        began = time.monotonic()
        blank = {"ended": None, "error": None, "cell": None, "cells": None, "last": {}, "reused_from": None}
        self._say(key, **blank, state="running", started=now(), attempt=attempt, reason=reason, folder=f"stages/{key}")
        places = {need: where for need, (where, _) in upstream.items()}
        environment = stage_environment(
            item.stage, folder, self.folder.name, places, attempt, self.recipe.threads, self.recipe.environment
        )
        ending = execute(item.stage, folder, environment, lambda progress: self._tick(key, progress, began))
        if ending.state == "done":
            (folder / "started.json").replace(folder / "fingerprint.json")
            self.results[key] = (folder, made["digest"])
        self._record_end(key, ending, began)
        return ending.state

    def _prepare(self, item: Planned, made: dict) -> tuple[Path, int, str]:
        """The stage's folder, ready for an attempt; what an earlier attempt with the same fingerprint left there is kept."""
        folder, reason = self.folder / "stages" / item.stage.key, item.reason
        attempt = self.status.data["stages"][item.stage.key]["attempt"] + 1
        if folder.exists():
            before = next((f for name in ("started.json", "fingerprint.json") if (f := _json(folder / name))), {})
            changed = explain(before, made)
            if changed or reason.endswith("forced"):
                folder.replace(folder.with_name(f"{folder.name}.attempt{attempt - 1}"))
                reason = f"starts over: {changed or reason}"
            else:
                set_aside(folder, attempt - 1)
                reason = f"attempt {attempt}; {reason}"
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write(folder / "started.json", json.dumps(made, ensure_ascii=False, indent=1))
        return folder, attempt, reason

    def _tick(self, key: str, progress: Progress, began: float) -> bool:
        self._fill(key, progress, began)
        self.status.beat()
        if time.monotonic() - self._watched >= _WATCH_EVERY:
            self._watched = time.monotonic()
            self.watch(self.status.data)
        return self.signals.caught is not None

    def _fill(self, key: str, progress: Progress, began: float) -> None:
        values = {"cell": progress.cell, "cells": progress.cells, "last": progress.last, "seconds": round(time.monotonic() - began, 2)}
        values |= {"cpu_seconds": progress.cpu_seconds, "peak_rss_mib": progress.peak_rss_mib}
        self.status.data["stages"][key] |= values

    def _record_end(self, key: str, ending: Ending, began: float) -> None:
        self._fill(key, ending.progress, began)
        error = ending.error
        if error and self.signals.caught:
            error = f"{error} nbcore got {self.signals.caught}."
        self._say(key, state=ending.state, error=error, ended=now())

    def _say(self, key: str, **values: Any) -> None:
        self.status.stage(key, **values)
        self.watch(self.status.data)

    def _why_not(self, state: str) -> str:
        for key, stage in self.status.data["stages"].items():
            if stage["state"] in ("failed", "timed-out", "killed", "interrupted"):
                return f"{key} {stage['state'].replace('-', ' ')}"
        return f"nbcore got {self.signals.caught}" if self.signals.caught else state

    def _continue(self, data: dict) -> dict:
        """Carry over from the earlier status what is still true of stages that are not run again."""
        earlier = read_status(self.folder)
        for key, stage in data["stages"].items():
            if key in earlier["stages"]:
                stage |= {name: value for name, value in earlier["stages"][key].items() if name in stage}
                stage["state"] = "waiting"
        return data | {"started": earlier["started"], "resumed": now()}

    def _write_record(self) -> None:
        try:
            if not (self.folder / "recipe.yaml").exists() or "resumed" not in self.status.data:
                text = yaml.safe_dump(resolved(self.recipe), sort_keys=False, allow_unicode=True)
                atomic_write(self.folder / "recipe.yaml", text)
            write_environment(self.folder, self.recipe, ROOT, self.masks)
        except OSError as error:
            self.status.data["record_error"] = f"The record of the run is not complete: {error.strerror}"

    def _render(self) -> None:
        try:
            from nbcore.jobs import report

            report.render(self.folder)
        except Exception as error:  # the page must never decide how a run ended; what went wrong with it is on record
            self.status.data["report_error"] = f"report.html was not made: {type(error).__name__}: {error}"
            self.status.write()


def _new_folder(runs: Path, name: str) -> Path:
    runs.mkdir(parents=True, exist_ok=True)
    while True:
        folder = runs / f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue  # another run took the same second and the same four digits
        return folder


def _lock(folder: Path) -> int:
    """A lock on the run folder, which the system lets go of whatever kills this process. Raises PipelineError if another runner has it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        try:
            runner = read_status(folder).get("pid")
        except StatusError:
            runner = "unknown"
        raise PipelineError(f"Run {folder.name} is still running (process {runner}). Wait for it, or end it first.") from None
    return handle


def _json(path: Path) -> dict | None:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # an attempt that never began, or was killed while beginning

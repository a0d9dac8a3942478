"""status.json: what a run and its stages are doing, written by its one runner, read back truthfully by everybody else. Design section 5.

A file can outlive its writer: "running" is believed only while the runner, process id and start time, lives on this host.
Left out on purpose: metrics (metrics.jsonl holds them; only the latest row is repeated here).
"""

from __future__ import annotations

import difflib
import json
import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from nbcore.files import atomic_write
from nbcore.jobs.processes import same_process
from nbcore.jobs.secrets import Masks

STAGE_STATES = ("waiting", "running", "done", "failed", "timed-out", "killed", "interrupted", "reused", "skipped")
HEARTBEAT = 2.0  # seconds
_SILENT = 60.0  # seconds without a heartbeat after which a runner on another host is taken for dead
_RESERVE = ".reserve"


class StatusError(RuntimeError):
    """There is no such run, or its status.json cannot be read; the sentence says which there are."""


class Status:
    """The status of a run that this process runs; `data` is what status.json holds."""

    def __init__(self, run: Path, data: dict[str, Any], masks: Masks):
        self.run, self.data, self.masks = run, data, masks
        self._written = 0.0
        # Space set aside now: on a disk that fills up later the last word can still be written.
        (run / _RESERVE).write_bytes(b"\1" * 2**17)
        self.write()

    def stage(self, key: str, **values: Any) -> None:
        """Change the entry of a stage and write."""
        self.data["stages"][key] |= values
        self.write()

    def beat(self) -> None:
        """Write if the last heartbeat is more than two seconds old."""
        if time.monotonic() - self._written >= HEARTBEAT:
            self.write()

    def write(self) -> None:
        """Write status.json with a new heartbeat. A full disk costs the reserve first, then the record, never the run."""
        self._written, self.data["heartbeat"] = time.monotonic(), now()
        for stage in self.data["stages"].values():
            if stage["state"] == "running":
                stage["heartbeat"] = self.data["heartbeat"]
        text = json.dumps(self.masks.data(self.data), ensure_ascii=False, indent=1)
        try:
            atomic_write(self.run / "status.json", text)
        except OSError:
            try:
                (self.run / _RESERVE).unlink(missing_ok=True)
                atomic_write(self.run / "status.json", text)
            except OSError as error:
                self.data["record_error"] = f"status.json could not be written: {error.strerror}"

    def close(self, state: str, exit_code: int) -> None:
        """The last word on the run."""
        self.data |= {"state": state, "exit_code": exit_code, "ended": now()}
        self.write()
        (self.run / _RESERVE).unlink(missing_ok=True)


def new_status(run: str, recipe: Any, started: str | None = None) -> dict[str, Any]:
    """The status of a run that begins now under this process, every stage waiting."""
    me = psutil.Process()
    blank = dict.fromkeys(
        ("started", "heartbeat", "ended", "seconds", "cpu_seconds", "peak_rss_mib", "reason", "error", "reused_from", "cell", "cells")
    )
    stages = {s.key: {"state": "waiting", "attempt": 0, "folder": f"stages/{s.key}", "last": {}} | blank for s in recipe.stages}
    head = {"run": run, "recipe": recipe.name, "title": recipe.title, "pid": me.pid, "pid_started": me.create_time()}
    head |= {"host": socket.gethostname(), "state": "running", "started": started or now(), "heartbeat": now(), "ended": None}
    expects = {"minutes": recipe.expects_minutes, "memory_gib": recipe.expects_memory_gib}
    return head | {"exit_code": None, "expects": expects, "stages": stages}


def read_status(run: Path) -> dict[str, Any]:
    """The content of <run>/status.json, with "running" turned into "killed" when its runner is gone. Raises StatusError."""
    path = Path(run) / "status.json"
    try:
        status = json.loads(path.read_text(encoding="utf-8"))
        if status["state"] != "running" or _lives(status):
            return status
        stages = status["stages"].values()
    except FileNotFoundError:
        raise StatusError(f"{path} is missing: {Path(run).name} is no run, or was never begun.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StatusError(f"{path} cannot be read: {error!r}") from None
    beat = status.get("heartbeat")
    status |= {"state": "killed", "exit_code": 3, "ended": beat}
    status["error"] = (
        f"The runner (process {status.get('pid')} on {status.get('host')}) is gone without a word, last heard of at {beat}: it was killed, "
        f"or the machine stopped. Continue with: nbcore run --resume {status.get('run')}"
    )
    for stage in stages:
        if stage["state"] == "running":
            stage |= {"state": "killed", "ended": beat, "error": "The runner was killed, or the machine stopped, while this stage ran."}
        elif stage["state"] == "waiting":
            stage |= {"state": "skipped", "reason": "the run was killed before"}
    return status


def all_runs(runs: Path) -> list[Path]:
    """Run folders under `runs` that hold a status.json, oldest first."""
    return sorted((p.parent for p in Path(runs).glob("*/status.json")), key=_begun)


def newest_run(runs: Path) -> Path:
    """The run that began last. Raises StatusError when there is none."""
    found = all_runs(runs)
    if not found:
        raise StatusError(f"There are no runs in {runs}. Start one with: nbcore run nano")
    return found[-1]


def find_run(name: str | Path, runs: Path) -> Path:
    """A run by path, by name, or by the beginning or end of its name if only one fits. Raises StatusError naming the nearest."""
    direct = Path(name)
    for path in (Path(runs) / str(name), direct):
        if (path / "status.json").is_file():
            return path.absolute()
    names = {path.name: path for path in all_runs(runs)}
    fitting = [path for known, path in names.items() if known.startswith(str(name)) or known.endswith(str(name))]
    if len(fitting) == 1:
        return fitting[0].absolute()
    if fitting:
        raise StatusError(f"{name} fits several runs: {', '.join(sorted(path.name for path in fitting))}. Give more of the name.")
    near = difflib.get_close_matches(str(name), names, n=1)
    guess = f" Did you mean {near[0]}?" if near else ""
    raise StatusError(f"There is no run {name} in {runs}.{guess} Newest: {', '.join(list(names)[:-4:-1]) or 'none'}.")


def now() -> str:
    """The time now, UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _lives(status: dict[str, Any]) -> bool:
    if status["host"] == socket.gethostname():
        return status["pid"] == os.getpid() or same_process(status["pid"], status["pid_started"])
    return datetime.now(UTC).timestamp() - datetime.fromisoformat(status["heartbeat"]).timestamp() < _SILENT


def _begun(run: Path) -> str:
    try:
        return json.loads((run / "status.json").read_text(encoding="utf-8"))["started"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""  # unreadable ones sort first; `read_status` says what is wrong with them

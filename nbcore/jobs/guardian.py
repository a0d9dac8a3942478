"""`python -m nbcore.jobs.guardian`: stands between the runner and a stage's processes, and outlives the runner to end them.

It starts the worker, measures the whole tree, keeps the wall limit, and at the end of whatever kind (the notebook's, the limit's,
the runner's wish or the runner's own death, seen as the end of a pipe) leaves no process of the stage behind.
Should the guardian itself be killed, the worker and the runner each do the same for it.
Left out on purpose: status.json, which has one writer, the runner.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from nbcore.jobs import processes
from nbcore.jobs.record import close_stage
from nbcore.jobs.secrets import Masks

_SAMPLE_EVERY = 1.0  # seconds
_GRACE = 3.0  # seconds a worker has to save its notebook


class Lines:
    """Whole lines from a descriptor, as JSON; `ended` once the other side is closed."""

    def __init__(self, descriptor: int):
        self.descriptor, self.ended, self._rest = descriptor, False, b""

    def read(self) -> list[dict]:
        """What has arrived; call it when `select` says there is something."""
        data = os.read(self.descriptor, 65536)
        self.ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines]


class Guardian:
    """One stage's guardian; its job is the first line that the runner sends, every later line is a wish to stop."""

    def __init__(self) -> None:
        self.runner = Lines(0)
        first = []
        while not first and not self.runner.ended:
            first = self.runner.read()
        self.job = job = first[0]
        self.folder = Path(job["folder"])
        self.why: str | None = None
        self.worker_exit: int | None = None
        self.ending: dict | None = None
        self.cell: int | None = None
        self.peak = 0.0

    def run(self) -> None:
        """Start the worker, watch until something ends the stage, clean up, tell the runner."""
        processes.adopt_orphans()
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, lambda *_: setattr(self, "why", self.why or "killed"))
        read, write = os.pipe()
        worker = self._start_worker(write)
        os.close(write)
        reports = Lines(read)
        limit, sampled = time.monotonic() + self.job["timeout_seconds"], 0.0
        while self.why is None:
            watched = [source for source in (self.runner, reports) if not source.ended]
            for source in select.select([s.descriptor for s in watched], [], [], 0.005 if reports.ended else 0.1)[0]:
                if source == 0:
                    wishes = self.runner.read()
                    self.why = "interrupted" if wishes else "runner" if self.runner.ended else None
                else:
                    self._relay(reports)
            if time.monotonic() - sampled >= _SAMPLE_EVERY:
                self._sample()
                sampled = time.monotonic()
            if time.monotonic() > limit:
                self.why = self.why or "timed-out"
            self._reap(worker)
            if self.worker_exit is not None:
                self.why = self.why or "exit"
        self._close(worker, reports)

    def _start_worker(self, report: int) -> subprocess.Popen:
        log = os.open(self.folder / "log.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        worker = subprocess.Popen(
            [sys.executable, "-m", "nbcore.jobs.worker"], stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=self.folder,
            pass_fds=(report,), start_new_session=True,
        )
        os.close(log)
        worker.stdin.write((json.dumps(self.job | {"report": report}) + "\n").encode("utf-8"))
        worker.stdin.flush()  # and stays open: its end tells the worker that the guardian is dead
        return worker

    def _close(self, worker: subprocess.Popen, reports: Lines) -> None:
        if self.worker_exit is None:
            self._signal(worker.pid, signal.SIGTERM)
            until = time.monotonic() + _GRACE
            while self.worker_exit is None and time.monotonic() < until:
                time.sleep(0.02)
                self._reap(worker)
        left = processes.end_all("NBCORE_STAGE_DIR", self.job["folder"])
        self._reap(worker)
        while not reports.ended and select.select([reports.descriptor], [], [], 1.0)[0]:
            self._relay(reports)
        end = {"why": self.why, "exit": self.worker_exit, "worker": self.ending, "left": left, "peak_rss_mib": self.peak}
        if self.why != "runner":
            self._say(end=end | {"cpu_seconds": processes.own_cpu_seconds()})
        if self.why == "runner":
            sentence = "The runner (nbcore) ended while this stage ran, so the stage was ended too."
            close_stage(self.folder, "killed", sentence, self.cell, Masks(os.environ))

    def _relay(self, reports: Lines) -> None:
        for message in reports.read():
            self.ending = message.get("end", self.ending)
            self.cell = message.get("cell", self.cell)
            if "cell" in message:
                self._say(**message)

    def _sample(self) -> None:
        me = psutil.Process()
        memory, seconds = processes.usage([me, *me.children(recursive=True)])
        self.peak = max(self.peak, memory)
        self._say(cpu_seconds=seconds, peak_rss_mib=self.peak)

    def _reap(self, worker: subprocess.Popen) -> None:
        for pid, (status, largest) in processes.reap().items():
            self.peak = max(self.peak, largest)
            if pid == worker.pid:
                self.worker_exit = worker.returncode = status

    def _say(self, **message: Any) -> None:
        try:
            os.write(1, (json.dumps(message) + "\n").encode("utf-8"))
        except BrokenPipeError:
            self.why = "runner"

    @staticmethod
    def _signal(pid: int, number: int) -> None:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return


if __name__ == "__main__":
    Guardian().run()

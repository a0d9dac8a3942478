"""The processes of a stage: tied to their parent, measured, and ended to the last one. Design section 4, last paragraph.

A kernel lives in a session of its own, and what it starts may leave that session too. So members are found in two ways: as
descendants, and by the stage's folder in their environment, which children inherit wherever they go.
Left out on purpose: control groups (they need rights a laptop user does not have) and Windows.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def die_with_parent() -> None:
    """Let this process be killed when its parent dies (Linux; elsewhere the guardian's sweep does it alone)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends (Linux), so that none gets out of sight."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def members(variable: str, value: str) -> list[psutil.Process]:
    """Processes, other than this one, that carry `variable=value` in the environment they were started with."""
    mark = f"{variable}={value}".encode()
    found = []
    for pid in psutil.pids():
        try:
            if sys.platform == "linux":
                carries = mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            else:
                carries = psutil.Process(pid).environ().get(variable) == value
            if carries and pid != os.getpid():
                found.append(psutil.Process(pid))
        except (OSError, psutil.Error):
            continue  # gone meanwhile, or of another user and so none of ours
    return [process for process in found if process.is_running()]


def end_all(variable: str, value: str, children: bool = True, patience: float = 5.0) -> list[int]:
    """Kill all `members`, and with `children` all descendants of this process, until none is left or `patience` (seconds) is over.

    Returns the ids of those that would not go (in uninterruptible sleep, say).
    """
    until, me = time.monotonic() + patience, psutil.Process()
    while True:
        left = {p.pid: p for p in [*(me.children(recursive=True) if children else ()), *members(variable, value)] if _alive(p)}
        # Guardian and worker last: should this process be killed now, they finish the work.
        for process in [p for p in left.values() if not _watches(p)] or left.values():
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        if not left or time.monotonic() > until:
            return sorted(left)
        time.sleep(0.02)


def reap() -> dict[int, tuple[int, float]]:
    """Collect ended children: process id → (exit status, negative for a signal; largest resident size in MiB it or its children had)."""
    ended = {}
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = (os.waitstatus_to_exitcode(status), _mib(usage.ru_maxrss))


def usage(processes: Iterable[psutil.Process]) -> tuple[float, float]:
    """(resident MiB, CPU seconds so far, with those of reaped children) of living processes together."""
    memory = seconds = 0.0
    for process in processes:
        try:
            with process.oneshot():
                memory += process.memory_info().rss / 2**20
                times = process.cpu_times()
        except psutil.Error:
            continue  # ended between the listing and the reading; its parent's counters hold it from now on
        seconds += times.user + times.system + getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return memory, seconds


def own_cpu_seconds() -> float:
    """CPU seconds of this process and of all children it has reaped."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in spent)


def same_process(pid: int, started: float) -> bool:
    """Whether process `pid` lives and is the one that started then (seconds since the epoch), not a later one of that number."""
    try:
        process = psutil.Process(pid)
        return _alive(process) and abs(process.create_time() - started) < 2.0
    except psutil.Error:
        return False


def _alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _watches(process: psutil.Process) -> bool:
    try:
        return not {"nbcore.jobs.guardian", "nbcore.jobs.worker"}.isdisjoint(process.cmdline())
    except psutil.Error:
        return False


def _mib(maxrss: int) -> float:
    return maxrss / 2**20 if sys.platform == "darwin" else maxrss / 2**10

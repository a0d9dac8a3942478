"""Run untrusted short Python programs and report what they did. Paper section 5: every reward of the code stages comes from here.

How: a long-lived fork server (`server.py`), started as a clean subprocess in a session of its own, dies with its parent and
forks once per job. Where bubblewrap is installed and may make namespaces, the server stands inside it: a job sees the system
read-only, no home, no /tmp, no network, and no process but its like. Each job gets limits on CPU, address space, file size and core
dumps, a wall deadline with SIGKILL, no stdin, an empty environment and an empty folder. Without bubblewrap, and where the kernel
permits it, also no network, a process namespace (it can neither see-by-number nor kill what is outside, the server included),
another user and no new processes: `capabilities()` says what holds on this machine. Results come back per call over a file of their
own, in frames that carry a fresh secret each, so that printing cannot be mistaken for answering. Expected answers never enter the
sandbox (`programs.py` compares outside): a program that forges frames can still only say which values it returns.

What it does NOT do: it does not filter system calls and is no defence against kernel bugs. Without bubblewrap (`files_hidden` False)
a program reads, and outside its folder writes, whatever its user may, and under `separate_user` False that is your own user: run
code of models that you trust not to be malicious only. Programs see only the standard library.

A failure of the judge itself is the status "missing", never a verdict about the program.
"""

from __future__ import annotations

import atexit
import functools
import json
import marshal
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nbcore.judge import fresh

PYTHON = os.path.realpath(sys.executable)  # without site packages any environment's interpreter is its base's
# The server and what it reads, run as files; their names in full, so that a stage's fingerprint follows them.
SERVER, *BESIDE = (
    Path(__file__).with_name(name.rpartition(".")[2] + ".py")
    for name in ("nbcore.judge.server", "nbcore.judge.values", "nbcore.judge.isolation", "nbcore.judge.work")
)
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache")  # what a program sees of the machine behind walls
FORKS = hasattr(os, "fork")  # Windows can't: there each job gets an interpreter of its own (`fresh.py`), which is slower and holds less
NOTHING = dict.fromkeys(("separate_user", "network_blocked", "pid_namespace", "files_hidden", "no_new_processes", "memory_limited"), False)
INSIDE = "/judge"  # where the jobs' folders are there
ANSWER_SLACK = 30.0  # seconds beyond the wall limit after which the server itself is given up


@dataclass(frozen=True)
class Job:
    """A program's text, the argument lists to call `entry` with, and the name of the function to call.

    entry None: the program is run once as a script, with the text `calls[0][0]` as its standard input; its result is what it printed.
    """

    program: str
    calls: Sequence[Sequence[Any]]
    entry: str | None


@dataclass(frozen=True)
class Limits:
    """Per job: CPU seconds (rounded up to whole ones), wall seconds, address space in MiB, KiB of results and of each file."""

    cpu_seconds: float = 2.0
    wall_seconds: float = 5.0
    memory_mib: int = 512
    output_kib: int = 256


@dataclass(frozen=True)
class Verdict:
    """What a job did.

    status: ok, error (the program failed or a call raised), compile (it is no Python), timeout, memory, output, or missing (the judge
    failed, nothing is known).
    results: one JSON value per call that came back, in order, None where it raised (then `errors` has the call's index);
    shorter than the calls when the job ended early. Kinds that JSON lacks are tagged, see `values.plain`.
    cpu_seconds: of the whole job, measured from outside; None where that can't be measured.
    """

    status: str
    results: list[Any] = field(default_factory=list)
    message: str = ""
    errors: dict[int, str] = field(default_factory=dict)
    cpu_seconds: float | None = None


@functools.cache
def bubblewrap(server: Path) -> tuple[str, ...]:
    """The command line of an interpreter behind walls, with `server` as /server.py; empty where bubblewrap can't build them."""
    program = shutil.which("bwrap")
    if program is None:
        return ()
    walls = [program, "--as-pid-1", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if os.getuid() == 0:  # jobs become another user for real, and the server must still be able to end them and to clean up
        walls += ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        walls += [word for name in ("SETUID", "SETGID", "KILL", "DAC_OVERRIDE") for word in ("--cap-add", f"CAP_{name}")]
    else:
        walls += ["--unshare-all", "--uid", "65534", "--gid", "65534"]
    seen = [path for path in SYSTEM if os.path.exists(path)]
    walls += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev", "--tmpfs", INSIDE]
    walls += [word for path in seen for word in ("--ro-bind", path, path)]
    walls += ["--ro-bind", sys.base_prefix, "/python", "--ro-bind", str(server), "/server.py"]
    walls += [word for path in BESIDE for word in ("--ro-bind", str(path), f"/{path.name}")]
    walls += ["--remount-ro", "/", "--"]
    walls += [os.path.join("/python", os.path.relpath(PYTHON, sys.base_prefix))]
    try:
        subprocess.run([*walls, "-S", "-c", ""], stdin=subprocess.DEVNULL, capture_output=True, timeout=ANSWER_SLACK, check=True)
    except (subprocess.SubprocessError, OSError):
        return ()  # it says no, cannot be started, or hangs: `capabilities()` tells what that costs
    return tuple(walls)


class _ServerGone(Exception):
    """The server ended or does not answer."""


class _Server:
    """The fork server's process and the two pipes to it."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.buffer = bytearray()
        self.numbers = 0
        walls = bubblewrap(SERVER)
        self.folder = None if walls else tempfile.mkdtemp(prefix="judge-")
        if self.folder:
            os.chmod(self.folder, 0o711)  # jobs of another user have to get into their own folder
        # -s -S -P and an environment of our own instead of -I, which would ignore the fixed hash seed: sets iterate alike each time.
        where = ["/server.py", INSIDE, "0"] if walls else [str(SERVER), self.folder, str(os.getpid())]
        python = walls or (PYTHON,)
        self.process = subprocess.Popen(
            [*python, "-s", "-S", "-P", "-B", *where], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
            start_new_session=True, cwd="/", env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"},
        )  # fmt: skip
        try:
            self.capabilities = self.receive(ANSWER_SLACK)
        except _ServerGone:
            self.close()
            raise

    def send(self, job: Job, limits: Limits) -> int:
        self.numbers += 1
        calls = [tuple(arguments) for arguments in job.calls]
        try:
            data = marshal.dumps((self.numbers, (job.program, job.entry, calls), asdict(limits)))
            self.process.stdin.write(struct.pack("!I", len(data)) + data)
        except BrokenPipeError as error:
            raise _ServerGone("it ended") from error
        return self.numbers

    def receive(self, timeout: float) -> dict[str, Any]:
        deadline = time.monotonic() + timeout
        out = self.process.stdout.fileno()
        while len(self.buffer) < 4 or len(self.buffer) < (end := 4 + struct.unpack("!I", self.buffer[:4])[0]):
            ready, _, _ = select.select([out], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise _ServerGone(f"no answer for {timeout:.0f} s")
            data = os.read(out, 1 << 16)
            if not data:
                raise _ServerGone("it ended")
            self.buffer += data
        answer = json.loads(bytes(self.buffer[4:end]))
        del self.buffer[:end]
        return answer

    def close(self) -> None:
        """End the server with all its jobs. In a forked copy of this process, only let go of the pipes."""
        self.process.stdin.close()
        self.process.stdout.close()
        if self.owner != os.getpid():
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it is gone already
        self.process.wait()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


_LOCK = threading.RLock()
_servers: list[_Server] = []  # none or one


def _server() -> _Server:
    if _servers and (_servers[0].owner != os.getpid() or _servers[0].process.poll() is not None):
        _servers.pop().close()
    if not _servers:
        _servers.append(_Server())
    return _servers[0]


@atexit.register
def close() -> None:
    """End the fork server; the next job starts a new one. Called by itself when Python ends."""
    with _LOCK:
        while _servers:
            _servers.pop().close()


def capabilities() -> dict[str, bool]:
    """What the sandbox can enforce on this machine; starts the server. Raises RuntimeError when it cannot start."""
    if not FORKS:
        return dict(NOTHING)
    with _LOCK:
        try:
            return dict(_server().capabilities)
        except (_ServerGone, OSError) as error:
            raise RuntimeError(f"The sandbox's server does not start: {error}") from error


def run(jobs: Sequence[Job], limits: Limits | None = None, workers: int = 1) -> list[Verdict]:
    """Run each job in a process of its own, at most `workers` at a time; verdicts in the order of the jobs.

    Arguments may be None, bool, int, float, str, bytes, and lists, tuples, sets and dicts of them. Raises ValueError for others.
    When the server dies, what it was running is tried once more, one job at a time; then it is "missing".
    """
    limits = limits or Limits()
    for index, job in enumerate(jobs):
        try:
            marshal.dumps(list(map(tuple, job.calls)))
        except ValueError as error:
            raise ValueError(f"Job {index} has an argument that cannot be sent to a program: {error}.") from error
    if not FORKS:
        with ThreadPoolExecutor(max(1, workers)) as pool:
            return list(pool.map(lambda job: _alone(job, limits), jobs))
    verdicts: list[Verdict | None] = [None] * len(jobs)
    waiting = deque(range(len(jobs)))
    tried = [0] * len(jobs)
    with _LOCK:
        while waiting:
            running: dict[int, int] = {}  # number at the server -> index of the job
            try:
                server = _server()
                while waiting or running:
                    while waiting and len(running) < max(1, workers):
                        index = waiting.popleft()
                        running[-1] = index  # so that it is not lost if the pipe breaks
                        number = server.send(jobs[index], limits)
                        running[number] = running.pop(-1)
                    answer = server.receive(limits.wall_seconds + ANSWER_SLACK)
                    index = running.pop(answer["job"])
                    verdicts[index] = _verdict(answer, jobs[index], limits)
            except (_ServerGone, OSError) as error:
                close()
                workers = 1
                if not running:  # it does not even start
                    running[0] = waiting.popleft()
                for index in running.values():
                    tried[index] += 1
                    if tried[index] < 2:
                        waiting.appendleft(index)
                    else:
                        verdicts[index] = Verdict("missing", message=f"the judge failed twice on this job: {error}")
    return verdicts


def _alone(job: Job, limits: Limits) -> Verdict:
    """The verdict on a job in an interpreter of its own."""
    try:
        answer = fresh.answer(PYTHON, SERVER, 0, (job.program, job.entry, list(map(tuple, job.calls))), asdict(limits))
    except OSError as error:
        answer = {"judge_failure": str(error)}
    return _verdict(answer, job, limits)


def _verdict(answer: dict[str, Any], job: Job, limits: Limits) -> Verdict:
    if "judge_failure" in answer:
        return Verdict("missing", message=f"the judge could not start the job: {answer['judge_failure']}")
    results: list[Any] = []
    errors: dict[int, str] = {}
    cpu = answer["cpu_seconds"]
    last, said = None, ""
    try:
        for text in answer["frames"]:
            last, value = json.loads(text)
            if last == "value":
                results.append(value)
            elif last == "raised":
                errors[len(results)] = str(value)
                results.append(None)
            else:
                said = str(value)
    except (ValueError, TypeError, RecursionError):
        # Cut off in the middle by a kill, or nested too deeply to read. What came before stands.
        last = last or "value"
    results = results[: len(job.calls)]
    if job.entry is None:
        results = [answer["said"]]
    if last is None:
        return Verdict("missing", message="the job ended before its program began", cpu_seconds=cpu)
    if last == "end" and len(results) == len(job.calls) and answer["killed"] != "output":
        first = next(iter(errors), None)
        message = "" if first is None else f"call {first}: {errors[first]}"
        return Verdict("error" if errors else "ok", results, message, errors, cpu)
    if last == "memory":
        return Verdict("memory", results, f"more than {limits.memory_mib} MiB, {said}", errors, cpu)
    if last in ("failed", "compile") and answer["killed"] != "output":
        return Verdict("error" if last == "failed" else "compile", results, said, errors, cpu)
    after = f" after {len(results)} of {len(job.calls)} calls" if job.entry else ""
    if answer["killed"] == "wall":
        return Verdict("timeout", results, f"more than {limits.wall_seconds:g} s{after}", errors, cpu)
    if answer["killed"] == "output":
        what = "results" if job.entry else "output"
        return Verdict("output", results, f"more than {limits.output_kib} KiB of {what}{after}", errors, cpu)
    ended = signal.Signals(answer["signal"]).name if answer["signal"] else None
    if ended == "SIGXCPU" or (ended == "SIGKILL" and cpu is not None and cpu >= limits.cpu_seconds):
        return Verdict("timeout", results, f"more than {limits.cpu_seconds:g} s of CPU{after}", errors, cpu)
    how = f"ended by {ended}" if ended else "the program ended by itself"
    return Verdict("error", results, how + after, errors, cpu)

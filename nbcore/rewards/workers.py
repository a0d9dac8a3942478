"""Worker processes that can be killed: an importable function, one argument at a time, under a deadline. Paper sections 3 and 5.

For rewards that call libraries which may hang (math-verify, sympy): a thread cannot be stopped, and `signal.alarm` works in no
other thread than the main one, nor inside a long call of C. Here the parent holds the clock: a worker over its deadline is
killed with its whole process group and replaced, and only that item is missing.
How: each worker is a fresh Python in a session of its own (never a fork: the parent holds torch's threads), kept warm between
calls. It runs the function in its main thread; a second thread sees from the closed pipe that the parent is gone. The
parent-death signal is not used: it comes when the *thread* that started the worker ends. A limit on CPU time for each item ends
a worker that holds the interpreter's lock and therefore cannot see the pipe close.
Left out on purpose: protection from hostile programs (that is judge.sandbox), several arguments, streaming of results.
"""

from __future__ import annotations

import atexit
import importlib
import math
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

READY = 60.0  # seconds for a worker to start and import; not counted against an item
MEMORY_MIB = 4096  # address space of one worker, where the system can limit it (Linux)


@dataclass(frozen=True)
class Missing:
    """In place of a value that could not be had, with the reason for people."""

    reason: str


def run(
    function: Callable[[Any], Any],
    arguments: Sequence[Any],
    deadline: float,
    budget: float | None = None,
    workers: int = 2,
    imports: Sequence[str] = (),
) -> list[Any]:
    """function(argument) for each argument, in worker processes: values in order, `Missing` where there is none.

    deadline: wall seconds for one item. budget: wall seconds for all of them, from the moment the workers are up; what is not
    done by then is missing. imports: modules to load before any clock runs. The function's exceptions are reasons, not errors.
    An item whose worker dies is tried once more. May be called from any thread, and from several at once: each call has
    workers of its own.
    Raises ValueError for a function that cannot be imported or an argument that cannot be pickled, RuntimeError for a worker
    that does not start.
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if not module or module == "__main__" or not name.isidentifier():
        raise ValueError(f"{function!r} cannot be imported by a worker: give a function from the top level of a module, not of a notebook.")
    if not (deadline > 0 and workers > 0 and (budget is None or budget > 0)):
        raise ValueError(f"deadline, budget and workers must be above 0; given were {deadline}, {budget} and {workers}.")
    payloads = []
    for index, argument in enumerate(arguments):
        try:
            payloads.append(pickle.dumps(argument))
        except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"Argument {index} cannot be sent to a worker: {error}") from error

    found: list[Any] = [None] * len(payloads)
    waiting, needed, again = deque(range(len(payloads))), [*imports, module], set[int]()
    free: list[_Worker] = []
    busy: dict[Connection, tuple[_Worker, int, float]] = {}
    try:
        for _ in range(min(workers, len(payloads))):
            free.append(_take())  # all processes start side by side, then each is waited for
        for worker in free:
            worker.prepare(needed)
        ends = time.monotonic() + (math.inf if budget is None else budget)
        while waiting or busy:
            while waiting and len(busy) < workers and time.monotonic() < ends:
                # A second try gets a new process: others that lay idle may have been ended together.
                worker = _Worker() if waiting[0] in again else free.pop() if free else _take()
                try:
                    worker.prepare(needed)
                    worker.send("call", module, name, payloads[waiting[0]], deadline)
                except _Gone:
                    continue  # it died while it was idle: nothing was lost, the next one gets the item
                busy[worker.back] = (worker, waiting.popleft(), time.monotonic() + deadline)
            now = time.monotonic()
            until = min([ends, *(end for *_, end in busy.values())])
            ready = wait(list(busy), max(0.0, min(until - now, 3600.0)))
            for back in ready:
                worker, index, _ = busy.pop(back)
                try:
                    good, value = worker.answer()
                    found[index] = value if good else Missing(value)
                    free.append(worker)
                except _Gone as gone:  # by its own fault, or ended from outside (memory ran out, somebody's kill)
                    found[index] = Missing(str(gone))
                    if index not in again:
                        again.add(index)
                        waiting.appendleft(index)
            now = time.monotonic()
            for back in [b for b, (*_, end) in busy.items() if min(end, ends) <= now]:
                worker, index, end = busy.pop(back)
                worker.kill()
                found[index] = Missing(f"deadline {deadline:g} s" if end <= now else f"budget {budget:g} s for the batch")
            if now >= ends:
                while waiting:
                    found[waiting.popleft()] = Missing(f"budget {budget:g} s for the batch")
    finally:
        for worker, _, _ in busy.values():  # only after an exception here: nobody will read their answers
            worker.kill()
        with _LOCK:
            _idle.extend(w for w in free if w.process.returncode is None)
    return found


@atexit.register
def close() -> None:
    """End the idle workers; the next call starts new ones. Called by itself when Python ends."""
    with _LOCK:
        gone = list(_idle)
        _idle.clear()
    for worker in gone:
        worker.kill()


class _Gone(Exception):
    """The worker ended."""


class _Worker:
    """One process and the two pipes to it."""

    def __init__(self) -> None:
        self.owner, self.imported = os.getpid(), set[str]()
        self.said = tempfile.TemporaryFile()  # what it prints until it is up, for the case that it never is
        start = f"import sys; sys.path[:] = {sys.path!r}; from nbcore.rewards.workers import _serve; _serve()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, bufsize=0,
            start_new_session=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        with self.process.stdin, self.process.stdout:
            self.to = Connection(os.dup(self.process.stdin.fileno()), readable=False)
            self.back = Connection(os.dup(self.process.stdout.fileno()), writable=False)

    def send(self, *message: Any) -> None:
        try:
            self.to.send_bytes(pickle.dumps(message))
        except OSError as error:
            raise _Gone(self.buried()) from error

    def answer(self) -> tuple[bool, Any]:
        """(True, value) or (False, what went wrong)."""
        try:
            return pickle.loads(self.back.recv_bytes())
        except (EOFError, OSError) as error:
            raise _Gone(self.buried()) from error

    def prepare(self, modules: Sequence[str]) -> None:
        """Import what is not imported yet, before any clock runs. Raises RuntimeError when that fails."""
        if not (new := [m for m in modules if m not in self.imported]):
            return
        try:
            self.send("import", new)
            good, fault = self.answer() if self.back.poll(READY) else (False, f"not ready within {READY:g} s")
        except _Gone as gone:
            good, fault = False, str(gone)
        if not good:
            self.kill()
            self.said.seek(0)
            printed = self.said.read()[-500:].decode("utf-8", "replace").strip()
            raise RuntimeError(f"A worker cannot import {', '.join(new)}: {fault}. {printed}".strip())
        self.imported.update(new)

    def buried(self) -> str:
        """Reap a worker whose pipe broke, and say how it died."""
        until = time.monotonic() + 1.0  # it may have closed its pipe a moment before its end
        while not (ended := os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)) and time.monotonic() < until:
            time.sleep(0.002)
        self.kill()
        code = self.process.returncode
        if not ended:
            return "worker closed its pipe"
        return f"worker died (signal {-code})" if code < 0 else f"worker died (exit code {code})"

    def kill(self) -> None:
        """End the whole group and reap the worker. In a forked copy of this process, only let go of the pipes."""
        self.to.close()
        self.back.close()
        if self.owner == os.getpid() and self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # not reaped yet, so the group still has its name
            self.process.wait()


_LOCK = threading.Lock()
_idle: list[_Worker] = []


def _take() -> _Worker:
    """A warm worker, or a new one."""
    while True:
        with _LOCK:
            worker = _idle.pop() if _idle else None
        if worker is None:
            return _Worker()
        if worker.owner == os.getpid() and worker.process.poll() is None:
            return worker
        worker.kill()


# --- the other side: this runs in the worker


def _serve() -> None:
    to, back = Connection(os.dup(0), writable=False), Connection(os.dup(1), readable=False)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)  # whatever prints must not speak into the pipe
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(to, requests), daemon=True).start()
    _limit_memory()
    while True:
        kind, *rest = pickle.loads(requests.get())
        try:
            if kind == "import":
                _limit_cpu(READY)
                for module in rest[0]:
                    importlib.import_module(module)
                answer = pickle.dumps((True, None))
                os.dup2(null, 1)
                os.dup2(null, 2)
            else:
                module, name, payload, deadline = rest
                _limit_cpu(deadline)
                answer = pickle.dumps((True, getattr(sys.modules[module], name)(pickle.loads(payload))))
        except (Exception, SystemExit) as error:
            answer = pickle.dumps((False, f"{type(error).__name__}: {error}"[:300]))
        back.send_bytes(answer)


def _listen(to: Connection, requests: queue.SimpleQueue[bytes]) -> None:
    try:
        while True:
            requests.put(to.recv_bytes())
    except (EOFError, OSError):  # the parent let go, or is gone: so are we, with whatever we started
        os.killpg(0, signal.SIGKILL)


def _limit_memory() -> None:
    if sys.platform.startswith("linux"):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MIB * 2**20, MEMORY_MIB * 2**20))


def _limit_cpu(seconds: float) -> None:
    """End this process by signal well after the parent's deadline, if the parent is no longer there to do it."""
    if sys.platform.startswith("linux"):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + 2 * seconds) + 1, hard))

"""The fork server of the sandbox: a small process that forks once per job. Paper section 5; `sandbox.py` is its other end.

It runs by itself (`python -s -S -P server.py`, empty environment), imports nothing but the standard library and `values.py` beside
it, and is never imported: `sandbox.py` shares only the frames' format with it, a length and so many bytes.
Requests come in on stdin as marshal (from the trusted side), answers go out on stdout as JSON (programs had a hand in them).
"""

from __future__ import annotations

import _sitebuiltins
import builtins
import gc
import importlib
import json
import marshal
import os
import secrets
import select
import shutil
import signal
import struct
import sys
import time
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# The files beside this one, wherever they lie; their folder does not stay on the path of the programs.
import work  # noqa: E402, F401  (loaded for the programs that count their work)
from isolation import (  # noqa: E402
    LIBC,
    LINUX,
    NOBODY,
    PR_SET_DUMPABLE,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    STATE,
    confine,
    forks_are_refused,
    holds,
    isolate,
    memory_is_limited,
    nobody_can_import,
)  # fmt: skip
from values import frames, plain  # noqa: E402

del sys.path[0]

# Loaded before the forks: what short programs import. Anything else of the standard library is imported in the fork.
PRELOAD = "bisect cmath collections copy datetime decimal fractions functools heapq itertools math operator random re string typing"


def frame(data):
    """Bytes as one length-prefixed frame."""
    return struct.pack("!I", len(data)) + data


class Child:
    """One running job: its process, its deadline, a file for what it says and a pipe that tells when it is done.

    Not a pipe for what it says: the server would wake at every call's answer.
    """

    def __init__(self, number, job, limits, root):
        self.number, self.limits, self.killed, self.said = number, limits, None, None
        program, entry, calls = job
        self.nonces = [secrets.token_hex(8).encode() for _ in range(len(calls) + 2)]  # the beginning, each call, the end
        self.cwd = os.path.join(root, str(number))
        os.mkdir(self.cwd)
        os.chmod(self.cwd, 0o777)  # the job may run as another user
        self.board = self.stream()
        streams = None
        if entry is None:
            streams = self.stream(calls[0][0].encode("utf-8", "surrogatepass")), self.stream()
            self.said = streams[1]
        self.fd, write = os.pipe()
        self.deadline = time.monotonic() + limits["wall_seconds"]
        self.pid = os.fork()
        if self.pid == 0:
            try:
                run_job(job, limits, self.cwd, self.board, write, self.nonces, streams)
            finally:
                os._exit(70)
        os.close(write)
        if streams:
            os.close(streams[0])

    def stream(self, data=b""):
        """An open file without a name that begins with `data`: real standard input and output, whatever a program does to them."""
        path = os.path.join(self.cwd, "stream")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.unlink(path)
        while data:
            data = data[os.write(fd, data) :]
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    def done(self):
        """Whether it said its last frame, or its end of the pipe is gone; a program that writes into the pipe itself ends nothing."""
        if not os.read(self.fd, 1 << 16):
            return True
        size = os.fstat(self.board).st_size
        return self.nonces[-1] in os.pread(self.board, 1024, max(0, size - 1024))

    def kill(self, why):
        self.killed = self.killed or why
        for kill in (os.killpg, os.kill):
            try:
                kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue  # already gone, or not yet a group of its own

    def finish(self):
        """End and reap the process and say what happened; frames are passed on as the text they are."""
        killed = self.killed
        self.kill("ended")  # what the program left running in its group, or the program itself if it closed the pipe
        _, status, usage = os.wait4(self.pid, 0)
        os.close(self.fd)
        limit, told = int(self.limits["output_kib"] * 1024), []
        for file in (self.board, self.said):
            if file is not None:
                told.append(os.pread(file, min(limit, os.fstat(file).st_size), 0))
                killed = killed or ("output" if len(told[-1]) >= limit else None)
                os.close(file)
        try:
            os.rmdir(self.cwd)  # nearly always empty, and rmtree looks around first
        except OSError:
            shutil.rmtree(self.cwd, ignore_errors=True)
        answer = {
            "job": self.number,
            "frames": frames(told[0].split(b"\n"), self.nonces),
            "said": told[1].decode("utf-8", "replace") if self.said is not None else None,
            "killed": killed,
            "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
        }
        return frame(json.dumps(answer).encode())


def run_job(job, limits, cwd, board, done, nonces, streams):
    """Run one program in the fork and send a frame per call. What happens after its first line is not to be trusted.

    board: the file for the frames. done: the pipe that hears of the last one. streams: open files for standard input and output, for
    a program that is judged by these.
    """
    program, entry, calls = job
    dumps, output, at = json.dumps, os.write, iter(nonces)

    def tell(kind, value, last=False):
        send(dumps([kind, value]), last)

    def send(text, last=False):
        line = b"\n" + (nonces[-1] if last else next(at)) + text.encode("ascii") + b"\n"
        while line:
            line = line[output(board, line) :]
        if last:
            output(done, b".")

    null = os.open(os.devnull, os.O_RDWR)  # sys.stdin and its like, made by the server and never used there, now lead here
    for fd, to in zip((0, 1, 2), (*(streams or (null, null)), null), strict=True):
        os.dup2(to, fd)
    first, second = sorted((board, done))
    os.closerange(3, first)
    os.closerange(first + 1, second)
    os.closerange(second + 1, 256)
    os.chdir(cwd)
    confine(limits)
    sys.modules["random"].seed(0)
    sys.set_int_max_str_digits(0)  # numbers of any length may be printed: the limits above stop what takes too long
    module = types.ModuleType("program" if entry else "__main__")
    sys.modules[module.__name__] = module
    tell("begin", None)
    loading = True
    try:
        code = compile(program, "<program>", "exec")
        loading = False
        exec(code, module.__dict__)
        function = module.__dict__.get(entry)
    except MemoryError:
        return tell("memory", "while the program was loaded", last=True)
    except SystemExit as error:
        if entry or error.code:
            return tell("failed", f"SystemExit: {error}"[:300], last=True)
    except BaseException as error:
        return tell("compile" if loading else "failed", f"{type(error).__name__}: {error}"[:300], last=True)
    if entry is None:
        try:
            for stream in (sys.stdout, sys.__stdout__):
                stream.flush()
        except BaseException as error:
            return tell("failed", f"{type(error).__name__}: {error}"[:300], last=True)
        return tell("end", None, last=True)
    if function is None:
        return tell("failed", f"the program defines no {entry!r}", last=True)
    for arguments in calls:
        try:
            given = function(*arguments)
            try:
                answer = plain(given)
            except TypeError:
                answer = {"\0object": type(given).__name__}  # equal to nothing, and true
            answer = dumps(["value", answer])
        except MemoryError:
            return tell("memory", "during a call", last=True)
        except BaseException as error:
            answer = dumps(["raised", f"{type(error).__name__}: {error}"[:300]])
        send(answer)
    tell("end", None, last=True)


def sweep(root):
    """Between jobs: end every process that a program may have left in our process namespace, reap it, and remove what lies in `root`."""
    try:
        os.kill(-1, signal.SIGKILL)
        while os.waitpid(-1, 0):
            pass
    except (ProcessLookupError, ChildProcessError):
        pass  # the usual case: nobody is left
    for left in os.listdir(root):
        path = os.path.join(root, left)
        shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)


def serve(root, capabilities):
    """Answer requests until stdin closes."""
    STATE["pid"] = os.getpid()
    if os.getuid() == 0 and holds(nobody_can_import):
        STATE["uid"] = NOBODY
    another = STATE["uid"] is not None or capabilities["files_hidden"]  # behind walls a user has nothing that could be touched
    bites = {"no_new_processes": holds(forks_are_refused), "memory_limited": holds(memory_is_limited)}
    capabilities = {"separate_user": another, **capabilities, **bites}
    for name in PRELOAD.split():
        importlib.import_module(name)
    builtins.exit = builtins.quit = _sitebuiltins.Quitter("exit", "Ctrl-D")  # programs use them; only `site` would bring them
    os.set_blocking(1, False)
    children, incoming, outgoing = {}, bytearray(), frame(json.dumps(capabilities).encode())
    compile("", "<program>", "exec")  # makes the syntax tree's types, which each fork would make for itself
    gc.collect()
    gc.freeze()  # keeps the pages of the preloaded modules shared
    while True:
        now = time.monotonic()
        wait = max(0.0, min((c.deadline - now for c in children.values()), default=3600.0))
        ready, writable, _ = select.select([0, *children], [1] if outgoing else [], [], wait)
        if 0 in ready:
            data = os.read(0, 1 << 16)
            if not data:
                break
            incoming += data
            while len(incoming) >= 4 and len(incoming) >= (end := 4 + struct.unpack("!I", incoming[:4])[0]):
                number, job, limits = marshal.loads(bytes(incoming[4:end]))
                del incoming[:end]
                try:
                    child = Child(number, job, limits, root)
                    children[child.fd] = child
                except OSError as error:  # no process, no pipe, no folder: the judge's failure, not the program's
                    outgoing += frame(json.dumps({"job": number, "judge_failure": str(error)}).encode())
        before = len(outgoing)
        for fd in [fd for fd in ready if fd in children]:
            if children[fd].done():
                outgoing += children.pop(fd).finish()
        for child in [c for c in children.values() if c.deadline <= time.monotonic()]:
            if child.killed:  # a process outside its group still holds the pipe
                outgoing += children.pop(child.fd).finish()
            else:
                child.kill("wall")
                child.deadline += 1.0  # for the end of its pipe to arrive, with what it had answered in time
        if len(outgoing) > before and not children and capabilities["pid_namespace"]:
            sweep(root)
        if writable:
            outgoing = outgoing[os.write(1, outgoing) :]
    for child in children.values():
        child.kill("closed")


def once(root):
    """Run the one job that stands on stdin, in this process: for systems that cannot fork. `fresh.py` is its other end."""
    job, limits, nonces = marshal.loads(sys.stdin.buffer.read())
    STATE["pid"] = os.getppid()
    binary = getattr(os, "O_BINARY", 0)
    board, said = (os.open(os.path.join(root, name), os.O_RDWR | os.O_CREAT | os.O_EXCL | binary, 0o600) for name in ("board", "said"))
    _, done = os.pipe()
    streams = (os.open(os.path.join(root, "stdin"), os.O_RDONLY | binary), said) if job[1] is None else None
    for name in PRELOAD.split():
        importlib.import_module(name)
    builtins.exit = builtins.quit = _sitebuiltins.Quitter("exit", "Ctrl-D")
    try:
        run_job(job, limits, os.path.join(root, "cwd"), board, done, nonces, streams)
    finally:
        os._exit(70)


def main(root, parent):
    """Start: die with the parent, isolate, and serve (inside a process namespace as its first process).

    parent: its process id; 0 when bubblewrap stands between, which has isolated this process and ends it with its parent.
    """
    if LINUX:
        LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # no job of the same user may attach to the server as a debugger
    if not parent:
        return serve(root, {"network_blocked": True, "pid_namespace": True, "files_hidden": True})
    if LINUX:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            return
    capabilities = isolate() | {"files_hidden": False}
    if capabilities["pid_namespace"]:
        pid = os.fork()
        if pid:
            os.close(0)
            os.close(1)
            os.waitpid(pid, 0)
            return
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    serve(root, capabilities)


if __name__ == "__main__":
    os.environ.clear()  # here and not in each job, as the next line: forks inherit both
    if LINUX:
        LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    once(sys.argv[1]) if sys.argv[2] == "once" else main(sys.argv[1], int(sys.argv[2]))
